// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Several devices in one fabric (urxe run --devices): identity, traffic
 * between them, port state, GIDs, and objects that cannot be combined.  Node a
 * is on urxe1, node b on urxe2.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../types.h"

#define DEVICES 3

/* Two processes, or one (@where); nodes on urxe1 and urxe2. */
static void open_two(struct duo *d, enum where where, const struct opts *o)
{
	device = "urxe1";
	device_b = "urxe2";
	duo_open_unconnected(d, where, MEM_HEAP, MEM_SHARED, o);
}

/* Each device has a name, a GUID, an index, and GIDs that no other one has. */
START_TEST(identity)
{
	struct ibv_device_attr attr;
	struct ibv_device **list;
	struct ibv_context *ctx;
	union ibv_gid gid[DEVICES];
	uint64_t guid[DEVICES];
	char name[16];
	int i, j, n;

	list = ibv_get_device_list(&n);
	ck_nonnull(list);
	ck_assert_int_eq(n, DEVICES);
	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "urxe%d", i);
		ck_assert_str_eq(ibv_get_device_name(list[i]), name);
		snprintf(name, sizeof(name), "uverbs%d", 1000 + i);
		ck_assert_str_eq(list[i]->dev_name, name);
		guid[i] = ibv_get_device_guid(list[i]);
		ctx = ibv_open_device(list[i]);
		ck_nonnull(ctx);
		ck_ok(ibv_query_device(ctx, &attr));
		ck_assert(attr.node_guid == guid[i]);
		ck_ok(ibv_query_gid(ctx, 1, 0, &gid[i]));
		ck_assert_int_eq(gid[i].raw[0], 0xfe);
		for (j = 0; j < i; j++) {
			ck_assert(guid[i] != guid[j]);
			ck_assert_mem_ne(&gid[i], &gid[j], 16);
		}
		if (i) {
			ck_ok(ibv_query_gid(ctx, 1, 3, &gid[i]));
			ck_assert_int_eq(gid[i].raw[12], 127);
			ck_assert_int_eq(gid[i].raw[15], 1 + i);
			ck_ok(ibv_query_gid(ctx, 1, 0, &gid[i]));
		}
		ck_ok(ibv_close_device(ctx));
	}
	ibv_free_device_list(list);
}
END_TEST

static void do_event(struct node *b, void *arg)
{
	expect_async(b->ctx, *(enum ibv_event_type *)arg, NULL);
}

/* RC between two devices; the ports of both count the packets. */
START_TEST(rc)
{
	const unsigned long long sent = port_file(1, "counters/port_xmit_data");
	const unsigned long long got = port_file(2, "counters/port_rcv_data");
	const unsigned long long none = port_file(0, "counters/port_rcv_data");
	struct opts o = default_opts();
	struct duo d;

	open_two(&d, SAME_PROCESS + (enum where)_i, &o);
	duo_connect(&d);
	node_fill(&d.a, 0, 4096, 1);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 4096, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	ck_assert(b_has(&d, 0, 4096, 1));
	b_recv(&d, 2, 8192, 64);
	ck_ok(post(&d, IBV_WR_SEND, 3, 0, 64, 0, 0));
	expect_ok(d.a.scq, 3, IBV_WC_SEND);
	ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_SUCCESS);
	ck_ok(post(&d, IBV_WR_RDMA_READ, 4, 4096, 64, 8192, 0));
	expect_ok(d.a.scq, 4, IBV_WC_RDMA_READ);
	duo_close(&d);
	ck_assert_uint_ge(port_file(1, "counters/port_xmit_data"), sent + 1024);
	ck_assert_uint_ge(port_file(2, "counters/port_rcv_data"), got + 1024);
	ck_assert_uint_eq(port_file(0, "counters/port_rcv_data"), none);
}
END_TEST

/*
 * A port that is down neither sends nor receives, and only contexts of its
 * device get the event.
 */
START_TEST(port_of_one_device)
{
	struct opts o = default_opts();
	enum ibv_event_type err = IBV_EVENT_PORT_ERR;
	enum ibv_event_type active = IBV_EVENT_PORT_ACTIVE;
	const char *down = _i ? "urxe1" : "urxe2";
	struct duo d;

	o.timeout = 8;
	o.retry_cnt = 1;
	open_two(&d, TWO_PROCESSES, &o);
	duo_connect(&d);
	urxe_port("down", down);
	if (_i) {
		expect_async(d.a.ctx, IBV_EVENT_PORT_ERR, NULL);
		b_expect_no_async(&d);
	} else {
		expect_no_async(d.a.ctx);
		on_b(&d, do_event, &err, sizeof(err));
	}
	ck_assert_int_eq(port_of(d.a.ctx).state,
			 _i ? IBV_PORT_DOWN : IBV_PORT_ACTIVE);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 64, 0, 0));
	expect(d.a.scq, 1, IBV_WC_RETRY_EXC_ERR);
	urxe_port("up", down);
	if (_i)
		expect_async(d.a.ctx, IBV_EVENT_PORT_ACTIVE, NULL);
	else
		on_b(&d, do_event, &active, sizeof(active));
	duo_renew(&d);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 2, 0, 64, 0, 0));
	expect_ok(d.a.scq, 2, IBV_WC_RDMA_WRITE);
	duo_close(&d);
}
END_TEST

/* The port of a third device has no effect on a connection. */
START_TEST(port_of_other_device)
{
	struct opts o = default_opts();
	struct duo d;

	open_two(&d, SAME_PROCESS, &o);
	duo_connect(&d);
	urxe_port("down", "urxe0");
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 64, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	expect_no_async(d.a.ctx);
	urxe_port("up", "urxe0");
	duo_close(&d);
}
END_TEST

/* The GID of another device than that of the QPN: nothing responds. */
START_TEST(rc_wrong_device)
{
	struct ibv_context *other = open_named("urxe0");
	struct opts o = default_opts();
	struct addr at;
	struct duo d;

	o.timeout = 8;
	o.retry_cnt = 1;
	open_two(&d, SAME_PROCESS, &o);
	node_connect(&d.b, &d.at_a);
	at = d.at_b;
	ck_ok(ibv_query_gid(other, 1, 0, &at.gid));
	node_connect(&d.a, &at);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 64, 0, 0));
	expect(d.a.scq, 1, IBV_WC_RETRY_EXC_ERR);
	duo_close(&d);
	ck_ok(ibv_close_device(other));
}
END_TEST

/* A datagram reaches a QP only with the GID of its device. */
START_TEST(ud)
{
	struct ibv_context *other = open_named("urxe0");
	struct opts o = default_opts();
	struct ibv_ah *right, *wrong;
	union ibv_gid gid;
	struct ibv_wc wc;
	struct duo d;

	open_two(&d, SAME_PROCESS + (enum where)_i, &o);
	turn(&d, IBV_QPT_UD);
	ck_ok(ibv_query_gid(other, 1, 0, &gid));
	right = make_ah(&d.a, &d.at_b.gid, 0);
	wrong = make_ah(&d.a, &gid, 0);
	b_recv(&d, 1, 0, GRH + 64);
	ck_ok(post_ud(&d.a, 2, 0, 64, wrong, d.at_b.qpn, QKEY));
	expect_ok(d.a.scq, 2, IBV_WC_SEND);
	ck_assert(!b_try_recv(&d, &wc));
	ck_ok(post_ud(&d.a, 3, 0, 64, right, d.at_b.qpn, QKEY));
	expect_ok(d.a.scq, 3, IBV_WC_SEND);
	ck_assert_int_eq(b_wait_recv(&d).wr_id, 1);
	/* not while the port of the receiver is down */
	b_recv(&d, 4, 0, GRH + 64);
	urxe_port("down", "urxe2");
	ck_ok(post_ud(&d.a, 5, 0, 64, right, d.at_b.qpn, QKEY));
	expect_ok(d.a.scq, 5, IBV_WC_SEND);
	ck_assert(!b_try_recv(&d, &wc));
	urxe_port("up", "urxe2");
	ck_ok(ibv_destroy_ah(wrong));
	ck_ok(ibv_destroy_ah(right));
	duo_close(&d);
	ck_ok(ibv_close_device(other));
}
END_TEST

/* An XRC domain belongs to one device, even if the file is the same. */
START_TEST(xrc_domains)
{
	struct ibv_context *a = open_named("urxe1"), *b = open_named("urxe2");
	struct ibv_context *again = open_named("urxe1");
	struct ibv_xrcd_init_attr init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = memfd_create("domain", MFD_CLOEXEC),
		.oflags = O_CREAT | O_EXCL
	};
	struct ibv_xrcd *x, *y;

	ck_assert_int_ge(init.fd, 0);
	x = ibv_open_xrcd(a, &init);
	ck_nonnull(x);
	ck_errno(ibv_open_xrcd(again, &init), EINVAL);
	y = ibv_open_xrcd(b, &init);
	ck_nonnull(y);
	ck_ok(ibv_close_xrcd(x));
	ck_ok(ibv_close_xrcd(y));
	close(init.fd);
	ck_ok(ibv_close_device(a));
	ck_ok(ibv_close_device(b));
	ck_ok(ibv_close_device(again));
}
END_TEST

/* Objects of two devices are not combined; the importer gets the device. */
START_TEST(objects)
{
	struct ibv_context *a = open_named("urxe1"), *b = open_named("urxe2");
	struct ibv_context *copy;
	struct ibv_pd *pd = ibv_alloc_pd(a);
	struct ibv_cq *cq = ibv_create_cq(b, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = { .send_cq = cq,
					 .recv_cq = cq,
					 .cap = { 1, 1, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };

	ck_nonnull(pd);
	ck_nonnull(cq);
	ck_errno(ibv_create_qp(pd, &init), EINVAL);
	copy = ibv_import_device(fcntl(b->cmd_fd, F_DUPFD_CLOEXEC, 0));
	ck_nonnull(copy);
	ck_assert_str_eq(ibv_get_device_name(copy->device), "urxe2");
	urxe_port("down", "urxe2");
	ck_assert_int_eq(port_of(copy).state, IBV_PORT_DOWN);
	urxe_port("up", "urxe2");
	ck_ok(ibv_destroy_cq(cq));
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_close_device(copy));
	ck_ok(ibv_close_device(a));
	ck_ok(ibv_close_device(b));
}
END_TEST

int main(void)
{
	Suite *s = suite("devices");

	/* before the first process of the fabric creates it */
	setenv("URXE_DEVICES", "3", 1);
	add(s, identity);
	add_loop(s, rc, 2);
	add_loop(s, port_of_one_device, 2);
	add(s, port_of_other_device);
	add(s, rc_wrong_device);
	add_loop(s, ud, 2);
	add(s, xrc_domains);
	add(s, objects);
	return run(s);
}
