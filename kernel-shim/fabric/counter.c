// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Port counters: their names and values in sysfs.  A value is a sum of
 * relaxed loads.  Other processes may add meanwhile, so it is no snapshot.
 */
#include "fabric.h"

/*
 * Names in hw_counters.  Most are those of rxe (rxe_hw_counters.c).  Those for
 * timeouts (local_ack_timeout_err), ICRC errors and congestion are those of
 * mlx5.  remote_err and the last four are urxe's own.
 */
static const char *const names[URXE_CNT_COUNT] = {
	[URXE_CNT_XMIT_PACKETS] = "sent_pkts",
	[URXE_CNT_RCV_PACKETS] = "rcvd_pkts",
	[URXE_CNT_RNR_NAK] = "rcvd_rnr_err",
	[URXE_CNT_ACK_TIMEOUT] = "local_ack_timeout_err",
	[URXE_CNT_REM_ERR] = "remote_err",
	[URXE_CNT_DUPLICATE] = "duplicate_request",
	[URXE_CNT_OUT_OF_SEQ] = "out_of_seq_request",
	[URXE_CNT_SEND_RNR] = "send_rnr_err",
	[URXE_CNT_SEQ_NAK] = "rcvd_seq_err",
	[URXE_CNT_ACK_DEFERRED] = "ack_deferred",
	[URXE_CNT_RETRY_EXC] = "retry_exceeded_err",
	[URXE_CNT_RNR_EXC] = "retry_rnr_exceeded_err",
	[URXE_CNT_COMP_RETRY] = "completer_retry_err",
	[URXE_CNT_SEND_ERR] = "send_err",
	[URXE_CNT_LINK_DOWNED] = "link_downed",
	[URXE_CNT_SENDS] = "rdma_sends",
	[URXE_CNT_RECVS] = "rdma_recvs",
	[URXE_CNT_ICRC] = "rx_icrc_encapsulated",
	[URXE_CNT_ECN_MARKED] = "np_ecn_marked_roce_packets",
	[URXE_CNT_CNP_SENT] = "np_cnp_sent",
	[URXE_CNT_CNP_HANDLED] = "rp_cnp_handled",
	[URXE_CNT_MALFORMED] = "rcvd_malformed_pkts",
	[URXE_CNT_UNCLAIMED] = "rcvd_unclaimed_pkts",
	[URXE_CNT_SOCKET_LOST] = "socket_dropped_pkts",
	[URXE_CNT_INBOX_LOST] = "inbox_dropped_pkts",
};

const char *counter_name(enum urxe_counter which)
{
	return names[which];
}

uint64_t counter_read(const struct urxe_dev *dev, uint32_t k,
		      enum urxe_counter which)
{
	uint64_t sum = load_relaxed(&dev->hca[k].counter[which]);
	uint32_t i;

	for (i = 0; !k && i < URXE_WIRE_COUNTS; i++)
		sum += load_relaxed(&dev->wire.counts[i].of[which]);
	return sum;
}

uint16_t port_violations(const struct urxe_dev *dev, uint32_t k,
			 enum urxe_counter which)
{
	const uint64_t n = counter_read(dev, k, which);

	return n < UINT16_MAX ? (uint16_t)n : UINT16_MAX;
}
