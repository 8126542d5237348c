/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Device memory, written by a remote process
 *
 * Device memory (DM) is memory on the NIC.  A program cannot dereference it:
 * it gets a handle, and copies to and from it with ibv_memcpy_to_dm and
 * ibv_memcpy_from_dm.  After registration it is an ordinary target of RDMA.
 *
 * Two processes, each with its own device context, as on two machines:
 *
 *   A, the target                       B, the writer
 *   1 allocate DM, register it          1 register a buffer
 *   2 create a QP                       2 create a QP
 *   3 ---- exchange QP number, GID, address and rkey ----
 *   4 connect the QP                    4 connect the QP
 *                                       5 RDMA WRITE into A's DM
 *   <------ "done", over the socket -----
 *   6 read the DM back, compare
 *
 *   urxe run -- dm_write [-d DEVICE] [-g GID_INDEX]
 *
 * Nothing here is specific to urxe: the program also runs on a NIC that has
 * device memory.  To run it on two machines, replace the socketpair by a TCP
 * connection.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

enum {
	PORT = 1,
	DM_SIZE = 4096,
	/* some NICs copy DM in whole words: use multiples of 4 */
	TEXT_OFFSET = 64,
	TEXT_SIZE = 64,
};

static const char greeting[TEXT_SIZE] = "written by B into the memory of "
					"A's device";

/* Information that the peer needs to connect and to write */
struct peer_info {
	union ibv_gid gid; /* address of the port, on RoCE */
	uint64_t addr; /* start of the registered memory */
	uint32_t rkey; /* remote key of the registered memory */
	uint32_t qpn; /* QP number */
	uint32_t psn; /* sequence number of the first packet */
	uint16_t lid; /* address of the port, on InfiniBand */
	uint8_t mtu;
};

struct side {
	char name; /* 'A' or 'B' */
	int sock; /* connection to the other side */
	int gid_index;
	struct ibv_context *ctx;
	struct ibv_port_attr port;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_dm *dm; /* A only */
	struct ibv_mr *mr; /* A: device memory, B: buffer */
	char buffer[TEXT_SIZE]; /* B only */
	struct peer_info me, peer;
};

static void __attribute__((noreturn, format(printf, 2, 3)))
die(const struct side *s, const char *fmt, ...)
{
	int err = errno;
	va_list ap;

	fprintf(stderr, "%c: ", s->name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, ": %s\n", strerror(err));
	exit(1);
}

static void __attribute__((format(printf, 2, 3)))
report(const struct side *s, const char *fmt, ...)
{
	va_list ap;

	printf("%c: ", s->name);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

static void open_device(struct side *s, const char *name)
{
	struct ibv_device **list;
	int i;

	list = ibv_get_device_list(NULL);
	if (!list)
		die(s, "ibv_get_device_list");
	for (i = 0; list[i]; i++)
		if (!name || !strcmp(name, ibv_get_device_name(list[i])))
			break;
	errno = ENODEV;
	if (!list[i])
		die(s, "device %s", name ? name : "(any)");
	s->ctx = ibv_open_device(list[i]);
	if (!s->ctx)
		die(s, "ibv_open_device");
	/* an open context remains valid when the list is freed */
	ibv_free_device_list(list);
	if (ibv_query_port(s->ctx, PORT, &s->port))
		die(s, "ibv_query_port");
	if (ibv_query_gid(s->ctx, PORT, s->gid_index, &s->me.gid))
		die(s, "ibv_query_gid %d", s->gid_index);
	s->me.lid = s->port.lid;
	s->me.mtu = s->port.active_mtu;
}

/* Step 1 of A: allocate device memory, and permit remote writes. */
static void make_device_memory(struct side *s)
{
	struct ibv_alloc_dm_attr attr = { .length = DM_SIZE };
	struct ibv_device_attr_ex dev;

	if (ibv_query_device_ex(s->ctx, NULL, &dev))
		die(s, "ibv_query_device_ex");
	report(s, "the device has %llu bytes of device memory",
	       (unsigned long long)dev.max_dm_size);
	s->dm = ibv_alloc_dm(s->ctx, &attr);
	if (!s->dm)
		die(s, "ibv_alloc_dm");
	/*
	 * The program has no address for device memory, so the region must be
	 * zero based: addresses in work requests are offsets from its start.
	 * REMOTE_WRITE requires LOCAL_WRITE.
	 */
	s->mr = ibv_reg_dm_mr(s->pd, s->dm, 0, DM_SIZE,
			      IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE |
				      IBV_ACCESS_REMOTE_WRITE);
	if (!s->mr)
		die(s, "ibv_reg_dm_mr");
	s->me.addr = 0;
	s->me.rkey = s->mr->rkey;
}

/* Step 1 of B: register a buffer that the device only reads. */
static void make_buffer(struct side *s)
{
	memcpy(s->buffer, greeting, TEXT_SIZE);
	s->mr = ibv_reg_mr(s->pd, s->buffer, TEXT_SIZE, 0);
	if (!s->mr)
		die(s, "ibv_reg_mr");
}

/* Step 2: create a QP. */
static void make_qp(struct side *s)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.cap = { .max_send_wr = 1,
			 .max_recv_wr = 1,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = 0,
		.port_num = PORT,
		/* remote access: both the QP and the MR must permit it */
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};

	s->qp = ibv_create_qp(s->pd, &init);
	if (!s->qp)
		die(s, "ibv_create_qp");
	errno = ibv_modify_qp(s->qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				      IBV_QP_ACCESS_FLAGS);
	if (errno)
		die(s, "ibv_modify_qp to INIT");
	s->me.qpn = s->qp->qp_num;
	s->me.psn = getpid() & 0xffffff; /* any 24-bit value */
}

/* Step 3: exchange the information over a socket, without RDMA. */
static void exchange_info(struct side *s)
{
	if (write(s->sock, &s->me, sizeof(s->me)) != sizeof(s->me))
		die(s, "write to the socket of the peer");
	errno = ECONNRESET;
	if (recv(s->sock, &s->peer, sizeof(s->peer), MSG_WAITALL) !=
	    sizeof(s->peer))
		die(s, "read from the socket of the peer");
}

/* Step 4: set the peer (RTR, ready to receive), then RTS (ready to send). */
static void connect_qp(struct side *s)
{
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		/* the smaller path MTU of both ports */
		.path_mtu = s->me.mtu < s->peer.mtu ? s->me.mtu : s->peer.mtu,
		.dest_qp_num = s->peer.qpn,
		.rq_psn = s->peer.psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12, /* 0.64 ms */
		.ah_attr = {
			.dlid = s->peer.lid,
			.port_num = PORT,
			/* RoCE routes by GID, InfiniBand by LID */
			.is_global =
				s->port.link_layer == IBV_LINK_LAYER_ETHERNET,
			.grh = { .dgid = s->peer.gid,
				 .sgid_index = s->gid_index,
				 .hop_limit = 64 },
		},
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = s->me.psn,
		.timeout = 14, /* 4.096 us << 14: ACK timeout of 67 ms */
		.retry_cnt = 7,
		.rnr_retry = 7, /* 7: retry without limit */
		.max_rd_atomic = 1,
	};

	errno = ibv_modify_qp(s->qp, &rtr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER);
	if (errno)
		die(s, "ibv_modify_qp to RTR");
	errno = ibv_modify_qp(s->qp, &rts,
			      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_MAX_QP_RD_ATOMIC);
	if (errno)
		die(s, "ibv_modify_qp to RTS");
}

/* Step 5 of B: post one RDMA WRITE and wait for its completion. */
static void write_to_peer(struct side *s)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)s->buffer,
		.length = TEXT_SIZE,
		.lkey = s->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = s->peer.addr + TEXT_OFFSET,
			     .rkey = s->peer.rkey },
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n;

	errno = ibv_post_send(s->qp, &wr, &bad);
	if (errno)
		die(s, "ibv_post_send");
	/* Only the completion guarantees that the bytes have arrived. */
	do
		n = ibv_poll_cq(s->cq, 1, &wc);
	while (n == 0);
	if (n < 0)
		die(s, "ibv_poll_cq");
	errno = EIO;
	if (wc.status != IBV_WC_SUCCESS)
		die(s, "RDMA WRITE: %s", ibv_wc_status_str(wc.status));
	report(s, "wrote %d bytes, completion status: %s", TEXT_SIZE,
	       ibv_wc_status_str(wc.status));
}

/* Step 6 of A: compare the device memory with the text. */
static void read_back(struct side *s)
{
	char text[TEXT_SIZE];

	errno = ibv_memcpy_from_dm(text, s->dm, TEXT_OFFSET, TEXT_SIZE);
	if (errno)
		die(s, "ibv_memcpy_from_dm");
	errno = EBADMSG;
	if (memcmp(text, greeting, TEXT_SIZE))
		die(s, "the device memory does not contain the text");
	report(s, "the device memory now contains \"%s\"", text);
}

/* Destroy the objects in the reverse order of their creation. */
static void take_down(struct side *s)
{
	if (ibv_destroy_qp(s->qp) || ibv_dereg_mr(s->mr) ||
	    (s->dm && ibv_free_dm(s->dm)) || ibv_destroy_cq(s->cq) ||
	    ibv_dealloc_pd(s->pd) || ibv_close_device(s->ctx))
		die(s, "destroying the objects");
}

static void run(struct side *s, const char *device)
{
	char done = 0;

	open_device(s, device);
	/* A QP can access only the MRs of its protection domain. */
	s->pd = ibv_alloc_pd(s->ctx);
	if (!s->pd)
		die(s, "ibv_alloc_pd");
	s->cq = ibv_create_cq(s->ctx, 1, NULL, NULL, 0);
	if (!s->cq)
		die(s, "ibv_create_cq");
	if (s->name == 'A')
		make_device_memory(s);
	else
		make_buffer(s);
	make_qp(s);
	exchange_info(s);
	connect_qp(s);
	/*
	 * Do not write before both QPs are connected.  RC would retransmit,
	 * but it is simpler not to depend on that.
	 */
	exchange_info(s);
	if (s->name == 'B') {
		write_to_peer(s);
		/* an RDMA WRITE does not notify A: send a message */
		if (write(s->sock, &done, 1) != 1)
			die(s, "write to the socket of A");
	} else {
		errno = ECONNRESET;
		if (read(s->sock, &done, 1) != 1)
			die(s, "read from the socket of B");
		read_back(s);
	}
	take_down(s);
}

int main(int argc, char *argv[])
{
	struct side s = { .gid_index = 0 };
	const char *device = NULL;
	int sv[2], opt, status = 0;
	pid_t b;

	while ((opt = getopt(argc, argv, "d:g:")) != -1) {
		if (opt == 'd') {
			device = optarg;
		} else if (opt == 'g') {
			s.gid_index = atoi(optarg);
		} else {
			fprintf(stderr,
				"usage: %s [-d DEVICE] [-g GID_INDEX]\n",
				argv[0]);
			return 2;
		}
	}
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sv)) {
		perror("socketpair");
		return 1;
	}
	/* Fork before the first verb: each side opens the device itself. */
	b = fork();
	if (b < 0) {
		perror("fork");
		return 1;
	}
	s.name = b ? 'A' : 'B';
	s.sock = sv[b ? 0 : 1];
	close(sv[b ? 1 : 0]);
	run(&s, device);
	if (b && (waitpid(b, &status, 0) < 0 || status))
		return 1;
	return 0;
}
