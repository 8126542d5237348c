/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The events of a trace: EVENT(name, printed name, values), a list for
 * several inclusions (X macros).  trace.h makes enum trace_event of it,
 * tools/trace/trace_*.c tables for printing.
 *
 * `values` lists the values of the record in the order in which they are
 * recorded, as name:type.  A ? after the name means that 0 stands for no
 * value.
 *
 *	u, d, x		unsigned, signed, hexadecimal number
 *	op, wcop	enum ibv_wr_opcode, enum ibv_wc_opcode
 *	status		enum ibv_wc_status
 *	send, wc	enum ibv_send_flags, enum ibv_wc_flags
 *	state, type	enum ibv_qp_state, enum ibv_qp_type
 *	access, mtu	enum ibv_access_flags, enum ibv_mtu
 *	event		enum ibv_event_type
 *	imm		immediate data, in network byte order
 *	wait		why a request cannot proceed: enum urxe_stall_kind
 *	errno		an errno value
 *	gid		a GID: two values
 *	name		a text of up to 63 bytes: eight values
 *	cm, cmevent	enum rdma_user_cm_cmd, enum rdma_cm_event_type
 *	mad		a MAD as it is sent (wire/mad.h): 32 values
 *	data, packet	bytes: all values that follow
 *
 * Append new events to the end of the list, and new values to the end of an
 * event.
 */
#ifndef EVENT
#define EVENT(name, called, values)
#endif

/* A verb returned: verb, result, duration in ns, arguments. */
EVENT(CALL, "call", "")
/*
 * A verb was refused or a WR failed: the message that explains it.  The
 * values are the bytes of the text.
 */
EVENT(WHY, "why", "")

/*
 * The stages of a WR of a send queue.  engine/core/observe.h defines LEFT
 * (OBSERVE_LEAVES) to AGAIN, and COMPLETED.
 *
 * psn	PSN of the first packet of the WR, also if several WRs are in flight
 * peer to dgid, other_host
 *	UD only: the address of the datagram.  qkey is the Q_Key that is
 *	sent, roce the RoCE version, 1 or 2, or on InfiniBand 3 without and
 *	4 with a GRH.  other_host is 1 if the WR is
 *	sent to another host (PACKET).
 * slid, dlid, sl
 *	UD on InfiniBand only: LIDs and service level of the datagram
 * nak	AETH syndrome of the response; 0 if it is no NAK or there is none
 */
EVENT(POSTED, "posted",
      "wr_id:x op:op flags?:send sge:u length:u remote_addr?:x rkey?:x")
EVENT(LEFT, "left",
      "wr_id:x op:op psn:u length:u remote_addr?:x rkey?:x imm?:imm "
      "solicited?:u compare_add?:x swap?:x invalidate?:x value?:x "
      "flush_type?:x flush_level?:u srqn?:x peer?:x qkey?:x hop_limit?:u "
      "traffic_class?:x flow_label?:x roce?:u sgid?:gid dgid?:gid "
      "other_host?:u slid?:u dlid?:u sl?:u")
EVENT(ARRIVED, "arrived", "wr_id:x op:op psn:u peer:x")
EVENT(ANSWERED, "answered", "wr_id:x op:op status:status nak?:x")
EVENT(WAITS, "waits", "wr_id:x op:op for:wait nak?:x")
EVENT(AGAIN, "retransmitted", "wr_id:x op:op for:wait nak?:x")
EVENT(COMPLETED, "completed",
      "wr_id:x op:wcop status:status length?:u flags?:wc imm?:imm src_qp?:x "
      "invalidated?:x")
EVENT(POLLED, "polled",
      "wr_id:x op:wcop status:status length?:u flags?:wc imm?:imm src_qp?:x "
      "invalidated?:x")
/* A receive was posted to a QP or, if srq is not 0, to that SRQ. */
EVENT(RECV_POSTED, "posted a receive", "wr_id:x sge:u length:u srq?:x")
/* A verb refused to post this WR and the WRs after it in the list. */
EVENT(REFUSED, "refused", "wr_id:x error:errno recv?:u")

/*
 * Objects.  on: the device, as host/device; none if the fabric has no other one
 * slid, dlid, sl, pkey
 *	on InfiniBand: the path to the peer at the time of the call, and the
 *	P_Key of the entry that pkey_index names
 */
EVENT(QP_MADE, "made",
      "type:type send_cq:x recv_cq:x srq?:x max_send_wr:u max_recv_wr:u "
      "max_send_sge:u max_recv_sge:u max_inline:u all_signaled:u "
      "device?:u on?:name")
EVENT(QP_MODIFIED, "modified",
      "mask:x state:state peer?:x sq_psn?:u rq_psn?:u mtu?:mtu timeout?:u "
      "retry_cnt?:u rnr_retry?:u min_rnr_timer?:u rd_atomic?:u "
      "dest_rd_atomic?:u access?:access qkey?:x sgid_index?:u dgid?:gid "
      "hop_limit?:u traffic_class?:x flow_label?:x roce?:u sgid?:gid "
      "other_host?:u slid?:u dlid?:u sl?:u pkey?:x")
EVENT(QP_BROKEN, "broken", "state:state")
EVENT(MR_MADE, "MR made", "lkey:x rkey:x addr:x length:u access:access")
EVENT(CQ_MADE, "CQ made", "cq:x cqe:u channel:d")
/* ibv_get_cq_event() or ibv_get_async_event() returns the event. */
EVENT(CQ_EVENT, "completion event", "cq:x")
EVENT(ASYNC_EVENT, "async event", "event:event")

/*
 * rdma_cm: a command of librdmacm (enum rdma_user_cm_cmd); and an event that
 * rdma_get_cm_event() returns (enum rdma_cm_event_type).  peer is the QPN of
 * the remote QP, if the event has one.
 */
EVENT(CM_CALL, "rdma_cm", "command:cm error?:errno ns:u id?:u")
EVENT(CM_EVENT, "rdma_cm event", "event:cmevent id:u status?:d peer?:x")

/* The original value of an atomic's word, which the requester receives. */
EVENT(FETCHED, "fetched", "wr_id:x op:op old:x")

/*
 * The first bytes of the payload of a WR: of a SEND or WRITE directly after
 * LEFT, of a READ before ANSWERED.  psn is that of LEFT.  The bytes may be
 * spread over several records, each with its offset.
 */
EVENT(DATA, "data", "wr_id:x op:op psn:u offset?:u bytes:u data:data")
/*
 * A message of the CM protocol, recorded when it is sent, or when it would be
 * sent on a wire.  peer is the QPN of the remote QP, if the sender knows it.
 * on: the device that sends, as in QP_MADE.  slid to bth_pkey: on InfiniBand,
 * of the datagram, which has no GRH
 */
EVENT(CM_SENT, "CM",
      "sgid:gid dgid:gid traffic_class?:x flow_label?:x mad:mad peer?:x "
      "other_host?:u on?:name slid?:u dlid?:u bth_pkey?:x")
/*
 * A packet that was sent to another host or received from one.  packet.h has
 * the positions of the values.  refused is the enum wire_refusal of a
 * received packet.  ports are the UDP ports, the destination in bits 31:16.
 *
 * "packet" is the bytes from the BTH on, up to the configured limit,
 * including the ICRC if the packet is complete.  They may be spread over
 * consecutive records.
 *
 * The traffic of WRs and QPs with other_host is in these records.  LEFT,
 * ARRIVED, ANSWERED and so on describe what a wire would carry for all
 * others.
 */
EVENT(PACKET, "packet",
      "in?:u refused?:u bytes:u sgid:gid dgid:gid ports:x traffic_class?:x "
      "hop_limit?:u flow_label?:x ip_id?:x icrc:x at?:u n:u packet:packet")
