/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Model of the eager buffer of a completion ring (provider/engine/cq/eager.h,
 * eager.c, provider/engine/poll/cq_resize.c), with fewer slots than entries:
 * producers that may die at any step, a poller, one resize, and a buffer that
 * is freed when it is idle and allocated again.  Claiming an entry is one
 * step here, because cq_ring.pml checks it.  Memory is sequentially
 * consistent; orders.cpp ("eager") checks the memory orders.
 *
 * - An entry that the poller reads has its own bytes, in a buffer that exists.
 * - A producer writes only to a slot whose previous entry was polled, and not
 *   to a buffer that was freed.
 * - The poller is never stuck: when all producers have ended or died, all
 *   published completions have been polled.
 */
#define DEPTH 4
#define SLOTS 2
#define PRODUCERS 2
#define MESSAGES 2 /* of each producer: at most DEPTH in total */
#define BUFFERS 2 /* how often a buffer is allocated */

/*
 * Positions are modulo 16.  Those of the first ring begin at FIRST and wrap,
 * those of the second ring begin at 0, as in every new ring.
 */
#define FIRST 15
#define MINUS(a, b) (((a) - (b)) & 15)

typedef entry {
	bool ready, eager, wrote;
	byte from, value;
};
entry e[8]; /* two rings */
#define E(ring, pos) e[(ring) * DEPTH + (pos) % DEPTH]

/* shared memory */
byte ring, tail[2], head[2];
bool moved; /* the first ring has ended */
byte eager; /* number of the buffer that producers may use, or 0 */
byte slot[SLOTS]; /* content of the buffer */
bool inside[PRODUCERS]; /* the guards */
bool killed[PRODUCERS];
bool ended[PRODUCERS];

/* ghost variables, which the program does not have */
byte buffer; /* number of the buffer that is allocated, or 0 */
byte user[SLOTS]; /* the message in it that was not polled, or 0 */
byte published, polled;
byte last[PRODUCERS]; /* last polled value */

#define MESSAGE(from, value) ((from) * MESSAGES + (value))

inline maybe_die()
{
	if
	:: skip
	:: killed[me] = true; goto dead
	fi
}

#ifdef ONE_MORE
#define MAY_WRITE (at && MINUS(p, h) <= SLOTS)
#else
#define MAY_WRITE (at && MINUS(p, h) < SLOTS)
#endif

/* Clear variables that are not used any more: fewer states. */
#define FORGET claimed = 0; r = 0; p = 0; h = 0; at = 0

proctype producer(byte me)
{
	byte claimed; /* the ring in which p was claimed */
	byte r, p, h, at, n;

	for (n : 1 .. MESSAGES) {
		inside[me] = true;
		claimed = ring;
claim:
		if
		:: atomic {
			claimed == 0 && moved ->
			claimed = 1;
			goto claim
		   }
		:: atomic {
			claimed == 1 || !moved ->
			p = tail[claimed];
			assert(MINUS(p, head[claimed]) < DEPTH);
			E(claimed, p).from = me;
			E(claimed, p).value = n;
			tail[claimed] = MINUS(p + 1, 0)
		   }
		fi;
		maybe_die();
		/* eager_slot() */
#ifdef EAGER_FIRST
		at = eager;
#endif
		r = ring;
		h = head[r];
#ifndef EAGER_FIRST
		at = eager;
#endif
		if
		:: MAY_WRITE ->
			d_step {
				assert(at == buffer);
				assert(!user[p % SLOTS]);
				user[p % SLOTS] = MESSAGE(me, n);
				slot[p % SLOTS] = MESSAGE(me, n);
				E(claimed, p).wrote = true
			}
			maybe_die();
			E(claimed, p).eager = true
		:: else /* the kernel copies the bytes */
		fi;
		d_step {
			E(claimed, p).ready = true;
			published++;
			FORGET
		}
		maybe_die();
		inside[me] = false
	}
dead:
	skip;
	d_step {
		ended[me] = true;
		FORGET
	}
}

/* ---------------------------------------------------------------- poller */

byte pos, polled_ring;
byte eager_at; /* the buffer of the CQ */

#define HEAD E(polled_ring, pos)
#define IS_CLAIMED (MINUS(tail[polled_ring], pos) != 0)
#define IS_READY (IS_CLAIMED && HEAD.ready)

inline release()
{
	d_step {
		pos = MINUS(pos + 1, 0);
		head[polled_ring] = pos
	}
}

/* The entry is free: its content does not matter. */
inline forget(i)
{
	E(polled_ring, i).ready = false;
	E(polled_ring, i).eager = false;
	E(polled_ring, i).wrote = false;
	E(polled_ring, i).from = 0;
	E(polled_ring, i).value = 0
}

/* Read the entry at @at of this ring, as poll_place() does. */
inline place(at)
{
	d_step {
		if
		:: E(polled_ring, at).eager ->
			assert(eager_at && eager_at == buffer);
			assert(slot[at % SLOTS] ==
			       MESSAGE(E(polled_ring, at).from,
				       E(polled_ring, at).value));
			user[at % SLOTS] = 0;
			slot[at % SLOTS] = 0
		:: else
		fi;
		assert(E(polled_ring, at).value >
		       last[E(polled_ring, at).from]);
		last[E(polled_ring, at).from] = E(polled_ring, at).value;
		polled++;
		forget(at)
	}
}

/* Skip the entry of a dead producer, which may have written to its slot. */
inline skip_dead()
{
	d_step {
		if
		:: HEAD.wrote ->
			user[pos % SLOTS] = 0;
			slot[pos % SLOTS] = 0
		:: else
		fi;
		forget(pos)
	}
	release()
}

/* Poll the entry at the head, or skip it if its owner is dead; else block. */
inline poll_one()
{
	if
	:: IS_READY ->
#ifdef RELEASE_FIRST
		release();
		place(MINUS(pos - 1, 0))
#else
		place(pos);
		release()
#endif
	:: IS_CLAIMED && !HEAD.ready ->
		if
		:: killed[HEAD.from] ->
			if
			:: HEAD.ready
			:: !HEAD.ready -> skip_dead()
			fi
		:: HEAD.ready
		fi
	fi
}

inline wait_for_guards()
{
	!inside[0] || killed[0];
	!inside[1] || killed[1]
}

/* eager_provide() */
inline provide()
{
	d_step {
		allocs++;
		buffer = allocs;
		eager_at = allocs
	}
	eager = eager_at
}

/* eager_try_free() */
inline try_free()
{
	eager = 0;
	if
	:: skip /* the wait takes too long */
	:: skip ->
		wait_for_guards();
		if
#ifdef READY_ONLY
		:: IS_READY
		:: !IS_READY ->
#else
		:: IS_CLAIMED
		:: !IS_CLAIMED ->
#endif
			d_step {
				buffer = 0;
				eager_at = 0
			}
		fi
	fi;
	eager = eager_at
}

/* cq_replace_ring() */
inline resize()
{
#ifndef NO_SUSPEND
	eager = 0;
#endif
	atomic {
		moved = true;
		end = tail[0]
	}
	ring = 1;
#ifdef RESUME_EARLY
	eager = eager_at;
#endif
	wait_for_guards();
	do
	:: pos != end -> poll_one()
	:: pos == end -> break
	od;
	skip;
	d_step {
		polled_ring = 1;
		pos = 0;
		end = 0
	}
	eager = eager_at
}

#define ALL_ENDED (ended[0] && ended[1])

active proctype poller()
{
	byte end, allocs;
	bool resized;

	atomic {
		tail[0] = FIRST;
		head[0] = FIRST;
		pos = FIRST;
		run producer(0);
		run producer(1)
	}
	do
	:: IS_CLAIMED -> poll_one()
	:: !eager_at && allocs < BUFFERS -> provide()
	:: eager_at -> try_free()
	:: !resized -> resized = true; resize()
	:: ALL_ENDED && !IS_CLAIMED -> break
	od;
	assert(polled == published)
}
