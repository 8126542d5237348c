/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Functions that the text (info.c) and JSON (info_json.c) output share. */
#pragma once

#include "fabric/fabric.h"
#include "common/json.h"

/* Return the process that owns the socket of the wire, or NULL. */
const struct urxe_process *info_socket_owner(struct urxe_fabric *f);
/*
 * Return the value that URXE_ADVERSARY had when process pid was executed,
 * from /proc/PID/environ, or NULL if it had none or cannot be read.  The
 * caller frees it.
 */
char *info_adversary(int pid);
/*
 * Get the number of bytes and of allocations of device memory in use.  Return
 * 0, or the exit code if the device lock cannot be taken; the error has been
 * printed.
 */
int info_dm(struct urxe_fabric *f, uint64_t *bytes, uint32_t *pieces);

/* Write a JSON object for the fabric at dir; `dead` contexts were reaped. */
void info_put(struct json *j, struct urxe_fabric *f, const char *dir, int dead);
