/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The event tag table: tags of CQs, QPs and SRQs, and their addresses in this
 * process.  shared/event_tag.h describes the tags.  All functions may be
 * called from any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/atomic.h"
#include "shared/event_tag.h"

/*
 * The table exists.  While it is false (acquire), read(2) needs no
 * translation.  It never becomes false again.
 */
extern _Atomic bool event_used;

/*
 * EVENT_IOC_WATCH: add the object e->kind at e->address and store its tag in
 * e->tag.  0, or -ENOMEM.
 */
int event_element_add(struct event_element *e);
/*
 * EVENT_IOC_FORGET: remove e->tag and store the numbers of events that were
 * read for it in e->comp_read and e->async_read.  0, or -ENOENT if there is
 * no such tag.
 */
int event_element_remove(struct event_element *e);

/*
 * Return the inode of the FIFO of @fd, if it is a completion or async channel
 * on the file system of the fabric, or else 0.
 */
uint64_t event_channel(int fd);
/*
 * Replace the tag in a record that was read from a channel by the address of
 * its object, and count the event.  @len is EVENT_COMP_SIZE or
 * EVENT_ASYNC_SIZE.  Records of port and device events stay as they are.
 * False: the record must be skipped, because its tag or its event type is
 * unknown, or the object is of another kind.
 */
bool event_translate(void *record, size_t len);
