/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The rules of the referee: the table of what it reports.
 *
 *	RULE(name, level, source, meaning, hint)
 *
 * A name has _ here, and - in reports.  The source is the man page or the
 * section of the IB specification that has the rule.
 *
 *	error	a device may lose or damage data, or the program hangs or
 *		crashes
 *	warning	the program works by luck, or something is lost
 *	note	a careful program does not do this
 *
 * docs/referee.md has the same table; tests/referee/table.py compares them.
 */
#pragma once

enum rule_level { LEVEL_error, LEVEL_warning, LEVEL_note };

/* clang-format off */
#define REFEREE_RULES(RULE) \
	RULE(source_changed, error, "man ibv_post_send",                       \
	     "the buffer of a send changed between the post and the poll of "  \
	     "its completion",                                                 \
	     "do not write to the buffer until the completion of this WR, or " \
	     "of a later WR of its queue, is polled; or post with "            \
	     "IBV_SEND_INLINE")                                                \
	RULE(source_reused, note, "man ibv_post_send",                         \
	     "the buffer of a send changed before its completion was "         \
	     "polled, but after a message arrived that may be the peer's "     \
	     "response",                                                       \
	     "a response shows that the peer has the message; only the "       \
	     "completion shows that the device no longer reads the buffer")    \
	RULE(receive_written, error, "man ibv_post_recv",                      \
	     "a posted receive buffer changed directly behind the message",    \
	     "clear a buffer before it is posted: a message may arrive as "    \
	     "soon as it is posted")                                           \
	RULE(receive_touched, note, "man ibv_post_recv",                       \
	     "bytes of a posted receive buffer changed behind the message, "   \
	     "but not directly: they may belong to other data",                \
	     "post only as many bytes as a message may have")                  \
	RULE(fetch_written, error, "man ibv_post_send",                        \
	     "the result of a READ or an atomic changed before its "           \
	     "completion was polled",                                          \
	     "do not write to the buffer until the completion is polled")      \
	RULE(memory_gone, error, "man ibv_reg_mr",                             \
	     "memory of a WR is no longer mapped, or is not writable",         \
	     "a NIC keeps using the pages that were mapped when the MR was "   \
	     "registered: deregister the MR before the memory is unmapped")    \
	RULE(mr_unmapped, warning, "man ibv_reg_mr",                           \
	     "memory of an MR was unmapped, moved, mapped over or released "   \
	     "(MADV_DONTNEED)",                                                \
	     "a NIC keeps using the pages that were mapped when the MR was "   \
	     "registered: deregister the MR before the memory is unmapped")    \
	RULE(fork_unprepared, note, "man ibv_fork_init",                       \
	     "the process forked with MRs and without fork support",           \
	     "call ibv_fork_init before the first MR is registered, or "       \
	     "check ibv_is_fork_initialized: before Linux 5.12, a page that "  \
	     "the process writes to after the fork may no longer be the "      \
	     "page that the device uses")                                      \
	RULE(targets_overlap, error, "man ibv_post_recv, ibv_post_send",       \
	     "two outstanding WRs write the same local bytes",                 \
	     "use a separate buffer for each outstanding WR")                  \
	RULE(targets_shared, note, "man ibv_post_recv, ibv_post_send",         \
	     "two outstanding WRs write the same local bytes, where the "      \
	     "program probably discards the results",                          \
	     "only one of the results remains, and it is not specified which") \
	RULE(source_received, note, "man ibv_post_send",                       \
	     "a receive, or a later READ, writes bytes that are being sent",   \
	     "the data that is sent may be the data that arrives: use two "    \
	     "buffers")                                                        \
	RULE(source_fetched, error, "IB 10.8.3.3",                             \
	     "a READ or an atomic of another queue writes bytes that are "     \
	     "being sent",                                                     \
	     "poll the completion of the first WR before the second is "       \
	     "posted")                                                         \
	RULE(fence_missing, error, "IB 10.8.3.3, man ibv_post_send",           \
	     "the result of a READ or an atomic is sent without a fence",      \
	     "set IBV_SEND_FENCE, or poll the completion of the READ first")   \
	RULE(fetch_not_done, error, "IB 10.8.3.3",                             \
	     "the result of a READ or an atomic is sent on another QP or "     \
	     "inline, where a fence has no effect",                            \
	     "poll the completion of the READ before this WR is posted")       \
	RULE(write_after_read, error, "IB 10.8.3.3",                           \
	     "a WRITE or an atomic without a fence writes remote bytes that "  \
	     "an earlier READ or atomic accesses",                             \
	     "set IBV_SEND_FENCE, or poll the completion of the READ first: "  \
	     "this WR may overtake the READ")                                  \
	RULE(remote_overlap, warning, "IB 10.8.3.3",                           \
	     "WRs of two queues write the same bytes of an rkey",              \
	     "only WRs of one queue are ordered: poll the completion of the "  \
	     "first before the second is posted")                              \
	RULE(mr_in_flight, error, "man ibv_dereg_mr, ibv_post_send",           \
	     "an MR was deregistered or changed while an outstanding WR used " \
	     "it",                                                             \
	     "poll the completion first")                                      \
	RULE(receive_without_mr, warning, "man ibv_dereg_mr, ibv_post_recv",   \
	     "an MR was deregistered or changed while a posted receive used "  \
	     "it",                                                             \
	     "first destroy the QP, or move it to the error state and poll "   \
	     "its completions")                                                \
	RULE(mw_in_flight, error, "man ibv_bind_mw",                           \
	     "an MW was deallocated while it was being bound",                 \
	     "poll the completion of the bind first")                          \
	RULE(ah_in_flight, error, "man ibv_post_send",                         \
	     "an AH was destroyed while an outstanding WR used it",            \
	     "poll the completion first")                                      \
	RULE(ended_on_answer, note, "man ibv_post_send",                       \
	     "an MR, MW or AH was destroyed or changed after a message "       \
	     "arrived that may be the peer's response, but before the "        \
	     "completion was polled",                                          \
	     "poll the completion first")                                      \
	RULE(object_left, warning, "man ibv_close_device",                     \
	     "an object was not destroyed before its context was closed or "   \
	     "the process ended",                                              \
	     "destroy it, after the objects that use it")                      \
	RULE(cq_overrun, warning, "man ibv_create_cq, man ibv_poll_cq",        \
	     "more WRs are outstanding than their CQ has entries",             \
	     "cqe must be at least the sum of max_send_wr and max_recv_wr of " \
	     "the QPs that use the CQ")                                        \
	RULE(memlock_exceeded, warning, "man setrlimit",                       \
	     "the MRs of the process exceed RLIMIT_MEMLOCK",                   \
	     "raise the limit (ulimit -l, LimitMEMLOCK=, docker run "          \
	     "--ulimit), or register less: otherwise ibv_reg_mr fails with "   \
	     "ENOMEM on a NIC")                                                \
	RULE(sq_stuck, error, "man ibv_post_send; IB 10.8.6",                  \
	     "a send queue is full and none of its WRs is signaled: no "       \
	     "completion will free an entry",                                  \
	     "signal at least one of every max_send_wr WRs, and poll its "     \
	     "completion")                                                     \
	RULE(receive_late, note, "man ibv_modify_qp (rnr_retry)",              \
	     "messages found no posted receive and were retried (RNR NAK)",    \
	     "post enough receives before the peer may send")                  \
	RULE(mtu_mismatch, warning, "man ibv_modify_qp",                       \
	     "the two QPs of a connection have different path_mtu: only "      \
	     "short messages work",                                            \
	     "exchange the active_mtu of both ports, and set path_mtu to the " \
	     "smaller one")                                                    \
	RULE(rd_atomic_mismatch, warning, "man ibv_modify_qp",                 \
	     "READs or atomics were posted with a max_rd_atomic greater than " \
	     "the peer's max_dest_rd_atomic",                                  \
	     "set max_rd_atomic to at most the max_dest_rd_atomic of the "     \
	     "peer")                                                           \
	RULE(error_unpolled, warning, "man ibv_poll_cq",                       \
	     "a WR failed, and its completion was not polled before its QP "   \
	     "was destroyed or the process ended",                             \
	     "poll until the completion of each WR has been returned, and "    \
	     "check its status")                                               \
	RULE(wr_failed, note, "man ibv_poll_cq",                               \
	     "a WR failed, or a request of the peer moved a QP to ERR; a "     \
	     "warning if the command fails",                                   \
	     "fix the cause that is given; docs/errors.md lists the causes "   \
	     "of each status")                                                 \
	RULE(verb_refused, note, "the man page of the verb",                   \
	     "a verb failed; a warning if the command fails",                  \
	     "check the return value of each verb; docs/errors.md lists the "  \
	     "causes of each errno value")                                     \
	RULE(completion_unpolled, note, "man ibv_poll_cq",                     \
	     "successful completions were not polled before their QP was "     \
	     "destroyed or the process ended",                                 \
	     "a signaled WR is done when its completion is polled; "           \
	     "ibv_destroy_qp removes the completions that were not polled")    \
	RULE(event_unacked, warning,                                           \
	     "man ibv_get_cq_event, man ibv_get_async_event",                  \
	     "events were delivered and never acknowledged, or acknowledged "  \
	     "too often; destroying their object waits for the "               \
	     "acknowledgements",                                               \
	     "call ibv_ack_cq_events or ibv_ack_async_event for each event")   \
	RULE(destroy_stuck, error,                                             \
	     "man ibv_get_cq_event, ibv_get_async_event, rdma_get_cm_event",   \
	     "a call that destroys an object waits for the acknowledgement "   \
	     "of events that were delivered: the thread hangs",                \
	     "call ibv_ack_cq_events, ibv_ack_async_event or "                 \
	     "rdma_ack_cm_event for each event before the object is "          \
	     "destroyed")

/* clang-format on */
enum rule {
#define RULE(name, ...) RULE_##name,
	REFEREE_RULES(RULE)
#undef RULE
		RULES
};

struct rule_text {
	const char *name, *source, *meaning, *hint;
	enum rule_level level;
};
extern const struct rule_text rules[RULES];
