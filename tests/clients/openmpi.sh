#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Open MPI over its UCX PML: two ranks over RC and over UD.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh"
need mpirun ompi_info python3
if ! ompi_info 2>/dev/null | grep -q 'MCA pml: ucx'; then
	echo "skipped: this Open MPI was built without the UCX PML"
	exit 77
fi
need_ucx_verbs
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export UCX_NET_DEVICES=urxe0:1 UCX_WARN_UNUSED_ENV_VARS=n
program=$(dirname "$0")/mpi.py

for tls in rc_v ud_v rc_v,ud_v; do
	UCX_TLS=$tls,self check "Open MPI over $tls" '^2 ranks, all right$' \
		mpirun --oversubscribe -np 2 --mca pml ucx --mca btl self \
		python3 "$program"
done
finish
