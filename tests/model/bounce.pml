/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Model of the slots of copy path 4 (kernel-shim/shared/bounce_slot.h,
 * provider/engine/copy/bounce.c, bounce_serve.c).  The processes are: a
 * requester that posts a message in two chained pieces, and may be killed or
 * give up at any step; another requester, which competes for the slots; the
 * bouncer; and the destroyer of the destination memory.
 *
 * - The second piece is copied only after the first one was copied
 *   completely.  If it was, and the requester did not give up, the second
 *   piece is copied.
 * - A piece that the requester has abandoned is not started later.
 * - Memory is not accessed after its destroyer has waited.
 * - The copied piece and the result are those of the request.
 * - No process waits forever.
 */
#define SLOTS 2
#define OTHERS 1 /* requests of the other requester */
#define IDS 4

#define FREE 0
#define FILLING 1
#define POSTED 2
#define SERVING 3
#define DONE 4
#define LEFT 5

#define PAIR 1 /* owners: the requester with two pieces, and the other one */
#define OTHER 2

#define NONE 0
#define WHOLE 1
#define FAILED 2
#define CANCELLED 3

typedef slot {
	byte state, id, owner; /* fields of one word */
	byte after, after_slot;
	byte answer;
};
slot s[SLOTS];
byte next_id;
bool killed; /* PAIR */

byte served_id[SLOTS], served_answer[SLOTS]; /* private to the bouncer */
byte at_work; /* in-use flag of the bouncer: odd while it is working */
bool live = true; /* the key is valid */

/* ghost variables, which the program does not have */
bool gone; /* the memory was released */
bool ended; /* PAIR has ended and lowered its guard */
byte result[IDS];
byte first_id, second_id;

#define IS(i, st, which) (s[i].state == st && s[i].id == which)

/* The slot is free, or its owner is dead. */
#define TO_BE_HAD(i) \
	(s[i].state == FREE || (s[i].owner == PAIR && killed && \
	 s[i].state != SERVING && s[i].state != LEFT))

inline take(i, who, mine)
{
	next_id++;
	mine = next_id;
	s[i].state = FILLING;
	s[i].id = mine;
	s[i].owner = who
}

inline move(i, mine, from, to, ok)
{
	atomic {
		if
		:: IS(i, from, mine) -> s[i].state = to; ok = true
		:: else -> ok = false
		fi
	}
}

/* Release a slot: the result was read, or is not awaited any more. */
inline leave(i, mine)
{
#ifdef STORES
	if
	:: IS(i, POSTED, mine) -> s[i].state = FREE; ok = true
	:: else -> ok = false
	fi;
#else
	move(i, mine, POSTED, FREE, ok);
#endif
	if
	:: !ok -> move(i, mine, SERVING, LEFT, ok)
	:: ok
	fi;
	if
	:: !ok -> move(i, mine, DONE, FREE, ok)
	:: ok
	fi
}

inline maybe_die()
{
	if
	:: skip
	:: atomic { killed = true; goto dead }
	fi
}

proctype pair()
{
	byte a, b, ida, idb, answer;
	bool ok, two;

	atomic {
		if
		:: TO_BE_HAD(0) -> a = 0
		:: TO_BE_HAD(1) -> a = 1
		fi;
		take(a, PAIR, ida);
		first_id = ida
	}
	maybe_die();
	s[a].after = 0;
	move(a, ida, FILLING, POSTED, ok);
	maybe_die();
	/* the requester does not wait for a second slot */
	atomic {
		b = 1 - a;
		if
		:: TO_BE_HAD(b) ->
			take(b, PAIR, idb);
			second_id = idb;
			two = true
		:: else
		fi
	}
	if
	:: two ->
		s[b].after_slot = a;
		s[b].after = ida;
		maybe_die();
		move(b, idb, FILLING, POSTED, ok);
		maybe_die()
	:: !two
	fi;
	if
	:: IS(a, DONE, ida)
	:: goto give_up
	fi;
	answer = s[a].answer;
	assert(answer == result[ida] && answer != NONE);
	maybe_die();
	if
	:: answer != WHOLE || !two -> goto give_up
	:: else
	fi;
#ifdef NO_HOLD
	leave(a, ida);
#endif
	if
	:: IS(b, DONE, idb)
	:: goto give_up
	fi;
	answer = s[b].answer;
	assert(answer == result[idb] && answer != NONE);
	assert(answer != CANCELLED);
	maybe_die();
give_up:
	if
	:: two -> leave(b, idb)
	:: !two
	fi;
	maybe_die();
	leave(a, ida);
	ended = true;
dead:
	skip
}

proctype other()
{
	byte i, mine, n;
	bool ok;

	do
	:: n < OTHERS ->
		atomic {
			if
			:: TO_BE_HAD(0) -> i = 0
			:: TO_BE_HAD(1) -> i = 1
			fi;
			take(i, OTHER, mine)
		}
		s[i].after = 0;
		move(i, mine, FILLING, POSTED, ok);
		assert(ok);
		IS(i, DONE, mine);
		assert(s[i].answer == WHOLE && result[mine] == WHOLE);
		leave(i, mine);
		n++
	:: n == OTHERS -> break
	od
}

/* Set turn: WHOLE: copy now; NONE: later; CANCELLED: never. */
inline check_turn(i)
{
	after = s[i].after;
	before = s[i].after_slot;
	if
	:: after == 0 -> turn = WHOLE
#ifdef NO_CHAIN
	:: after != 0 -> turn = WHOLE
#else
	:: after != 0 && served_id[before] == after ->
		turn = (served_answer[before] == WHOLE -> WHOLE : CANCELLED)
	:: after != 0 && served_id[before] != after ->
		turn = (IS(before, POSTED, after) -> NONE : CANCELLED)
#endif
	fi
}

inline copy(i)
{
	assert(s[i].id == mine);
	assert(mine != second_id || result[first_id] == WHOLE);
	if
	:: s[i].owner == PAIR && !live -> answer = FAILED
	:: s[i].owner == PAIR && live ->
		assert(!gone);
		if
		:: answer = FAILED /* a page fault that cannot be resolved */
		:: answer = WHOLE
		fi;
		assert(!gone)
	:: s[i].owner == OTHER -> answer = WHOLE
	fi
}

inline serve(i)
{
	at_work++;
	atomic {
		move(i, mine, POSTED, SERVING, ok);
		assert(!ok || s[i].owner != PAIR || !ended)
	}
	if
	:: ok ->
		if
		:: turn == WHOLE -> copy(i)
		:: else -> answer = CANCELLED
		fi;
		result[mine] = answer;
		served_id[i] = mine;
		served_answer[i] = answer;
		s[i].answer = answer;
		move(i, mine, SERVING, DONE, ok);
		if
		:: !ok && s[i].state == LEFT -> s[i].state = FREE
		:: else
		fi
	:: else
	fi;
	at_work++
}

proctype bouncer()
{
	byte i, mine, after, before, turn, answer;
	bool ok;

end:	do
	:: s[0].state == POSTED || s[1].state == POSTED ->
		for (i : 0 .. SLOTS - 1) {
			atomic {
				if
				:: s[i].state == POSTED -> mine = s[i].id
				:: else -> mine = 0
				fi
			}
			if
			:: mine != 0 ->
				check_turn(i);
				if
				:: turn == NONE
				:: turn != NONE -> serve(i)
				fi
			:: mine == 0
			fi
		}
	od
}

proctype destroyer()
{
	byte i, mine, seen;
	bool ok;

	live = false;
	ended || killed; /* wait for the guard of PAIR */
	for (i : 0 .. SLOTS - 1) {
		atomic {
			if
			:: s[i].state == POSTED && s[i].owner == PAIR &&
			   killed -> mine = s[i].id
			:: else -> mine = 0
			fi
		}
		if
		:: mine != 0 -> move(i, mine, POSTED, FREE, ok)
		:: mine == 0
		fi
	}
#ifndef NO_WAIT
	seen = at_work;
	if
	:: seen % 2 == 1 -> at_work != seen
	:: else
	fi;
#endif
	gone = true
}

init
{
	atomic {
		run bouncer();
		run pair();
		run other();
		run destroyer()
	}
}
