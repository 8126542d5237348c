/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shared-memory layout of a fabric: every structure that processes share.
 *
 * A fabric is a directory:
 *
 *   device          struct urxe_dev: the device segment, one per fabric
 *   procs           empty; byte-range locks on it mark live processes
 *                   (fabric/process.c)
 *   dm              the device-memory heap (or a file on a hugetlbfs mount)
 *   ctx/S.G         struct urxe_arena: one per opened context; slot S,
 *                   generation G.  Its file descriptor is the verbs
 *                   "cmd_fd"; an OFD lock on it marks the context live
 *   ev/S.G.N        FIFOs: completion channels and async event channels
 *   cm, cm.d/       the connection manager (cm_tables.h), its FIFOs
 *   journal         writes of checked programs (journal.h)
 *   sys/, dev/      the contents of sysfs and /dev (written by the preload
 *                   library)
 *
 * Shared memory contains offsets and indices, never pointers.  Any value may
 * have been written by a dying or faulty process.  A reader must bound it
 * before use.
 */
#pragma once

#include "arena.h"
#include "device.h"
#include "limits.h"
