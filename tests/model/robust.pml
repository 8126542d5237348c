/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The lock that outlives its holders (kernel-shim/shared/robust.h): processes
 * that take it, wait for it and give it back, two of which may be killed at any
 * step.  Memory is sequentially consistent here.
 *
 * - Of those that live only one is inside.
 * - Who takes the lock is told that the holder before him died if and only if
 *   he did.
 * - Nobody sleeps for ever.  A sleeper may count on being woken as long as
 *   nobody dies: only after a death does it look around, and only what it can
 *   find then is a step here (the word has changed, or its holder is dead).
 *
 * A process that is killed counts as alive for a moment, as its lock in the file
 * does.
 */
#define PROCESSES 3
#define DEATHS 2

#define WAITERS 8
#define HOLDER(w) ((w) & 7)
#ifdef ONE_NUMBER
/* They are all number 1, each in its PID namespace. */
#define DEAD(w) (!alive[0] || !alive[1] || !alive[2])
#else
#define DEAD(w) (HOLDER(w) == 0 || !alive[HOLDER(w) - 1])
#endif

byte word; /* 0, or 1 + process, and WAITERS */
bool alive[PROCESSES] = true;
bool kill[PROCESSES];
bool asleep[PROCESSES];
byte deaths;

/* what nobody in the program knows */
bool holds[PROCESSES]; /* the word is its, and it has not given it back */
byte inside;
byte untold; /* 1: who held the lock died with it */

/* told: 1 if it is known that who had it before us died */
#define take(new, told)                          \
	assert(untold == told);                  \
	untold = 0;                              \
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
			/* others that still sleep are not remembered */
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
		/* no compare-and-swap: two may take it over */
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
		/* futex_wake(): one of those that sleep, whoever it is */
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
		:: holds[me] -> holds[me] = false; untold = 1; inside--
		:: else
		fi
	}
}

/* Those who had enough end as the killed do, and hold nothing. */
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
