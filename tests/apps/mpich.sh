#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# MPICH over UCX, as built by Debian: three ranks over RC and over UD
# shellcheck source=tests/apps/lib.sh
. "$(dirname "$0")/lib.sh"
need_packages mpich libmpich-dev gcc -- mpicc.mpich mpirun.mpich
mpichversion 2>/dev/null | grep -q 'ch4:ucx' ||
	skip 'this MPICH was built without UCX'
mpicc.mpich -O1 -o "$work/mpi" "$(dirname "$0")/mpi.c" || exit 1

export UCX_NET_DEVICES=urxe0:1 UCX_WARN_UNUSED_ENV_VARS=n
for tls in rc_v ud_v; do
	UCX_TLS=$tls,self check "MPICH over $tls" '^3 ranks, all right$' \
		mpirun.mpich -n 3 "$work/mpi"
done
finish
