/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The adversary: a device that uses each freedom that the InfiniBand
 * specification and the manual pages leave to a device. Each decision is a
 * function of the seed (seeded random numbers, chaos/random.h), so that a run
 * can be replayed. docs/adversary.md describes the options.
 *
 * The adversary consists of interposers: functions that are installed in
 * front of the verbs in struct pabi_ops. abi/interposers.c installs them once
 * in a process, before the first device is opened, if URXE_ADVERSARY is set.
 * The files are:
 *
 *	file		options
 *	register.c	none: numbers the objects (object_seed.h)
 *	async.c		async
 *	transport.c	those of send queues; attach.h installs it
 *	recv.c		fill (receives), rnr; fill.h
 *	wake.c		arm, wake
 *	slow.c		slow
 *	undefined.c	undefined
 *
 * The options cm and early are in kernel-shim/preload/ucma.
 */
#pragma once

#include "abi/pabi/pabi.h"
#include "chaos/adversary.h"
#include "engine/core/context.h"

/*
 * Install the interposers in @ops, except that of undefined.c. Called once in
 * a process.
 */
void adversary_wrap(struct pabi_ops *ops, const struct adversary *a);
/*
 * Install the interposer of undefined.c in @ops. Called after all other
 * interposers are installed, those of the referee and the recorder included.
 */
void undefined_wrap(struct pabi_ops *ops, const struct adversary *a);
/* Register @ctx, which was just opened. */
void adversary_opened(const struct adversary *a, struct urxe_context *ctx);
