// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm.h"
#include "host.h"
#include "parse.h"
#include "verbs/qp.h"
#include "wire/socket_owner.h"
#include "wire/requester/completer.h"
#include "wire/responder/server.h"

struct host host;

const struct place places[AREAS] = {
	[AREA_ALL] = { 0x0800, 0x1000 },  [AREA_READ] = { 0x2000, 0x800 },
	[AREA_WRITE] = { 0x3000, 0x800 }, [AREA_LOCAL] = { 0x3c00, 0x800 },
	[AREA_FOREIGN] = { 0x4800, 0x400 },
	[AREA_RECV] = { 0x5000, SLOTS * SLOT_BYTES },
	[AREA_SRC] = { 0x7400, 0x800 },
};

static const uint8_t there_ipv4[16] = { [10] = 0xff, 0xff, 10, 91, 0, 2 };
static const uint8_t there_ipv6[16] = { 0xfd, 0x91, [15] = 2 };

void broken(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: check failed: %s\n", file, line, what);
	abort();
}

/* ------------------------------------------------------- socket owner */

/* The harness is the socket owner, without a thread. */
static struct urxe_context *held;
static struct urxe_context *cm_held; /* librdmacm also opens the device */
static struct wire_server *server;
static struct completer completer;

/* URXE_WIRE is read once, but each input has its own IP version. */
static void set_ip_version(void)
{
	held->wire_is_ipv4 = !host.ipv6;
	if (cm_held)
		cm_held->wire_is_ipv4 = !host.ipv6;
}

void __wrap_socket_owner_start(struct urxe_context *ctx, const uint8_t gid[16]);
void __wrap_socket_owner_start(struct urxe_context *ctx, const uint8_t gid[16])
{
	(void)gid;
	if (!held)
		held = ctx;
	else
		cm_held = ctx;
	set_ip_version();
}

void __wrap_socket_owner_stop(struct urxe_context *ctx);
void __wrap_socket_owner_stop(struct urxe_context *ctx)
{
	(void)ctx;
}

/* The caller is the socket owner itself: run the server, do not wait. */
void __wrap_groups_await(struct urxe_fabric *f, const uint8_t own[16]);
void __wrap_groups_await(struct urxe_fabric *f, const uint8_t own[16])
{
	(void)f;
	(void)own;
	server_run(server);
}

/* The provider is linked into this program and need not be loaded. */
void __wrap_shim_load_provider(void);
void __wrap_shim_load_provider(void)
{
}

static void run_groups(void)
{
	struct pollfd fds[URXE_MAX_MCAST_GRP];
	uint32_t i;

	for (i = 0; i < URXE_MAX_MCAST_GRP; i++)
		fds[i].revents = POLLIN;
	server_run_groups(server, fds);
}

void host_receive(void)
{
	unsigned int left;

	/* each call sends one portion of a long READ's response */
	while (server_run(server) || !net_is_empty()) {
		left = net_waiting();
		run_groups();
		if (left && left == net_waiting() && !server_run(server) &&
		    left == net_waiting())
			net_lose();
	}
}

static void hold(bool on)
{
	struct urxe_fabric *f = held->fabric;

	store_seq_cst(&f->dev->wire.socket_owner, on ? process_id(f) : 0);
	if (!on) {
		server_free(server);
		return;
	}
	must(!server_make(held, host.here, &server));
	/* over IPv6, READ responses go through the inbox */
	completer_begin(&completer, held);
	if (!host.ipv6)
		server->bypass = &completer.bypass;
}

uint32_t host_epsn(int i)
{
	return load_relaxed(&to_uqp(host.qp[i].qp)->sh->epsn) & WIRE_PSN_MASK;
}

/* ------------------------------------------------------- device */

static void fill_memory(void)
{
	uint32_t i;

	memset(host.mem, SECRET, MEM_BYTES);
	for (i = 0; i < places[AREA_ALL].bytes; i++)
		host.mem[places[AREA_ALL].at + i] = (uint8_t)(i & 0x7f);
	for (i = 0; i < places[AREA_READ].bytes; i++)
		host.mem[places[AREA_READ].at + i] = (uint8_t)(i * 3 & 0x7f);
	for (i = 0; i < places[AREA_SRC].bytes; i++)
		host.mem[places[AREA_SRC].at + i] = (uint8_t)(i * 5 & 0x7f);
	memcpy(host.base, host.mem, MEM_BYTES);
	memset(host.receivable, 0, MEM_BYTES);
}

void host_open(void)
{
	struct ibv_device **list;

	parse_place();
	setenv("URXE_WIRE", "10.91.0.1", 1);
	list = ibv_get_device_list(NULL);
	must(list && list[0]);
	host.ctx = ibv_open_device(list[0]);
	must(host.ctx && held);
	ibv_free_device_list(list);
	must(!fcntl(host.ctx->async_fd, F_SETFL, O_NONBLOCK));
	host.mem = aligned_alloc(4096, MEM_BYTES);
	host.pd = ibv_alloc_pd(host.ctx);
	host.other_pd = ibv_alloc_pd(host.ctx);
	must(host.mem && host.pd && host.other_pd);
}

/* ------------------------------------------------------- keys */

#define REMOTE                                                \
	(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_ATOMIC | ACCESS_FLUSH_GLOBAL)

static const struct {
	enum area area;
	unsigned int rights;
} grants[] = {
	[KEY_ALL] = { AREA_ALL, REMOTE },
	[KEY_READ] = { AREA_READ, IBV_ACCESS_REMOTE_READ },
	[KEY_WRITE] = { AREA_WRITE, IBV_ACCESS_REMOTE_WRITE },
	[KEY_LOCAL] = { AREA_LOCAL, 0 },
	[KEY_FOREIGN] = { AREA_FOREIGN, REMOTE },
};

void host_register(int k)
{
	const struct place *p = &places[grants[k].area];
	struct key *key = &host.key[k];

	*key = (struct key){ .at = p->at,
			     .bytes = p->bytes,
			     .rights = grants[k].rights,
			     .qp = -1,
			     .foreign = k == KEY_FOREIGN,
			     .may = true };
	key->mr = ibv_reg_mr(key->foreign ? host.other_pd : host.pd,
			     host.mem + p->at, p->bytes,
			     (int)grants[k].rights | IBV_ACCESS_LOCAL_WRITE |
				     (k == KEY_ALL ? IBV_ACCESS_MW_BIND : 0));
	must(key->mr);
	key->rkey = key->mr->rkey;
}

static void keys_begin(void)
{
	int k;

	for (k = 0; k < KEY_WINDOW; k++)
		host_register(k);
	host.local = ibv_reg_mr(host.pd, host.mem, MEM_BYTES,
				IBV_ACCESS_LOCAL_WRITE);
	host.window = ibv_alloc_mw(host.pd, IBV_MW_TYPE_2);
	must(host.local && host.window);
	host.key[KEY_WINDOW] = (struct key){ .rkey = host.window->rkey,
					     .qp = QP_RC };
}

static void keys_end(void)
{
	int k;

	must(!ibv_dealloc_mw(host.window));
	must(!ibv_dereg_mr(host.local));
	for (k = 0; k < KEY_WINDOW; k++)
		if (host.key[k].mr)
			must(!ibv_dereg_mr(host.key[k].mr));
}

/* ------------------------------------------------------- QPs */

static uint8_t gid_index(void)
{
	union ibv_gid gid;
	int i;

	for (i = 1; i < 64; i += 2) /* odd indexes are RoCE v2 */
		if (!ibv_query_gid(host.ctx, 1, i, &gid) &&
		    !memcmp(gid.raw, host.here, 16))
			return (uint8_t)i;
	must(!"the GID table contains host.here");
}

static struct ibv_ah_attr way(void)
{
	struct ibv_ah_attr a = { .is_global = 1,
				 .port_num = 1,
				 .grh = { .sgid_index = gid_index(),
					  .hop_limit = 64 } };

	memcpy(a.grh.dgid.raw, host.there, 16);
	return a;
}

void host_create(int i)
{
	struct host_qp *q = &host.qp[i];
	struct ibv_qp_init_attr init = {
		.srq = i == QP_SRQ ? host.srq : NULL,
		.send_cq = i == QP_SMALL ? host.small_cq : host.cq,
		.recv_cq = i == QP_SMALL ? host.small_cq : host.cq,
		.cap = { .max_send_wr = 16,
			 .max_recv_wr = 16,
			 .max_send_sge = 2,
			 .max_recv_sge = 2,
			 .max_inline_data = 64 },
		.qp_type = i == QP_UC ? IBV_QPT_UC :
			   i == QP_UD ? IBV_QPT_UD :
					IBV_QPT_RC,
	};

	struct ibv_qp_init_attr_ex target = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = host.xrcd,
	};

	q->qp = i == QP_XRC ? ibv_create_qp_ex(host.ctx, &target) :
			      ibv_create_qp(host.pd, &init);
	must(q->qp);
	q->type = i == QP_XRC ? target.qp_type : init.qp_type;
	q->cq = init.send_cq;
	host_connect(i);
}

static void to_init(const struct host_qp *q)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qkey = 0x1234,
				 .qp_access_flags = q->rights };

	must(!ibv_modify_qp(q->qp, &a,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    (q->type == IBV_QPT_UD ?
					     IBV_QP_QKEY :
					     IBV_QP_ACCESS_FLAGS)));
}

static void to_rtr(const struct host_qp *q, int i)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = q->mtu == 1024 ? IBV_MTU_1024 : IBV_MTU_256,
		.dest_qp_num = PEER_QPN(i),
		.rq_psn = FIRST_PSN,
		.max_dest_rd_atomic = i == QP_RTR ? 0 : 4,
		.min_rnr_timer = 1,
		.ah_attr = way(),
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
		   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (is_reliable(q))
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	must(!ibv_modify_qp(q->qp, &a,
			    q->type == IBV_QPT_UD ? IBV_QP_STATE : mask));
}

static void to_rts(const struct host_qp *q)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS,
				 .sq_psn = FIRST_PSN,
				 .timeout = 14,
				 .retry_cnt = 2,
				 .rnr_retry = 2,
				 .max_rd_atomic = 4 };
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (q->type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	must(!ibv_modify_qp(q->qp, &a, mask));
}

void host_connect(int i)
{
	struct host_qp *q = &host.qp[i];

	q->generation++;
	q->mtu = i == QP_LONG ? 1024 : 256;
	q->rights = i == QP_POOR ? 0 : REMOTE;
	q->psn = FIRST_PSN;
	q->under_way = 0;
	q->unsure = q->unknown_early = false;
	q->n_early = 0;
	q->sent_high = q->answered = FIRST_PSN;
	/* a response that is still on its way may answer the new connection */
	if (net_is_empty()) {
		q->acked = FIRST_PSN;
		memset(q->data, 0, sizeof(q->data));
	}
	to_init(q);
	to_rtr(q, i);
	if (i != QP_RTR && i != QP_XRC)
		to_rts(q);
}

void host_destroy(int i)
{
	if (i == QP_UD)
		host_join(false);
	must(!ibv_destroy_qp(host.qp[i].qp));
	host.qp[i].qp = NULL;
	queues_forget(i);
}

/* IPv4 multicast group 239.1.2.3 */
const uint8_t host_group[16] = { [10] = 0xff, 0xff, 239, 1, 2, 3 };

void host_join(bool in)
{
	union ibv_gid gid;

	if (in == host.in_group)
		return;
	memcpy(gid.raw, host_group, 16);
	if (in)
		must(!ibv_attach_mcast(host.qp[QP_UD].qp, &gid, 0));
	else
		must(!ibv_detach_mcast(host.qp[QP_UD].qp, &gid, 0));
	host.in_group = in;
}

void host_port(bool up)
{
	if (up != host.port_down)
		return;
	fabric_set_port(held->fabric, 0, up);
	host.port_down = !up;
}

/* ------------------------------------------------------- one input */

static void xrc_begin(void)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex srq = {
		.attr = { .max_wr = 8, .max_sge = 2 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = host.pd,
		.cq = host.cq,
	};

	host.xrcd = ibv_open_xrcd(host.ctx, &domain);
	must(host.xrcd);
	srq.xrcd = host.xrcd;
	host.xrc_srq = ibv_create_srq_ex(host.ctx, &srq);
	must(host.xrc_srq && !ibv_get_srq_num(host.xrc_srq, &host.srqn));
	host.xrc_shared.n = host.xrc_shared.first = host.xrc_shared.lost = 0;
}

void host_begin(bool ipv6)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 8,
						   .max_sge = 2 } };
	struct ibv_ah_attr a;
	int i;

	host.ipv6 = ipv6;
	host.here = ipv6 ? net_ipv6 : net_ipv4;
	host.there = ipv6 ? there_ipv6 : there_ipv4;
	set_ip_version();
	hold(true);
	fill_memory();
	keys_begin();
	host.cq = ibv_create_cq(host.ctx, 512, NULL, NULL, 0);
	host.small_cq = ibv_create_cq(host.ctx, 3, NULL, NULL, 0);
	host.srq = ibv_create_srq(host.pd, &srq);
	a = way();
	host.ah = ibv_create_ah(host.pd, &a);
	must(host.cq && host.small_cq && host.srq && host.ah);
	host.shared.n = host.shared.first = host.shared.lost = 0;
	xrc_begin();
	for (i = 0; i < QPS; i++)
		host_create(i);
	rdmacm_begin();
}

static void finish(int i)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	const struct queue *q = &host.qp[i].sq;
	uint32_t n;

	must(!ibv_modify_qp(host.qp[i].qp, &a, IBV_QP_STATE));
	check_polls(false);
	if (i == QP_SMALL)
		return;
	/* all WRs have completed; the rest of them are unsignaled */
	must(!host.qp[i].rq.n);
	for (n = 0; n < q->n; n++)
		must(!q->wr[(q->first + n) % POSTED].signaled);
}

void host_end(void)
{
	int i;

	host_receive();
	host_port(true);
	host_join(false);
	rdmacm_end();
	for (i = 0; i < QPS; i++) {
		finish(i);
		host_destroy(i);
	}
	check_memory();
	must(!ibv_destroy_ah(host.ah));
	must(!ibv_destroy_srq(host.srq));
	must(!ibv_destroy_srq(host.xrc_srq));
	must(!ibv_close_xrcd(host.xrcd));
	must(!ibv_destroy_cq(host.cq));
	must(!ibv_destroy_cq(host.small_cq));
	keys_end();
	hold(false);
}
