// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Record calls of verbs: arguments, result and duration (TRACE_CALL). The
 * interposers are generated from the list of verbs (abi/pabi/ops.h), except
 * those of the data path (FAST).
 */
#include <errno.h>

#include "recorder.h"
#include "trace/trace.h"

static struct pabi_ops next;

/* LIST(a, b, c): each argument converted by V(). */
#define V1(a) V(a)
#define V2(a, b) V(a), V(b)
#define V3(a, b, c) V(a), V(b), V(c)
#define V4(a, b, c, d) V(a), V(b), V(c), V(d)
#define V5(a, b, c, d, e) V(a), V(b), V(c), V(d), V(e)
#define V6(a, b, c, d, e, f) V(a), V(b), V(c), V(d), V(e), V(f)
#define V_OF(a, b, c, d, e, f, which, ...) which
#define LIST(...) V_OF(__VA_ARGS__, V6, V5, V4, V3, V2, V1, V0)(__VA_ARGS__)

#define CALLED(name, result, begin, args)                                  \
	trace_at(begin, TRACE_CALL, 0,                                     \
		 TRACE_LIST(PABI_##name, V(result), clock_now() - (begin), \
			    LIST args),                                    \
		 sizeof(TRACE_LIST(0, 0, 0, LIST args)) / sizeof(uint64_t))

#define CODE(name, params, args)                \
	static int record_##name params         \
	{                                       \
		uint64_t begin = clock_now();   \
		int ret = next.name args;       \
                                                \
		CALLED(name, ret, begin, args); \
		return ret;                     \
	}
#define MAKE(result, name, params, args)         \
	static result record_##name params       \
	{                                        \
		uint64_t begin = clock_now();    \
		result made = next.name args;    \
                                                 \
		CALLED(name, made, begin, args); \
		return made;                     \
	}
#define NONE(name, params, args)              \
	static void record_##name params      \
	{                                     \
		uint64_t begin = clock_now(); \
                                              \
		next.name args;               \
		CALLED(name, 0, begin, args); \
	}
#define FAST(name, params, args)
#include "abi/pabi/ops.h"

#define CODE(name, params, args) ops->name = record_##name;
#define MAKE(result, name, params, args) ops->name = record_##name;
#define NONE(name, params, args) ops->name = record_##name;
#define FAST(name, params, args)

void recorder_wrap_calls(struct pabi_ops *ops)
{
	next = *ops;
#include "abi/pabi/ops.h"
}
