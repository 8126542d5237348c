/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Functions that only the files of preload/umad call. */
#pragma once

#include <errno.h>
#include <string.h>

#include "mad/mad_device.h"
#include "preload/shim.h"
#include "umad.h"

/* The device of a descriptor. */
struct umad {
	struct urxe_fabric *f;
	uint32_t index; /* in urxe_dev.umad[] */
	uint32_t device; /* of its port */
	size_t header; /* bytes before a MAD, for read and write */
};
bool umad_of_fd(int fd, struct umad *u);

/* A MAD that an agent of this process sends. */
struct umad_send {
	struct umad umad;
	struct umad_record rec; /* with the first bytes of the MAD */
	const uint8_t *mad;
	size_t len;
};
/* send.c: send a MAD, which may be lost, as a packet. */
void umad_transmit(const struct umad_send *s);

/*
 * pending.c: requests of this process without an answer.  After the timeout
 * of a request it is sent again, as often as its header says, and then
 * returned to the sender with the status ETIMEDOUT.
 */
/* Add a request; -ENOMEM, or the thread for timeouts cannot be started. */
int pending_add(const struct umad_send *s);
