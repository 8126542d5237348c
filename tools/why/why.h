/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* urxe why: the waits of a fabric (stall.h). */
#pragma once

#include <stdio.h>

/*
 * Print the waits of the fabric in directory @dir when a time limit has
 * expired (trial.c). Nothing is printed if there is no fabric.
 */
void why_report(const char *dir, FILE *to);
