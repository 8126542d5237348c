/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The words of rules (fault.h). */
#pragma once

#include "fault.h"

struct fault_name {
	const char *name;
	uint32_t value;
};

/* How a WR can end, and which WRs those are. */
struct fault_status {
	const char *name;
	uint32_t status, ops, types;
};

struct fault_event {
	const char *name;
	enum fault_what what;
	uint32_t event;
};

/* Each ends with a NULL. */
extern const struct fault_name fault_errnos[], fault_types[], fault_ops[];
extern const struct fault_name fault_fates[];
extern const struct fault_status fault_statuses[];
extern const struct fault_event fault_events[];

extern const char *const fault_call_name[FAULT_CALLS];
