/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Device contexts of the fabrics as this process has mapped them: its own,
 * and those of other processes (peers).  The list is process-wide and
 * protected by peer_lock().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "fabric/fabric.h"

/* urxe_peer.my_flag: no key of the context is of this process's memory */
#define PEER_NOT_ME 0xff

/* A context of this process (fd is -1) or of another; reference counted. */
struct urxe_peer {
	struct urxe_peer *next;
	struct urxe_fabric *fabric;
	struct urxe_arena *arena;
	/* ID of the opener; 0: unknown, or dead while others use it */
	_Atomic uint32_t owner;
	const struct urxe_process *process; /* the owner's table row */
	uint32_t slot, gen;
	uint32_t device; /* its number ... */
	struct urxe_hca *hca; /* ... and its state */
	int fd;
	unsigned int refs;
	/* opened in another PID namespace: its PIDs are not valid here */
	bool foreign_pids;
	/* value of URXE_MR_FOREIGN in keys of this process, or PEER_NOT_ME */
	uint8_t my_flag;
	/* process_vm_* is forbidden: copy through the bouncer (bounce.h) */
	_Atomic bool bounce;
	_Atomic bool probed; /* bounce has been determined */
	/* files of that context that are mapped here, see mem.c */
	struct urxe_mapped_file *_Atomic files;
	struct urxe_channel *channels; /* completion channels, channel.c */
};

/*
 * Add a context of this process to the list, so that loopback does not map it
 * a second time.  0 or -errno; *out has one reference.
 */
int peer_new_self(struct urxe_fabric *f, struct urxe_arena *arena,
		  struct urxe_peer **out);

/*
 * Return a reference to context (slot, gen), mapping it if necessary, or NULL
 * if it does not exist or cannot be mapped.  Preserves errno.
 */
struct urxe_peer *peer_get(struct urxe_fabric *f, uint32_t slot, uint32_t gen);
void peer_put(struct urxe_peer *p);
/* Add a reference; the caller has one already. */
void peer_hold(struct urxe_peer *p);

/* Was the context opened by this process? */
bool peer_is_own(struct urxe_fabric *f, uint32_t slot, uint32_t gen);

/* Slow path of peer_has_died(): ask the kernel. */
bool peer_check_dead(struct urxe_peer *p);

/*
 * Has the process of the context exited?  If other processes use the context
 * as well, its end is detected later, by peers_check().
 */
static inline bool peer_has_died(struct urxe_peer *p)
{
	uint32_t id = load_relaxed(&p->owner);

	return unlikely(id && !process_seems_alive(p->process, id)) &&
	       peer_check_dead(p);
}

/*
 * Is the context closed, or was it reaped?  Then there is no process to watch.
 */
bool peer_is_closed(const struct urxe_peer *p);

/*
 * Is pid a live process that uses the context, so that a key may name it?
 * pid is of this process's PID namespace.  A reused PID does not match.
 */
bool peer_pid_is_alive(struct urxe_peer *p, int32_t pid);

/*
 * Reap contexts whose processes have died, and unmap files that are not
 * needed.  Called by the service thread.
 */
void peers_check(void);
/*
 * Does any part of [va, va + len) of this process lie in a private MR, which
 * peers do not map?
 */
bool peer_has_private_key(uint64_t va, uint64_t len);
/* Is any context of another process mapped? */
bool peer_any_foreign(void);
/* The caller of peer_watch() needs one more word. */
#define PEER_WATCH_WORDS (FUTEX_WORDS_MAX - 1)
/* Futex words that change when a process of a mapped context exits. */
struct peer_watch {
	uint32_t n;
	struct futex_word word[FUTEX_WORDS_MAX];
};
/*
 * Collect the words of all processes.  False, with w empty, if a process is
 * dead already, its exit would change no word, or there are too many words.
 */
bool peer_watch(struct peer_watch *w);
/*
 * Record in p's arena (mappers) that this process maps files of p: p's owner
 * has to notify it when it wants them unmapped.
 */
void peer_note_mapping(struct urxe_peer *p);
/* The lock of the list, also held across fork(). */
void peer_lock(void);
void peer_unlock(void);
void peer_after_fork(void); /* in the child, before peer_unlock() */
