/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Model of the robust lock (kernel-shim/shared/robust.h): processes that
 * take, await and release it.  Two of them may be killed at any step.  Memory
 * is sequentially consistent.
 *
 * - At most one live process holds the lock.
 * - A process that takes the lock is notified of the death of the previous
 *   holder if and only if it died while holding the lock.
 * - No process sleeps forever.  As long as no process dies, sleepers depend
 *   on wake-ups only.  After a death, a sleeper also wakes up if the word has
 *   changed or the holder is dead.
 *
 * A killed process counts as alive for a moment, as does its lock on the
 * file.
 */
#define PROCESSES 3
#define DEATHS 2

#define WAITERS 8
#define HOLDER(w) ((w) & 7)
#ifdef ONE_NUMBER
/* all processes have PID 1, each in its own PID namespace */
#define DEAD(w) (!alive[0] || !alive[1] || !alive[2])
#else
#define DEAD(w) (HOLDER(w) == 0 || !alive[HOLDER(w) - 1])
#endif

byte word; /* 0, or 1 + process, and WAITERS */
bool alive[PROCESSES] = true;
bool kill[PROCESSES];
bool asleep[PROCESSES];
byte deaths;

/* ghost variables, which the program does not have */
bool holds[PROCESSES]; /* the process holds the lock */
byte inside;
byte unreported; /* 1: a holder died, and no process was notified yet */

/* told: 1 if the caller knows that the previous holder died */
#define take(new, reported)                          \
	assert(unreported == reported);                  \
	unreported = 0;                              \
	word = new;                              \
	holds[me] = true;                        \
	inside++;                                \
	assert(inside == 1)

inline lock()
{
	if
	:: atomic { word == 0 -> take(me + 1, 0); goto held }
	:: atomic { word != 0 -> skip }
	fi;
again:
	w = word;
	if
	:: w == 0 ->
		if
		:: atomic { word == 0 ->
#ifdef FORGETS
			/* the WAITERS flag of other sleepers is lost */
			take(me + 1, 0);
#else
			take((me + 1) | WAITERS, 0);
#endif
			goto held }
		:: atomic { word != 0 -> goto again }
		fi
	:: w != 0 && !(w & WAITERS) ->
		if
		:: atomic { word == w -> word = w | WAITERS; w = word }
		:: atomic { word != w -> goto again }
		fi
	:: else
	fi;
	/* futex_wait() */
	atomic {
		if
		:: word == w -> asleep[me] = true
		:: else -> goto again
		fi
	}
	if
	:: atomic { !asleep[me] -> skip }
#ifndef TRUSTS
	:: atomic { deaths && asleep[me] && (word != w || DEAD(w)) ->
		asleep[me] = false }
#endif
	fi;
	if
	:: word != w || !DEAD(w) -> goto again
	:: word == w && DEAD(w) ->
#ifdef STORES
		/* no compare-and-swap: two processes may take the lock */
		atomic { take((me + 1) | WAITERS, 1) }
#else
		if
		:: atomic { word == w -> take((me + 1) | WAITERS, 1) }
		:: atomic { word != w -> goto again }
		fi
#endif
	fi;
held:
	skip
}

inline give_back()
{
	if
	:: atomic { word == me + 1 ->
		word = 0; holds[me] = false; inside-- }
	:: atomic { word != me + 1 ->
		assert(word == ((me + 1) | WAITERS));
		word = 0; holds[me] = false; inside-- }
#ifndef SILENT
		/* futex_wake(): any one of the sleepers */
		atomic {
			if
			:: asleep[0] -> asleep[0] = false
			:: asleep[1] -> asleep[1] = false
			:: asleep[2] -> asleep[2] = false
			:: !asleep[0] && !asleep[1] && !asleep[2]
			fi
		}
#endif
	fi
}

proctype process(byte me; byte rounds)
{
	byte n, w;

	{
		do
		:: n < rounds ->
			lock();
			give_back();
			n++
		:: n == rounds -> break
		od
	} unless { kill[me] };
	atomic {
		alive[me] = false;
		asleep[me] = false;
		if
		:: holds[me] -> holds[me] = false; unreported = 1; inside--
		:: else
		fi
	}
}

/* Processes that end normally also become dead, without holding the lock. */
proctype killer()
{
	byte i;

	do
	:: deaths < DEATHS ->
		atomic {
			if
			:: i = 0
			:: i = 1
			:: i = 2
			fi;
			if
			:: alive[i] && !kill[i] -> kill[i] = true; deaths++
			:: else
			fi
		}
	:: break
	od
}

init
{
	atomic {
		run process(0, 2);
		run process(1, 1);
		run process(2, 1);
		run killer()
	}
}
