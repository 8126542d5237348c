/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Commands to the connection manager (write() to /dev/infiniband/rdma_cm)
 * without librdmacm.
 */
#pragma once

#include <infiniband/verbs.h>
/* included after verbs.h, whose types it uses */
#include <rdma/rdma_user_cm.h>
#include <stddef.h>

#include "base.h"

/*
 * Event types, enum rdma_cm_event_type.  <rdma/rdma_cma.h>, which defines
 * them, cannot be included together with <rdma/rdma_user_cm.h>.
 */
enum {
	ADDR_RESOLVED = 0,
	ADDR_ERROR = 1,
	ROUTE_RESOLVED = 2,
	CONNECT_REQUEST = 4,
	CONNECT_RESPONSE = 5,
	UNREACHABLE = 7,
	REJECTED = 8,
	ESTABLISHED = 9,
	DISCONNECTED = 10,
	USER = 18,
	INTERNAL = 19
};

/* Not defined by older kernel headers. */
#define RESOLVE_IB_SERVICE 23
#define WRITE_CM_EVENT 24
#define QUERY_IB_SERVICE 3

int raw_open(void);
/*
 * Write command @nr with @in bytes of @body.  @out is the size of the
 * response buffer, as the command header states it.  Return 0 or -errno.
 */
int raw_command(int fd, uint32_t nr, const void *body, size_t in, size_t out);
uint32_t raw_create(int fd, int ps, uint8_t type, uint64_t uid);
uint32_t raw_destroy(int fd, uint32_t id);
int raw_bind(int fd, uint32_t id, struct sockaddr_in a);
int raw_resolve(int fd, uint32_t id, struct sockaddr_in a);
int raw_route(int fd, uint32_t id);
int raw_listen(int fd, uint32_t id);
int raw_connect(int fd, uint32_t id);
int raw_accept(int fd, uint32_t id);
int raw_confirm(int fd, uint32_t id);
int raw_reject(int fd, uint32_t id);
int raw_disconnect(int fd, uint32_t id);
int raw_notify(int fd, uint32_t id);
int raw_attr_init(int fd, uint32_t id);
int raw_attr_rtr(int fd, uint32_t id);
int raw_attr_rts(int fd, uint32_t id);
int raw_join(int fd, uint32_t id);
/* Get the next event, which must be of type @type. */
struct rdma_ucm_event_resp raw_next(int fd, uint32_t type);
int raw_port(int fd, uint32_t id);

#define raw_send(fd, name, cmd, out) \
	raw_command(fd, RDMA_USER_CM_CMD_##name, cmd, sizeof(*(cmd)), out)

static inline uint64_t raw_to(void *p)
{
	return (uintptr_t)p;
}
