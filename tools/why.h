/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include <stdio.h>

/* What waits in the fabric in directory dir; nothing if there is none. */
void why_report(const char *dir, FILE *to);
