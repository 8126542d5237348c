#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# RoCE packets with ICRC, alternately with plain GSO datagrams of the same size, over
# the loopback and, as root, between two network namespaces.
#   wire.sh BUILD [ROUNDS [PAYLOAD]]
set -eu
bench=$1/tests/bench/urxe-bench-wire
rounds=${2:-3}
payload=${3:-4096}
near=urxe-near-$$ far=urxe-far-$$

"$bench" icrc

# pair RECEIVER-PREFIX SENDER-PREFIX SENDER-ADDRESS RECEIVER-ADDRESS
pair()
{
	local kind receiver

	for ((i = 0; i < rounds; i++)); do
		for kind in '' bare-; do
			$1 "$bench" "${kind}pong" "$4" &
			receiver=$!
			sleep 0.2
			$2 "$bench" "${kind}ping" "$3" "$4" 1
			wait "$receiver"
		done
		for kind in '' bare-; do
			$1 "$bench" "${kind}receive" "$4" &
			receiver=$!
			sleep 0.2 # until the receiver listens
			$2 "$bench" "${kind}send" "$3" "$4" 1 "$payload"
			wait "$receiver"
		done
	done
}

echo '-- loopback'
pair '' '' 127.0.0.2 127.0.0.3

if [[ $(id -u) != 0 ]] || ! ip netns add "$near" 2>/dev/null; then
	echo '-- network namespaces: skipped, as they need root'
	exit 0
fi
trap 'ip netns del "$near"; ip netns del "$far"' EXIT
ip netns add "$far"
ip -n "$near" link add veth0 mtu 9000 type veth peer name veth0 mtu 9000 \
	netns "$far"
ip -n "$near" addr add 192.0.2.1/24 dev veth0
ip -n "$far" addr add 192.0.2.2/24 dev veth0
ip -n "$near" addr add fd00::1/64 dev veth0 nodad
ip -n "$far" addr add fd00::2/64 dev veth0 nodad
ip -n "$near" link set veth0 up
ip -n "$far" link set veth0 up
echo '-- two namespaces, IPv4'
pair "ip netns exec $far" "ip netns exec $near" 192.0.2.1 192.0.2.2
echo '-- two namespaces, IPv6'
pair "ip netns exec $far" "ip netns exec $near" fd00::1 fd00::2
