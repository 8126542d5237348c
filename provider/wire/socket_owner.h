/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Election of the socket owner: the one process, of all that have the device
 * open with a wire, that reads the fabric's UDP socket.  Each context has a
 * thread that is a candidate; at most one thread of a process is the owner.
 *
 * dev->wire.socket_owner contains the process id of the socket owner.  A
 * candidate replaces 0, or the id of a dead process, by compare-and-swap
 * (seq_cst).  The kernel wakes the candidates when the socket owner's process
 * ends (robust futexes, process_watch).  The responder state is in shared
 * memory (shared/wire.h), so an owner change loses only packets, which
 * requesters retransmit.
 *
 * Every 100 ms a candidate also checks whether the socket owner is stopped,
 * which is visible in the same PID namespace only, and replaces it then.  The
 * stopped process still has its socket, but the kernel delivers packets to
 * the socket that was bound last.  When it continues, it checks the word
 * before it executes a packet (owner_slot.h), finds that it was replaced, and
 * closes its socket.
 *
 * The UDP port may stay bound for a moment after a process ends, or be bound
 * by rxe or another fabric.  Then the bind is retried.
 *
 * Receiving by pollers.  To wake the socket owner's thread for each packet
 * takes longer than all the rest.  A poller of the same context whose CQ stays
 * empty therefore receives a batch itself (ctx->poller_waits), unless another
 * thread does: a mutex protects the server, and pollers only try it.  Meanwhile
 * the thread does not wait for the socket, but naps, 50 us to 1 ms, until the
 * last such poll is 200 us old and no poller yields.  So when a program that
 * has polled for long stops, a packet waits for the thread at most 1.2 ms.  A
 * poller that yields will poll again, but on a busy CPU only when others have
 * run: it counts as polling, for 1 ms at most.
 *
 * That is wrong for a program that polls a CQ now and then but waits for
 * something else, and for bulk traffic, where a poller and the thread should
 * work in parallel: the thread receives the ACKs while the poller sends.  If a
 * batch has many packets that are not data for this context, pollers do not
 * receive for 10 ms, and for longer if that is soon repeated, up to 1 s.  The
 * same happens if packets wait for the ends of naps longer than pollers save by
 * the small batches that they receive in between.
 *
 * A poller that waits for data, in requests or READ responses to its own
 * context, receives it in bulk, too.  Otherwise it would only take CPU time
 * from the thread.
 *
 * A program that waits for bytes in memory (ib_write_lat) often polls its CQ
 * before, until its own WR is completed.  The WRITE that it waits for arrives
 * soon after that response.  If this was so several times, a poller that has
 * received a response lingers: it polls the socket for the WRITE, 60 us at
 * most, before it returns the completion.  So the thread does not have to wake
 * up for the WRITE.  60 us is more than a peer whose thread receives needs for
 * its WRITE; with less, the pollers of both ends would not begin to receive
 * unless they began together.  Between two polls the poller holds no lock, and
 * yields if other threads need the CPU (idle.h).  If no WRITE arrives, the
 * poller wakes the thread, which then waits for the socket, too, during its
 * naps. If other threads run on the poller's CPU, it does not: the peer may be
 * one of them, and the ends of the naps let it run.
 *
 * The thread polls the socket for a moment after each batch before it sleeps,
 * because an idle CPU takes long to wake up.  It stops that for a while if it
 * finds nothing most times.
 *
 * tests/model/socket_owner.pml checks the hand-over.
 *
 * Callers: wire_opened(), wire_closing() and wire_after_fork() in wire.c.
 */
#pragma once

#include "engine/core/context.h"

/* Start the candidate thread of ctx for the socket at address gid. */
void socket_owner_start(struct urxe_context *ctx, const uint8_t gid[16]);
/*
 * Stop the thread of ctx.  If this process is the socket owner through ctx,
 * it gives up ownership.  No effect if there is no thread.
 */
void socket_owner_stop(struct urxe_context *ctx);
/*
 * In the child of a fork: forget the thread, which is the parent's, and close
 * the copies of its descriptors.
 */
void socket_owner_after_fork(struct urxe_context *ctx);
