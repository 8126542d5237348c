/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Model of a lock that is released without a locked instruction
 * (provider/engine/core/mutex.h).  The stores of each thread go through a
 * store buffer of one entry.  Locked instructions flush the thread's buffer,
 * and the barrier of a waiter (membarrier) flushes all buffers.
 *
 * - At most one thread holds the lock.
 * - No thread sleeps forever: in the end all threads have held the lock.
 */
#define THREADS 3
#define TURNS 2

bool locked;
byte waiters;
bool buffered[THREADS]; /* the store buffer contains locked = false */
byte sleepers; /* threads that sleep on the futex */
byte woken; /* sleepers that may continue */
byte inside;
byte done;

/* The value that a thread loads: its own buffered store has priority. */
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

/* Try to take the lock, with a locked instruction; set got. */
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

/* futex(FUTEX_WAIT): check the word and sleep, in one atomic step. */
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

/* futex(FUTEX_WAKE): a full barrier precedes the check for sleepers. */
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
