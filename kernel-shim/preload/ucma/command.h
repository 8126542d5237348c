/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Internal declarations of preload/ucma: the commands that librdmacm writes
 * to /dev/infiniband/rdma_cm, implemented with the connection manager
 * (cm/cm.h).
 *
 * ucma_write() (ucma.c) parses a command in the thread that called write(2),
 * locks the tables of the connection manager, calls the ucma_*() function of
 * the command, and unlocks them.  The functions of section "Commands" and
 * those that take a struct ucma or a struct cm are called with that lock held
 * and cancellation disabled, except where "No lock" is stated.  GET_EVENT
 * releases the lock while it sleeps.  A service thread (watch.c) runs the
 * timers.
 */
#pragma once

#include <rdma/ib_user_sa.h>
#include <string.h>

#include "cm/cm.h"
#include "preload/shim.h"
#include "ucma.h"

/* One command in progress, on the stack of the thread that wrote it. */
struct ucma {
	struct cm cm;
	struct cm_chan *c; /* the channel of fd */
	/* its id, if the table in ucma.c has .id for the command */
	struct cm_id *id;
	int fd; /* -1: another thread has closed it */
	uint64_t ino; /* of its FIFO, in case fd is closed meanwhile */
	int flags; /* GET_EVENT: status flags of fd when it began */
	/* a copy of its parameters, padded with zeros to UCMA_COMMAND_MAX */
	void *cmd;
	size_t in_len, out_len; /* bytes of parameters and response buffer */
	/* cancellation state of the application; disabled meanwhile */
	int cancel_state;
	/* GET_EVENT: the command whose return it awaits (returned.c) */
	struct cm_cause after;
	/* ns for which the return is delayed after its events; 0: none */
	uint64_t early;
};

/* PathRecord in wire format, big endian (IB specification, 15.2.5.16). */
struct ucma_wire_path {
	uint64_t service_id;
	uint8_t dgid[16], sgid[16];
	uint16_t dlid, slid;
	uint32_t flow_hop; /* flow label << 8 | hop limit */
	uint8_t traffic_class;
	uint8_t reversible; /* reversible << 7 | number of paths */
	uint16_t pkey;
	uint16_t sl;
	uint8_t mtu, rate, life_time; /* selector << 6 | value */
	uint8_t preference;
	uint8_t pad[6];
};
static_assert(sizeof(struct ucma_wire_path) ==
		      sizeof(((struct ib_path_rec_data *)0)->path_rec),
	      "size of a PathRecord in a MAD");

/*
 * Additions of rdma-core 60, which the headers of many systems lack: command
 * numbers, an option of QUERY, and the members of their structs that are
 * used.
 */
#define UCMA_CMD_RESOLVE_IB_SERVICE 23
#define UCMA_CMD_WRITE_CM_EVENT 24
#define UCMA_QUERY_IB_SERVICE 3

struct ucma_write_event {
	uint32_t id;
	uint32_t reserved;
	uint32_t event;
	uint32_t status;
	/* copied to param of the event, which is not aligned */
	uint64_t arg;
};

struct ucma_query_service_resp {
	uint32_t records;
	uint32_t reserved;
};

/* ucma.c --------------------------------------------------------------- */

/*
 * Return the channel of descriptor @fd of this process, or NULL if it is no
 * channel of this fabric.
 */
struct cm_chan *ucma_chan(struct ucma *u, int fd);
/*
 * Return the channel of the command.  NULL: *err is -ENODEV (no channel of
 * this fabric) or -EBADF (another thread has closed the descriptor).
 */
struct cm_chan *ucma_own_chan(struct ucma *u, int *err);
/*
 * Return the id with that number, as the application knows it.  NULL: *err is
 * -ENOENT (no such id) or -EINVAL (an id of another channel).
 */
struct cm_id *ucma_id(struct ucma *u, uint32_t number, int *err);
/* The same for an id that is bound to the device; else *err is -EINVAL. */
struct cm_id *ucma_id_dev(struct ucma *u, uint32_t number, int *err);
/* Copy an address from a command; return false if its family is unknown. */
bool ucma_take_addr(const void *from, union cm_addr *to);
/*
 * Write a response to the address in the command; -EFAULT if that is NULL.
 */
int ucma_put(uint64_t response, const void *from, size_t len);

/* Commands: 0 or -errno ------------------------------------------------- */

int ucma_bind_ip(struct ucma *u);
int ucma_bind(struct ucma *u);
int ucma_listen(struct ucma *u);
int ucma_resolve_ip(struct ucma *u);
int ucma_resolve_addr(struct ucma *u);
int ucma_resolve_ib_service(struct ucma *u);
int ucma_resolve_route(struct ucma *u);
/*
 * Store the path of u->id and raise ROUTE_RESOLVED; -EINVAL unless its
 * address is resolved.  The packet lifetime is 4.096 us << @life.
 */
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
/* GET_EVENT of a channel that another thread has closed: 0 or -errno. */
int ucma_event_closed(const struct ucma *u);
int ucma_write_cm_event(struct ucma *u);
int ucma_migrate_id(struct ucma *u);

int ucma_set_option(struct ucma *u);
int ucma_join_ip_mcast(struct ucma *u);
int ucma_join_mcast(struct ucma *u);
int ucma_leave_mcast(struct ucma *u);

/* fault.c -------------------------------------------------------------- */

struct fault_rule;
/*
 * Count the command for the fault rules and return the rule that makes it
 * fail, or NULL (chaos/fault.h).
 */
const struct fault_rule *ucma_fault(const struct ucma *u, size_t command);
/* Run a command with the effect of @r; @run is its normal function. */
int ucma_run_faulty(struct ucma *u, const struct fault_rule *r,
		    int (*run)(struct ucma *u));

/* route.c -------------------------------------------------------------- */

/* Return whether @a is an address of this host.  @a: IP, not a wildcard. */
bool ucma_is_local(struct urxe_fabric *f, const union cm_addr *a);
/* keep_open.c: note that this process listens. */
void ucma_note_listen(void);
/*
 * keep_open.c: if it listens, open a device, so that the process receives
 * requests of other hosts.  Called after a command, outside of the shim and
 * without the lock.
 */
void ucma_keep_device_open(void);
/*
 * Set *src to the source address of packets to @dst, and keep its port.  If
 * @dst is a multicast group and *src is an address, route from that address.
 * Returns 0 or the -errno of the kernel, such as -ENETUNREACH.
 */
int ucma_route(const struct urxe_dev *dev, const union cm_addr *dst,
	       union cm_addr *src);
/* Path MTU to @dst, as enum ibv_mtu; IBV_MTU_256 if it is unknown. */
uint8_t ucma_path_mtu(const union cm_addr *dst);
/*
 * Default of RDMA_OPTION_ID_AFONLY for an id that is bound to @a: whether its
 * port is owned in its address family only.
 */
bool ucma_one_family(const union cm_addr *a);
/* Return whether this process has CAP_NET_BIND_SERVICE (ports below 1024). */
bool ucma_is_privileged(void);

/* delay.c --------------------------------------------------------------- */

/*
 * Install the adversary's delays of events in @cm (chaos/adversary.h).  No
 * lock.
 */
void ucma_install_delays(struct cm *cm);
/*
 * Draw the time in ns for which a command's return is delayed after its
 * events; 0: none.
 */
uint64_t ucma_delay_return(void);

/* returned.c ----------------------------------------------------------- */

/* Identify the command that this thread begins. */
struct cm_cause ucma_cause(void);
/*
 * Note that the command has raised events for this process.  Called before
 * the tables are unlocked, that is, before another thread can take them.
 */
void ucma_raised(struct ucma *u);
/* Note that the command is about to return to the application.  No lock. */
void ucma_return(const struct ucma *u);
/* Wait until another thread has returned from that command.  No lock. */
void ucma_await_return(const struct cm_cause *c);

/* watch.c -------------------------------------------------------------- */

/*
 * Start the service thread unless it runs: ids of this process have timers,
 * or peers that may die.  No lock.
 */
void ucma_watch(void);
/* Return whether this process has a service thread. */
bool ucma_watching(void);
/*
 * Return whether the service thread could not be started; then a thread that
 * waits for events must call ucma_tick() itself.
 */
bool ucma_unwatched(void);
/*
 * Run timers and check peers once.  Returns the time in ns until the next
 * tick; 0: there is nothing to do.  Locks the tables itself.
 */
uint64_t ucma_tick(void);
/*
 * Destroy the channels that no process has open.  No lock.  Gives up if the
 * lock is held for half a second.
 */
void ucma_sweep(void);
/*
 * Sleep for at most @ns, or until a timer is started after ucma_timers()
 * returned @timers.  Another process may start it.  No lock.
 */
void ucma_sleep(uint32_t timers, uint64_t ns);
/* Number of timers that were started in the fabric. */
uint32_t ucma_timers(void);

/* trace.c: these do nothing unless URXE_TRACE names a file -------------- */

/* Have the messages that @cm sends recorded (cm/message.c).  No lock. */
void ucma_trace_messages(struct cm *cm);
/* Return the time, for the @begin of ucma_trace_command(); 0: no trace. */
uint64_t ucma_trace_begin(void);
/* Record a command and its result @ret, 0 or -errno.  No lock. */
void ucma_trace_command(const struct ucma *u, unsigned int command,
			uint64_t begin, int ret);
/* Record an event that GET_EVENT returns to the application. */
void ucma_trace_event(const struct rdma_ucm_event_resp *e);
