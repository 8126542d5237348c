// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <infiniband/verbs.h>

#include "chaos/adversary.h"
#include "chaos/fault.h"
#include "engine/core/log.h"
#include "tx_fault.h"
#include "wire/sender.h"

/*
 * Decision function for packets on transmit, see tx_fault.h.  NULL: no
 * adversary.
 */
static const struct adversary *adversary;
static struct faults *faults; /* NULL: no rule applies to packets */
static struct random_stream random;
static _Atomic uint64_t packets; /* packets that the adversary decided on */

/* IB 9.2: the upper three bits of the opcode. */
static uint32_t type_of(const struct wire_packet *p)
{
	switch (p->bth.opcode & WIRE_TRANSPORT) {
	case WIRE_UC:
		return IBV_QPT_UC;
	case WIRE_UD:
		return IBV_QPT_UD;
	case WIRE_XRC:
		return IBV_QPT_XRC_SEND;
	default:
		return IBV_QPT_RC;
	}
}

static enum wire_tx_fault tx_fault_of_rules(const struct wire_packet *p)
{
	static const enum wire_tx_fault fault[] = {
		[FAULT_LOST] = WIRE_LOST,
		[FAULT_DUPLICATED] = WIRE_DUPLICATED,
		[FAULT_LATE] = WIRE_LATE,
		[FAULT_DAMAGED] = WIRE_DAMAGED,
	};
	struct fault_subject s = {
		.qpn = p->bth.qpn,
		.type = FAULT_TYPE(type_of(p)),
	};
	const struct fault_rule *r = fault_of_packet(faults, &s);

	if (!r)
		return WIRE_NO_FAULT;
	urxe_note(
		"injected fault: packet with PSN 0x%x to QP 0x%x, opcode 0x%x "
		"(rule \"%s\")",
		p->bth.psn, p->bth.qpn, p->bth.opcode, r->text);
	return fault[r->value];
}

/*
 * Reliable packets may be lost, duplicated or delayed, since they are
 * retransmitted.  UC packets may be lost, UD packets lost or delayed.
 */
static enum wire_tx_fault tx_fault_of_adversary(const struct wire_packet *p)
{
	static const enum wire_tx_fault choices[] = { WIRE_LOST,
						      WIRE_DUPLICATED,
						      WIRE_LATE };
	const uint32_t type = type_of(p);
	const uint64_t n = fetch_add_relaxed(&packets, 1);

	if (type != IBV_QPT_UC && type != IBV_QPT_UD)
		return adversary_applies(adversary, random, ADV_retry, n) ?
			       choices[random_below(random, ADV_OPTIONS, n,
						    3)] :
			       WIRE_NO_FAULT;
	if (adversary_applies(adversary, random, ADV_loss, n))
		return WIRE_LOST;
	return type == IBV_QPT_UD && adversary_applies(adversary, random,
						       ADV_reorder, n) ?
		       WIRE_LATE :
		       WIRE_NO_FAULT;
}

static enum wire_tx_fault tx_fault_of(const struct wire_packet *p)
{
	enum wire_tx_fault fault = faults ? tx_fault_of_rules(p) :
					    WIRE_NO_FAULT;

	return fault || !adversary ? fault : tx_fault_of_adversary(p);
}

void tx_fault_begin(void)
{
	const struct adversary *a = adversary_of_process();
	struct faults *f = faults_of_process();

	if (a && a->on) {
		adversary = a;
		random = random_named(a->random, "wire");
	}
	if (f && faults_have(f, FAULT_PACKET))
		faults = f;
	if (adversary || faults)
		wire_tx_fault = tx_fault_of;
}
