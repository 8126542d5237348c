// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Minimal models of the shared-memory protocols, which check their memory
 * orders under the C11 memory model: a load may return an old value, and
 * stores may become visible in another order (docs/internals.md, "Memory
 * order").  relacy explores all executions.  A mutant is a memory order that
 * is too weak; relacy must find an error with it.  The *.pml models in this
 * directory check the logic of the protocols.  (Arming a CQ is not modelled:
 * relacy does not order seq_cst fences with seq_cst accesses.)
 */
#include <cstring>
#include <relacy/relacy.hpp>

using rl::mo_acq_rel;
using rl::mo_acquire;
using rl::mo_relaxed;
using rl::mo_release;
using rl::mo_seq_cst;

typedef rl::atomic<int> word;
typedef rl::var<int> bytes; /* a data race is an error */

static const char *mutant = "";
#define MISTAKE(name, right, wrong) (strcmp(mutant, #name) ? (right) : (wrong))

#define MODEL(name, threads) \
	struct name : rl::test_suite<name, threads>

/* base/presence.h: an object is destroyed while it may be in use. */
MODEL(presence, 2)
{
	word seq, live;
	bytes thing;

	void before() { seq($) = 0; live($) = 1; thing($) = 1; }
	void thread(unsigned me)
	{
		if (me == 0) {
			seq($).exchange(1, mo_seq_cst);
			if (live($).load(MISTAKE(LOOKS, mo_seq_cst,
						 mo_acquire)))
				RL_ASSERT(thing($) == 1);
			seq($).store(2, MISTAKE(LEAVES, mo_release,
						mo_relaxed));
		} else {
			live($).store(0, MISTAKE(TAKES, mo_seq_cst,
						 mo_release));
			while (seq($).load(mo_seq_cst) & 1)
				rl::yield(1, $);
			thing($) = 0;
		}
	}
};

/* rq.c: a receive ring is replaced. */
MODEL(rq_resize, 2)
{
	word seq, ring;
	bytes slot[2];

	void before()
	{
		seq($) = 0;
		ring($) = 0;
		slot[0]($) = slot[1]($) = 1;
	}
	void thread(unsigned me)
	{
		if (me == 0) {
			seq($).exchange(1, mo_seq_cst);
			int r = ring($).load(MISTAKE(RING_LOAD, mo_seq_cst,
						     mo_relaxed));
			RL_ASSERT(slot[r]($) == 1);
			seq($).store(2, mo_release);
		} else {
			ring($).store(1, MISTAKE(RING_STORE, mo_seq_cst,
						 mo_release));
			while (seq($).load(mo_seq_cst) & 1)
				rl::yield(1, $);
			slot[0]($) = 0;
		}
	}
};

/*
 * quiesce.c: a destroyer does not wait for QPs that are not in the directory.
 */
MODEL(directory, 2)
{
	word entry, seq, live;
	bytes thing;

	void before()
	{
		entry($) = seq($) = 0;
		live($) = 1;
		thing($) = 1;
	}
	void thread(unsigned me)
	{
		if (me == 0) {
			entry($).store(1, MISTAKE(ENTRY_STORE, mo_seq_cst,
						  mo_release));
			seq($).exchange(1, mo_seq_cst);
			if (live($).load(mo_seq_cst))
				RL_ASSERT(thing($) == 1);
			seq($).store(2, mo_release);
		} else {
			live($).store(0, mo_seq_cst);
			if (entry($).load(MISTAKE(ENTRY_LOAD, mo_seq_cst,
						  mo_acquire)))
				while (seq($).load(mo_seq_cst) & 1)
					rl::yield(1, $);
			thing($) = 0;
		}
	}
};

/* guard.h: a guard names one object, and then another one. */
MODEL(guard, 2)
{
	word seq, uses, live;
	bytes thing;

	void before()
	{
		seq($) = 0;
		uses($) = 0;
		live($) = 1;
		thing($) = 1;
	}
	void thread(unsigned me)
	{
		int was;

		if (me == 0) { /* uses object 1, then object 2 */
			uses($).store(1, mo_release);
			seq($).exchange(1, mo_seq_cst);
			if (live($).load(mo_seq_cst))
				RL_ASSERT(thing($) == 1);
			uses($).store(2, MISTAKE(NAMES, mo_release,
						 mo_relaxed));
			seq($).exchange(3, mo_seq_cst);
			seq($).store(4, mo_release);
		} else {
			live($).store(0, mo_seq_cst);
			was = seq($).load(mo_seq_cst);
			while (was & 1 && uses($).load(mo_acquire) != 2 &&
			       seq($).load(mo_acquire) == was)
				rl::yield(1, $);
			thing($) = 0;
		}
	}
};

/* guard.h: the summary word of a group; 0 idle, 1 busy, 2 recheck */
MODEL(guard_group, 3)
{
	word seq, group, live;
	bytes thing;

	void before()
	{
		seq($) = 0;
		group($) = 1;
		live($) = 1;
		thing($) = 1;
	}
	void requester()
	{
		seq($).exchange(1, mo_seq_cst);
		if (group($).load(MISTAKE(GROUP_SEEN, mo_seq_cst,
					  mo_acquire)) != 1)
			group($).exchange(1, MISTAKE(GROUP_SAID, mo_seq_cst,
						     mo_relaxed));
		if (live($).load(mo_seq_cst))
			RL_ASSERT(thing($) == 1);
		seq($).store(2, mo_release);
	}
	void destroyer()
	{
		live($).store(0, mo_seq_cst);
		if (group($).load(MISTAKE(GROUP_ASKED, mo_seq_cst,
					  mo_relaxed)))
			while (seq($).load(mo_seq_cst) & 1)
				rl::yield(1, $);
		thing($) = 0;
	}
	void scanner()
	{
		int was = 1;

		if (!group($).compare_exchange_strong(
			    was, 2,
			    MISTAKE(RECHECK_STORE, mo_seq_cst, mo_relaxed)))
			return;
		if (seq($).load(MISTAKE(RECHECK_LOAD, mo_seq_cst, mo_relaxed)) &
		    1)
			return;
		was = 2;
		group($).compare_exchange_strong(
			was, 0, MISTAKE(IDLES, mo_seq_cst, mo_relaxed));
	}
	void thread(unsigned me)
	{
		if (me == 0)
			requester();
		else if (me == 1)
			destroyer();
		else
			scanner();
	}
};

/*
 * quiesce_try(): a change of the guard makes the accesses under it visible.
 */
MODEL(quiesce_try, 2)
{
	word seq;
	bytes completed;

	void before() { seq($) = 1; completed($) = 0; }
	void thread(unsigned me)
	{
		if (me == 0) {
			completed($) = 1;
			seq($).store(2, mo_release);
		} else {
			while (seq($).load(MISTAKE(GLANCES, mo_acquire,
						   mo_relaxed)) == 1)
				rl::yield(1, $);
			RL_ASSERT(completed($) == 1);
		}
	}
};

/* cq_ring.h: a ring of one entry, with two positions and two producers */
MODEL(cq_ring, 3)
{
	word claim, ready, head, head_seen;
	bytes entry;

	void before()
	{
		claim($) = ready($) = head($) = head_seen($) = 0;
		entry($) = 0;
	}
	bool has_room(int t)
	{
		if (head_seen($).load(MISTAKE(RELAYED, mo_acquire,
					      mo_relaxed)) == t - 1)
			return true;
		int h = head($).load(MISTAKE(SEES, mo_acquire, mo_relaxed));
		head_seen($).store(h, MISTAKE(RELAYS, mo_release, mo_relaxed));
		return h == t - 1;
	}
	void produce()
	{
		int was = claim($).load(mo_relaxed), t = was + 1;

		if (t > 2 || !has_room(t) ||
		    !claim($).compare_exchange_strong(was, t, mo_relaxed,
						      mo_relaxed))
			return;
		entry($) = t;
		ready($).store(t, MISTAKE(PUBLISHES, mo_release, mo_relaxed));
	}
	void thread(unsigned me)
	{
		if (me == 1)
			produce();
		if (me != 0) {
			produce();
		} else if (ready($).load(mo_acquire) == 1) {
			RL_ASSERT(entry($) == 1);
			head($).store(1, MISTAKE(FREES, mo_release,
						 mo_relaxed));
		}
	}
};

/*
 * eager.h: a slot whose entry was not polled, and then the ring is replaced;
 * or it is polled, and then the buffer is freed.
 */
MODEL(eager, 2)
{
	word seq, ring, head, at;
	bytes slot;

	void before()
	{
		seq($) = ring($) = head($) = 0;
		at($) = 1;
		slot($) = 1;
	}
	void produce()
	{
		int r, h;

		seq($).exchange(1, mo_seq_cst);
		r = ring($).load(mo_seq_cst);
		h = head($).load(MISTAKE(EAGER_SEES, mo_acquire, mo_relaxed));
		if (at($).load(MISTAKE(EAGER_LOADS, mo_seq_cst, mo_acquire)) &&
		    (r || h))
			slot($) = 2;
		seq($).store(2, mo_release);
	}
	void suspend()
	{
		at($).store(0, MISTAKE(EAGER_SUSPENDS, mo_seq_cst, mo_release));
	}
	void wait()
	{
		while (seq($).load(mo_seq_cst) & 1)
			rl::yield(1, $);
	}
	void resize()
	{
		suspend();
		ring($).store(1, mo_seq_cst);
		wait();
		RL_ASSERT(slot($) == 1);
		at($).store(1, MISTAKE(EAGER_RESUMES, mo_seq_cst, mo_relaxed));
	}
	void poll_and_free()
	{
		RL_ASSERT(slot($) == 1);
		head($).store(1, MISTAKE(EAGER_FREES, mo_release, mo_relaxed));
		suspend();
		wait();
		slot($) = 0;
	}
	void thread(unsigned me)
	{
		if (me == 0)
			produce();
		else if (rl::rand(2))
			resize();
		else
			poll_and_free();
	}
};

/* rq_ring.h: a slot is reused while a slow requester reads it. */
MODEL(receives, 3)
{
	word prod, cons, slot, polled;

	void before()
	{
		prod($) = 1;
		cons($) = 0;
		slot($) = 10;
		polled($) = 0;
	}
	void take()
	{
		int c = cons($).load(mo_acquire), s;

		do {
			if (prod($).load(MISTAKE(POSTED, mo_acquire,
						 mo_relaxed)) == c)
				return;
			s = slot($).load(mo_relaxed);
		} while (!cons($).compare_exchange_strong(
			c, c + 1, mo_acq_rel, mo_acquire));
		RL_ASSERT(s == 10 + c);
		polled($).fetch_add(1, mo_release);
	}
	void thread(unsigned me)
	{
		if (me != 0) {
			take();
		} else if (polled($).load(mo_acquire)) {
			slot($).store(11, mo_relaxed);
			prod($).store(2, mo_seq_cst);
		}
	}
};

/* transfer.c: a WRITE, and a second one whose first bytes are polled */
MODEL(two_writes, 2)
{
	word data, flag, rest;

	void before() { data($) = flag($) = rest($) = 0; }
	void thread(unsigned me)
	{
		if (me == 0) {
			data($).store(1, mo_release);
			if (MISTAKE(RUNS_ON, true, false))
				rl::atomic_thread_fence(mo_release, $);
			flag($).store(1, mo_relaxed);
			rest($).store(1, mo_release);
		} else if (flag($).load(mo_acquire)) {
			RL_ASSERT(data($).load(mo_relaxed) == 1);
		}
	}
};

/* execute.c: two nodes, each with a WRITE and then a READ */
MODEL(write_then_read, 2)
{
	word x[2];
	int got[2];

	void before() { x[0]($) = x[1]($) = 0; }
	void thread(unsigned me)
	{
		x[me]($).store(1, mo_release);
		if (MISTAKE(OVERTAKES, true, false))
			rl::atomic_thread_fence(mo_seq_cst, $);
		got[me] = x[!me]($).load(mo_relaxed);
	}
	void after() { RL_ASSERT(got[0] || got[1]); }
};

/* execute.c: a READ of a flag, and then a READ of the data */
MODEL(two_reads, 2)
{
	word data, flag;

	void before() { data($) = flag($) = 0; }
	void thread(unsigned me)
	{
		if (me == 0) {
			data($).store(1, mo_relaxed);
			flag($).store(1, mo_release);
		} else if (flag($).load(mo_relaxed)) {
			if (MISTAKE(HURRIES, true, false))
				rl::atomic_thread_fence(mo_acquire, $);
			RL_ASSERT(data($).load(mo_relaxed) == 1);
		}
	}
};

/* kept_event.h: 0 free, 1 being filled, 2 filled; events of two objects */
MODEL(kept_events, 3)
{
	word state, element, raised[3];

	void before()
	{
		state($) = 2;
		element($) = 1;
		raised[1]($) = raised[2]($) = 0;
	}
	void take()
	{
		int was = 2, e;

		if (MISTAKE(READS_FIRST, false, true)) {
			if (state($).load(mo_acquire) != 2)
				return;
			e = element($).load(mo_relaxed);
			if (!state($).compare_exchange_strong(was, 0,
							      mo_acq_rel))
				return;
		} else {
			if (!state($).compare_exchange_strong(was, 1,
							      mo_acquire))
				return;
			e = element($).load(mo_relaxed);
			state($).store(0, mo_release);
		}
		RL_ASSERT(raised[e]($).fetch_add(1, mo_relaxed) == 0);
	}
	void thread(unsigned me)
	{
		int none = 0;

		if (me != 0) {
			take();
		} else if (state($).compare_exchange_strong(none, 1,
							    mo_acquire)) {
			element($).store(2, mo_relaxed);
			state($).store(2, mo_release);
		}
	}
};

/*
 * layout.h: process 1 dies, and process 2 gets its row of the process table.
 */
MODEL(row, 2)
{
	word uses, pid, tid;

	void before() { uses($) = pid($) = tid($) = 1; }
	void thread(unsigned me)
	{
		int whose, t;

		if (me == 0) {
			tid($).store(0, mo_release); /* the kernel */
			uses($).store(2, mo_relaxed);
			pid($).store(2, mo_release);
			rl::atomic_thread_fence(mo_release, $);
			tid($).store(2, mo_relaxed);
		} else if (MISTAKE(USES_FIRST, true,
				   uses($).load(mo_relaxed) == 1)) {
			whose = pid($).load(mo_acquire);
			t = tid($).load(MISTAKE(TID, mo_acquire, mo_relaxed));
			if (t && MISTAKE(USES_FIRST,
					 uses($).load(mo_relaxed) == 1, true))
				RL_ASSERT(whose == 1 && t == 1);
		}
	}
};

template <typename model> static bool right()
{
	rl::test_params p;

	p.search_type = rl::sched_full;
	p.iteration_count = 1000000000;
	return rl::simulate<model>(p);
}

#define RUN(name) { #name, right<name> }

static const struct {
	const char *name;
	bool (*right)();
} models[] = {
	RUN(presence),	      RUN(rq_resize),
	RUN(directory),	      RUN(guard),
	RUN(guard_group),     RUN(quiesce_try),
	RUN(cq_ring),	      RUN(eager),
	RUN(receives),	      RUN(two_writes),
	RUN(write_then_read), RUN(two_reads),
	RUN(kept_events),     RUN(row),
};

/*
 * orders: run all models.
 * orders MODEL MISTAKE: run one model with a mistake.
 *
 * The exit status is 0 if all executions are correct, 1 if one is not, and 2
 * if the model does not exist.
 */
int main(int argc, char **argv)
{
	const char *only = argc > 2 ? argv[1] : NULL;
	bool all_right = true, known = !only;

	if (only)
		mutant = argv[2];
	for (const auto &m : models) {
		if (only && strcmp(only, m.name))
			continue;
		known = true;
		all_right = m.right() && all_right;
	}
	return !known ? 2 : !all_right;
}
