#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# command.sh URXE HOLD STATIC: command-line interface of urxe
URXE=$1
export URXE
hold=$2
static=$3
. "$(dirname "$0")/lib.sh"

code() {
	want=$1
	shift
	"$@" >"$URXE_DIR/out" 2>"$URXE_DIR/err"
	got=$?
	[ $got = "$want" ] || die "$*: exit code $got, expected $want:" \
		"$(cat "$URXE_DIR/out" "$URXE_DIR/err")"
}

code 2 "$URXE"
[ ! -s "$URXE_DIR/out" ] || die "the usage is on stdout"
[ "$(grep -c "^  urxe run" "$URXE_DIR/err")" = 3 ] || die "the usage has not three examples"
code 2 "$URXE" nosuch
grep -q "urxe --help" "$URXE_DIR/err" || die "the usage does not mention urxe --help"
code 2 "$URXE" ls
grep -q "urxe run ls" "$URXE_DIR/err" || die "urxe ls: no hint to urxe run ls"
code 2 "$URXE" run --fabric
code 2 "$URXE" run --nosuch ls
grep -q "urxe: unrecognized" "$URXE_DIR/err" || die "the message does not start with urxe:"
grep -q "^usage: urxe run " "$URXE_DIR/err" || die "the usage is missing"
code 2 "$URXE" run --fabric a/b ls
code 2 "$URXE" run --fabric .. ls
code 2 "$URXE" info extra
code 2 "$URXE" doctor extra
code 0 "$URXE" --help
[ ! -s "$URXE_DIR/err" ] || die "the help is on stderr"
for command in run env info rm port doctor trace top why bench lesson; do
	code 0 "$URXE" $command --help
	grep -q "^usage: urxe $command " "$URXE_DIR/out" || die "$command --help"
	[ ! -s "$URXE_DIR/err" ] || die "the help is on stderr"
done
code 0 "$URXE" --version
code 127 "$URXE" run ib_nosuch_bw
grep -q "apt install perftest" "$URXE_DIR/err" || die "no hint to the package"
mkdir "$URXE_DIR/shut"
: >"$URXE_DIR/shut/file"
# directories that execvp cannot read do not count
code 127 env PATH="$URXE_DIR/shut/file:$PATH" "$URXE" run -- no-such-program
code 127 "$URXE" run -- /nosuch/program
grep -q "no file /nosuch/program" "$URXE_DIR/err" || die "the message lacks the path"
program=$(realpath "$URXE")
(cd / && code 127 "$program" run -- ./nosuch)
grep -q "no file /nosuch" "$URXE_DIR/err" || die "the message lacks the path"
code 127 "$URXE" run -- no-such-program
grep -qF "directories of PATH: $PATH" "$URXE_DIR/err" || die "the message lacks PATH"
# /dev/shm may be mounted with noexec
script=$(mktemp)
printf '#!/nosuch/sh\n' >"$script"
chmod +x "$script"
code 127 "$URXE" run -- "$script"
grep -q "interpreter /nosuch/sh" "$URXE_DIR/err" || die "the message lacks the interpreter"
rm "$script"
code 1 "$URXE" trace nosuch
grep -q "no file /.*/nosuch" "$URXE_DIR/err" || die "the message lacks the path"

# proposals for misspelled words
meant() {
	word=$1
	shift
	code 2 "$@"
	grep -q "did you mean $word?" "$URXE_DIR/err" ||
		die "$*: $(cat "$URXE_DIR/err")"
}
meant run "$URXE" rn
meant --help "$URXE" --hlep
meant --fabric "$URXE" run --fabic x ls
meant warning "$URXE" run --check=warnign ls
meant junit "$URXE" run --check --report=jnit ls
meant place "$URXE" run --adversary=1,plac=3 ls
meant place "$URXE" run --adversary=plce=3 ls
meant hardware "$URXE" run --adversary=hardwar ls
meant hardware "$URXE" run --adversary=hardwr,sweep:3 ls
code 2 "$URXE" run --memlock x ls
grep -q '"x": the only value is enforce' "$URXE_DIR/err" || die "--memlock"
meant ibv_reg_mr "$URXE" run --fault ibv_regmr:ENOMEM ls
meant RETRY_EXC_ERR "$URXE" run --fault wr:RETRY_EXC ls
meant down "$URXE" port dwon
meant waits "$URXE" top --sort wait
code 2 "$URXE" run --nothing-like-it ls
grep -q "did you mean" "$URXE_DIR/err" && die "an unexpected proposal"
code 126 "$URXE" run -- /etc/passwd
code 7 "$URXE" run -- sh -c 'exit 7'

# a checkout in a path that LD_PRELOAD cannot contain
top=$(dirname "$0")/../..
mkdir "$URXE_DIR/a b"
cp -r "$top/quickstart" "$top/check" "$top/.ci" "$URXE_DIR/a b"
for script in quickstart check; do
	# run by the interpreter: /dev/shm may be mounted noexec
	code 1 timeout 60 bash "$URXE_DIR/a b/$script"
	grep -q "LD_PRELOAD cannot contain the path" "$URXE_DIR/err" ||
		die "$script in a path with a space"
done
rm -r "$URXE_DIR/a b"

# options after the command belong to the command
has "a --fabric b" "$URXE" run echo a --fabric b
has "other" "$URXE" run --fabric other sh -c 'echo $URXE_FABRIC'
has "is t" sh -c "$URXE run sh -c 'echo is \$URXE_FABRIC'"
has "is default" env -u URXE_FABRIC "$URXE" run sh -c 'echo is $URXE_FABRIC'
has "host 1" "$URXE" run --with-host-devices sh -c 'echo host $URXE_HOST_DEVICES'
has "host ." env URXE_HOST_DEVICES=1 "$URXE" run \
	sh -c 'echo host ${URXE_HOST_DEVICES-.}'
has "adopt 1" "$URXE" run --adopt sh -c 'echo adopt $URXE_ADOPT'
has "adopt 1" sh -c 'eval "$($URXE env --adopt)"; echo adopt $URXE_ADOPT'
has "wire 127.0.0.1" "$URXE" run --wire=127.0.0.1 sh -c 'echo wire $URXE_WIRE'
has "wire 127.0.0.1" "$URXE" run --wire=lo sh -c 'echo wire $URXE_WIRE'
has "wire 127.0.0.1" sh -c 'eval "$($URXE env --wire=lo)"; echo wire $URXE_WIRE'
has "wire ." "$URXE" run sh -c 'echo wire ${URXE_WIRE-.}'
for address in 192.0.2.7 nosuch0 ''; do
	"$URXE" run --wire=$address true 2>"$URXE_DIR/said" &&
		die "--wire=$address is accepted"
	grep -q "^urxe: --wire: .*\"$address\" is not an interface" "$URXE_DIR/said" ||
		die "--wire=$address: $(cat "$URXE_DIR/said")"
	rm "$URXE_DIR/said"
done
has "adopt ." "$URXE" run sh -c 'echo adopt ${URXE_ADOPT-.}'
out=$(LD_PRELOAD=libdl.so.2 "$URXE" run sh -c 'echo $LD_PRELOAD' 2>/dev/null)
case $out in
*liburxe-kshim.so:libdl.so.2) ;;
*) die "LD_PRELOAD is $out" ;;
esac
# the library is preloaded only once
out=$(run "$URXE" run sh -c 'echo $LD_PRELOAD')
case $out in
*kshim*kshim*) die "LD_PRELOAD is $out" ;;
esac

# urxe env: the variables that urxe run sets, and no others
export ASAN_OPTIONS="it's=1"
"$URXE" run --fabric e --with-host-devices env | grep -v ^URXE_RUN= |
	sort >"$URXE_DIR/by_run"
(
	eval "$("$URXE" env --fabric e --with-host-devices)"
	env
) | sort >"$URXE_DIR/by_env"
cmp "$URXE_DIR/by_run" "$URXE_DIR/by_env" ||
	die "$(diff "$URXE_DIR/by_run" "$URXE_DIR/by_env")"
has "none" env URXE_HOST_DEVICES=1 sh -c \
	'eval "$($URXE env)"; echo ${URXE_HOST_DEVICES-none}'
"$URXE" run --fabric e env | grep -E '^(LD_P|URXE_[FPD]|ASAN_|TSAN_)' |
	sort >"$URXE_DIR/by_run"
"$URXE" env --fabric e --github | sort >"$URXE_DIR/by_env"
has "URXE_HOST_DEVICES=" comm -13 "$URXE_DIR/by_run" "$URXE_DIR/by_env"
has "URXE_ADVERSARY=" comm -13 "$URXE_DIR/by_run" "$URXE_DIR/by_env"
has "URXE_DEVICES=" comm -13 "$URXE_DIR/by_run" "$URXE_DIR/by_env"
has "URXE_PROFILE=" comm -13 "$URXE_DIR/by_run" "$URXE_DIR/by_env"
has "URXE_LINK_LAYER=" comm -13 "$URXE_DIR/by_run" "$URXE_DIR/by_env"
has "URXE_SM=" comm -13 "$URXE_DIR/by_run" "$URXE_DIR/by_env"
has "URXE_CLUSTER=" comm -13 "$URXE_DIR/by_run" "$URXE_DIR/by_env"
has "URXE_HOST=" comm -13 "$URXE_DIR/by_run" "$URXE_DIR/by_env"
has "URXE_TIMING=" comm -13 "$URXE_DIR/by_run" "$URXE_DIR/by_env"
has "URXE_TRACE=" comm -13 "$URXE_DIR/by_run" "$URXE_DIR/by_env"
has "URXE_ADOPT=" comm -13 "$URXE_DIR/by_run" "$URXE_DIR/by_env"
has "URXE_WIRE=" comm -13 "$URXE_DIR/by_run" "$URXE_DIR/by_env"
has "URXE_TRACE_PAYLOAD=" comm -13 "$URXE_DIR/by_run" "$URXE_DIR/by_env"
[ "$(comm -3 "$URXE_DIR/by_run" "$URXE_DIR/by_env" | wc -l)" = 13 ] ||
	die "$(diff "$URXE_DIR/by_run" "$URXE_DIR/by_env")"
code 1 env "ASAN_OPTIONS=a=1
b=2" "$URXE" env --github
[ ! -s "$URXE_DIR/out" ] || die "incomplete output on an error"
unset ASAN_OPTIONS
has "is 7,loss=2" sh -c \
	'eval "$($URXE env --adversary=7,loss=2)"; echo is $URXE_ADVERSARY'
has "is 16 $URXE_DIR/traced" sh -c 'eval "$($URXE env \
	--trace $URXE_DIR/traced --trace-payload=16)"
	echo is $URXE_TRACE_PAYLOAD $URXE_TRACE'
code 2 "$URXE" env --trace-payload
code 2 "$URXE" env --adversary=7,nosuch=2
code 2 "$URXE" env --adversary=sweep:2
[ ! -s "$URXE_DIR/out" ] || die "incomplete output on an error"
code 2 "$URXE" env --fabric a/b
code 2 "$URXE" env extra

if [ -x "$static" ]; then
	code 0 "$URXE" run "$static"
	grep -q "statically linked" "$URXE_DIR/err" || die "no warning is printed"
fi

# the dynamic linker ignores LD_PRELOAD in set-user-ID programs; with nosuid or
# no_new_privs the kernel ignores such IDs
other=$(mktemp)
cp "$(command -v id)" "$other"
if chown 65534 "$other" 2>/dev/null && chmod 4755 "$other" &&
	[ "$("$other" -u 2>/dev/null)" = 65534 ]; then
	code 0 "$URXE" run "$other"
	grep -q "set-user-ID" "$URXE_DIR/err" || die "no warning is printed"
	chown 0 "$other"
	chmod 4755 "$other"
	code 0 "$URXE" run "$other"
	! grep -q "set-user-ID" "$URXE_DIR/err" || die "set-user-ID warning for the same user"
fi
rm -f "$other"

# two fabrics, a live context and one of a killed process
has "no fabric in" "$URXE" info
"$URXE" run --fabric one "$hold" >"$URXE_DIR/pid" &
one=$!
"$URXE" run --fabric two "$hold" >/dev/null &
two=$!
two_hold() {
	[ "$("$URXE" info | grep -c "shim-hold ")" = 2 ]
}
await "no contexts" two_hold
has "fabric one" "$URXE" info
has "$one shim-hold" "$URXE" info --fabric one
has "contexts: 1 of 512" "$URXE" info --fabric two
has "GID 0 (v1), 1 (v2): fe80::" "$URXE" info --fabric two
[ "$(ls "$URXE_DIR/one/ctx" | wc -l)" = 1 ] || die "no arena"
kill -9 $one
wait $one 2>/dev/null
has "1 dead context was freed" "$URXE" info --fabric one
has "contexts: 0 of 512" "$URXE" info --fabric one
[ -z "$(ls "$URXE_DIR/one/ctx" "$URXE_DIR/one/ev" | grep -v :)" ] ||
	die "left: $(ls "$URXE_DIR/one/ctx" "$URXE_DIR/one/ev")"
kill -9 $two
wait $two 2>/dev/null
[ "$("$URXE" info --names | tr '\n' ' ')" = "one two " ] || die "names"
code 2 "$URXE" info --names --fabric one
code 1 "$URXE" info --fabric nosuch
grep -q "no fabric nosuch in $URXE_DIR; existing: one, two" "$URXE_DIR/err" ||
	die "the fabrics are not listed: $(cat "$URXE_DIR/err")"
grep -q doctor "$URXE_DIR/err" && die "a hint to urxe doctor although no fabric is damaged"
code 1 "$URXE" info --fabric tow
grep -q "did you mean two?" "$URXE_DIR/err" || die "no proposal of two"
code 2 "$URXE" why --fabric nosuch
grep -q "existing: one, two" "$URXE_DIR/err" || die "the fabrics are not listed"
code 1 "$URXE" doctor --fabric nosuch
grep -q "existing: one, two" "$URXE_DIR/out" || die "the fabrics are not listed"

# urxe doctor
"$URXE" doctor >"$URXE_DIR/out" || grep -q "^FAIL" "$URXE_DIR/out" ||
	die "exit code of urxe doctor"
grep -qvE "^(ok|warn|FAIL) " "$URXE_DIR/out" && die "urxe doctor prints other lines than checks"
for word in /dev/shm huge memlock Yama process_vm libibverbs provider \
	"preload library" fabric; do
	grep -q "$word" "$URXE_DIR/out" || [ "$word" = /dev/shm ] ||
		die "urxe doctor does not report $word"
done
mkdir -m 755 "$URXE_DIR/open"
code 1 env URXE_FABRIC=open "$URXE" doctor
grep -q "^FAIL  fabric .*mode 0755" "$URXE_DIR/out" || die "a fabric with mode 0755 is not reported"
URXE_FABRIC=open run ls /sys/class/infiniband >"$URXE_DIR/out" 2>&1 &&
	die "a fabric with mode 0755 was used"
grep -q "mode 0700" "$URXE_DIR/out" || die "the reason is not printed: $(cat "$URXE_DIR/out")"
