/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Model of a guard (hazard pointer) that names the object that its requester
 * uses (kernel-shim/shared/guard.h), and of two destroyers.  The stores of
 * the requester go through a store buffer, which its exchanges flush.  The
 * requester may be killed or stopped forever at any step.
 *
 * - An object is not accessed after its destroyer has waited.
 * - A destroyer waits forever only if the requester was stopped while it uses
 *   that object.
 */
#define A 1
#define B 2
#define ANY 3 /* one of them, not known yet which */
#define NONE 4 /* neither; the requester adds ANY later */
#define OPS 2

bool live[3] = true; /* validity of the objects, cleared by the destroyers */
bool gone[3]; /* ghost variable: the object was released */

byte seq; /* odd while the guard is raised */
byte uses;
bool pending; /* the store buffer contains a store to uses: buffer */
byte buffer;

bool stopped, killed;
byte at; /* object that the requester may still access */

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

/* A release store is ordered after the stores in the buffer. */
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

/* Look up an object, and access it twice, with any delay in between. */
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

/* A locked instruction on the name */
inline exchange_name(what)
{
	atomic { pending = false; uses = what }
}

/* op: A: use A.  ANY: name ANY, use B.  NONE: name NONE, add ANY, use B. */
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
			:: n < OPS && seq % 2 == 1 /* continue with the next WR of the list */
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
#define DEAD false /* a forked child keeps the context alive */
#else
#define DEAD killed
#endif

proctype destroyer(byte thing)
{
	byte seen;

	live[thing] = false;
	seen = seq;
	if
	:: seen % 2 == 1 && CONCERNS(thing) ->
		if
		:: seq != seen || !CONCERNS(thing) || DEAD ->
			gone[thing] = true
		/* the permitted case of waiting forever */
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
		run destroyer(A);
		run destroyer(B);
		run killer()
	}
}
