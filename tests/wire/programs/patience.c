// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
/*
 * A library to preload (LD_PRELOAD).  It sets the ACK timeout of a program's
 * rdma_cm connections to 19, which is 4.096 us * 2^19 = 2.1 s
 * (rdma_set_option(3), RDMA_OPTION_ID_ACK_TIMEOUT).  Retries then do not run
 * out on a busy machine before the event that a test expects.
 *
 * tests/wire/ends.sh preloads it.  rdma_resolve_addr() is the interposed
 * function; it returns -1 if the option cannot be set.
 */
#include <dlfcn.h>
#include <rdma/rdma_cma.h>

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src,
		      struct sockaddr *dst, int timeout)
{
	int (*resolve)(struct rdma_cm_id *, struct sockaddr *,
		       struct sockaddr *,
		       int) = dlsym(RTLD_NEXT, "rdma_resolve_addr");
	int (*set)(struct rdma_cm_id *, int, int, void *, size_t) =
		dlsym(RTLD_NEXT, "rdma_set_option");
	uint8_t number = 19;

	if (!resolve || !set ||
	    set(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &number,
		sizeof(number)))
		return -1;
	return resolve(id, src, dst, timeout);
}
