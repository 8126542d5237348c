/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Lesson 12: XRC.  One connection of A leads to two processes, B and C. */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "lesson.h"

enum { SIZE = 32 };

/* The numbers that B and C send to A, and A to B */
struct numbers {
	uint32_t qpn, srqn;
};

static struct side self; /* one in each process */

static void put(int sock, struct numbers n)
{
	if (write(sock, &n, sizeof(n)) != sizeof(n))
		exit(1);
}

static struct numbers get(int sock)
{
	struct numbers n;

	if (read(sock, &n, sizeof(n)) != sizeof(n))
		exit(1); /* the other process has printed the reason */
	return n;
}

/* Open the XRC domain that the file identifies. */
static struct ibv_xrcd *open_domain(int file)
{
	struct ibv_xrcd_init_attr init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = file,
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(self.pd->context, &init);

	must_have(xrcd, "ibv_open_xrcd");
	return xrcd;
}

/* Create the SRQ of this process, with its PD and CQ.  Return its number. */
static uint32_t make_srq(struct ibv_xrcd *xrcd)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = self.pd,
		.xrcd = xrcd,
		.cq = self.cq,
	};
	struct ibv_sge sge = part_of(&self, 0, SIZE);
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_srq *srq = ibv_create_srq_ex(self.pd->context, &init);
	uint32_t number;

	must_have(srq, "ibv_create_srq_ex");
	must(ibv_post_srq_recv(srq, &wr, &bad), "ibv_post_srq_recv");
	must(ibv_get_srq_num(srq, &number), "ibv_get_srq_num");
	return number;
}

/* A's QP sends.  The target QP belongs to the domain: no PD and no CQ. */
static void make_qp(enum ibv_qp_type type, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex init = { .qp_type = type };

	if (type == IBV_QPT_XRC_SEND) {
		init.comp_mask = IBV_QP_INIT_ATTR_PD;
		init.pd = self.pd;
		init.send_cq = self.cq;
		init.cap = usual_qp(&self).cap;
	} else {
		init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		init.xrcd = xrcd;
	}
	self.qp = ibv_create_qp_ex(self.pd->context, &init);
	must_have(self.qp, "ibv_create_qp_ex");
	qp_to_init(self.qp, usual_attr());
}

static void connect_to(uint32_t qpn)
{
	qp_to_rtr(self.qp, qpn, usual_attr());
	qp_to_rts(self.qp, usual_attr());
}

/* B and C: one receive each.  B has the target QP. */
static void serve(const char *name, int sock, int file)
{
	struct numbers me = { 0 };
	struct ibv_xrcd *xrcd;

	side_open(&self, name, open_device(), IBV_ACCESS_LOCAL_WRITE);
	xrcd = open_domain(BREAK == 2 && *name == 'C' ? -1 : file);
	me.srqn = make_srq(xrcd);
	if (*name == 'B') {
		make_qp(IBV_QPT_XRC_RECV, xrcd);
		me.qpn = self.qp->qp_num;
	}
	if (BREAK == 3 && self.qp)
		post_recv(&self, 0, part_of(&self, 0, SIZE));
	put(sock, me);
	if (self.qp)
		connect_to(get(sock).qpn);
	put(sock, me); /* ready */
	get(sock); /* A has printed its completion */
	next_completion(self.cq);
	printf("  %s has \"%s\"\n", name, self.memory);
	put(sock, me);
	pause(); /* until A exits */
}

static void send_to(const char *name, uint32_t srqn)
{
	struct ibv_sge sge = part_of(&self, 0, SIZE);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED,
				  .qp_type.xrc.remote_srqn = srqn };

	snprintf(self.memory, SIZE, "a word to %s", name);
	post_send(&self, &wr);
	printf("A to %s: %s\n", name,
	       ibv_wc_status_str(next_completion(self.cq).status));
}

static int start(const char *name, int file)
{
	int sock[2];

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, sock) ? errno : 0,
	     "socketpair");
	if (fork()) {
		close(sock[1]);
		return sock[0];
	}
	close(sock[0]);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* do not outlive A */
	serve(name, sock[1], file);
	exit(0);
}

int main(void)
{
	int file = fileno(tmpfile());
	int to_b = start("B", file);
	struct numbers b = get(to_b), me = { 0 };
	int to_c = start("C", file);
	struct numbers c = get(to_c);

	side_open(&self, "A", open_device(), IBV_ACCESS_LOCAL_WRITE);
	make_qp(IBV_QPT_XRC_SEND, NULL);
	me.qpn = self.qp->qp_num;
	connect_to(b.qpn);
	put(to_b, me);
	get(to_b);
	get(to_c);
	send_to("B", b.srqn);
	put(to_b, me); /* B may poll now */
	get(to_b);
	send_to("C", BREAK == 1 ? c.srqn + 100 : c.srqn);
	if (!BREAK) {
		put(to_c, me);
		get(to_c);
	}
	return 0;
}
