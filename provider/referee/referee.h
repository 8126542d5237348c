/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The referee: a checker that reports misuse of verbs which urxe tolerates
 * and a real device may not (rules.h).
 *
 * It is a layer of interposers in front of the verbs, installed if URXE_CHECK
 * is set; provider/abi/interposers.c has the order of the layers.  It keeps a
 * shadow, a record, of each object that the program creates (shadow.h), and
 * of each WR from its post until its completion is polled (queue.h).  It
 * checks the shadows in the interposed verbs and in the fork and exit
 * handlers, and reports each finding once (finding.h).  The results of verbs
 * are those without the referee.
 *
 *	objects.c	create, modify and destroy verbs
 *	posts*.c	posts
 *	polls.c		polls
 *	queue.c		queues of WRs; shadow.c: objects; ending.c: a WR ends
 *	memory.c, overlap.c, change.c, fetch.c
 *			checks of the memory of outstanding WRs
 *	unpolled.c	event delivery; events and completions at destruction
 *	limits.c, pair.c, unmapped.c, failed.c, leave.c
 *			other checks
 *
 * Locks.  referee_lock() guards all shadows.  It is a mutex of this process,
 * held briefly, although memory of the program may be read under it.  It is
 * not held while a real verb is called.  Each queue has a second lock for the
 * threads that post to it (queue.h), as the real queue has.  Order: that
 * lock, referee_lock(), then the locks of fetch.c, unmapped.c and finding.c.
 * The output of findings is written without referee_lock().
 *
 * tests/referee has a buggy and a corrected program for each rule.
 */
#pragma once

#include <stdbool.h>

#include "abi/pabi/pabi.h"

/*
 * If URXE_CHECK is set, install the interposers in @ops.  Called once in a
 * process.  Return 0, or -errno after printing the reason on stderr: -EINVAL
 * if a variable is invalid, or the error of opening a suppression file.
 */
int referee_wrap(struct pabi_ops *ops);

/* The real verbs: those that the interposers call. */
extern struct pabi_ops referee_next;

/* Install the interposers of each file. */
void referee_wrap_events(struct pabi_ops *ops);
void referee_wrap_objects(struct pabi_ops *ops);
void referee_wrap_posts(struct pabi_ops *ops);
void referee_wrap_polls(struct pabi_ops *ops);

/*
 * The same for the function pointers in struct ibv_qp_ex (ibv_wr_*) and
 * struct ibv_cq_ex (ibv_start_poll, ...).
 */
void referee_wrap_qp_ex(struct ibv_qp *qp);
void referee_wrap_cq_ex(struct ibv_cq_ex *cq);

/*
 * Take and release the lock of all shadows.  The release also reports the
 * findings of this thread, unless they are held (finding_hold()), and those
 * of unmapped.h.  errno is kept.
 */
void referee_lock(void);
void referee_unlock(void);
/*
 * Take the lock when the process exits.  exit(3) may be called in a signal
 * handler that interrupted the owner of the lock.  False: the lock was not
 * released within a second.
 */
bool referee_lock_at_last(void);
