/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A guard that names what its requester is at (kernel-shim/shared/guard.h), and
 * two who take things away.  The requester's stores go through a store buffer,
 * which his exchanges empty; he may be killed at any step, or stop for good.
 *
 * - Nobody touches what was taken away, when who took it has waited.
 * - Who takes something away waits for ever only if the requester has stopped at
 *   that very thing.
 */
#define A 1
#define B 2
#define ANY 3 /* one of them, it is not known yet which */
#define NONE 4 /* neither; the requester adds ANY later */
#define OPS 2

bool live[3] = true; /* the words that are cleared */
bool gone[3]; /* what nobody in the program knows: it is given back */

byte seq; /* odd while he is inside */
byte uses;
bool pending; /* in the store buffer: uses is to become this */
byte buffer;

bool stopped, killed;
byte at; /* what he may touch yet */

#define CONCERNS(thing) (uses == ANY || uses == thing)

inline name(what)
{
	atomic { !pending -> pending = true; buffer = what }
}

/* A locked instruction. */
inline exchange(by)
{
	atomic {
		if
		:: pending -> uses = buffer; pending = false
		:: else
		fi;
		seq = seq + by
	}
}

/* A release store comes after what is in the buffer. */
inline release(by)
{
	atomic { !pending -> seq = seq + by }
}

proctype buffers()
{
end:	do
	:: atomic { pending -> uses = buffer; pending = false }
	od
}

inline touch(thing)
{
	atomic { assert(!gone[thing]) }
}

/* Look a thing up; it is used in two steps, between which anything may be. */
inline use(thing, narrow)
{
	if
	:: atomic { live[thing] -> at = thing };
#ifdef NARROWS_WRONG
		if
		:: narrow -> name(A)
		:: !narrow
		fi;
#else
		if
		:: narrow -> name(thing)
		:: !narrow
		fi;
#endif
		touch(thing);
		if
		:: skip
		:: stopped = true; goto halt
		fi;
		touch(thing)
	:: !live[thing]
	fi;
	at = 0
}

/* A locked instruction on the names. */
inline exchange_name(what)
{
	atomic { pending = false; uses = what }
}

/* op: use A; or name ANY and use B; or name NONE, add ANY, and use B. */
inline begin(op)
{
#ifndef LATE
	name(op);
#endif
	if
	:: seq % 2 == 0 -> exchange(1)
#ifdef NO_MOVE
	:: seq % 2 == 1
#else
	:: seq % 2 == 1 -> exchange(2)
#endif
	fi;
	if
	:: op == A -> use(A, false)
	:: op == ANY -> use(B, true)
	:: op == NONE ->
#ifdef ADDS_LATE
		use(B, false);
		exchange_name(ANY)
#elif defined(ADDS_BUFFERED)
		name(ANY);
		use(B, true)
#else
		exchange_name(ANY);
		use(B, true)
#endif
	fi;
#ifdef LATE
	name(op);
#endif
}

proctype requester()
{
	byte n;

	{
		do
		:: n < OPS ->
			if
			:: begin(A)
			:: begin(ANY)
			:: begin(NONE)
			fi;
			n++;
			if
			:: release(1)
			:: n < OPS && seq % 2 == 1 /* the next one of the list */
			fi
		:: n == OPS ->
			if
			:: seq % 2 == 1 -> release(1)
			:: seq % 2 == 0
			fi;
			break
		od;
		goto out;
halt: end_halt:
		false
	} unless { killed };
out:
end:	skip
}

#ifdef CONTEXT_LIFE
#define DEAD false /* a child of his has the context */
#else
#define DEAD killed
#endif

proctype taker(byte thing)
{
	byte seen;

	live[thing] = false;
	seen = seq;
	if
	:: seen % 2 == 1 && CONCERNS(thing) ->
		if
		:: seq != seen || !CONCERNS(thing) || DEAD ->
			gone[thing] = true
		/* waits for ever, with reason */
		:: stopped && at == thing
		fi
	:: else -> gone[thing] = true
	fi
}

proctype killer()
{
end:	if
	:: atomic { true -> killed = true; at = 0 }
	:: true
	fi
}

init
{
	atomic {
		run buffers();
		run requester();
		run taker(A);
		run taker(B);
		run killer()
	}
}
