/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * State of the built-in subnet administrator (mad/sa.c): registered services.
 * Readers and writers hold dev.lock.
 */
#pragma once

#include <stdint.h>

#include "base/atomic.h"

#define URXE_MAX_SA_SERVICE 256
#define URXE_SERVICE_BYTES 176 /* of a ServiceRecord; IB 15.2.5.14 */
#define URXE_SERVICE_FOREVER UINT64_MAX

struct urxe_sa_service {
	/* stored last, as the lock's holder may be killed */
	_Atomic uint32_t used;
	uint64_t ends; /* end of the lease, clock_now() */
	uint8_t record[URXE_SERVICE_BYTES]; /* as in a MAD */
};
