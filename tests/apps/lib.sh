# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
# Common functions of the tests with applications, in addition to clients/lib.sh
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/../clients/lib.sh"

# meson makes malloc() fill the memory (MALLOC_PERTURB_).  libiscsi 1.19, the OpenSHMEM
# of Open MPI 4.1 and scm of dapl use uninitialized memory.
unset MALLOC_PERTURB_

skip() # REASON
{
	echo "skipped: $1"
	exit 77
}

# Skip the test unless the commands exist, which these Debian packages contain.
need_packages() # PACKAGE... -- COMMAND...
{
	local packages=() command

	while [[ $1 != -- ]]; do
		packages+=("$1")
		shift
	done
	shift
	for command; do
		command -v "$command" >/dev/null ||
			skip "needs $command, Debian's packages ${packages[*]}"
	done
}

# Set $address to an IPv4 address of the device.  127.0.0.1 is not one of them: an id
# that is bound to it has no device.
need_address()
{
	address=$(ip -4 -o address show scope global up 2>/dev/null |
		sed -nE '1s,.* inet ([0-9.]+)/.*,\1,p')
	[[ $address ]] || skip 'no network interface has an IPv4 address'
}
