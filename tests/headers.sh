#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Check that each header can be compiled alone, without other headers before it.  The
# sources are in the directory "headers", so that ccache keeps the results.
#   headers.sh SOURCE_ROOT COMPILER...
set -eu
export dir=$PWD/headers
mkdir -p "$dir"
cd "$1"
shift

# lists (X macros), which are included several times
export not_alone=' provider/abi/pabi/slots.h provider/abi/pabi/ops.h kernel-shim/chaos/fault_calls.h kernel-shim/wire/mad_fields.h '

compile()
{
	local header=$1
	shift
	[[ $not_alone == *" $header "* ]] && return
	local c=$dir/${header//\//_}.c
	echo "#include \"$header\"" >"$c"
	# the list of headers saves ccache a second run of the preprocessor
	"$@" -fsyntax-only -MD -MF "$c.d" -std=gnu11 -D_GNU_SOURCE -Wall -Wextra \
		-I. -Iprovider -Ikernel-shim -Itools -I/usr/include/libnl3 "$c" ||
		{ echo "$header does not compile alone"; return 1; }
}
export -f compile

mapfile -t headers < <(find provider kernel-shim tools -name '*.h')
[[ ${#headers[@]} -gt 50 ]]
printf '%s\n' "${headers[@]}" |
	xargs -P "$(nproc)" -I '{}' bash -c 'compile "$@"' compile '{}' "$@"
echo "${#headers[@]} headers"
