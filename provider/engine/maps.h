/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A descriptor of /proc/self/maps that is kept from one registration to the
 * next, for those who ask it by PROCMAP_QUERY: opening one takes ten times as
 * long as asking.  It tells of the address space that it was opened in, so a
 * forked child must not use its parent's: what is known of it is in a page that
 * a child finds empty, whatever made the child.  And a program may close
 * descriptors that it does not know, and have other files under their numbers,
 * so it is looked at before it is used.
 *
 * One thread has it at a time; another one opens its own meanwhile.
 */
#pragma once

#include <stdbool.h>

struct maps {
	int fd; /* -1: there is no /proc */
	bool lent; /* not to be read: others have the same position */
	struct maps_kept *kept; /* it is locked; NULL: it is not */
};

/*
 * From now on one may be kept.  It maps a page, which must not happen while
 * somebody asks what is mapped.
 */
void maps_prepare(void);
/* fresh: not the one that is kept. */
void maps_open(struct maps *m, bool fresh);
/* keep: it may be kept. */
void maps_close(struct maps *m, bool keep);
/* None is kept any more. */
void maps_forget(void);
