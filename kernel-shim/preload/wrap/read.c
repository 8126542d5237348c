// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Wrapper of read, with which libibverbs reads events from the FIFOs of
 * completion and async channels, and libibumad MADs (preload/umad/umad.h).  The
 * tag in each record is replaced by the address of the object
 * (shared/event_tag.h).  Any thread may call it, also with a descriptor that is
 * no channel: a channel is recognized by the length of the read and by
 * fstat(2).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "preload/event.h"
#include "preload/umad/umad.h"
#include "wrap.h"

/* Return the inode of channel @fd; 0: it is none, or @len is no record's. */
static uint64_t read_channel(int fd, size_t len)
{
	uint64_t channel;
	int saved;

	if ((len != EVENT_COMP_SIZE && len != EVENT_ASYNC_SIZE) ||
	    !load_acquire(&event_used) || shim_inside)
		return 0;
	saved = shim_enter();
	channel = event_channel(fd);
	shim_leave(saved);
	return channel;
}

/* Enter the read in the call table (shared/call.h), since it may block. */
static struct urxe_call *read_begin(uint64_t channel, size_t len)
{
	const int saved = shim_enter();
	struct urxe_fabric *f = shim_fabric_opened();
	struct urxe_call *call = NULL;

	if (f)
		call = call_begin(f,
				  len == EVENT_COMP_SIZE ?
					  URXE_CALL_GET_CQ_EVENT :
					  URXE_CALL_GET_ASYNC_EVENT,
				  0, channel, 0);
	shim_leave(saved);
	return call;
}

/* Read until a record can be translated; others are skipped. */
static ssize_t read_record(ssize_t (*next)(int, void *, size_t), int fd,
			   void *buf, size_t len)
{
	ssize_t ret;

	do {
		ret = next(fd, buf, len);
	} while (ret == (ssize_t)len && !event_translate(buf, len));
	return ret;
}

WRAP(ssize_t, read, (int fd, void *buf, size_t len))
{
	const uint64_t channel = read_channel(fd, len);
	ssize_t ret;

	if (load_relaxed(&umad_used) && !shim_inside &&
	    umad_read(fd, buf, len, NEXT(read), &ret))
		return ret;
	if (!channel)
		return NEXT(read)(fd, buf, len);
	pthread_cleanup_push(call_end, read_begin(channel, len));
	ret = read_record(NEXT(read), fd, buf, len);
	pthread_cleanup_pop(1);
	return ret;
}

/* read(2) of programs that are compiled with _FORTIFY_SOURCE */
WRAP(ssize_t, __read_chk, (int fd, void *buf, size_t len, size_t room))
{
	ssize_t ret;

	if (load_relaxed(&umad_used) && !shim_inside && len <= room &&
	    umad_read(fd, buf, len, NEXT(read), &ret))
		return ret;
	return NEXT(__read_chk)(fd, buf, len, room);
}
