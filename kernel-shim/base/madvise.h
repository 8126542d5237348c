/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Advice values of madvise(2) that older libc headers do not define. */
#pragma once

#include <sys/mman.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif
