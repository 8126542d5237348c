/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The verbs: urxe_NAME serves operation NAME of libibverbs. */
#pragma once

#include "abi/pabi/pabi.h"

#define OP(result, name, arguments) result urxe_##name arguments;
#include "abi/pabi/ops.h"
#undef OP
