// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
/*
 * To be preloaded: a program's connections of rdma_cm have the ACK timeout
 * number 19, 2.1 seconds, so that what is to happen within their retries
 * happens within them on the busiest machine.
 */
#include <dlfcn.h>
#include <rdma/rdma_cma.h>

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src,
		      struct sockaddr *dst, int timeout)
{
	int (*resolve)(struct rdma_cm_id *, struct sockaddr *,
		       struct sockaddr *, int) =
		dlsym(RTLD_NEXT, "rdma_resolve_addr");
	int (*set)(struct rdma_cm_id *, int, int, void *, size_t) =
		dlsym(RTLD_NEXT, "rdma_set_option");
	uint8_t number = 19;

	if (!resolve || !set ||
	    set(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &number,
		sizeof(number)))
		return -1;
	return resolve(id, src, dst, timeout);
}
