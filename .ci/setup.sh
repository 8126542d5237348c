# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# What ./quickstart and ./check share: packages, building.  Sourced, not run.

say()
{
	printf '%s\n' "$*" >&2
}

have_package()
{
	[[ $(dpkg-query -W -f='${Status}' "$1" 2>/dev/null) == \
		'install ok installed' ]]
}

# Names of the packages among the arguments that are not installed.
missing_packages()
{
	local p

	for p in "$@"; do
		have_package "$p" || echo "$p"
	done
}

# How to become root: prints the command's words, or fails.
root_prefix()
{
	if [[ $(id -u) == 0 ]]; then
		return 0
	fi
	command -v sudo >/dev/null || return 1
	if [[ -t 0 && -z ${CI-} ]]; then
		echo sudo
	else
		sudo -n true 2>/dev/null || return 1
		echo sudo -n
	fi
}

apt_install()
{
	local -a root
	local prefix

	prefix=$(root_prefix) || return 1
	read -ra root <<<"$prefix"
	# Images for containers leave /usr/share/doc out, but pyverbs has its
	# tests there.
	"${root[@]}" env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq --no-install-recommends \
		-o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
		-o Dpkg::Options::='--path-include=/usr/share/doc/rdma-core/*' \
		"$@" </dev/null >/dev/null
}

# The packages for each kind of work.
packages_for()
{
	case $1 in
	'building')
		echo gcc libc6-dev meson ninja-build pkg-config \
			libibverbs-dev libnl-3-dev libnl-route-3-dev
		;;
	'the clients')
		echo ibverbs-utils perftest
		;;
	'the tests')
		echo check clang fio infiniband-diags iperf iproute2 \
			libclang-rt-14-dev libfabric-bin librdmacm-dev \
			netcat-traditional \
			openmpi-bin procps python3-pyverbs qperf rdma-core \
			rdmacm-utils shellcheck spin ucx-utils
		;;
	esac
}

# want_packages KIND: install what is missing.  Fails, after saying what is
# missing, if some still are.
want_packages()
{
	local kind=$1 prefix p
	local -a wanted missing root

	read -ra wanted < <(packages_for "$kind")
	if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null
	then
		say "No apt-get here: going on with what is installed."
		say "Packages for $kind, by their Debian names: ${wanted[*]}"
		return 0
	fi
	mapfile -t missing < <(missing_packages "${wanted[@]}")
	[[ ${#missing[@]} -gt 0 ]] || return 0

	if ! prefix=$(root_prefix); then
		say "Missing packages for $kind: ${missing[*]}"
		say "You are not root and sudo does not let you in.  Ask for:"
		say "  apt-get install --no-install-recommends ${missing[*]}"
		return 1
	fi
	read -ra root <<<"$prefix"
	say "Installing packages for $kind: ${missing[*]}"
	if [[ -z ${apt_updated-} ]]; then
		"${root[@]}" apt-get update -qq </dev/null >&2 ||
			say "apt-get update failed; trying with the old lists."
		apt_updated=1
	fi
	if ! apt_install "${missing[@]}"; then
		# One unknown name must not keep the others away.
		for p in "${missing[@]}"; do
			apt_install "$p" || true
		done
	fi
	mapfile -t missing < <(missing_packages "${wanted[@]}")
	[[ ${#missing[@]} -gt 0 ]] || return 0
	say "Could not install, for $kind: ${missing[*]}"
	return 1
}

# meson_configure DIR [OPTION...]: configure DIR if it is not yet.
meson_configure()
{
	local dir=$1
	shift

	if [[ -f $dir/build.ninja ]] &&
		! meson configure "$dir" "$@" >/dev/null 2>&1; then
		rm -rf "$dir"
	fi
	if [[ ! -f $dir/build.ninja ]]; then
		rm -rf "$dir"
		meson setup "$dir" "$@" || return 1
	fi
}

# meson_build DIR [OPTION...]: the same, and build it.
meson_build()
{
	meson_configure "$@" || return 1
	ninja -C "$1" </dev/null
}

# Is there all that a build needs?  Says what is not.
can_build()
{
	local v p ok=0

	for p in "${CC:-gcc}" ninja pkg-config; do
		if ! command -v "$p" >/dev/null; then
			say "$p is missing."
			ok=1
		fi
	done
	for p in libibverbs libnl-3.0 libnl-route-3.0; do
		if ! pkg-config --exists "$p" 2>/dev/null; then
			say "$p is missing (no $p.pc for pkg-config)."
			ok=1
		fi
	done
	if ! v=$(meson --version 2>/dev/null); then
		say "meson is missing; urxe is built with meson 1.0 or newer."
		ok=1
	elif [[ $(printf '%s\n1.0.0\n' "$v" | sort -V | head -n 1) != 1.0.0 ]]
	then
		say "meson $v is too old: urxe needs 1.0 (Debian 12, Ubuntu 24.04)."
		ok=1
	fi
	return "$ok"
}

# A place for fabrics that nobody else uses.  The caller removes $URXE_DIR.
own_fabric()
{
	unset URXE_FABRIC
	URXE_DIR=$(mktemp -d /dev/shm/urxe-run.XXXXXX 2>/dev/null) ||
		URXE_DIR=$(mktemp -d /tmp/urxe-run.XXXXXX) || return 1
	export URXE_DIR
}
