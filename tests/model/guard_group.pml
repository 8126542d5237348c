/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The word of a group of guards (kernel-shim/shared/guard.h): two requesters who
 * come and go, one who takes a thing away, and two who doubt that anybody is
 * inside.  All that is done to the word is seq_cst, so it is in one order; each
 * may stop for good at any step.
 *
 * Nobody uses the thing when who took it away is through: he has found the word
 * idle, or has looked at all guards.
 */
#define REQUESTERS 2
#define DOUBTERS 2
#define OPS 2

bool live = true; /* the word that is cleared */
bool gone; /* it is given back */
bool up[REQUESTERS];

bool busy, doubted; /* the group's word ... */
byte doubts; /* ... and how often it was doubted */

inline say_busy()
{
	if
	:: atomic { busy -> skip }
#ifdef TRUSTS_DOUBTED
	:: atomic { !busy && doubted -> skip }
	:: atomic { !busy && !doubted -> skip }; busy = true
#else
	:: atomic { !busy -> skip }; busy = true
#endif
	fi
}

proctype requester(byte me)
{
	byte n;
	bool found;

	do
	:: n < OPS ->
		n++;
#ifdef LOOKS_FIRST
		say_busy();
		up[me] = true;
#else
		up[me] = true;
		say_busy();
#endif
		found = live;
		/* it is used until he leaves */
		assert(!found || !gone);
		atomic { assert(!found || !gone); up[me] = false }
	:: n == OPS -> break
	od
}

proctype taker()
{
	byte i;

#ifdef LATE
	if
	:: atomic { !busy && !doubted -> skip };
		live = false; gone = true; goto out
	:: atomic { busy || doubted -> skip }; live = false
	fi;
#else
	live = false;
	if
#ifdef DOUBT_IS_IDLE
	:: atomic { !busy -> gone = true }; goto out
	:: atomic { busy -> skip }
#else
	:: atomic { !busy && !doubted -> gone = true }; goto out
	:: atomic { busy || doubted -> skip }
#endif
	fi;
#endif
	for (i : 0 .. REQUESTERS - 1) {
end_waits:	!up[i]
	}
	gone = true;
out:	skip
}

proctype doubter()
{
	byte i, mine;

	/* the compare-and-swap that fails is one that was not tried */
	atomic {
		busy = false;
		doubted = true;
		doubts++;
		mine = doubts
	}
	for (i : 0 .. REQUESTERS - 1) {
		if
		:: atomic { up[i] -> goto out }
		:: atomic { !up[i] -> skip }
		fi
	}
	if
#ifdef NO_NUMBER
	:: atomic { !busy && doubted -> doubted = false }
	:: atomic { busy || !doubted -> skip }
#else
	:: atomic { !busy && doubted && doubts == mine -> doubted = false }
	:: atomic { busy || !doubted || doubts != mine -> skip }
#endif
	fi;
out:	skip
}

init
{
	byte i;

	atomic {
		for (i : 0 .. REQUESTERS - 1) {
			run requester(i)
		}
		for (i : 0 .. DOUBTERS - 1) {
			run doubter()
		}
		run taker()
	}
}
