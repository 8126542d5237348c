/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The names that fault rules can use, and their values (fault.h): errnos, QP
 * types, opcodes, packet fates, completion statuses, events and calls.  The
 * tables are constant.
 */
#pragma once

#include "fault.h"

struct fault_name {
	const char *name;
	uint32_t value;
};

/*
 * A completion status, and the WRs that can complete with it: opcodes
 * (FAULT_OP) and QP types (FAULT_TYPE).
 */
struct fault_status {
	const char *name;
	uint32_t status, ops, types;
};

struct fault_event {
	const char *name;
	enum fault_what what;
	uint32_t event;
};

/* Each ends with an entry whose name is NULL. */
extern const struct fault_name fault_errnos[], fault_types[], fault_ops[];
extern const struct fault_name fault_transmits[];
extern const struct fault_status fault_statuses[];
extern const struct fault_event fault_events[];

extern const char *const fault_call_name[FAULT_CALLS];
