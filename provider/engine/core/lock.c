// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Gates: the slow path of the insider, and the outsiders' side.  A gate is a
 * lock that is biased to one thread; lock.h has the protocol (a Dekker
 * handshake, with membarrier(2) on the outsiders' side).
 *
 * gate_lock() and gate_wait() wait for the insider and must not be called by
 * it.  gate_trylock() does not wait.
 */
#include "lock.h"

void gate_init(struct urxe_gate *g)
{
	mutex_init(&g->mutex);
	atomic_init(&g->insider.seq, 0);
	atomic_init(&g->claimed, false);
	g->by_mutex = false;
}

void gate_enter_slow(struct urxe_gate *g)
{
	presence_leave(&g->insider);
	mutex_lock(&g->mutex);
	g->by_mutex = true;
}

static void gate_claim(struct urxe_gate *g)
{
	store_seq_cst(&g->claimed, true);
	presence_barrier();
}

void gate_lock(struct urxe_gate *g)
{
	mutex_lock(&g->mutex);
	gate_claim(g);
	presence_wait(&g->insider, NULL, NULL);
}

bool gate_trylock(struct urxe_gate *g)
{
	if (!mutex_trylock(&g->mutex))
		return false;
	gate_claim(g);
	if (!presence_is_inside(&g->insider))
		return true;
	gate_unlock(g);
	return false;
}

void gate_unlock(struct urxe_gate *g)
{
	store_release(&g->claimed, false);
	mutex_unlock(&g->mutex);
}

void gate_wait(struct urxe_gate *g)
{
	/* an insider that entered by the mutex releases it on exit */
	mutex_lock(&g->mutex);
	mutex_unlock(&g->mutex);
	presence_wait(&g->insider, NULL, NULL);
}
