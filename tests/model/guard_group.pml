/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Model of the summary word of a group of guards
 * (kernel-shim/shared/guard.h): two requesters that raise and lower their
 * guards, a destroyer, and two threads that recheck whether the group is idle
 * ("scanners").  All accesses to the word are seq_cst, so they have one total
 * order.  Each process may stop forever at any step.
 *
 * The object is not used after the destroyer has found the word idle, or has
 * read all guards.
 */
#define REQUESTERS 2
#define SCANNERS 2
#define OPS 2

bool live = true; /* validity of the object, cleared by the destroyer */
bool gone; /* ghost variable: the object was released */
bool up[REQUESTERS];

/* fields of the summary word; !busy && !recheck: idle; recheck: RECHECK */
bool busy, recheck;
byte rechecks; /* number of the recheck */

inline set_busy()
{
	if
	:: atomic { busy -> skip }
#ifdef TRUSTS_RECHECK
	:: atomic { !busy && recheck -> skip }
	:: atomic { !busy && !recheck -> skip }; busy = true
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
		set_busy();
		up[me] = true;
#else
		up[me] = true;
		set_busy();
#endif
		found = live;
		/* the object is used until the guard is lowered */
		assert(!found || !gone);
		atomic { assert(!found || !gone); up[me] = false }
	:: n == OPS -> break
	od
}

proctype destroyer()
{
	byte i;

#ifdef LATE
	if
	:: atomic { !busy && !recheck -> skip };
		live = false; gone = true; goto out
	:: atomic { busy || recheck -> skip }; live = false
	fi;
#else
	live = false;
	if
#ifdef RECHECK_IS_IDLE
	:: atomic { !busy -> gone = true }; goto out
	:: atomic { busy -> skip }
#else
	:: atomic { !busy && !recheck -> gone = true }; goto out
	:: atomic { busy || recheck -> skip }
#endif
	fi;
#endif
	for (i : 0 .. REQUESTERS - 1) {
end_waits:	!up[i]
	}
	gone = true;
out:	skip
}

proctype scanner()
{
	byte i, mine;

	/* a failed compare-and-swap is modelled as one that was not tried */
	atomic {
		busy = false;
		recheck = true;
		rechecks++;
		mine = rechecks
	}
	for (i : 0 .. REQUESTERS - 1) {
		if
		:: atomic { up[i] -> goto out }
		:: atomic { !up[i] -> skip }
		fi
	}
	if
#ifdef NO_NUMBER
	:: atomic { !busy && recheck -> recheck = false }
	:: atomic { busy || !recheck -> skip }
#else
	:: atomic { !busy && recheck && rechecks == mine -> recheck = false }
	:: atomic { busy || !recheck || rechecks != mine -> skip }
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
		for (i : 0 .. SCANNERS - 1) {
			run scanner()
		}
		run destroyer()
	}
}
