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
 *	warning	it works by luck, or something is lost
 *	note	a careful program does not do it
 *
 * docs/referee.md has the same table; tests/referee/table.py compares them.
 */
#pragma once

enum rule_level { LEVEL_error, LEVEL_warning, LEVEL_note };

/* clang-format off */
#define REFEREE_RULES(RULE) \
	RULE(source_changed, error, "man ibv_post_send",                     \
	     "what is sent changed between the post and the polling of its " \
	     "completion",                                                   \
	     "leave it alone until the completion of this WR, or of a later " \
	     "one of its queue, was polled; or send it inline")              \
	RULE(source_reused, note, "man ibv_post_send",                       \
	     "the same, after a message came that may be the answer",        \
	     "an answer says that the other end has the message, the "       \
	     "completion that the device is done with the buffer")           \
	RULE(receive_written, error, "man ibv_post_recv",                    \
	     "a receive buffer changed, behind the message, while it was "   \
	     "posted",                                                       \
	     "clear a buffer before it is posted: a message may be there "   \
	     "as soon as it is")                                             \
	RULE(receive_touched, note, "man ibv_post_recv",                     \
	     "the same, but not right behind the message: something else "   \
	     "may lie there",                                                \
	     "post no more bytes than a message may have")                   \
	RULE(fetch_written, error, "man ibv_post_send",                      \
	     "what a READ or an atomic brought changed before its "          \
	     "completion was polled",                                        \
	     "leave it alone until the completion was polled")               \
	RULE(memory_gone, error, "man ibv_reg_mr",                           \
	     "memory of a WR is not mapped any more, or not writable",       \
	     "a NIC goes on with the pages that were there when the MR was " \
	     "made: deregister it before the memory goes")                   \
	RULE(mr_unmapped, warning, "man ibv_reg_mr",                         \
	     "memory of an MR was unmapped, moved, mapped over or given "    \
	     "back (MADV_DONTNEED)",                                         \
	     "a NIC goes on with the pages that were there when the MR was " \
	     "made: deregister it before the memory goes")                   \
	RULE(fork_unprepared, note, "man ibv_fork_init",                     \
	     "the process forked with MRs, and asked for no fork support",   \
	     "call ibv_fork_init before the first MR is made, or ask "       \
	     "ibv_is_fork_initialized: before Linux 5.12 a page that was "   \
	     "written to after the fork may not be the device's any more")   \
	RULE(targets_overlap, error, "man ibv_post_recv, ibv_post_send",     \
	     "two WRs in flight write the same bytes here",                  \
	     "give each WR in flight a place of its own")                    \
	RULE(targets_shared, note, "man ibv_post_recv, ibv_post_send",       \
	     "the same, as programs do that do not look at the results",     \
	     "only the last one is left, and nobody knows which that is")    \
	RULE(source_received, note, "man ibv_post_send",                     \
	     "a receive, or a later READ, has bytes that are being sent",    \
	     "what is sent may be what comes: use two buffers")              \
	RULE(source_fetched, error, "IB 10.8.3.3",                           \
	     "a READ or an atomic of another queue writes what is sent",     \
	     "poll the completion of the first before the second is posted") \
	RULE(fence_missing, error, "IB 10.8.3.3, man ibv_post_send",         \
	     "what a READ or an atomic brings is sent on, without a fence",  \
	     "set IBV_SEND_FENCE, or poll the READ's completion first")      \
	RULE(fetch_not_done, error, "IB 10.8.3.3",                           \
	     "what a READ or an atomic brings is sent on, on another QP or " \
	     "inline: no fence holds that back",                             \
	     "poll the READ's completion before this is posted")             \
	RULE(write_after_read, error, "IB 10.8.3.3",                         \
	     "a WRITE or an atomic, without a fence, to bytes that a READ "  \
	     "or an atomic before it is at",                                 \
	     "set IBV_SEND_FENCE, or poll the READ's completion first: it "  \
	     "may be passed")                                                \
	RULE(remote_overlap, warning, "IB 10.8.3.3",                         \
	     "WRs of two queues write the same bytes of an rkey",            \
	     "only a queue's own WRs are in order: poll the completion of "  \
	     "the first before the second is posted")                        \
	RULE(mr_in_flight, error, "man ibv_dereg_mr, ibv_post_send",         \
	     "an MR ended, or was changed, with a WR in flight that needs it", \
	     "poll the completion first")                                    \
	RULE(receive_without_mr, warning, "man ibv_dereg_mr, ibv_post_recv", \
	     "an MR ended, or was changed, that a posted receive needs",     \
	     "destroy the QP, or move it to the error state and poll, first") \
	RULE(mw_in_flight, error, "man ibv_bind_mw",                         \
	     "an MW ended while it was being bound",                         \
	     "poll the completion of the bind first")                        \
	RULE(ah_in_flight, error, "man ibv_post_send",                       \
	     "an AH ended with a WR in flight that needs it",                \
	     "poll the completion first")                                    \
	RULE(ended_on_answer, note, "man ibv_post_send",                     \
	     "an MR, MW or AH ended after a message came that may be the "   \
	     "answer, and before the completion was polled",                 \
	     "poll the completion first")                                    \
	RULE(object_left, warning, "man ibv_close_device",                   \
	     "an object was still there when the process or its context "    \
	     "ended",                                                        \
	     "destroy it; what uses it goes first")                          \
	RULE(cq_overrun, warning, "man ibv_create_cq, man ibv_poll_cq",       \
	     "more WRs are in flight than their CQ has entries",             \
	     "cqe is to be the sum of what its QPs can have in flight: "     \
	     "max_send_wr and max_recv_wr of each")                          \
	RULE(memlock_exceeded, warning, "man setrlimit",                     \
	     "the MRs of the process have more bytes than RLIMIT_MEMLOCK",   \
	     "raise it (ulimit -l, LimitMEMLOCK=, docker run --ulimit), or " \
	     "register less: a NIC's driver refuses what is more (ENOMEM)")  \
	RULE(sq_stuck, error, "man ibv_post_send; IB 10.8.6",                \
	     "a send queue is full, and no WR in it is signaled: nothing "   \
	     "will ever free it",                                            \
	     "signal one WR at least of each max_send_wr, and poll its "     \
	     "completion")                                                   \
	RULE(receive_late, note, "man ibv_modify_qp (rnr_retry)",            \
	     "sends met no posted receive and were tried again (RNR)",       \
	     "post receives before the peer may send, and enough of them")   \
	RULE(mtu_mismatch, warning, "man ibv_modify_qp",                     \
	     "the two ends of a connection have different path_mtu: it "     \
	     "works for as long as messages are short",                      \
	     "exchange the active_mtu of both, and take the lesser")         \
	RULE(rd_atomic_mismatch, warning, "man ibv_modify_qp",                  \
	     "READs or atomics were posted with a max_rd_atomic beyond the " \
	     "other end's max_dest_rd_atomic",                               \
	     "max_rd_atomic is to be what the other end has as its "         \
	     "max_dest_rd_atomic at most")                                   \
	RULE(error_unpolled, warning, "man ibv_poll_cq",                       \
	     "a WR failed, and its completion was still not polled when "    \
	     "its QP or the process ended",                                  \
	     "poll until each WR's completion was there, and look at its "   \
	     "status")                                                       \
	RULE(wr_failed, note, "man ibv_poll_cq",                             \
	     "a WR failed, or its QP was broken; a warning if the command "  \
	     "fails",                                                        \
	     "the reason is what is to be mended; docs/errors.md has each "  \
	     "status")                                                       \
	RULE(verb_refused, note, "the man page of the verb",                 \
	     "a verb was refused; a warning if the command fails",           \
	     "look at what each verb returns; docs/errors.md has each errno") \
	RULE(completion_unpolled, note, "man ibv_poll_cq",                   \
	     "successful completions were still not polled when their QP "   \
	     "or the process ended",                                         \
	     "a signaled WR is over when its completion was polled; "        \
	     "ibv_destroy_qp takes what is left out of the CQ")         \
	RULE(event_unacked, warning,                                         \
	     "man ibv_get_cq_event, man ibv_get_async_event",                \
	     "events were given out and never acknowledged, or acknowledged " \
	     "too often; destroying their object waits for that",            \
	     "ibv_ack_cq_events or ibv_ack_async_event for each")            \
	RULE(destroy_stuck, error,                                           \
	     "man ibv_get_cq_event, ibv_get_async_event, rdma_get_cm_event", \
	     "a call that destroys an object waits for events that were "    \
	     "given out and are not acknowledged: the thread hangs",         \
	     "call ibv_ack_cq_events, ibv_ack_async_event or "               \
	     "rdma_ack_cm_event for each event before the object is "        \
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
