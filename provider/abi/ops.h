/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The operations of the provider: which function serves which verb. */
#ifndef URXE_OPS_H
#define URXE_OPS_H

#include "pabi/pabi.h"

extern const struct pabi_ops urxe_ops;

#endif
