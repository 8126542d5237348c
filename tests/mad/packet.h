/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Sending and receiving MADs by the system calls of a umad device. */
#pragma once

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/ib_user_mad.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../mark.h"

#define MAD 256
#define PATIENCE_MS 60000
#define GET 1
#define GET_RESPONSE 0x81
#define GET_TABLE 0x12

struct packet {
	struct ib_user_mad_hdr hdr;
	uint8_t mad[MAD];
};

static inline int open_umad(const char *name, int flags)
{
	int fd = open(name, O_RDWR | O_CLOEXEC | flags);

	ck_assert_msg(fd >= 0, "%s: %s", name, strerror(errno));
	ck_assert_int_eq(ioctl(fd, IB_USER_MAD_ENABLE_PKEY), 0);
	return fd;
}

static inline int try_register(int fd, uint8_t qpn, uint8_t mgmt_class,
			       int method, uint8_t rmpp)
{
	struct ib_user_mad_reg_req req = {
		.qpn = qpn,
		.mgmt_class = mgmt_class,
		.mgmt_class_version = mgmt_class == 3 ? 2 : 1,
		.oui = { 0, 0x14, 5 },
		.rmpp_version = rmpp,
	};

	if (method)
		req.method_mask[0] = 1ul << method;
	return ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &req) ? -errno :
							     (int)req.id;
}

static inline int register_agent(int fd, uint8_t qpn, uint8_t mgmt_class,
				 int method, uint8_t rmpp)
{
	int id = try_register(fd, qpn, mgmt_class, method, rmpp);

	ck_assert_int_ge(id, 0);
	return id;
}

/* A request of an agent, to a LID. */
static inline struct packet request(int id, uint16_t lid, uint8_t mgmt_class,
				    uint8_t method, uint16_t attribute)
{
	struct packet p = { 0 };

	p.hdr.id = (uint32_t)id;
	p.hdr.lid = htobe16(lid);
	p.hdr.qpn = htobe32(mgmt_class == 1 ? 0 : 1);
	p.hdr.timeout_ms = PATIENCE_MS;
	p.mad[0] = 1;
	p.mad[1] = mgmt_class;
	p.mad[2] = mgmt_class == 3 ? 2 : 1;
	p.mad[3] = method;
	p.mad[15] = 0x77; /* the low half of the TID is the program's */
	p.mad[16] = (uint8_t)(attribute >> 8);
	p.mad[17] = (uint8_t)attribute;
	p.mad[38] = 0x14;
	p.mad[39] = 5;
	return p;
}

static inline void send_packet(int fd, const struct packet *p)
{
	ck_assert_int_eq(write(fd, p, sizeof(*p)), sizeof(*p));
}

static inline bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static inline struct packet receive(int fd)
{
	struct packet p;

	ck_assert(readable(fd, PATIENCE_MS));
	ck_assert_int_eq(read(fd, &p, sizeof(p)), sizeof(p));
	ck_assert_uint_eq(p.hdr.length, sizeof(p));
	return p;
}

static inline unsigned int status_of(const struct packet *p)
{
	return p->mad[4] << 8 | p->mad[5];
}

#define add_loop(s, test, n)                            \
	do {                                            \
		TCase *tc_ = tcase_create(#test);       \
		tcase_set_timeout(tc_, 300);            \
		tcase_add_loop_test(tc_, test, 0, (n)); \
		suite_add_tcase(s, tc_);                \
	} while (0)
#define add(s, test) add_loop(s, test, 1)
