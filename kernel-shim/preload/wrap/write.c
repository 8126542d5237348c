// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Wrapper of write, with which librdmacm sends commands to the connection
 * manager (preload/ucma/ucma.h), and libibumad MADs (preload/umad/umad.h).  It
 * calls libc directly unless this process has opened such a device and the
 * length may be that of a command or a MAD.
 */
#define _GNU_SOURCE
#include <rdma/rdma_user_cm.h>
#include <unistd.h>

#include "preload/ucma/ucma.h"
#include "preload/umad/umad.h"
#include "wrap.h"

WRAP(ssize_t, write, (int fd, const void *buf, size_t len))
{
	ssize_t ret;

	if (load_relaxed(&ucma_used) &&
	    len >= sizeof(struct rdma_ucm_cmd_hdr) && len <= UCMA_COMMAND_MAX &&
	    !shim_inside && ucma_write(fd, buf, len, &ret))
		return ret;
	if (load_relaxed(&umad_used) && !shim_inside &&
	    umad_write(fd, buf, len, &ret))
		return ret;
	return NEXT(write)(fd, buf, len);
}
