/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory that a test removes while it is registered: duos whose buffers can
 * lose pages, and get them back.
 *
 * The buffers are at addresses that no other mapping takes, so unmapped pages
 * stay unmapped.  With adoption (docs/adoption.md) peers still have the pages,
 * so the tests do nothing.
 */
#pragma once

#include "../types.h"

#define PAGE 4096u
#define SPAN (2u << 20) /* bytes of each buffer */
#define MESSAGE (64u << 10) /* offset of the message of a test */
#define MESSAGE_MAX (1u << 20)
/* Longest message that is always placed when its completion is polled */
#define INLINE_IN_CQE 72
/* A message that is longer than those that may be placed then (eager.h) */
#define MIDDLE (3 * PAGE)

enum kind {
	KIND_PRIVATE, /* anonymous */
	KIND_SHARED, /* a memfd, MAP_SHARED */
	KIND_FILE, /* a memfd, MAP_PRIVATE */
};

enum way {
	WAY_UNMAP, /* munmap() */
	WAY_NONE, /* mprotect(PROT_NONE) */
	WAY_READ_ONLY, /* mprotect(PROT_READ): only stores fail */
	WAY_TRUNCATE, /* ftruncate(): all that follows is gone as well */
	WAY_PUNCH, /* fallocate(): the pages are zero, and exist again */
	WAY_REMOVE, /* the same with madvise(MADV_REMOVE) */
};

struct vanishing {
	const char *name;
	enum kind kind;
	enum way way;
};
#define VANISHINGS 10
extern const struct vanishing vanishings[VANISHINGS];

/* The end of a connection whose memory is removed. */
enum side { MINE, PEERS, SIDES };

/*
 * Return whether faults of copies are errors in this program.  If not, a test
 * has nothing to check.
 */
bool faults_are_caught(void);

/* duo_open(), with buffers of SPAN bytes of these kinds. */
void vanish_open(struct duo *d, enum where where, enum kind a, enum kind b,
		 const struct opts *o);
/*
 * Replace the buffer of one node.  @fd is a file of SPAN bytes, which is
 * closed with the duo, or -1.
 */
void node_remap(struct node *n, enum kind kind, int fd, bool is_b);
/* Close the duo and release the memory. */
void vanish_close(struct duo *d);

/* Remove pages.  @off and @len are multiples of PAGE. */
void node_vanish(struct node *n, enum way way, size_t off, size_t len);
/* Make the pages that were removed last accessible again. */
void node_restore(struct node *n);
/* The same at one end. */
void vanish(struct duo *d, enum side side, enum way way, size_t off,
	    size_t len);
void restore(struct duo *d, enum side side);

/* Fill with words that depend on @seed; return a hash. */
void side_fill(struct duo *d, enum side side, size_t off, size_t len,
	       uint64_t seed);
uint64_t side_hash(struct duo *d, enum side side, size_t off, size_t len);

/*
 * Return whether an access fails: @store or load, by the requester, of memory
 * of @side that was removed in this way.
 */
bool access_fails(const struct duo *d, const struct vanishing *v,
		  enum side side, bool store);

/* Send a message and write one, over connected QPs, and compare them. */
#define EXCHANGED 2 /* packets */
void exchange_once(struct duo *d);
