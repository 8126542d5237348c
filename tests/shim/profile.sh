#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# profile.sh URXE DV: urxe profile and urxe run --profile.  DV prints whether libmlx5
# and libefa regard the device as one of their vendor.
URXE=$1
dv=$2
. "$(dirname "$0")/lib.sh"

refused() {
	! "$URXE" "$@" 2>&1
}

profiles=$("$URXE" profile list | cut -d' ' -f1) || die "profile list"
[ "$(echo "$profiles" | wc -l)" -ge 8 ] || die "profiles are missing: $profiles"
has "the NIC has 131072" "$URXE" profile show connectx-6dx
has "did you mean e810" refused run --profile e81 true
has "No such file" refused run --profile ./none.profile true
has "requires urxe run with a COMMAND" refused env --profile sweep
has "--trace cannot be combined" refused run --profile sweep --trace "$URXE_DIR/t" true
echo "max_sgee 4" >"$URXE_DIR/bad.profile"
has 'line 1: unknown key "max_sgee"' refused run --profile "$URXE_DIR/bad.profile" true
echo "# mine" >"$URXE_DIR/mine.profile"
echo "max_sge 5" >>"$URXE_DIR/mine.profile"

# a fabric that is in use keeps its profile
URXE_KEEP=1 "$URXE" run --profile "$URXE_DIR/mine.profile" true || die "--profile FILE"
has "profile mine" "$URXE" info
export URXE_KEEP=1
has "has the profile mine" refused run --profile e810 true
unset URXE_KEEP
"$URXE" rm "$URXE_FABRIC" >/dev/null || die "rm"

# Each profile: the device is found and works.
for p in $profiles; do
	"$URXE" profile show "$p" >/dev/null || die "profile show $p"
	has "not mlx5, not efa" "$URXE" run --profile "$p" "$dv"
	if have ibv_devinfo; then
		fw=$("$URXE" profile show "$p" | sed -n 's/^fw_ver *//p')
		has "$fw" "$URXE" run --profile "$p" ibv_devinfo
	fi
	pingpong=ibv_ud_pingpong
	"$URXE" profile show "$p" | grep -q '^qp_types.* UD' ||
		pingpong=ibv_rc_pingpong
	have $pingpong || continue
	"$URXE" run --profile "$p" $pingpong -g 0 -s 512 -p 18541 >/dev/null 2>&1 &
	server=$!
	client() {
		"$URXE" run --profile "$p" $pingpong -g 0 -s 512 -p 18541 localhost \
			>/dev/null 2>&1
	}
	await "$pingpong with the profile $p fails" client
	wait $server || die "the server of $pingpong fails with the profile $p"
done

# rdma_cm between devices uses the smaller MTU
if have rping; then
	for pair in rxe,connectx-7 connectx-7,rxe; do
		"$URXE" run --devices 3 --profile rxe,$pair -- rping -s -a 127.0.0.2 \
			-p 17672 -C 2 -S 8000 >/dev/null 2>&1 &
		server=$!
		client() {
			"$URXE" run --devices 3 --profile rxe,$pair -- rping -c -I 127.0.0.3 \
				-a 127.0.0.2 -p 17672 -C 2 -S 8000 -V >/dev/null 2>&1
		}
		await "rping between $pair fails" client
		wait $server || die "the server of rping between $pair fails"
	done
fi

# record prints what show prints, but for what cannot be probed
recorded() {
	"$URXE" run --profile "$URXE_DIR/$1.profile" "$URXE" profile record urxe0
}
for p in $profiles; do
	"$URXE" run --profile "$p" "$URXE" profile record urxe0 \
		>"$URXE_DIR/copy.profile" || die "profile record: $p"
	recorded copy >"$URXE_DIR/again.profile" || die "record of the copy of $p"
	cmp "$URXE_DIR/copy.profile" "$URXE_DIR/again.profile" ||
		die "the record of a recorded profile differs: $p"
done

# sweep: one run for each profile; it fails if one of them fails
"$URXE" run --profile sweep -- true 2>"$URXE_DIR/said" || die "sweep of true"
[ "$(grep -c ': passed$' "$URXE_DIR/said")" = "$(echo "$profiles" | wc -l)" ] ||
	die "not all profiles passed: $(cat "$URXE_DIR/said")"
"$URXE" run --profile sweep -- sh -c "case \$URXE_PROFILE in *efa*) exit 3 ;; esac" \
	2>"$URXE_DIR/said"
[ $? = 3 ] || die "the exit status of the sweep"
has "profile efa: exit status 3" cat "$URXE_DIR/said"
has "profile rxe: passed" cat "$URXE_DIR/said"
exit 0
