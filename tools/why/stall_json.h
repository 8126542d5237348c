/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Waits and listeners as JSON, for urxe why and urxe top. */
#pragma once

#include "common/json.h"
#include "stall.h"

void json_put_process(struct json *j, const struct view_process *p);
void json_put_or_null(struct json *j, const char *name, bool is, uint64_t n);
/*
 * The member "stalls": the waits of process @pid (0: any) and QP @qpn (0:
 * any).
 */
void stalls_put(struct json *j, const struct stalls *s, const struct view *v,
		int32_t pid, uint32_t qpn);
/* The member "listeners": all rdma_cm listeners of the fabric. */
void listeners_put(struct json *j, const struct view *v);
