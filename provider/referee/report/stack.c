// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Stacks, by backtrace(3); stack.h. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#if defined(__has_include)
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define HAVE_BACKTRACE
#endif
#endif

#include "stack.h"
#include "symbol.h"

/*
 * Load addresses of the provider, the preload library and libibverbs, whose
 * frames are not reported.
 */
static const void *own_base, *preload_base, *verbs_base;

static const void *base_of(const void *address)
{
	Dl_info info;

	return dladdr(address, &info) ? info.dli_fbase : NULL;
}

void stack_init(const void *libibverbs)
{
	struct stack first;

	own_base = base_of((void *)stack_init);
	preload_base = base_of(dlsym(RTLD_DEFAULT, "urxe_watch_cm"));
	verbs_base = base_of(libibverbs);
	stack_take(&first); /* the first backtrace() loads libgcc */
}

void stack_take(struct stack *s)
{
#ifdef HAVE_BACKTRACE
	int n = backtrace(s->pc, STACK_DEPTH);

	s->depth = n > 0 ? (uint32_t)n : 0;
#else
	s->depth = 0;
#endif
}

bool stack_equal(const struct stack *a, const struct stack *b)
{
	return a->depth == b->depth &&
	       !memcmp(a->pc, b->pc, a->depth * sizeof(a->pc[0]));
}

static bool frame_is_ours(const void *base)
{
	return base &&
	       (base == own_base || base == preload_base || base == verbs_base);
}

/*
 * Remove the outermost frames without a name: they are those of the C library
 * that call main() or a thread's function.
 */
static size_t stack_cut(const struct stack_frame *f, size_t n)
{
	while (n > 1 && !f[n - 1].function[0])
		n--;
	return n;
}

/* Is it a function of the C library that starts a thread or main()? */
static bool frame_is_outermost(const struct stack_frame *f)
{
	static const char *const name[] = { "_start", "__libc_start_main",
					    "__libc_start_call_main",
					    "start_thread", "clone" };
	size_t i;

	for (i = 0; i < sizeof(name) / sizeof(*name); i++)
		if (!strncmp(f->function, name[i], strlen(name[i])))
			return true;
	return false;
}

/*
 * Return the index of the first of our frames.  The frames before it are
 * those of a sanitizer's interceptor of backtrace().
 */
static uint32_t stack_first_of_ours(const struct stack *s)
{
	uint32_t i;

	for (i = 0; i < s->depth; i++)
		if (frame_is_ours(base_of((const char *)s->pc[i] - 1)))
			return i;
	return 0;
}

size_t stack_frames(const struct stack *s, struct stack_frame *out, size_t n)
{
	struct stack_frame *f;
	bool program = false;
	size_t found = 0;
	uint32_t i;

	for (i = stack_first_of_ours(s); i < s->depth && found < n; i++) {
		/* a return address may be the next function's first byte */
		const char *pc = (const char *)s->pc[i] - 1;

		if (!program && frame_is_ours(base_of(pc)))
			continue;
		program = true;
		f = &out[found++];
		symbol_find(pc, f);
		if (found > 1 && frame_is_outermost(f))
			return stack_cut(out, found - 1);
		if (!strcmp(f->function, "main"))
			break;
	}
	return found;
}
