/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Detection of objects that were not destroyed when their context is closed,
 * or when the process exits.
 */
#pragma once

#include "shadow.h"

/*
 * Arrange for the check at exit(3) and at the return of main().  Called once.
 */
void leave_watch(void);

/*
 * The context is about to be closed.  Report its objects that are left, and
 * free their shadows.  Takes referee_lock().
 */
void leave_context(struct ibv_context *context);
