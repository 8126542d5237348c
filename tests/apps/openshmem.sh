#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# OpenSHMEM of Open MPI over UCX: three PEs
# shellcheck source=tests/apps/lib.sh
. "$(dirname "$0")/lib.sh"
need_packages openmpi-bin libopenmpi-dev gcc -- oshcc oshrun
echo '#include <shmem.h>' | oshcc -E - >/dev/null 2>&1 ||
	skip "needs shmem.h (Debian package libopenmpi-dev)"
oshmem_info 2>/dev/null | grep -q 'MCA spml: ucx' ||
	skip 'this OpenSHMEM was built without UCX'
oshcc -O1 -o "$work/shmem" "$(dirname "$0")/shmem.c" || exit 1

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export UCX_NET_DEVICES=urxe0:1 UCX_WARN_UNUSED_ENV_VARS=n
for tls in rc_v ud_v; do
	UCX_TLS=$tls,self check "OpenSHMEM over $tls" '^3 PEs, all right$' \
		oshrun --oversubscribe -n 3 \
		--mca pml ucx --mca osc ucx --mca spml ucx "$work/shmem"
done
finish
