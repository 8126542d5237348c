/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* man ibv_import_mr; PDs and DMs have theirs in pd.h and dm.h. */
#ifndef URXE_IMPORT_H
#define URXE_IMPORT_H

#include <infiniband/verbs.h>

struct ibv_mr *urxe_import_mr(struct ibv_pd *pd, uint32_t handle);
void urxe_unimport_mr(struct ibv_mr *mr);

#endif
