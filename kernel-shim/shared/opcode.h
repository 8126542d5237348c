/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Opcodes that older versions of infiniband/verbs.h do not define. */
#pragma once

#define URXE_WR_FLUSH 14
#define URXE_WR_ATOMIC_WRITE 15
#define URXE_WC_FLUSH 8
#define URXE_WC_ATOMIC_WRITE 9
/* placement types of a FLUSH, and a selectivity level */
#define URXE_FLUSH_GLOBAL (1u << 0)
#define URXE_FLUSH_PERSISTENT (1u << 1)
#define URXE_FLUSH_MR 1
