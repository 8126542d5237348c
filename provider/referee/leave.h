/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Objects that are still there when a context is closed, or the process ends. */
#pragma once

#include "shadow.h"

/* Look when the process ends by exit() or main's return. */
void leave_watch(void);

/* The context is about to be closed: its objects go with it. */
void leave_context(struct ibv_context *context);
