/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include <stdio.h>

/*
 * A string of JSON, with its quotes.  Names and paths may hold any bytes; those
 * that are no UTF-8 are taken for Latin-1.  It can stand in an HTML page's
 * <script>: what would end that, or a line there, is written as a number.
 */
void json_string(FILE *to, const char *s);
