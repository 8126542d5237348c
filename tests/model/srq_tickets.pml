/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The tickets of an SRQ (kernel-shim/shared/rq_ring.h, provider/engine/qp/rq.c,
 * rq_recover.c): requesters that take receives and may die, an owner that
 * posts, polls, and posts again what the dead took.
 *
 * - A completion that is polled has the ticket of a receive that is out, and
 *   its bytes.  So no receive is completed twice.
 * - None is lost: when all is quiet each receive that is out is posted, and
 *   there is room for as many as there should be.
 */
#define SLOTS 2 /* of the ring, and max_wr, and tickets */
#define POSTS 3 /* by the program */
#define REQUESTERS 2
#define SENDS 2 /* of each */
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
		/* the slot may be posted anew meanwhile: then cons has gone on */
		ticket = ring_ticket[c % SLOTS];
		id = ring_id[c % SLOTS];
		if
		:: atomic { cons == c -> cons = c + 1 }
		:: atomic { cons != c -> goto again }
		fi;
		maybe_die();
		d_step { /* claimed, filled and published: cq_ring.pml has it */
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
	/* some time later */
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
		d_step { /* look at the CQ */
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
	/* what is out is posted, and what is not out leaves room */
	assert(out[0] + out[1] == prod - cons);
	assert(my_prod - tail == prod - cons)
}
