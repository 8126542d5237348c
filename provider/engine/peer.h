/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Contexts of this fabric, this process's own and the mapped ones. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "fabric/fabric.h"

#define PEER_NOT_ME 0xff /* urxe_peer.my_flag: none of its keys are ours */

/*
 * A context as this process sees it: its own (fd -1) or another one, mapped.
 * Reference counted.
 */
struct urxe_peer {
	struct urxe_peer *next;
	struct urxe_fabric *fabric;
	struct urxe_arena *arena;
	/* its opener, that uses it; 0: unknown, or dead and others use it */
	_Atomic uint32_t owner;
	const struct urxe_process *process; /* the owner's row */
	uint32_t slot, gen;
	int fd;
	unsigned int refs;
	/* other PID namespace: its numbers mean nothing here */
	bool foreign_pids;
	/* what URXE_MR_FOREIGN is in this process's keys, or PEER_NOT_ME */
	uint8_t my_flag;
	/* process_vm_* is forbidden: its bounce threads copy (bounce.h) */
	_Atomic bool bounce;
	_Atomic bool probed; /* and whether it is was tried */
	/* files of that context that are mapped here; see mem.c */
	struct urxe_mapped_file *_Atomic files;
	struct urxe_channel *channels; /* channel.c */
};

/* Own contexts announce themselves, so that loopback needs no second map. */
int peer_new_self(struct urxe_fabric *f, struct urxe_arena *arena,
		  struct urxe_peer **out);

/* The context (slot, gen), mapped; NULL if it is gone. peer_put when done. */
struct urxe_peer *peer_get(struct urxe_fabric *f, uint32_t slot, uint32_t gen);
void peer_put(struct urxe_peer *p);
/* One more reference to a context that the caller has. */
void peer_hold(struct urxe_peer *p);

/* Was it opened by this process? */
bool peer_is_own(struct urxe_fabric *f, uint32_t slot, uint32_t gen);

/* The slow half of peer_has_died(). */
bool peer_doubt(struct urxe_peer *p);

/*
 * Has its process died, up to this moment?  (That a context died which others
 * used besides its opener is seen later, by peer_look_after.)
 */
static inline bool peer_has_died(struct urxe_peer *p)
{
	uint32_t id = load_relaxed(&p->owner);

	return unlikely(id && !process_seems_alive(p->process, id)) &&
	       peer_doubt(p);
}

/*
 * Is it that process of this context which a key means by this number?  pid is
 * of the namespace of this process.
 */
bool peer_pid_lives(struct urxe_peer *p, int32_t pid);

/* Reap the dead ones, and give back what files of theirs are not needed. */
void peer_look_after(void);
/*
 * Is [va, va + len) of this process, or a part of it, in an MR that peers do
 * not map?
 */
bool peer_has_private_key(uint64_t va, uint64_t len);
/* Is any context of another process mapped? */
bool peer_any_foreign(void);
/* Words of the processes whose lives it is that peer_look_after() looks at. */
#define PEER_WATCH_WORDS (FUTEX_WORDS_MAX - 1) /* one is the caller's */
struct peer_watch {
	uint32_t n;
	struct futex_word word[FUTEX_WORDS_MAX];
};
/* False: one of them is dead, or its death would change no word. */
bool peer_watch(struct peer_watch *w);
/* Files of that context's are to be mapped: it is told where it has to ask them
 * back (arena.mappers). */
void peer_note_mapping(struct urxe_peer *p);
/* Held over fork(). */
void peer_lock(void);
void peer_unlock(void);
void peer_after_fork(void); /* in the child, before peer_unlock() */
