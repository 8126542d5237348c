/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The events of a trace: EVENT(name, what it is called, its values).
 *
 * Values are named, in the order in which they are recorded, each with how it
 * is printed: "u" unsigned, "d" signed, "x" hexadecimal, "op" enum
 * ibv_wr_opcode, "wcop" enum ibv_wc_opcode, "status" enum ibv_wc_status, "send"
 * enum ibv_send_flags, "wc" enum ibv_wc_flags, "state" enum ibv_qp_state,
 * "type" enum ibv_qp_type, "access" enum ibv_access_flags, "mtu" enum ibv_mtu,
 * "imm" in network order, "wait" what a request waits for, "gid" two values,
 * "event" enum ibv_event_type, "data" and "packet" bytes, which are the rest,
 * "cm" and "cmevent" of rdma_cm, "errno", "mad" 32 values with a message as it
 * travels (wire/mad.h).  A ? after the name: 0 is none.  New events go to the
 * end, and new values to the end of an event's.
 */
#ifndef EVENT
#define EVENT(name, called, values)
#endif

/* A verb was called: verb, result, ns, and its arguments. */
EVENT(CALL, "call", "")
/* Something was refused, or failed; the values are the text's bytes. */
EVENT(WHY, "why", "")

/*
 * The life of a WR of a send queue; of those that the engine tells of
 * engine/observe.h says what they mean.  psn is that of the first packet, also
 * where several WRs are in flight.  From peer to dgid it is a datagram's
 * address, qkey the one that is sent, roce 1 or 2.  nak is the AETH's syndrome:
 * 0 where nothing comes back.
 */
EVENT(POSTED, "posted",
      "wr_id:x op:op flags?:send sge:u length:u remote_addr?:x rkey?:x")
EVENT(LEFT, "left",
      "wr_id:x op:op psn:u length:u remote_addr?:x rkey?:x imm?:imm "
      "solicited?:u compare_add?:x swap?:x invalidate?:x value?:x "
      "flush_type?:x flush_level?:u srqn?:x peer?:x qkey?:x hop_limit?:u "
      "traffic_class?:x flow_label?:x roce?:u sgid?:gid dgid?:gid "
      "other_host?:u")
EVENT(ARRIVED, "arrived", "wr_id:x op:op psn:u peer:x")
EVENT(ANSWERED, "answered", "wr_id:x op:op status:status nak?:x")
EVENT(WAITS, "waits", "wr_id:x op:op for:wait nak?:x")
EVENT(AGAIN, "went out again", "wr_id:x op:op for:wait nak?:x")
EVENT(COMPLETED, "completed",
      "wr_id:x op:wcop status:status length?:u flags?:wc imm?:imm src_qp?:x "
      "invalidated?:x")
EVENT(POLLED, "polled",
      "wr_id:x op:wcop status:status length?:u flags?:wc imm?:imm src_qp?:x "
      "invalidated?:x")
/* Of a QP, or of an SRQ. */
EVENT(RECV_POSTED, "posted a receive", "wr_id:x sge:u length:u srq?:x")
/* A verb that posts refused this WR, and those behind it. */
EVENT(REFUSED, "refused", "wr_id:x error:errno recv?:u")

/* Objects */
EVENT(QP_MADE, "made",
      "type:type send_cq:x recv_cq:x srq?:x max_send_wr:u max_recv_wr:u "
      "max_send_sge:u max_recv_sge:u max_inline:u all_signaled:u")
EVENT(QP_MODIFIED, "modified",
      "mask:x state:state peer?:x sq_psn?:u rq_psn?:u mtu?:mtu timeout?:u "
      "retry_cnt?:u rnr_retry?:u min_rnr_timer?:u rd_atomic?:u "
      "dest_rd_atomic?:u access?:access qkey?:x sgid_index?:u dgid?:gid "
      "hop_limit?:u traffic_class?:x flow_label?:x roce?:u sgid?:gid "
      "other_host?:u")
EVENT(QP_BROKEN, "broken", "state:state")
EVENT(MR_MADE, "MR made", "lkey:x rkey:x addr:x length:u access:access")
EVENT(CQ_MADE, "CQ made", "cq:x cqe:u channel:d")
/* ibv_get_cq_event() and ibv_get_async_event() give it to the program. */
EVENT(CQ_EVENT, "completion event", "cq:x")
EVENT(ASYNC_EVENT, "async event", "event:event")

/*
 * rdma_cm: what librdmacm asked of it, a command (enum rdma_user_cm_cmd); and
 * what rdma_get_cm_event() gives to the program (enum rdma_cm_event_type), with
 * the other end's QP where it is told of.
 */
EVENT(CM_CALL, "rdma_cm", "command:cm error?:errno ns:u id?:u")
EVENT(CM_EVENT, "rdma_cm event", "event:cmevent id:u status?:d peer?:x")

/* What an atomic found, which is what its requester gets. */
EVENT(FETCHED, "fetched", "wr_id:x op:op old:x")

/*
 * The first bytes of what a WR sends, right behind LEFT, or of what a READ
 * brought, before ANSWERED; psn is that of LEFT.  They may be in several
 * records, each with its offset.
 */
EVENT(DATA, "data", "wr_id:x op:op psn:u offset?:u bytes:u data:data")
/* A message of the CM protocol, which on a wire would be sent now; peer is the
 * other end's QP where the sender knows it. */
EVENT(CM_SENT, "CM",
      "sgid:gid dgid:gid traffic_class?:x flow_label?:x mad:mad peer?:x "
      "other_host?:u")
/*
 * A packet to another host or from there, which really travels: packet.h has
 * the values' places, refused is an enum wire_refusal of what came in, ports
 * are those of UDP, the destination's in the upper half.  "packet": the bytes
 * from the BTH on, as far as they are wanted, and the ICRC if that is all;
 * they may be in several records, one behind the other.  What is done for QPs
 * whose WRs say other_host is in these records, and not in those that say what
 * a wire would have carried.
 */
EVENT(PACKET, "packet",
      "in?:u refused?:u bytes:u sgid:gid dgid:gid ports:x traffic_class?:x "
      "hop_limit?:u flow_label?:x ip_id?:x icrc:x at?:u n:u packet:packet")
