// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Why a key does not hold: the checks of mem.h again, in words. */
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "mem.h"

#define WHY 320

/* "LOCAL_WRITE and REMOTE_READ" */
static const char *access_words(uint32_t access, char *buf, size_t room)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} rights[] = {
		{ IBV_ACCESS_LOCAL_WRITE, "LOCAL_WRITE" },
		{ IBV_ACCESS_REMOTE_WRITE, "REMOTE_WRITE" },
		{ IBV_ACCESS_REMOTE_READ, "REMOTE_READ" },
		{ IBV_ACCESS_REMOTE_ATOMIC, "REMOTE_ATOMIC" },
		{ URXE_ACCESS_FLUSH_GLOBAL, "FLUSH_GLOBAL" },
		{ URXE_ACCESS_FLUSH_PERSISTENT, "FLUSH_PERSISTENT" },
	};
	unsigned int i;
	size_t n = 0;

	buf[0] = 0;
	for (i = 0; i < sizeof(rights) / sizeof(*rights) && n < room; i++)
		if (access & rights[i].bit)
			n += (size_t)snprintf(buf + n, room - n, "%s%s",
					      n ? " and " : "", rights[i].name);
	return n ? buf : "nothing but to be read locally";
}

/* It is not alive under that number. */
static void why_not_live(const struct urxe_peer *p, uint32_t key, char why[WHY])
{
	uint32_t i = URXE_KEY_INDEX(key);
	uint64_t live = 0;

	if (i < load_acquire(&p->arena->key_high))
		live = load_relaxed(&p->arena->key[i].live);
	if (URXE_KEY_CTX(key) != p->slot)
		snprintf(
			why, WHY,
			"it is no key of this device context");
	else if (live == URXE_MR_LIVE((uint32_t)live))
		snprintf(why, WHY,
			 "it was ended, and what is in its place has key 0x%x",
			 (uint32_t)live);
	else
		snprintf(
			why, WHY,
			"there is none: it was deregistered or invalidated, is a window that is not bound, or was never given out");
}

static void why_access(const struct urxe_key *k, uint32_t access, char why[WHY])
{
	char has[128], wanted[128];

	snprintf(why, WHY, "it allows %s, and %s is needed",
		 access_words(k->access, has, sizeof(has)),
		 access_words(access, wanted, sizeof(wanted)));
}

static void why_range(const struct urxe_key *k, uint64_t addr, uint64_t len,
		      char why[WHY])
{
	snprintf(
		why, WHY,
		"it covers 0x%llx to 0x%llx, and 0x%llx to 0x%llx is asked for",
		(unsigned long long)k->iova,
		(unsigned long long)(k->iova + k->length),
		(unsigned long long)addr, (unsigned long long)(addr + len));
}

/* What mem_lookup() and mem_serves() found, or what has changed since. */
static void why_not(const struct mem_use *u, char why[WHY])
{
	const struct urxe_key *k;

	k = &u->peer->arena->key[URXE_KEY_INDEX(u->key)];
	if (URXE_KEY_INDEX(u->key) >= load_acquire(&u->peer->arena->key_high) ||
	    load_relaxed(&k->live) != URXE_MR_LIVE(u->key))
		why_not_live(u->peer, u->key, why);
	else if (k->pd != u->pd)
		snprintf(why, WHY, "it is of PD %u, and the QP is of PD %u",
			 k->pd, u->pd);
	else if ((k->access & u->access) != u->access)
		why_access(k, u->access, why);
	else if (!(u->access & MEM_REMOTE_ACCESS) && k->flags & URXE_MR_IS_MW)
		snprintf(why, WHY, "a memory window has no lkey");
	else if (!mem_serves(k, u->qpn))
		snprintf(why, WHY,
			 "it is a window of type 2 that was bound on QP 0x%x",
			 k->qpn);
	else
		why_range(k, u->addr, u->len, why);
}

void mem_refused(const char *what, const struct mem_use *u)
{
	char why[WHY];

	if (!urxe_log_on)
		return;
	why_not(u, why);
	urxe_log("%s 0x%x at QP 0x%x, %llu bytes at 0x%llx: %s", what, u->key,
		 u->qpn, (unsigned long long)u->len,
		 (unsigned long long)u->addr, why);
}
