/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Model of the completion ring (kernel-shim/shared/cq_ring.h,
 * provider/engine/poll/poller.c, cq_resize.c) with producers that may die at
 * any step, a poller, and one resize.  Memory is sequentially consistent:
 * this model does not check the memory orders of cq_ring.h (orders.cpp does).
 *
 * - Each published completion is polled once, and those of one producer in
 *   order.
 * - A producer finds the ring full only if all entries are in use.
 * - The old ring is not accessed after it was freed.
 * - The poller is never stuck: when all producers have ended or died, all
 *   published completions have been polled.
 */
#define DEPTH 2
#define PRODUCERS 2
#define COMPLETIONS 2 /* of each producer */

#define CLAIMED 1
#define MOVED 3

/* Positions begin at DEPTH: an entry with an earlier position is free. */
typedef entry {
	byte state, pos; /* the claim */
	byte owner, gen; /* process number, and generation of that number */
	byte ready; /* the position for which it was filled */
	byte from, value; /* content of the completion */
};
entry e[4]; /* two rings */
#define E(ring, pos) e[(ring) * DEPTH + (pos) % DEPTH]
/* t - h > mask in unsigned arithmetic: h may also be past t */
#define NO_ROOM(t, h) (t - h >= DEPTH || h > t)

byte tail_hint[2], head_seen[2], head_seen_by_poller[2];
byte ring; /* sh->ring */
byte next_ring;
bool inside[PRODUCERS]; /* the guards */
bool alive[PRODUCERS]; /* a live process has this number */
byte gen[PRODUCERS]; /* generation of this number */
bool ended[PRODUCERS];
bool killed[PRODUCERS];

/* ghost variables, which the program does not have */
byte published, polled;
bool freed; /* the memory of the old ring */
byte last[PRODUCERS]; /* last polled value */

/*
 * The process may be killed here.  Another process may then get its number.
 */
inline maybe_die()
{
	if
	:: skip
	:: atomic {
		killed[me] = true;
		alive[me] = false;
		if
		:: skip
		:: gen[me] = gen[me] + 1; alive[me] = true
		fi;
		goto dead
	}
	fi
}

proctype producer(byte me)
{
	byte r, t, n, state, pos, owner, h;
	bool no_room; /* whether the entry was in use when head was read */

	for (n : 1 .. COMPLETIONS) {
		inside[me] = true;
		r = ring;
again:
		t = tail_hint[r];
walk:
		skip;
		/* load the word */
		d_step {
			assert(r == 1 || !freed);
			state = E(r, t).state;
			pos = E(r, t).pos;
			owner = E(r, t).owner;
			/* tail_hint is never ahead */
			assert(state == MOVED || pos + DEPTH >= t)
		}
		if
		:: state == CLAIMED && pos + DEPTH == t ->
			h = head_seen[r];
#ifndef NO_LOOK
			if
			:: NO_ROOM(t, h) ->
				d_step {
					h = head_seen_by_poller[r];
					no_room = E(r, t).state == CLAIMED &&
						  E(r, t).pos + DEPTH == t
				}
				head_seen[r] = h
			:: else
			fi;
			if
			:: NO_ROOM(t, h) ->
#ifndef FULL_AT_ONCE
				/*
				 * the entry may have been claimed and polled
				 * meanwhile
				 */
				if
				:: E(r, t).state != CLAIMED ||
				   E(r, t).pos + DEPTH != t ->
					goto walk
				:: else
				fi;
#endif
				assert(no_room);
				goto overrun
			:: else
			fi;
			d_step {
				h = 0;
				no_room = false
			}
#endif
			/* compare and swap */
			if
			:: atomic {
				E(r, t).state == CLAIMED &&
				E(r, t).pos + DEPTH == t ->
				/* the previous completion in it was polled */
				assert(head_seen_by_poller[r] + DEPTH > t);
				E(r, t).pos = t;
				E(r, t).owner = me;
				E(r, t).gen = 0
			}
			:: atomic {
				!(E(r, t).state == CLAIMED &&
				  E(r, t).pos + DEPTH == t) ->
				goto walk
			}
			fi
		:: state == MOVED ->
			/* only once: the guard delays the next resize */
			assert(r == 0);
			r = next_ring;
			goto again
		:: else -> /* taken */
			t++;
			goto walk
		fi;
		maybe_die();
		tail_hint[r] = t + 1;
		maybe_die();
		E(r, t).from = me;
		E(r, t).value = n;
		maybe_die();
		atomic {
			assert(E(r, t).state == CLAIMED && E(r, t).pos == t &&
			       E(r, t).owner == me);
			E(r, t).ready = t;
			published++
		}
		maybe_die();
		inside[me] = false
overrun:
		inside[me] = false
	}
dead:
	ended[me] = true
}

/* ---------------------------------------------------------------- poller */

byte head, polled_ring;

#define READY (E(polled_ring, head).ready == head)
#define IS_CLAIMED \
	(E(polled_ring, head).state == CLAIMED && \
	 E(polled_ring, head).pos == head)

inline release()
{
	d_step {
		head++;
		head_seen_by_poller[polled_ring] = head
	}
}

#ifdef NUMBER_ONLY
/* whether no live process has this number */
#define OWNER_DEAD(en) (!alive[en.owner])
#else
#define OWNER_DEAD(en) \
	(killed[en.owner] && (!alive[en.owner] || gen[en.owner] != en.gen))
#endif

/* Poll the entry at the head, or skip it if its owner is dead; else block. */
inline poll_one()
{
	if
	:: READY ->
		d_step {
			assert(E(polled_ring, head).value >
			       last[E(polled_ring, head).from]);
			last[E(polled_ring, head).from] =
				E(polled_ring, head).value;
			polled++
		}
		release()
	:: !READY && IS_CLAIMED ->
		/* the owner is checked after the entry was loaded */
		if
		:: OWNER_DEAD(E(polled_ring, head)) ->
#ifndef SKIP_BY_STORE
			/* and then the entry is loaded again */
			if
			:: READY
			:: !READY -> release()
			fi
#else
			release()
#endif
		:: READY
		fi
	fi
}

#define NOTHING (!READY && !IS_CLAIMED)
#define ALL_ENDED (ended[0] && ended[1])

inline wait_for_guard(i)
{
	!inside[i] || killed[i]
}

/* cq_replace_ring */
inline resize()
{
	next_ring = 1;
	t = tail_hint[0];
	do
	:: atomic {
		E(0, t).pos + DEPTH == t && t - head < DEPTH ->
		E(0, t).state = MOVED;
		E(0, t).pos = t;
		end = t;
		break
	   }
	:: E(0, t).pos + DEPTH == t && t - head >= DEPTH ->
		poll_one();
		t = tail_hint[0]
	:: E(0, t).pos >= t -> t++
	od;
	ring = 1;
#ifndef NO_WAIT
	wait_for_guard(0);
	wait_for_guard(1);
#endif
	do
	:: head < end -> poll_one()
	:: else -> break
	od;
	/* the memory of the old ring may be reused from here on */
	skip;
	d_step {
		freed = true;
		polled_ring = 1;
		head = DEPTH
	}
}

active proctype poller()
{
	byte t, end, i;
	bool resized;

	atomic {
		for (i : 0 .. DEPTH - 1) {
			e[i].pos = i;
			e[i].state = CLAIMED;
			e[DEPTH + i].pos = i;
			e[DEPTH + i].state = CLAIMED
		}
		for (i : 0 .. 1) {
			tail_hint[i] = DEPTH;
			head_seen[i] = DEPTH;
			head_seen_by_poller[i] = DEPTH
		}
		head = DEPTH;
		for (i : 0 .. PRODUCERS - 1) {
			alive[i] = true
		}
		run producer(0);
		run producer(1)
	}
	do
	:: !NOTHING -> poll_one()
	:: !resized -> resized = true; resize()
	:: ALL_ENDED && NOTHING -> break
	od;
	assert(polled == published)
}
