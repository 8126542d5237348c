# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2317,SC2329 # "step" calls the functions
#
# The parts of "./check --long": long_PART is the part PART.  Each takes less than 80
# minutes on two idle cores; docs/contributing.md has a table of them.  A part does
# not depend on the results of another part.  Sourced, not run.

# In the order in which they run
long_parts=(suites sanitizers soak seeds clients fuzz wire rxe packages distros
	steady1 steady2 steady3 steady4)

gcc_build()
{
	CC=$gcc step 'build with gcc' meson_build build-gcc "${strict[@]}"
}

# All meson tests, also those that ./check omits; some suites with adoption, and in
# containers.
long_suites()
{
	gcc_build || return
	meson_test build-gcc --setup long --num-processes "$jobs"
	URXE_ADOPT=1 meson_test build-gcc --suite verbs --suite cm \
		--suite clients --num-processes "$jobs"
	step 'verbs tests in containers' verbs_in_containers
	CC=clang step 'build with clang' meson_build build-clang "${strict[@]}"
	step 'build for aarch64' tests/cross/compile build-aarch64
}

# All suites of C programs with ASan and UBSan; all suites for TSan
long_sanitizers()
{
	local -x URXE_TEST_LONG=1

	URXE_FUZZ_SECONDS=300 asan unit verbs adopted bounce cm adversary faults \
		referee zoo litmus parse sanitized soak
	tsan races-long one-thread
}

long_soak()
{
	gcc_build || return
	step 'soak, 8 processes, 10 minutes' soak_long
	step 'soak under the adversary and the referee, 4 minutes' \
		soak_adversary
}

long_seeds()
{
	gcc_build || return
	step 'the zoo, 1000 seeds for each corrected program' zoo_seeds
	step 'litmus tests, ten times as many seeds' litmus_seeds
	step 'verbs tests, five seeds of the adversary' verbs_adversary
	step 'single cases in random order, two busy loops' \
		tests/steady --cases -t 1200 build-gcc
}

long_clients()
{
	gcc_build || return
	step 'stock clients, ten seeds for each' clients_seeds -n 10
	step 'stock clients, checked' clients_seeds -r -n 0
	step 'stock clients, three seeds, checked' clients_seeds -r -n 3
}

# libFuzzer, five minutes for each parser
long_fuzz()
{
	local parser
	local -a built=()

	can_fuzz || return
	CC=clang step 'configure with libFuzzer' meson_configure build-fuzzer \
		-Dtests=enabled -Dlibfuzzer=true -Db_lundef=false \
		-Db_sanitize=address,undefined \
		-Dc_args=-fsanitize=fuzzer-no-link || return
	for parser in netlink uverbs ucma environment faults wire host; do
		step "build the harness of $parser" \
			ninja -C build-fuzzer "$(harness_program "$parser")" \
			</dev/null && built+=("$parser")
	done
	parse_all ${built[@]+"${built[@]}"}
}

long_wire()
{
	gcc_build || return
	step 'the wire, stock clients' wire_clients
	step 'the wire, stock clients, bad cable' wire_clients_bad
}

long_rxe()
{
	gcc_build || return
	step 'the wire, with a kernel that has rxe' wire_rxe
}

long_packages()
{
	local base=/var/tmp/urxe-distros/bookworm.tar

	# an image of urxe, on the base system of tests/distros if that exists
	[[ -e $base ]] || base=
	# shellcheck disable=SC2086 # no word without a base
	step 'the container image, in two containers' tests/ci/image.sh $base
	step 'the tarball of a release' packaging/release-check --dry
	if can_debootstrap; then
		step 'the life cycle of the Debian package' \
			tests/distros/run -c tests/packages/chroot bookworm
	fi
}

# ./check on other releases of Debian, in containers
long_distros()
{
	local release

	can_debootstrap || return
	for release in bookworm trixie sid; do
		step "Debian $release" tests/distros/run -C "$release"
	done
}

# Each test of ./check 20 times: five times in each of four parts, which have
# different seeds.
steady()
{
	gcc_build && configure_asan && configure_tsan &&
		step 'build with ASan and UBSan' \
			build_suites build-asan "${asan_suites[@]}" &&
		step 'build with TSan' build_suites build-tsan unit races ||
		return
	export_asan_options
	step 'five rounds in random order, two busy loops' \
		tests/steady -n 5 build-gcc \
		"build-asan:$(IFS=,; echo "${asan_suites[*]}")" \
		build-tsan:unit,races
}

long_steady1()
{
	steady
}

long_steady2()
{
	steady
}

long_steady3()
{
	steady
}

long_steady4()
{
	steady
}

can_debootstrap()
{
	[[ $(id -u) == 0 ]] && command -v debootstrap >/dev/null && return
	skip 'chroots: they need root and debootstrap'
	return 1
}

can_fuzz()
{
	local nothing='int LLVMFuzzerTestOneInput(void);
		int LLVMFuzzerTestOneInput(void) { return 0; }'

	clang -x c -fsanitize=fuzzer -o /dev/null - <<<"$nothing" 2>/dev/null &&
		return
	skip "clang's libFuzzer is not installed"
	return 1
}

soak_long()
{
	tests/in-fabric build-gcc/tools/urxe build-gcc/tests/soak/soak \
		-H -n 8 -t 600
}

# The soak with the adversary, and with the faults that it tolerates.  The soak has
# no bugs, so the referee must report nothing, except that the soak destroys QPs
# whose WRs have failed.
soak_adversary()
{
	local dir seed status=0
	local -x URXE_CHECK=warning URXE_CHECK_LOG URXE_CHECK_SUPPRESSIONS
	local -x URXE_ADVERSARY URXE_FAULTS=

	dir=$(mktemp -d) || return 1
	URXE_CHECK_LOG=$dir/log
	URXE_CHECK_SUPPRESSIONS=$dir/suppressions
	echo 'error-unpolled:soak' >"$URXE_CHECK_SUPPRESSIONS"
	for seed in 1 2 3 4; do
		URXE_ADVERSARY=$seed,loss=0
		[[ $seed != 4 ]] || URXE_FAULTS='
wr:type=RC:op=SEND,RDMA_READ:p=0.002:RETRY_EXC_ERR
wr:type=RC:op=SEND:p=0.002:REM_OP_ERR'
		tests/in-fabric build-gcc/tools/urxe build-gcc/tests/soak/soak \
			-H -t 60 || status=1
	done
	if [[ -s $URXE_CHECK_LOG ]]; then
		cat "$URXE_CHECK_LOG"
		status=1
	fi
	rm -rf "$dir"
	return "$status"
}

zoo_seeds()
{
	tests/in-fabric build-gcc/tools/urxe build-gcc/tests/zoo/zoo -q
}

litmus_seeds()
{
	tests/in-fabric build-gcc/tools/urxe build-gcc/tests/litmus/litmus \
		-q -x 10 tests/litmus/*.litmus
}

# under_adversary OPTIONS NAME...: tests of the suite verbs, five seeds each.
under_adversary()
{
	local options=$1 name seed
	shift

	for name; do
		for seed in 1 2 3 4 5; do
			URXE_ADVERSARY=$seed,$options tests/in-fabric \
				build-gcc/tools/urxe \
				"build-gcc/tests/verbs/verbs-$name" || {
				say "$name with URXE_ADVERSARY=$seed,$options"
				return 1
			}
		done
	done
}

# Verbs tests that rely only on the specification; then those that expect that
# bytes without data remain 0, or that arming a CQ with completions raises an event.
# Omitted are "cq_ex" and "send_first" (they expect WRs to complete at once),
# "stopped_requester" (it expects a WR to stop at a certain place), and tests of
# features that this libibverbs lacks.
verbs_adversary()
{
	under_adversary loss=0 \
		ah async async_qp atomic_write counters cq descriptors device \
		dm dmabuf errno fd_hygiene files flush fork handles import kill \
		limits mcast mr mw no_thread null_mr one_cpu order \
		parent_domain pd path port qp_ex qp_state rc_atomic rereg retry \
		rnr srq srq_many stopped threads uc ud why xrc xrc_rules &&
		under_adversary loss=0,fill=0,arm=0,wake=0 \
			comp_channel odp rc_errors rc_rdma rc_send resize_cq
}

clients_seeds()
{
	tests/in-fabric -n build-gcc/tools/urxe tests/adversary/stock.sh \
		-c build-gcc/tests/cm/cmstat "$@" all
}

# wire_clients [OPTION...]: clients on two hosts; options of tests/wire/hosts
wire_clients()
{
	CMSTAT=build-gcc/tests/cm/cmstat tests/wire/hosts "$@" \
		-l build-gcc/tests/wire/wire-link build-gcc/tools/urxe \
		tests/wire/clients.sh pingpong perftest libfabric ucx openmpi
}

wire_clients_bad()
{
	WIRE_LOSES=1 wire_clients -m 1500 -f '-l 1 -r 5 -d 1 -t 1'
}

# The other host uses rxe of a User-Mode Linux kernel, which is built once.
wire_rxe()
{
	local kernel

	tests/wire/rxe-kernel || return
	kernel=${URXE_RXE_DIR:-/var/tmp/urxe-rxe}/linux
	# an absolute path: it runs in another mount namespace
	CMSTAT=$PWD/build-gcc/tests/cm/cmstat tests/wire/hosts -k "$kernel" \
		build-gcc/tools/urxe tests/wire/rxe.sh
}

# The verbs tests in containers.  "stopped" needs more device memory than containers
# have, "no_thread" needs process_vm_readv.
verbs_in_containers()
{
	local -a tests

	mapfile -t tests < <(find build-gcc/tests/verbs -maxdepth 1 -type f \
		-name 'verbs-*' ! -name verbs-stopped \
		! -name verbs-no_thread -executable)
	URXE_TEST_LONG=1 tests/ci/container.py build-gcc/tools/urxe "${tests[@]}"
}

# Print the path of a harness; "host" is a complete host with a wire.
harness_program()
{
	if [[ $1 == host ]]; then
		echo tests/wire/fuzz/wire-host
	else
		echo "tests/parse/parse-$1"
	fi
}

# parse_for PARSER SECONDS: run libFuzzer on the corpus of a parser.
parse_for()
{
	local dir corpus=tests/parse/corpus/$1 status

	[[ $1 != host ]] || corpus=tests/wire/fuzz/corpus
	dir=$(mktemp -d) || return 1
	cp "$corpus"/* "$dir"
	"build-fuzzer/$(harness_program "$1")" -max_total_time="$2" -timeout=30 \
		-entropic=0 -verbosity=0 -artifact_prefix="$PWD/build-fuzzer/" \
		"$dir" </dev/null
	status=$?
	rm -rf "$dir"
	return "$status"
}

# parse_all PARSER...: run the parsers, one at a time on each CPU.
parse_all()
{
	local parser dir n=0

	dir=$(mktemp -d) || return 1
	for parser; do
		if [[ $n -ge $(nproc) ]]; then
			wait -n
		fi
		n=$((n + 1))
		(
			parse_for "$parser" 300 >"$dir/$parser.out" 2>&1
			echo $? >"$dir/$parser"
		) &
	done
	wait
	for parser; do
		parsed=$dir step "libFuzzer: $parser" parse_result "$parser"
	done
	rm -rf "$dir"
}

# parse_result PARSER: print the output of its run by parse_all, and return its exit
# status.  If it has not run yet, run it.
parse_result()
{
	if [[ ${parsed-} ]]; then
		tail -n 60 "$parsed/$1.out"
		return "$(cat "$parsed/$1")"
	fi
	parse_for "$1" 300
}
