/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A lock that is given back without a locked instruction
 * (provider/engine/core/mutex.h).  Stores of the threads go through store buffers, of
 * one entry each, which their locked instructions empty, and which the barrier
 * of one that waits empties everywhere.
 *
 * - Never are two inside.
 * - Nobody sleeps for ever: in the end all have been inside.
 */
#define THREADS 3
#define TURNS 2

bool locked;
byte waiters;
bool buffered[THREADS]; /* there is locked = false in it */
byte sleepers; /* in the kernel, on the futex */
byte woken; /* those of them that may go on */
byte inside;
byte done;

/* What a thread sees of the lock itself is first of all its own store. */
#define SEES_LOCKED(me) (locked && !buffered[me])

inline drain(me)
{
	if
	:: buffered[me] -> buffered[me] = false; locked = false
	:: else
	fi
}

proctype buffers()
{
end:	do
	:: atomic { buffered[0] -> drain(0) }
	:: atomic { buffered[1] -> drain(1) }
	:: atomic { buffered[2] -> drain(2) }
	od
}

/* got: a locked instruction */
inline try_lock(me)
{
	atomic {
		drain(me);
		got = !locked;
		locked = true
	}
}

inline barrier_everywhere()
{
	atomic { drain(0); drain(1); drain(2) }
}

/* The kernel looks at the word, and the caller sleeps, in one step. */
inline futex_wait(me)
{
	atomic {
		drain(me);
		if
		:: locked -> sleepers++
		:: else -> goto awake
		fi
	}
	atomic { woken > 0 -> woken--; sleepers-- }
awake:	skip
}

/* The kernel has a full barrier before it looks who sleeps. */
inline futex_wake(me)
{
	atomic {
		drain(me);
		if
		:: sleepers > woken -> woken++
		:: else
		fi
	}
}

inline give_back(me)
{
#ifdef LOOKS_FIRST
	saw = waiters;
#endif
	atomic { !buffered[me] -> buffered[me] = true };
#ifndef LOOKS_FIRST
	saw = waiters;
#endif
	if
	:: saw > 0 -> futex_wake(me)
	:: else
	fi
}

proctype thread(byte me)
{
	byte n, saw;
	bool got;

	do
	:: n < TURNS ->
		try_lock(me);
		if
		:: got
		:: else ->
			atomic { drain(me); waiters++ };
#ifndef NO_BARRIER
			barrier_everywhere();
#endif
			do
			:: try_lock(me);
				if
				:: got -> break
				:: else
				fi;
				futex_wait(me)
			od;
			atomic { drain(me); waiters-- }
		fi;
		inside++;
		assert(inside == 1);
		inside--;
		give_back(me);
		n++
	:: n == TURNS -> break
	od;
	done++
}

init
{
	atomic {
		run buffers();
		run thread(0);
		run thread(1);
		run thread(2)
	}
	done == THREADS
}
