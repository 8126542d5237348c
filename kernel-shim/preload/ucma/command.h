/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The commands that librdmacm writes, over the connection manager (cm/cm.h). */
#pragma once

#include <rdma/ib_user_sa.h>
#include <string.h>

#include "cm/cm.h"
#include "preload/shim.h"
#include "ucma.h"

/* One command on its way.  The connection manager's lock is held. */
struct ucma {
	struct cm cm;
	struct cm_chan *c; /* of fd */
	struct cm_id *id; /* that it is about, if the table in ucma.c says so */
	int fd;
	void *cmd; /* a copy of it; zeros behind what came */
	size_t in_len, out_len;
	int cancel_state; /* the application's; ours is disabled */
	struct cm_cause after; /* GET_EVENT: the command that it awaits */
	uint64_t early; /* ns by which the command returns after its events */
};

/* A path record as it travels (IB specification, 15.2.5.16). */
struct ucma_wire_path {
	uint64_t service_id;
	uint8_t dgid[16], sgid[16];
	uint16_t dlid, slid;
	uint32_t flow_hop; /* flow label << 8 | hop limit */
	uint8_t traffic_class;
	uint8_t reversible; /* << 7 | number of paths */
	uint16_t pkey;
	uint16_t sl;
	uint8_t mtu, rate, life_time; /* selector << 6 | value */
	uint8_t preference;
	uint8_t pad[6];
};
static_assert(sizeof(struct ucma_wire_path) ==
		      sizeof(((struct ib_path_rec_data *)0)->path_rec),
	      "as MADs have it");

/*
 * Since rdma-core 60, so that the headers of many systems lack it:
 * commands, an option of QUERY, and the parts of the commands that matter.
 */
#define UCMA_CMD_RESOLVE_IB_SERVICE 23
#define UCMA_CMD_WRITE_CM_EVENT 24
#define UCMA_QUERY_IB_SERVICE 3

struct ucma_write_event {
	uint32_t id;
	uint32_t reserved;
	uint32_t event;
	uint32_t status;
	uint64_t arg; /* in the event at param, which is not aligned */
};

struct ucma_query_service_resp {
	uint32_t records;
	uint32_t reserved;
};

/* ucma.c --------------------------------------------------------------- */

/* The channel behind a descriptor of this process, or NULL. */
struct cm_chan *ucma_chan(struct ucma *u, int fd);
/* By the application's number; NULL: -ENOENT or -EINVAL in err. */
struct cm_id *ucma_id(struct ucma *u, uint32_t number, int *err);
/* The same, but it must have led to the device. */
struct cm_id *ucma_id_dev(struct ucma *u, uint32_t number, int *err);
/* An address in a command: a copy, or false if its family is unknown. */
bool ucma_take_addr(const void *from, union cm_addr *to);
/* Answer at the address that the command gives. */
int ucma_put(uint64_t response, const void *from, size_t len);

/* The commands, 0 or -errno -------------------------------------------- */

int ucma_bind_ip(struct ucma *u);
int ucma_bind(struct ucma *u);
int ucma_listen(struct ucma *u);
int ucma_resolve_ip(struct ucma *u);
int ucma_resolve_addr(struct ucma *u);
int ucma_resolve_ib_service(struct ucma *u);
int ucma_resolve_route(struct ucma *u);
/* The end of that: 4.096 us << life is the packet life time. */
int ucma_route_resolved(struct ucma *u, uint8_t tos, uint32_t flow,
			uint8_t life);

int ucma_query_route(struct ucma *u);
int ucma_query(struct ucma *u);
int ucma_init_qp_attr(struct ucma *u);

int ucma_connect(struct ucma *u);
int ucma_accept(struct ucma *u);
int ucma_reject(struct ucma *u);
int ucma_disconnect(struct ucma *u);
int ucma_notify(struct ucma *u);

int ucma_get_event(struct ucma *u);
int ucma_write_cm_event(struct ucma *u);
int ucma_migrate_id(struct ucma *u);

int ucma_set_option(struct ucma *u);
int ucma_join_ip_mcast(struct ucma *u);
int ucma_join_mcast(struct ucma *u);
int ucma_leave_mcast(struct ucma *u);

/* fault.c -------------------------------------------------------------- */

struct fault_rule;
/* The rule that strikes this command, or NULL (chaos/fault.h). */
const struct fault_rule *ucma_fault(const struct ucma *u, size_t command);
/* It comes as the rule says; run: what the command does else. */
int ucma_run_faulty(struct ucma *u, const struct fault_rule *r,
		    int (*run)(struct ucma *u));

/* route.c -------------------------------------------------------------- */

/* Is a (IP, not a wildcard) an address of this machine? */
bool ucma_is_local(struct urxe_fabric *f, const union cm_addr *a);
/* hear.c: somebody listens; after the command, outside of the shim: other hosts
 * are heard from now on. */
void ucma_listens(void);
void ucma_hear(void);
/*
 * The source address that packets to dst have, to a group the one that src is
 * already; its port is kept.
 * -ENETUNREACH and the like as the kernel says.
 */
int ucma_route(const union cm_addr *dst, union cm_addr *src);
/* Of packets to dst, as enum ibv_mtu. */
uint8_t ucma_path_mtu(const union cm_addr *dst);
/* Is a's wildcard that of one family, if nobody says otherwise? */
bool ucma_one_family(const union cm_addr *a);
/* May this process bind ports below 1024? */
bool ucma_is_privileged(void);

/* late.c --------------------------------------------------------------- */

/* Have it raise events as the adversary wants it (chaos/adversary.h). */
void ucma_meet(struct cm *cm);
/* ns by which others have the command's events before it returns; 0: not. */
uint64_t ucma_meet_early(void);

/* returned.c ----------------------------------------------------------- */

/* The command that this thread begins. */
struct cm_cause ucma_cause(void);
/* The command has raised events for this process; the tables are locked. */
void ucma_raised(struct ucma *u);
/* The command is about to return to the application. */
void ucma_return(const struct ucma *u);
/* Wait until another thread has returned from that command. */
void ucma_await_return(const struct cm_cause *c);

/* watch.c -------------------------------------------------------------- */

/* Have the thread watch over ids whose peers may die or whose timers run. */
void ucma_watch(void);
/* Is there such a thread of this process? */
bool ucma_watching(void);
/* The thread could not be started: whoever waits has to look by itself. */
bool ucma_unwatched(void);
/* Look once, and again in so many ns; 0: there is nothing to look after. */
uint64_t ucma_tick(void);
/* So long, but not if another process has made timers for us since then. */
void ucma_sleep(uint32_t timers, uint64_t ns);
uint32_t ucma_timers(void);

/* trace.c: have it tell of its messages (cm/message.c), if there is a trace;
 * when a command begins, 0 if nobody wants to know; how it ended (0 or
 * -errno); what the program is given. */
void ucma_trace_meet(struct cm *cm);
uint64_t ucma_trace_begin(void);
void ucma_trace_command(const struct ucma *u, unsigned int command,
			uint64_t begin, int ret);
void ucma_trace_event(const struct rdma_ucm_event_resp *e);
