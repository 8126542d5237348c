// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Verbs that fail by a rule, with the return value and errno of a kernel
 * driver. abi/pabi/ops.h lists the verbs; only those are interposed that a
 * rule names, or that a DEVICE_FATAL rule affects.
 */
#include <errno.h>
#include <string.h>

#include "chaos/fault_names.h"
#include "engine/core/log.h"
#include "fault.h"
#include "verbs/context.h"
#include "verbs/qp.h"

static struct pabi_ops next;
static struct faults *faults;

int fault_errno(struct faults *f, enum fault_call call,
		const struct fault_subject *s)
{
	const struct fault_rule *r = fault_of_call(f, call, s);

	if (!r)
		return 0;
	urxe_why("injected fault: %s fails: %s (rule \"%s\")",
		 fault_call_name[call], strerror(r->value), r->text);
	return r->value;
}

/*
 * Return whether @call destroys or releases an object: a dead device still
 * serves these calls.
 */
static bool call_ends(enum fault_call call)
{
	static const char *const ends[] = { "ibv_close", "ibv_dealloc",
					    "ibv_dereg", "ibv_destroy",
					    "ibv_detach", "ibv_free" };
	unsigned int i;

	for (i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (!strncmp(fault_call_name[call], ends[i], strlen(ends[i])))
			return true;
	return false;
}

static int fault_verb(enum fault_call call, struct fault_subject s)
{
	if (unlikely(fault_device_is_dead()) && !call_ends(call))
		return EIO;
	return fault_errno(faults, call, &s);
}

/* ------------------------------------------------------- call subjects */

static struct fault_subject subject_qp(const void *qp)
{
	return fault_subject_qp(&container_of((struct ibv_qp *)(uintptr_t)qp,
					      struct urxe_vqp, v.qp)->qp);
}

static struct fault_subject subject_context(const void *ibctx)
{
	return fault_subject_ctx(
		to_uctx((struct ibv_context *)(uintptr_t)ibctx));
}

/* The first member of all other objects of verbs is their context. */
static struct fault_subject subject_object(const void *object)
{
	const struct ibv_context *ibctx;

	memcpy(&ibctx, object, sizeof(ibctx));
	return subject_context(ibctx);
}

#define FIRST_OF(first, ...) (first)
#define FIRST(...) FIRST_OF(__VA_ARGS__, 0)
#define SUBJECT(args)                               \
	_Generic(FIRST args, struct ibv_qp *        \
		 : subject_qp, struct ibv_context * \
		 : subject_context, default         \
		 : subject_object)(FIRST args)

/* ------------------------------------------------------- the verbs */

#define CODE(name, params, args)                                          \
	static int fault_##name params                                    \
	{                                                                 \
		int err = fault_verb(FAULT_ibv_##name, SUBJECT(args));    \
                                                                          \
		if (!err)                                                 \
			return next.name args;                            \
		errno = err;                                              \
		return err;                                               \
	}
#define MAKE(result, name, params, args)                                  \
	static result fault_##name params                                 \
	{                                                                 \
		int err = fault_verb(FAULT_ibv_##name, SUBJECT(args));    \
                                                                          \
		if (!err)                                                 \
			return next.name args;                            \
		errno = err;                                              \
		return NULL;                                              \
	}
#define NONE(name, params, args)
#define FAST(name, params, args)
#include "abi/pabi/ops.h"

static int fault_dm_export_dmabuf_fd(struct ibv_dm *dm)
{
	int err = fault_verb(FAULT_ibv_dm_export_dmabuf_fd, subject_object(dm));

	if (!err)
		return next.dm_export_dmabuf_fd(dm);
	errno = err;
	return -1;
}

static int fault_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	const struct fault_subject s = subject_object(cq);
	int err = fault_errno(faults, FAULT_ibv_poll_cq, &s);

	if (!err)
		return next.poll_cq(cq, n, wc);
	errno = err;
	return -err;
}

static int fault_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	const struct fault_subject s = subject_object(cq);
	int err = fault_errno(faults, FAULT_ibv_req_notify_cq, &s);

	if (!err)
		return next.req_notify_cq(cq, solicited_only);
	errno = err;
	return err;
}

#define POST(name, object, wr_type)                                          \
	static int fault_##name(struct object *on, struct wr_type *wr,       \
				struct wr_type **bad)                        \
	{                                                                    \
		const struct fault_subject s = SUBJECT((on, 0));             \
		int err = fault_errno(faults, FAULT_ibv_##name, &s);         \
                                                                             \
		if (!err)                                                    \
			return next.name(on, wr, bad);                       \
		*bad = wr;                                                   \
		errno = err;                                                 \
		return err;                                                  \
	}
POST(post_recv, ibv_qp, ibv_recv_wr)
POST(post_send, ibv_qp, ibv_send_wr)
POST(post_srq_recv, ibv_srq, ibv_recv_wr)

/*
 * Check that each ibv_ call of chaos/fault_calls.h is interposed: those of
 * ops.h, the six above, and ibv_open_device and ibv_wr_complete in
 * fault_watch.c.
 */
enum {
	CALLS = 6 + 2
#define CODE(name, params, args) +1
#define MAKE(result, name, params, args) +1
#define NONE(name, params, args)
#define FAST(name, params, args)
#include "abi/pabi/ops.h"
};
static_assert((int)CALLS == (int)FAULT_rdma_accept, "chaos/fault_calls.h");

/*
 * Return whether @call is to be interposed: a rule names it, or it is not of
 * the data path (@slow) and fails with EIO after DEVICE_FATAL.
 */
static bool fault_is_for(enum fault_call call, bool slow)
{
	return faults_have_call(faults, call) ||
	       (slow && faults_have(faults, FAULT_DEVICE));
}

void fault_wrap_verbs(struct pabi_ops *ops, struct faults *f)
{
	next = *ops;
	faults = f;
#define WRAP(name, slow)                           \
	if (fault_is_for(FAULT_ibv_##name, slow)) \
		ops->name = fault_##name;
#define CODE(name, params, args) WRAP(name, true)
#define MAKE(result, name, params, args) WRAP(name, true)
#define NONE(name, params, args)
#define FAST(name, params, args)
#include "abi/pabi/ops.h"
	WRAP(dm_export_dmabuf_fd, true)
	WRAP(poll_cq, false)
	WRAP(post_recv, false)
	WRAP(post_send, false)
	WRAP(post_srq_recv, false)
	WRAP(req_notify_cq, false)
}
