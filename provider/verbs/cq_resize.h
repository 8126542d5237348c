/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef URXE_CQ_RESIZE_H
#define URXE_CQ_RESIZE_H

#include <infiniband/verbs.h>

/* EINVAL also when more completions wait than the new size has room for. */
int urxe_resize_cq(struct ibv_cq *cq, int cqe);

#endif
