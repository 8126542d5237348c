/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Model of the summary word of a group of guards
 * (kernel-shim/shared/guard.h): two requesters that raise and lower their
 * guards, a destroyer, and two threads that recheck whether the group is idle
 * ("doubters").  All accesses to the word are seq_cst, so they have one total
 * order.  Each process may stop forever at any step.
 *
 * The object is not used after the destroyer has found the word idle, or has
 * read all guards.
 */
#define REQUESTERS 2
#define DOUBTERS 2
#define OPS 2

bool live = true; /* validity of the object, cleared by the destroyer */
bool gone; /* ghost variable: the object was released */
bool up[REQUESTERS];

/* fields of the summary word; !busy && !doubted: idle; doubted: RECHECK */
bool busy, doubted;
byte doubts; /* number of the recheck */

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
		/* the object is used until the guard is lowered */
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

	/* a failed compare-and-swap is modelled as one that was not tried */
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
