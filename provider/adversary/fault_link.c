// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Links that fault rules took down with DOWN=ms, see fault_link.h. */
#include "engine/core/log.h"
#include "fault_link.h"

#define NS_PER_MS 1000000ull
/* links that can be down: those that rules name, and those of contexts */
#define LINKS (FAULT_RULES + URXE_HOST_HCAS)

struct link {
	struct urxe_link_end end;
	uint32_t ready; /* ms for which it starts when it comes up */
	bool starting; /* it is up, and carries no packets yet */
	uint64_t at; /* when it does; UINT64_MAX: it is not down */
};

static struct {
	struct urxe_fabric *fabric; /* NULL: none is down */
	struct link of[LINKS];
} links;

void fault_links_forget(void)
{
	unsigned int i;

	links.fabric = NULL;
	for (i = 0; i < LINKS; i++)
		links.of[i].at = UINT64_MAX;
}

/* Return the link that changes first, if there is one. */
static struct link *link_first(void)
{
	struct link *l, *first = links.of;

	for (l = links.of; l != links.of + LINKS; l++)
		if (l->at < first->at)
			first = l;
	return first;
}

/* Return the entry of @end; else a free one; NULL: there is none. */
static struct link *link_entry(const struct urxe_link_end *end)
{
	struct link *l, *free = NULL;

	for (l = links.of; l != links.of + LINKS; l++) {
		if (l->at == UINT64_MAX)
			free = l;
		else if (l->end.node == end->node && l->end.port == end->port)
			return l;
	}
	if (free)
		*free = (struct link){ .end = *end, .at = UINT64_MAX };
	return free;
}

static void link_up(struct link *l)
{
	if (links.fabric && l->at != UINT64_MAX)
		fabric_set_link(links.fabric, l->end, FABRIC_LINK_UP);
	l->at = UINT64_MAX;
	if (link_first()->at == UINT64_MAX)
		fault_links_forget();
}

void fault_links_up(void)
{
	struct link *l;

	for (l = links.of; l != links.of + LINKS; l++)
		link_up(l);
}

void fault_links_leave(const struct urxe_fabric *f)
{
	if (links.fabric == f)
		fault_links_up();
}

uint64_t fault_links_next(void)
{
	return link_first()->at;
}

void fault_links_advance(void)
{
	struct link *l = link_first();

	if (!l->ready || !links.fabric) {
		link_up(l);
		return;
	}
	fabric_set_link(links.fabric, l->end, FABRIC_LINK_STARTING);
	l->at += l->ready * NS_PER_MS;
	l->ready = 0;
	l->starting = true;
}

/*
 * The link that @r is about, if it strikes in @ctx: the same end by each of its
 * names. False: there is none.
 */
static bool rule_link(const struct fault_rule *r,
		      const struct urxe_context *ctx, struct urxe_link_end *end)
{
	*end = (struct urxe_link_end){ .node = (uint16_t)ctx->device,
				       .port = 1 };
	if (*r->link && !link_end_find(ctx->fabric, r->link, end))
		return false;
	link_end_first(ctx->fabric, end);
	return true;
}

/* Forget when the link of @end changes, as it is set for good. */
static void link_forget(const struct urxe_fabric *f,
			const struct urxe_link_end *end)
{
	struct link *l = links.fabric == f ? link_entry(end) : NULL;

	if (l)
		l->at = UINT64_MAX;
}

bool fault_link_down(const struct fault_rule *r, struct urxe_context *ctx)
{
	const uint64_t until = clock_now() + r->value * NS_PER_MS;
	struct urxe_link_end end;
	struct link *l;

	if (!rule_link(r, ctx, &end))
		return false;
	fabric_set_link(ctx->fabric, end, FABRIC_LINK_DOWN);
	if (!r->value) {
		link_forget(ctx->fabric, &end);
		return false;
	}
	if (links.fabric != ctx->fabric) /* DOWN of another fabric: end it */
		fault_links_up();
	links.fabric = ctx->fabric;
	l = link_entry(&end);
	if (!l) {
		fabric_set_link(ctx->fabric, end, FABRIC_LINK_UP);
		return false;
	}
	if (l->at != UINT64_MAX && !l->starting && until <= l->at)
		return true; /* an earlier rule ends later */
	l->at = until;
	l->ready = r->ready;
	l->starting = false;
	return true;
}

void fault_link_up(const struct fault_rule *r, struct urxe_context *ctx)
{
	struct urxe_link_end end;

	if (!rule_link(r, ctx, &end))
		return;
	link_forget(ctx->fabric, &end);
	fabric_set_link(ctx->fabric, end, FABRIC_LINK_UP);
}

void fault_link_rate(const struct fault_rule *r, struct urxe_context *ctx)
{
	struct urxe_link_end end;

	if (rule_link(r, ctx, &end) &&
	    fabric_set_rate(ctx->fabric, end, r->value))
		urxe_note("no link has a rate of %u Gb/s", r->value);
}
