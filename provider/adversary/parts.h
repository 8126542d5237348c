/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The adversary's parts: each puts its verbs in front of those in ops. */
#pragma once

#include "adversary.h"

/* An object of that context was made; async.c. */
void async_begin(struct ibv_context *ibctx);

void async_wrap(const struct adversary *a);
void meet_wrap(struct pabi_ops *ops, const struct adversary *a); /* meet.c */
void carry_wrap(struct pabi_ops *ops, const struct adversary *a); /* carry.c */
void recv_wrap(struct pabi_ops *ops, const struct adversary *a); /* recv.c */
void wake_wrap(struct pabi_ops *ops, const struct adversary *a); /* wake.c */
void slow_wrap(struct pabi_ops *ops, const struct adversary *a); /* slow.c */
