#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# firewall.sh URXE: urxe doctor and firewall rules for the port of the wire, in a new
# network namespace (own-net)
URXE=$1
command -v nft >/dev/null || {
	echo 'skipped: nft is not installed'
	exit 77
}
nft add table inet probe 2>/dev/null || {
	echo 'skipped: this kernel has no nf_tables'
	exit 77
}
failed=0

# said PATTERN NAME: check the output of urxe doctor with the rules on standard input
said()
{
	local out
	nft flush ruleset
	nft -f - || {
		echo "skipped: this kernel does not support these rules: $2"
		return
	}
	out=$("$URXE" doctor | grep 'firewall: ')
	if grep -q "$1" <<<"$out"; then
		echo "ok: $2"
	else
		echo "FAILED: $2: no $1 in $out"
		failed=1
	fi
}

input='type filter hook input priority 0; policy'
fine='^ok .*nothing that drops UDP port 4791'
none='^warn .*inet f in drops packets by default and has no rule for UDP port 4791'
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
said "$none.*members of sets" 'a set, which may have it' <<-END
	table inet f { chain in { $input drop; udp dport { 53, 4791 } accept; }; }
	END
said "$fine" 'a chain that is gone to has it' <<-END
	table inet f {
		chain roce { udp dport 4791 accept; }
		chain in { $input drop; jump roce; }
	}
	END
said '^warn .*a rule drops UDP port 4791' 'the port is dropped' <<-END
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
		# shellcheck disable=SC2086 # the options are words
		if ! iptables-nft -F || ! iptables-nft -A INPUT -p $rule -j ACCEPT; then
			continue
		fi
		"$URXE" doctor | grep -q "$fine" || {
			echo "FAILED: iptables, $rule"
			failed=1
		}
	done
fi
# an unprivileged user is informed that the rules cannot be read
nft flush ruleset
if command -v setpriv >/dev/null; then
	setpriv --bounding-set=-all --inh-caps=-all --no-new-privs \
		--reuid=65534 --regid=65534 --clear-groups env URXE_DIR=/nowhere \
		"$URXE" doctor 2>/dev/null |
		grep -q 'rules for UDP port 4791 not checked: only root' ||
		echo 'not tested: another user cannot execute urxe'
fi
exit $failed
