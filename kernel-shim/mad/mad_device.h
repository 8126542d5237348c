/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Delivery of MADs between the umad devices of a fabric (struct urxe_umad),
 * and their routes through the subnet.
 */
#pragma once

#include <rdma/ib_user_mad.h>

#include "agents.h"

/*
 * What is written to the FIFO of a umad device: one MAD, or the head of a
 * longer one, which is in the file mad.d/INDEX.GEN.NUMBER.  The kernel's header
 * has 6 reserved bytes.  While the record is in the FIFO, the first four have
 * the number.
 */
struct umad_record {
	struct ib_user_mad_hdr hdr;
	uint8_t mad[MAD_BYTES_MAX];
};
static_assert(sizeof(struct umad_record) == 320, "as many as the kernel's");
#define UMAD_SPOOLED(rec) ((rec)->hdr.reserved)

/* Open a device of port k: a descriptor, O_CLOEXEC.  -ENOMEM, -errno */
int umad_device_open(struct urxe_fabric *f, uint32_t k);
/* The index of the open device behind a FIFO, or -1. */
int umad_device_find(const struct urxe_dev *dev, uint64_t ino);
/*
 * Write a MAD of len bytes, which may be more than MAD_BYTES_MAX, to a device.
 * -ENXIO: no process has it open; -EAGAIN: its FIFO is full; -errno
 */
int umad_device_put(struct urxe_fabric *f, uint32_t index,
		    struct umad_record *rec, const uint8_t *mad, size_t len);
/* Put a record that was read into the queue again, without waiting. */
int umad_device_again(struct urxe_fabric *f, uint32_t index,
		      const struct umad_record *rec);
/* Read the rest of a spooled MAD: len bytes.  -errno */
int umad_device_get(struct urxe_fabric *f, uint32_t index,
		    const struct umad_record *rec, uint8_t *mad, size_t len);

/*
 * The agent of an open device of port k that has registered for a request.
 * False: there is none.
 */
bool umad_find_agent(const struct urxe_dev *dev, uint32_t k, uint32_t qpn,
		     const uint8_t *mad, uint32_t *index, uint32_t *agent);
/*
 * Register an agent.  -ENOMEM: the device has too many; -EINVAL: another agent
 * of the port has registered for one of these methods.
 */
int umad_register(struct urxe_fabric *f, uint32_t index,
		  const struct urxe_mad_agent *agent);
int umad_unregister(struct urxe_fabric *f, uint32_t index, uint32_t agent);

/* High half of the TIDs of an agent's requests, as the kernel assigns it. */
static inline uint32_t umad_tid(const struct urxe_dev *dev, uint32_t index,
				uint32_t agent)
{
	return (dev->umad[index].gen & 0xffff) << 16 | index << 8 | agent;
}
/* Enter a request that waits for an answer.  False: there are too many. */
bool umad_pending_add(struct urxe_dev *dev, uint32_t index, uint64_t tid);
bool umad_pending_has(const struct urxe_dev *dev, uint32_t index, uint64_t tid);
/* End a request.  False: it has ended already, or there is none. */
bool umad_pending_end(struct urxe_dev *dev, uint32_t index, uint64_t tid);
/* The agent to which a response belongs.  False: it does not exist. */
bool umad_of_tid(const struct urxe_dev *dev, uint32_t tid, uint32_t *index,
		 uint32_t *agent);

/* issm.c: the device whose opener sets the IsSM bit of port k. */

/*
 * A descriptor, O_CLOEXEC.  If a process has it open, wait, or with O_NONBLOCK
 * -EAGAIN; -errno
 */
int issm_open(struct urxe_fabric *f, uint32_t k, int flags);
bool issm_is_open(struct urxe_fabric *f, uint32_t k);
