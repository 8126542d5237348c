/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Contexts of this fabric, this process's own and the mapped ones. */
#ifndef URXE_PEER_H
#define URXE_PEER_H

#include "urxe.h"

#define PEER_NOT_ME 0xff /* urxe_peer.my_flag: none of its keys are ours */

/* One mapping per fabric and process, shared by its contexts. */
int fabric_ref(const char *dir, struct urxe_fabric **out);
void fabric_unref(struct urxe_fabric *f);

/* Own contexts announce themselves, so that loopback needs no second map. */
int peer_new_self(struct urxe_fabric *f, struct urxe_arena *arena,
		  struct urxe_peer **out);

/* The context (slot, gen), mapped; NULL if it is gone. peer_put when done. */
struct urxe_peer *peer_get(struct urxe_fabric *f, uint32_t slot, uint32_t gen);
void peer_put(struct urxe_peer *p);

/* Was it opened by this process? */
bool peer_is_own(struct urxe_fabric *f, uint32_t slot, uint32_t gen);

/* Look for dead contexts among the mapped ones and reap them. */
void peer_bury_dead(void);
/* Is any context of another process mapped? */
bool peer_any_foreign(void);
/* Held over fork(). */
void peer_lock(void);
void peer_unlock(void);
void peer_after_fork(void); /* in the child, before peer_unlock() */

#endif
