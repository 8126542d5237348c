#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# firewall.sh URXE: what urxe doctor says of rules for the wire's port, in a
# network namespace that is the test's own (own-net).
URXE=$1
command -v nft >/dev/null || {
	echo 'skipped: there is no nft'
	exit 77
}
nft add table inet probe 2>/dev/null || {
	echo 'skipped: no nf_tables in this kernel'
	exit 77
}
failed=0

# said PATTERN NAME: of the rules on standard input
said()
{
	local out
	nft flush ruleset
	nft -f - || {
		echo "skipped: these rules are not known here: $2"
		return
	}
	out=$("$URXE" doctor | grep 'wire: .*\(firewall\|UDP port 4791\)')
	if grep -q "$1" <<<"$out"; then
		echo "ok: $2"
	else
		echo "FAILED: $2: no $1 in $out"
		failed=1
	fi
}

input='type filter hook input priority 0; policy'
fine='^ok .*drops nothing for UDP port 4791'
none='^warn .*inet f in drops what no rule accepts, and no rule names'
said "$fine" 'no rules' </dev/null
said "$none" 'a policy' <<-END
	table inet f { chain in { $input drop; iif lo accept; }; }
	END
said "$none" 'a rule at the end' <<-END
	table inet f { chain in { $input accept; tcp dport 22 accept; counter reject; }; }
	END
said "$fine" 'a rule that drops something else' <<-END
	table inet f { chain in { $input accept; tcp dport 22 drop; }; }
	END
said "$fine" 'the port is accepted' <<-END
	table inet f { chain in { $input drop; udp dport 4791 accept; }; }
	END
said "$fine" 'a range is' <<-END
	table inet f { chain in { $input drop; udp dport 4000-5000 accept; }; }
	END
said "$none.*perhaps a set" 'a set, which may have it' <<-END
	table inet f { chain in { $input drop; udp dport { 53, 4791 } accept; }; }
	END
said "$fine" 'a chain that is gone to has it' <<-END
	table inet f {
		chain roce { udp dport 4791 accept; }
		chain in { $input drop; jump roce; }
	}
	END
said '^warn .*a rule of the firewall drops UDP port 4791' 'the port is dropped' <<-END
	table inet f { chain in { $input accept; udp dport 4791 drop; }; }
	END
said "$fine" 'what is for IPv6' <<-END
	table ip6 f { chain in { $input drop; }; }
	END
said "$fine" 'what is for packets that go out' <<-END
	table inet f { chain out { type filter hook output priority 0; policy drop; oif lo accept; }; }
	END
if command -v iptables-nft >/dev/null && iptables-nft -P INPUT DROP 2>/dev/null; then
	for rule in 'udp --dport 4791' 'udp -m multiport --dports 53,4791'; do
		# shellcheck disable=SC2086 # words are meant
		if ! iptables-nft -F || ! iptables-nft -A INPUT -p $rule -j ACCEPT; then
			continue
		fi
		"$URXE" doctor | grep -q "$fine" || {
			echo "FAILED: iptables, $rule"
			failed=1
		}
	done
fi
# who may not ask is told so
nft flush ruleset
if command -v setpriv >/dev/null; then
	setpriv --bounding-set=-all --inh-caps=-all --no-new-privs \
		--reuid=65534 --regid=65534 --clear-groups env URXE_DIR=/nowhere \
		"$URXE" doctor 2>/dev/null |
		grep -q 'whether the firewall lets UDP port 4791 in, only root' ||
		echo 'not tried: another user cannot run urxe here'
fi
exit $failed
