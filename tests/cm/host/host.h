/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Included before each source of the stand-in: its channels must not look
 * like those of the library under test.
 */
#define _GNU_SOURCE
#include "fabric/fabric.h"
#undef CM_FIFO_MODE
#define CM_FIFO_MODE (S_IFIFO | 01700)
