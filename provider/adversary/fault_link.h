/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Links that fault rules took down: DOWN, DOWN=ms and UP of port rules. They
 * are of one fabric. The caller holds the lock of fault_event.c.
 */
#pragma once

#include "base/clock.h"
#include "fault.h"

/*
 * Take the link of @r down, or that of the port of @ctx. Return whether it has
 * to come up at a time, fault_links_next().
 */
bool fault_link_down(const struct fault_rule *r, struct urxe_context *ctx);
/* Set it up; set its rate. */
void fault_link_up(const struct fault_rule *r, struct urxe_context *ctx);
void fault_link_rate(const struct fault_rule *r, struct urxe_context *ctx);
/* Return when the next link changes; UINT64_MAX: none is down. */
uint64_t fault_links_next(void);
/* Change it: it comes up, or starts if its rule has ready=. */
void fault_links_advance(void);
/* Set all of them up; only if they are of fabric @f; forget them. */
void fault_links_up(void);
void fault_links_leave(const struct urxe_fabric *f);
void fault_links_forget(void);
