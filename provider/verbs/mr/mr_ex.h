/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The argument of ibv_reg_mr_ex, which an installed verbs.h may not define.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* struct ibv_mr_init_attr; later releases append members. */
struct mr_attr {
	size_t length;
	int access;
	uint64_t given; /* comp_mask: GIVEN_* of the members below */
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
};

#define GIVEN_IOVA 1u
#define GIVEN_ADDR 2u
#define GIVEN_FD 4u
#define GIVEN_FD_OFFSET 8u
#define GIVEN_ALL (GIVEN_IOVA | GIVEN_ADDR | GIVEN_FD | GIVEN_FD_OFFSET)
