# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
# What the tests with applications share, beside what all clients' do.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/../clients/lib.sh"

# meson has malloc() fill what it returns.  libiscsi 1.19, the OpenSHMEM of Open
# MPI 4.1 and dapl's scm use what they did not set.
unset MALLOC_PERTURB_

skip() # REASON
{
	echo "skipped: $1"
	exit 77
}

# Commands that these Debian packages bring.
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

# An IPv4 address that the device has, in $address; 127.0.0.1 has no device, as
# anywhere, so who binds to it gets none.
need_address()
{
	address=$(ip -4 -o address show scope global up 2>/dev/null |
		sed -nE '1s,.* inet ([0-9.]+)/.*,\1,p')
	[[ $address ]] || skip 'no network interface has an IPv4 address'
}
