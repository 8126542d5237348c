# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
# Common functions of tests between the two hosts of "hosts"
#
#	on b ibv_devinfo			with the device and the wire
#	bare b ping -c 1 10.91.0.1		without them
#	meet NAME SERVER... -- CLIENT...	the server on $server, the client on
#						the other host
#
# $version is 4 or 6: the IP version of the wire.  If b is a kernel with rxe ("hosts -k"),
# commands for b run in it.

# shellcheck source=tests/clients/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../clients/lib.sh"

: "${HOST_a:?}" "${HOST_b:?}" # set by "hosts"
version=${WIRE_VERSION-4}
server=${WIRE_SERVER-b}
client=a
[[ $server == b ]] || client=b
here=$(dirname "${BASH_SOURCE[0]}")
[[ ! ${CMSTAT-} ]] || CMSTAT=$(realpath "$CMSTAT") # it is run in other namespaces
export URXE_FABRIC=wire URXE_DIR=/dev/shm/urxe-wire URXE_KEEP=1
unset URXE_WIRE

# Print the PID of a process in the namespaces of a host.
holder() # HOST
{
	local name=HOST_$1
	echo "${!name}"
}

address() # HOST [VERSION]
{
	local last=1
	[[ $1 == a ]] || last=2
	if [[ ${2-$version} == 4 ]]; then
		echo "10.91.0.$last"
	else
		echo "fd91::$last"
	fi
}

# Run a command in the namespaces of a host, for at most LIMIT seconds.
bare() # HOST COMMAND...
{
	if [[ $1 == "${RXE_HOST-}" ]]; then
		timeout -k 2 "$LIMIT" nsenter -t "$HOST_a" --net \
			"$here/rxe-exec.py" 10.91.0.2 2222 "${@:2}"
		return
	fi
	timeout -k 2 "$LIMIT" nsenter -t "$(holder "$1")" \
		--net --mount --uts --ipc -- "${@:2}"
}

on() # HOST COMMAND...
{
	local host=$1
	shift
	if [[ $host == "${RXE_HOST-}" ]]; then
		bare "$host" "$@"
		return
	fi
	# shellcheck disable=SC2086 # the options are words
	URXE_WIRE=$(address "$host") bare "$host" \
		"$URXE" run ${URXE_TEST_RUN-} -- "$@"
}

# Print the PID of a background program that was started with "on".
program() # PID
{
	local pid=$1 next

	while next=$(pgrep -P "$pid" | head -n 1); [[ $next ]]; do
		pid=$next
	done
	echo "$pid"
}

# Print the index of the RoCE v2 GID of an address of a host.
gid_index() # HOST [VERSION]
{
	# shellcheck disable=SC2016 # for the inner shell
	on "$1" sh -c '
		want=$1
		cd /sys/class/infiniband/*/ports/1 || exit
		for i in $(ls gids | sort -n); do
			gid=$(cat "gids/$i")
			type=$(cat "gid_attrs/types/$i" 2>/dev/null)
			[ "$gid:$type" != "$want:RoCE v2" ] || {
				echo "$i"
				exit 0
			}
		done
		exit 1' sh "$(gid "$1" "${2-$version}")"
}

gid() # HOST VERSION
{
	local last=1
	[[ $1 == a ]] || last=2
	if [[ $2 == 4 ]]; then
		echo "0000:0000:0000:0000:0000:ffff:0a5b:000$last"
	else
		echo "fd91:0000:0000:0000:0000:0000:0000:000$last"
	fi
}

# Check whether a process on that host listens on $port, over TCP or rdma_cm.
listens_on() # HOST
{
	local hex pid

	if [[ $1 == "${RXE_HOST-}" ]]; then
		bare "$1" sh -c "ss -Hltn; rdma resource show cm_id" |
			grep -E 'LISTEN' | grep -q ":$port "
		return
	fi
	hex=$(printf ':%04X' "$port")
	pid=$(holder "$1")
	grep -qE "^ *[0-9]+: [0-9A-F]+$hex [0-9A-F:]+ 0A " \
		"/proc/$pid/net/tcp" "/proc/$pid/net/tcp6" 2>/dev/null ||
		{ [[ ${CMSTAT-} ]] && bare "$1" "$CMSTAT" \
			"$URXE_DIR/$URXE_FABRIC" 2>/dev/null |
			grep -q " port $port .* listen "; }
}

# Run the server and, when it listens on $port, the client.  Both must succeed, and the
# output of the client must match $want.
meet() # NAME SERVER... -- CLIENT...
{
	duo "$@"
}

run_server()
{
	on "$server" "$@"
}

run_client()
{
	on "$client" "$@"
}

server_listens()
{
	listens_on "$server"
}

# Check the shared state on each host, and that no process is left.
hosts_are_clean()
{
	local host found tries

	for host in a b; do
		[[ $host != "${RXE_HOST-}" ]] || continue
		bare "$host" test -e "$URXE_DIR/$URXE_FABRIC/device" || continue
		for ((tries = 0; tries < 600; tries++)); do
			found=$(bare "$host" "$URXE" doctor --fabric wire 2>&1)
			[[ $found != *'is consistent; 0 contexts are open'* ]] || break
			sleep 0.1
		done
		[[ $tries -lt 600 ]]
		report $? "what is shared on $host is in order"
		[[ $tries -lt 600 ]] || echo "$found"
	done
}

finish_hosts()
{
	hosts_are_clean
	finish
}
