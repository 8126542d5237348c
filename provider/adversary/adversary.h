/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The adversary: a device that does all that the specification lets a device
 * do, by a seed.  It is entered through the verbs that make and end objects.
 */
#pragma once

#include "abi/pabi/pabi.h"
#include "chaos/adversary.h"
#include "engine/context.h"

/* Put the adversary's verbs in front of those in ops, once in a process. */
void adversary_wrap(struct pabi_ops *ops, const struct adversary *a);
/* The same for what completions leave undefined, after all interposers. */
void undefined_wrap(struct pabi_ops *ops, const struct adversary *a);
/* A context was opened. */
void adversary_opened(const struct adversary *a, struct urxe_context *ctx);
