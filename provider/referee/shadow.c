// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The shadows of all objects of the process: a hash table by type and handle,
 * one of QPs by number, and a list in the order of creation.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/plural.h"
#include "shadow.h"
#include "unmapped.h"

#define BUCKETS 4096

static struct {
	struct shadow *bucket[BUCKETS];
	struct shadow *numbered[BUCKETS]; /* QPs by number */
	struct shadow *first, *last;
	uint32_t made[SHADOW_TYPES_COUNT]; /* created so far */
} shadows;

static struct shadow **bucket_of(const void *handle)
{
	return &shadows.bucket[((uintptr_t)handle >> 4) * 2654435761u %
			       BUCKETS];
}

static struct shadow **bucket_of_number(uint32_t qpn)
{
	return &shadows.numbered[qpn % BUCKETS];
}

void shadow_put_back(struct shadow *s)
{
	struct shadow **b = bucket_of(s->handle);

	s->hash_next = *b;
	*b = s;
	if (s->type == SHADOW_QP) {
		b = bucket_of_number(s->number);
		s->number_next = *b;
		*b = s;
	}
	if (s->type == SHADOW_MR)
		unmapped_watch(to_shadow_mr(s));
	s->next = NULL;
	s->prev = shadows.last;
	if (shadows.last)
		shadows.last->next = s;
	else
		shadows.first = s;
	shadows.last = s;
}

struct shadow *shadow_add(enum shadow_type type, size_t size,
			  const void *handle, struct ibv_context *context,
			  uint32_t number)
{
	struct shadow *s = calloc(1, size);

	if (!s)
		return NULL;
	s->type = type;
	s->handle = handle;
	s->context = context;
	s->number = number;
	s->nth = ++shadows.made[type];
	stack_take(&s->made);
	shadow_put_back(s);
	return s;
}

struct shadow *shadow_find(enum shadow_type type, const void *handle)
{
	struct shadow *s;

	for (s = *bucket_of(handle); s; s = s->hash_next)
		if (s->handle == handle && s->type == type)
			return s;
	return NULL;
}

struct shadow *shadow_take_out(enum shadow_type type, const void *handle)
{
	struct shadow *s = shadow_find(type, handle), **p;

	if (!s)
		return NULL;
	for (p = bucket_of(handle); *p != s; p = &(*p)->hash_next)
		;
	*p = s->hash_next;
	if (type == SHADOW_QP) {
		for (p = bucket_of_number(s->number); *p != s;
		     p = &(*p)->number_next)
			;
		*p = s->number_next;
	}
	if (type == SHADOW_MR)
		unmapped_forget(to_shadow_mr(s));
	if (s->prev)
		s->prev->next = s->next;
	else
		shadows.first = s->next;
	if (s->next)
		s->next->prev = s->prev;
	else
		shadows.last = s->prev;
	return s;
}

void shadow_free(struct shadow *s)
{
	if (s && s->type == SHADOW_QP) {
		queue_fini(&to_shadow_qp(s)->sq);
		queue_fini(&to_shadow_qp(s)->rq);
	} else if (s && s->type == SHADOW_SRQ) {
		queue_fini(&to_shadow_srq(s)->rq);
	} else if (s && s->type == SHADOW_CQ) {
		queue_cq_ended(to_shadow_cq(s));
	}
	free(s);
}

struct shadow *shadow_first(void)
{
	return shadows.first;
}

struct shadow *shadow_last(void)
{
	return shadows.last;
}

struct shadow_qp *shadow_qp(const struct ibv_qp *qp)
{
	struct shadow *s = shadow_find(SHADOW_QP, qp);

	return s ? to_shadow_qp(s) : NULL;
}

struct shadow_cq *shadow_cq(const struct ibv_cq *cq)
{
	struct shadow *s = shadow_find(SHADOW_CQ, cq);

	return s ? to_shadow_cq(s) : NULL;
}

struct shadow_srq *shadow_srq(const struct ibv_srq *srq)
{
	struct shadow *s = shadow_find(SHADOW_SRQ, srq);

	return s ? to_shadow_srq(s) : NULL;
}

struct shadow_qp *shadow_qp_numbered(struct ibv_context *context, uint32_t qpn)
{
	struct shadow *s;

	for (s = *bucket_of_number(qpn); s; s = s->number_next)
		if (s->number == qpn && s->context == context &&
		    !to_shadow_qp(s)->opened)
			return to_shadow_qp(s);
	return NULL;
}

const char *shadow_name(const struct shadow *s, char name[FINDING_NAME])
{
	static const char *const text[] = {
#define TYPE(name, text) text,
		SHADOW_TYPES(TYPE)
#undef TYPE
	};
	const struct shadow_mr *mr;

	if (s->type == SHADOW_MR) {
		mr = to_shadow_mr(s);
		snprintf(name, FINDING_NAME,
			 "MR of %llu byte%s at 0x%llx (lkey 0x%x)",
			 (unsigned long long)mr->length, plural(mr->length),
			 (unsigned long long)(mr->addr ? mr->addr : mr->iova),
			 mr->lkey);
	} else if (s->type == SHADOW_QP || s->type == SHADOW_MW) {
		snprintf(name, FINDING_NAME, "%s 0x%x", text[s->type],
			 s->number);
	} else {
		snprintf(name, FINDING_NAME, "%s number %u of this process",
			 text[s->type], s->nth);
	}
	return name;
}

void shadow_after_fork(void)
{
	struct shadow *s;

	for (s = shadows.first; s; s = s->next)
		s->inherited = true;
}
