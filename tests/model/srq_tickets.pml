/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Model of the tickets of an SRQ (kernel-shim/shared/rq_ring.h,
 * provider/engine/qp/rq.c, rq_recover.c): requesters that take receives and
 * may die, and an owner that posts, polls, and posts again the receives that
 * dead requesters took.
 *
 * - A polled completion has the ticket and the content of an outstanding
 *   receive.  So no receive completes twice.
 * - No receive is lost: in the end each outstanding receive is in the queue,
 *   and the queue has space for the others.
 */
#define SLOTS 2 /* slots of the ring, max_wr, and number of tickets */
#define POSTS 3 /* by the program */
#define REQUESTERS 2
#define SENDS 2 /* of each requester */
#define CQ 8

byte ring_ticket[SLOTS], ring_id[SLOTS];
byte prod, cons; /* shared */
byte cq_ticket[CQ], cq_id[CQ], cq_tail, cq_head;
bool inside[REQUESTERS], killed[REQUESTERS], ended[REQUESTERS];
byte deaths; /* contexts reaped so far */

inline maybe_die()
{
	if
	:: skip
	:: killed[me] = true; goto dead
	fi
}

proctype requester(byte me)
{
	byte n, c, p, ticket, id;

	for (n : 1 .. SENDS) {
again:
		inside[me] = true;
		c = cons;
		p = prod;
		if
		:: c == p -> inside[me] = false; goto next /* RNR */
		:: else
		fi;
		/* the slot may be reused meanwhile: then cons has advanced */
		ticket = ring_ticket[c % SLOTS];
		id = ring_id[c % SLOTS];
		if
		:: atomic { cons == c -> cons = c + 1 }
		:: atomic { cons != c -> goto again }
		fi;
		maybe_die();
		d_step { /* in one step; cq_ring.pml models the details */
			cq_ticket[cq_tail] = ticket;
			cq_id[cq_tail] = id;
			cq_tail++
		}
		maybe_die();
		inside[me] = false;
next:		skip
	}
	goto done;
dead:
	/* the death is detected some time later */
	deaths++;
done:
	ended[me] = true
}

/* ----------------------------------------------------------------- owner */

bool out[SLOTS];
byte kept_id[SLOTS], kept_pos[SLOTS];
byte my_prod, tail, posted;

#define ROOM (my_prod - tail < SLOTS)

inline put(ticket, id)
{
	ring_ticket[my_prod % SLOTS] = ticket;
	ring_id[my_prod % SLOTS] = id;
	kept_pos[ticket] = my_prod;
	my_prod++
}

inline post()
{
	d_step {
		if
		:: !out[0] -> t = 0
		:: else -> t = 1
		fi;
		assert(!out[t])
	}
	out[t] = true;
	posted++;
	kept_id[t] = posted;
	put(t, posted);
	prod = my_prod
}

inline poll()
{
	d_step {
		t = cq_ticket[cq_head];
		assert(out[t] && cq_id[cq_head] == kept_id[t]);
		out[t] = false;
		tail++;
		cq_head++
	}
}

#define TAKEN(t) (out[t] && kept_pos[t] < was)

inline wait_for_guard(i)
{
	!inside[i] || killed[i]
}

inline recover()
{
#ifndef SEEN_LATE
	now_dead = deaths;
#endif
	was = cons;
	if
	:: TAKEN(0) || TAKEN(1) ->
#ifndef NO_WAIT
		wait_for_guard(0);
		wait_for_guard(1);
#endif
		d_step { /* scan the CQ */
			found[0] = false;
			found[1] = false;
			for (i : cq_head .. CQ - 1) {
				if
				:: i < cq_tail -> found[cq_ticket[i]] = true
				:: else
				fi
			}
		}
		for (t : 0 .. SLOTS - 1) {
			if
			:: TAKEN(t) && !found[t] ->
				put(t, kept_id[t]);
#ifndef NO_ROOM
				tail++;
#endif
				prod = my_prod
			:: else
			fi
		}
	:: else
	fi;
#ifdef SEEN_LATE
	now_dead = deaths;
#endif
	seen = now_dead
}

#define ALL_ENDED (ended[0] && ended[1])

active proctype owner()
{
	byte t, i, was, seen, now_dead;
	bool found[SLOTS];

	atomic {
		run requester(0);
		run requester(1)
	}
	do
	:: posted < POSTS && ROOM -> post()
	:: cq_head != cq_tail -> poll()
	:: seen != deaths -> recover()
	:: ALL_ENDED && cq_head == cq_tail && seen == deaths -> break
	od;
	/* outstanding receives are in the queue, and only those use space */
	assert(out[0] + out[1] == prod - cons);
	assert(my_prod - tail == prod - cons)
}
