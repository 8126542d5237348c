#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# qemu migrates a running guest over RDMA, with memory registered in chunks and all at
# once.  If the destination is killed during a migration, the guest continues at the
# source, and the next migration succeeds.
#
# The guest consists of three instructions at the reset vector.  They write a counter
# to the lowest 64 KiB in an endless loop, so that pages become dirty until the end, and
# each word there shows whether it was transferred:
#	1: inc eax; stosd; jmp 1b
# It needs no KVM and no disk.  The rest of its memory contains random data.
# shellcheck source=tests/apps/lib.sh
. "$(dirname "$0")/lib.sh"
need_packages qemu-system-x86 -- qemu-system-x86_64
if ! grep -q rdma_create_id "$(command -v qemu-system-x86_64)"; then
	skip 'this qemu was built without RDMA'
fi

truncate -s 64K "$work/bios"
printf '\x66\x40\x66\xab\xeb\xfa' |
	dd of="$work/bios" bs=1 seek=$((0xfff0)) conv=notrunc status=none
random=$((24 << 20)) # size and address of the random data
head -c $random /dev/urandom >"$work/random"

declare -A pid=() in=() out=()
uri=

# machine NAME OPTION...: start qemu with a QMP monitor on stdin and stdout.
machine()
{
	local name=$1
	shift

	rm -f "$work/$name".*
	mkfifo "$work/$name.in" "$work/$name.out"
	exec {in[$name]}<>"$work/$name.in" {out[$name]}<>"$work/$name.out"
	urxe_run qemu-system-x86_64 -nodefaults -no-user-config -display none \
		-accel tcg -machine pc -m 64 -bios "$work/bios" -qmp stdio "$@" \
		<"$work/$name.in" >"$work/$name.out" 2>"$work/$name.err" &
	pid[$name]=$!
	await_line "$name" '"QMP"' && ask "$name" qmp_capabilities &&
		ask "$name" migrate-set-capabilities "$(capabilities events)"
}

# Read from NAME's monitor until a line matches; store it in $line.
await_line() # NAME PATTERN
{
	local since=$SECONDS

	while [[ $((SECONDS - since)) -lt $LIMIT ]]; do
		if ! IFS= read -r -t 1 -u "${out[$1]}" line; then
			kill -0 "${pid[$1]}" 2>/dev/null && continue
			echo "  the $1 has ended"
			break
		fi
		echo "$line" >>"$work/$1.log"
		[[ $line =~ $2 ]] && return
	done
	echo "  no $2 from the $1; its log:"
	sed 's/^/    /' "$work/$1.log" "$work/$1.err"
	return 1
}

ask() # NAME COMMAND [ARGUMENTS]
{
	printf '{"execute": "%s", "arguments": {%s}}\n' "$2" "${3-}" \
		>&"${in[$1]}"
	await_line "$1" '"(return|error)":' && [[ $line == *'"return":'* ]]
}

capabilities() # NAME...
{
	local list

	list=$(printf ', {"capability": "%s", "state": true}' "$@")
	echo "\"capabilities\": [${list#, }]"
}

end() # NAME
{
	printf '{"execute": "quit"}\n' >&"${in[$1]}"
	wait "${pid[$1]}"
	exec {in[$1]}>&- {out[$1]}>&-
}

# Start a destination that waits for a migration on $uri.
destination() # [CAPABILITY...]
{
	next_port
	uri="\"uri\": \"rdma:127.0.0.1:$port\""
	machine destination -incoming defer || return
	[[ $# == 0 ]] ||
		ask destination migrate-set-capabilities "$(capabilities "$@")" ||
		return
	ask destination migrate-incoming "$uri"
}

migrated='"MIGRATION".*"(completed|failed|cancelled)"'
# Migrate the guest.
migrate()
{
	ask source migrate "$uri" || return
	await_line source "$migrated" && [[ $line == *completed* ]] || return
	await_line destination '"RESUME"'
}

# Dump the counters of the guest: each word is one greater than the previous one,
# except at the position that is being written.
counter() # NAME
{
	ask "$1" stop || return
	ask "$1" pmemsave "\"val\": 0, \"size\": 65536, \"filename\": \"$work/low\"" ||
		return
	ask "$1" cont || return
	od -An -v -tu4 -w4 "$work/low" | awk '
		NR == 1 || $1 > greatest { greatest = $1 }
		NR > 1 && $1 != last + 1 { steps++ }
		{ last = $1 }
		END { print greatest; exit NR != 16384 || steps > 1 }'
}

runs() # NAME
{
	local before now i

	before=$(counter "$1") || return
	for ((i = 0; i < 100; i++)); do
		now=$(counter "$1") || return
		[[ $now == "$before" ]] || return 0
	done
	return 1
}

# Check that the memory of the guest is at the destination.
arrived()
{
	ask destination pmemsave "\"val\": $random, \"size\": $random,
		\"filename\": \"$work/came\"" && cmp "$work/random" "$work/came"
}

step() # NAME COMMAND...
{
	local name=$1 status=0
	shift

	"$@" || status=$?
	report $status "$name"
	return $status
}

moved() # HOW
{
	step "qemu, $1: the guest is migrated" migrate || return
	step "qemu, $1: its memory was transferred" arrived
	step "qemu, $1: the guest runs at the destination" runs destination
}

source_machine()
{
	machine source -device \
		loader,file="$work/random",addr=$random,force-raw=on "$@"
}

for how in 'by chunks' 'rdma-pin-all'; do
	capability=()
	[[ $how != rdma-pin-all ]] || capability=(rdma-pin-all)
	destination "${capability[@]}" && source_machine && {
		[[ ! ${capability[*]} ]] || ask source migrate-set-capabilities \
			"$(capabilities rdma-pin-all)"
	} && moved "$how" || report $? "qemu, $how"
	end source
	end destination
done

# Slow, so that it cannot complete before the destination is killed.
slowly()
{
	ask source migrate-set-parameters '"max-bandwidth": 4194304' &&
		ask source migrate "$uri" &&
		await_line source '"MIGRATION".*"active"' || return
	# kill qemu itself: timeout does not forward SIGKILL
	pkill -9 -P "$(pgrep -P "${pid[destination]}")"
	wait "${pid[destination]}"
	await_line source "$migrated" && [[ $line == *failed* ]]
} 2>/dev/null

destination && source_machine || report $? 'qemu, to be killed'
step 'qemu: the destination is killed, and the source reports a failure' slowly
step 'qemu: the guest still runs at the source' runs source
destination && ask source migrate-set-parameters '"max-bandwidth": 1073741824' &&
	moved 'the next destination' || report $? 'qemu, next'
end source
end destination
finish
