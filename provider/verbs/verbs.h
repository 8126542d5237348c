/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Declarations of the verbs: urxe_NAME implements operation NAME of
 * libibverbs.  abi/pabi/ops.h lists them, and says what each returns.
 */
#pragma once

#include "abi/pabi/pabi.h"

#define OP(result, name, arguments) result urxe_##name arguments;
#include "abi/pabi/ops.h"
#undef OP
