// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* read: how libibverbs takes events from their channels. */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "preload/event.h"
#include "wrap.h"

static bool read_is_event(int fd, size_t len)
{
	int saved;
	bool is;

	if ((len != EVENT_COMP_SIZE && len != EVENT_ASYNC_SIZE) ||
	    !load_acquire(&event_used) || shim_inside)
		return false;
	saved = shim_enter();
	is = event_is_channel(fd);
	shim_leave(saved);
	return is;
}

WRAP(ssize_t, read, (int fd, void *buf, size_t len))
{
	const bool event = read_is_event(fd, len);
	ssize_t ret;

	do {
		ret = NEXT(read)(fd, buf, len);
	} while (event && ret == (ssize_t)len && !event_translate(buf, len));
	return ret;
}
