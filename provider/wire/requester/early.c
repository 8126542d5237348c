// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Responses that arrived early, see early.h. */
#include <stdlib.h>
#include <string.h>

#include "early.h"
#include "wire/psn.h"

struct early_answer {
	struct urxe_wire_answer head;
	uint8_t payload[];
};

static struct early_answer **place_of(const struct early *e, uint32_t psn)
{
	return &e->table[psn % EARLY_PSNS];
}

void early_put(struct early *e, uint32_t una, const struct inbox_answer *a)
{
	const size_t n = (size_t)a->bytes[0] + a->bytes[1];
	struct early_answer *k;

	if (wire_psn_minus(a->head.psn, una) >= (int32_t)EARLY_PSNS)
		return;
	if (!e->table)
		e->table = calloc(EARLY_PSNS, sizeof(e->table[0]));
	if (!e->table)
		return;
	early_drop(e, a->head.psn);
	k = malloc(sizeof(*k) + n);
	if (!k)
		return;
	k->head = a->head;
	if (a->bytes[0])
		memcpy(k->payload, a->piece[0], a->bytes[0]);
	if (a->bytes[1])
		memcpy(k->payload + a->bytes[0], a->piece[1], a->bytes[1]);
	*place_of(e, a->head.psn) = k;
	e->n++;
}

static const struct early_answer *stored(const struct early *e, uint32_t psn)
{
	const struct early_answer *k = e->n ? *place_of(e, psn) : NULL;

	return k && k->head.psn == (psn & WIRE_PSN_MASK) ? k : NULL;
}

bool early_first(const struct early *e, uint32_t una, struct inbox_answer *a)
{
	const struct early_answer *k = NULL;
	uint32_t i;

	for (i = 0; e->n && !k && i < EARLY_PSNS; i++)
		k = stored(e, una + i);
	if (!k)
		return false;
	*a = (struct inbox_answer){
		.head = k->head,
		.piece = { k->payload },
		.bytes = { k->head.length },
	};
	return true;
}

bool early_has(const struct early *e, uint32_t psn)
{
	return stored(e, psn);
}

bool early_last(const struct early *e, uint32_t una, uint32_t *psn)
{
	uint32_t i;

	for (i = EARLY_PSNS; e->n && i--;)
		if (stored(e, una + i)) {
			*psn = wire_psn_add(una, i);
			return true;
		}
	return false;
}

void early_drop(struct early *e, uint32_t psn)
{
	struct early_answer **at;

	if (!e->n)
		return;
	at = place_of(e, psn);
	if (!*at)
		return;
	free(*at);
	*at = NULL;
	e->n--;
}

void early_clear(struct early *e)
{
	uint32_t i;

	for (i = 0; e->n && i < EARLY_PSNS; i++)
		early_drop(e, i);
}

void early_free(struct early *e)
{
	early_clear(e);
	free(e->table);
}
