// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Wrappers of librdmacm functions, for diagnostics of calls that wait until
 * events are acknowledged: rdma_destroy_id, rdma_migrate_id and
 * rdma_leave_multicast.
 *
 * These sleep in librdmacm, which does not export its count of
 * acknowledgements.  So the outstanding events of each rdma_cm_id are counted
 * here as well: rdma_get_cm_event increments the count, rdma_ack_cm_event
 * decrements it.  librdmacm's own calls of both are intercepted, too.  An
 * event that a synchronous call stored in the id is acknowledged by the next
 * such call, or by rdma_destroy_id itself, so no call waits for it.
 *
 * While such a call runs, it is listed in the call table (shared/call.h) for
 * `urxe why`.  The referee is notified before a call that has to wait
 * (urxe_watch_cm()).
 *
 * Any thread calls these functions.  `lock` protects the counts.  It is not
 * held while librdmacm or the referee is called.  Fork handlers hold it
 * during fork(2).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "shared/cm_tables.h"
#include "wrap.h"

/* The head of struct rdma_cm_event (rdma/rdma_cma.h). */
struct event {
	const void *id, *listen_id;
	uint32_t type; /* as CM_EV_* */
};

/* An id with outstanding events, or with a call that may wait for them. */
struct id_events {
	struct id_events *next;
	const void *id;
	/* outstanding events; those of multicast groups among them */
	uint32_t events, multicast;
	/* event stored in the id, which librdmacm acknowledges; or NULL */
	const struct event *held;
	uint32_t type; /* type of the last event */
	struct urxe_call *call; /* slot of a waiting call, or NULL */
};

#define BUCKETS 1024

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct id_events *bucket[BUCKETS];
static bool forks; /* the fork handlers are registered */
static _Atomic(urxe_cm_waits *) watcher;

static void id_events_lock(void)
{
	pthread_mutex_lock(&lock);
}

static void id_events_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* Fork handler of the child: forget calls of the parent's threads. */
static void id_events_after_fork(void)
{
	struct id_events *g;
	unsigned int i;

	for (i = 0; i < BUCKETS; i++)
		for (g = bucket[i]; g; g = g->next)
			g->call = NULL;
	id_events_unlock();
}

/*
 * Return the link to the entry of @id, or to the NULL at the end of its
 * bucket.  This and the following given_*() functions are called with `lock`
 * held, down to id_events_add().
 */
static struct id_events **id_events_link(const void *id)
{
	struct id_events **p = &bucket[(uintptr_t)id / 64 % BUCKETS];

	while (*p && (*p)->id != id)
		p = &(*p)->next;
	return p;
}

/* Return the entry of @id, created if necessary; NULL: no memory. */
static struct id_events *id_events_get(const void *id)
{
	struct id_events **p = id_events_link(id);

	if (!forks)
		forks = !pthread_atfork(id_events_lock, id_events_unlock,
					id_events_after_fork);
	if (!*p && (*p = calloc(1, sizeof(**p))))
		(*p)->id = id;
	return *p;
}

/* Free the entry of @id if it has no more use. */
static void id_events_settle(const void *id)
{
	struct id_events **p = id_events_link(id), *g = *p;

	if (!g || g->events || g->held || g->call)
		return;
	*p = g->next;
	free(g);
}

/* Number of events that the call of @g waits for. */
static uint32_t id_events_of_call(const struct id_events *g)
{
	return load_relaxed(&g->call->kind) == URXE_CALL_LEAVE_MULTICAST ?
		       g->multicast :
		       g->events;
}

/*
 * Return the id whose destruction waits for the event: of a CONNECT_REQUEST
 * the listener, as in librdmacm.
 */
static const void *event_counts_for(const struct event *e)
{
	return e->type == CM_EV_CONNECT_REQUEST ? e->listen_id : e->id;
}

/* Add @n, 1 or -1, to the counts to which the event belongs. */
static void id_events_add(struct id_events *g, const struct event *e, int n)
{
	if (n > 0)
		g->type = e->type;
	if (n > 0 || g->events)
		g->events += (uint32_t)n;
	if ((e->type == CM_EV_MULTICAST_JOIN ||
	     e->type == CM_EV_MULTICAST_ERROR) &&
	    (n > 0 || g->multicast))
		g->multicast += (uint32_t)n;
	if (g->call)
		store_relaxed(&g->call->events, id_events_of_call(g));
}

/*
 * Return whether @where, which received the event, is the member `event` of
 * the event's own struct rdma_cm_id, that is, close to its start.
 */
static bool is_within_id(const struct event *e, struct event *const *where)
{
	const uintptr_t offset = (uintptr_t)where - (uintptr_t)e->id;

	return offset < 512;
}

/* Count an event; @to_id: a synchronous call stored it in the id. */
static void id_events_count(const struct event *e, bool to_id)
{
	const void *id = event_counts_for(e);
	struct id_events *g;

	id_events_lock();
	g = id_events_get(id);
	if (g && to_id)
		g->held = e;
	else if (g)
		id_events_add(g, e, 1);
	id_events_unlock();
}

/* Count the acknowledgement of an event. */
static void id_events_ack(const struct event *e)
{
	const void *id = event_counts_for(e);
	struct id_events *g;

	id_events_lock();
	g = *id_events_link(id);
	if (g && g->held == e)
		g->held = NULL;
	else if (g)
		id_events_add(g, e, -1);
	id_events_settle(id);
	id_events_unlock();
}

/* Return the outstanding events of @id; *type is the type of the last one. */
static uint32_t id_events_outstanding(const void *id, uint32_t *type)
{
	const struct id_events *g;
	uint32_t n = 0;

	id_events_lock();
	g = *id_events_link(id);
	if (g) {
		n = g->events;
		*type = g->type;
	}
	id_events_unlock();
	return n;
}

/* Register the referee, which finds this function with dlsym(3). */
void urxe_watch_cm(urxe_cm_waits *fn) __attribute__((visibility("default")));
void urxe_watch_cm(urxe_cm_waits *fn)
{
	store_release(&watcher, fn);
}

/* A call that may wait for the events of id. */
struct waiting {
	const void *id;
	enum urxe_call_kind kind;
	const char *name;
};

/* Enter the call in the call table and notify the referee. */
static void waiting_begin(const struct waiting *w)
{
	const int saved = shim_enter();
	struct urxe_fabric *f = shim_fabric_opened();
	urxe_cm_waits *watch = load_acquire(&watcher);
	struct id_events *g;
	uint32_t type;

	id_events_lock();
	g = f ? id_events_get(w->id) : NULL;
	if (g && !g->call) {
		g->call = call_begin(f, w->kind, 0, 0, 0);
		if (g->call) {
			store_relaxed(&g->call->event, g->type);
			store_relaxed(&g->call->events, id_events_of_call(g));
		}
		id_events_settle(w->id);
	}
	id_events_unlock();
	if (watch && w->kind != URXE_CALL_LEAVE_MULTICAST &&
	    id_events_outstanding(w->id, &type))
		watch(w->name, w->id, id_events_outstanding);
	shim_leave(saved);
}

/* Remove it from the call table; also a cancellation cleanup handler. */
static void waiting_end(void *arg)
{
	const struct waiting *w = arg;
	const int saved = shim_enter();
	struct id_events *g;

	id_events_lock();
	g = *id_events_link(w->id);
	if (g) {
		call_end(g->call);
		g->call = NULL;
		id_events_settle(w->id);
	}
	id_events_unlock();
	shim_leave(saved);
}

/*
 * Return a handle of the object that contains @address, to be closed with
 * dlclose(3), or NULL if it cannot be opened.
 */
static void *object_of(const void *address, int flags)
{
	Dl_info at;

	if (!dladdr(address, &at) || !at.dli_fname)
		return NULL;
	return dlopen(at.dli_fname, RTLD_LAZY | RTLD_NOLOAD | flags);
}

/*
 * Return the function in @object or its dependencies, and close @object.
 * NULL: none, or it is the wrapper @own.
 */
static void *find_in(void *object, const char *name, const void *own)
{
	void *fn = object ? dlsym(object, name) : NULL;

	if (object)
		dlclose(object);
	return fn == own ? NULL : fn;
}

struct nth {
	unsigned int left;
	char path[4096];
};

static int nth_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct nth *n = arg;

	(void)size;
	if (n->left--)
		return 0;
	snprintf(n->path, sizeof(n->path), "%s", info->dlpi_name);
	return 1;
}

/*
 * Search all loaded objects.  The list is walked again for each of them,
 * since dlopen(3) must not be called from a callback of dl_iterate_phdr(3).
 */
static void *find_anywhere(const char *name, const void *own)
{
	struct nth n;
	unsigned int i;
	void *fn = NULL;

	for (i = 0; !fn; i++) {
		n.left = i;
		if (!dl_iterate_phdr(nth_object, &n))
			break;
		if (*n.path)
			fn = find_in(dlopen(n.path, RTLD_LAZY | RTLD_NOLOAD),
				     name, own);
	}
	return fn;
}

/*
 * Return the function that the caller would get without this library, or
 * shim_missing().
 *
 * The dynamic linker searches the global scope first, and then the calling
 * object and its dependencies: a plug-in that was loaded with RTLD_LOCAL may
 * have a librdmacm of its own, under any name.  Only the result from the
 * global scope is the same for all callers.  It is cached, and its object is
 * pinned (RTLD_NODELETE).
 */
static void *rdma_next(_Atomic(void *) *cache, const char *name,
		       const void *own, const void *caller)
{
	void *fn = load_relaxed(cache), *object;
	int saved;

	if (fn)
		return fn;
	saved = shim_enter();
	fn = dlsym(RTLD_NEXT, name);
	if (fn) {
		object = object_of(fn, RTLD_NODELETE);
		if (object)
			dlclose(object);
		store_relaxed(cache, fn);
	} else {
		fn = find_in(object_of(caller, 0), name, own);
	}
	if (!fn)
		fn = find_anywhere(name, own);
	shim_leave(saved);
	return fn ? fn : (void *)shim_missing;
}

/* The same, with the type of the wrapper */
#define RDMA_NEXT(name)                                           \
	((__typeof__(&wrap_##name))rdma_next(&next_##name, #name, \
					     (void *)wrap_##name, \
					     __builtin_return_address(0)))

WRAP(int, rdma_get_cm_event, (void *channel, struct event **event))
{
	const int ret = RDMA_NEXT(rdma_get_cm_event)(channel, event);

	if (!ret && shim_active())
		id_events_count(*event, is_within_id(*event, event));
	return ret;
}

WRAP(int, rdma_ack_cm_event, (struct event * event))
{
	if (event && shim_active())
		id_events_ack(event);
	return RDMA_NEXT(rdma_ack_cm_event)(event);
}

#define RDMA_WAITS(name, kind, id, params, args)        \
	WRAP(int, name, params)                         \
	{                                               \
		struct waiting w = { id, kind, #name }; \
		int ret;                                \
                                                        \
		if (!shim_active())                     \
			return RDMA_NEXT(name) args;    \
		waiting_begin(&w);                      \
		pthread_cleanup_push(waiting_end, &w);  \
		ret = RDMA_NEXT(name) args;             \
		pthread_cleanup_pop(1);                 \
		return ret;                             \
	}

RDMA_WAITS(rdma_destroy_id, URXE_CALL_DESTROY_ID, id, (void *id), (id))
RDMA_WAITS(rdma_migrate_id, URXE_CALL_MIGRATE_ID, id, (void *id, void *channel),
	   (id, channel))
RDMA_WAITS(rdma_leave_multicast, URXE_CALL_LEAVE_MULTICAST, id,
	   (void *id, void *addr), (id, addr))
