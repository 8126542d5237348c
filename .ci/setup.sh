# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# What ./quickstart and ./check share: packages, building.  Sourced, not run.

say()
{
	printf '%s\n' "$*" >&2
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

# The packages for each kind of work, by their names of Debian and Ubuntu (apt),
# Fedora (dnf), openSUSE (zypper), Alpine (apk) and Arch (pacman).  A dash: it
# comes with another of them, or there is none.
packages_table()
{
	cat <<-'END'
	[building]
	gcc                 gcc                 gcc                 gcc            gcc
	libc6-dev           glibc-devel         glibc-devel         musl-dev       -
	meson               meson               meson               meson          meson
	ninja-build         ninja-build         ninja               samurai        ninja
	pkg-config          pkgconf-pkg-config  pkgconf-pkg-config  pkgconf        pkgconf
	libibverbs-dev      rdma-core-devel     rdma-core-devel     rdma-core-dev  rdma-core
	libnl-3-dev         libnl3-devel        libnl3-devel        libnl3-dev     libnl
	-                   -                   -                   linux-headers  linux-api-headers

	[the clients]
	ibverbs-utils       libibverbs-utils    libibverbs-utils    rdma-core      rdma-core
	perftest            perftest            perftest            -              -

	[the tests]
	build-essential     -                   -                   -              -
	bubblewrap          bubblewrap          bubblewrap          bubblewrap     bubblewrap
	ccache              ccache              ccache              ccache         ccache
	check               check-devel         check-devel         check-dev      check
	chromium            chromium            chromium            chromium       chromium
	clang               clang               clang               clang          clang
	clang-format        -                   -                   -              -
	libclang-rt-dev     compiler-rt         -                   compiler-rt    compiler-rt
	cmake               cmake               cmake               cmake          cmake
	debhelper           -                   -                   -              -
	fio                 fio-engine-rdma     fio                 fio            fio
	g++                 gcc-c++             gcc-c++             g++            gcc
	gcc-aarch64-linux-gnu  -                -                   -              -
	infiniband-diags    infiniband-diags    infiniband-diags    -              -
	iperf               iperf               iperf               iperf          iperf
	iproute2            iproute             iproute2            iproute2       iproute2
	libfabric-bin       libfabric           libfabric           -              libfabric
	libc6-dev-arm64-cross  -                -                   -              -
	librdmacm-dev       -                   -                   -              -
	lintian             -                   -                   -              -
	netcat-traditional  -                   -                   -              -
	nodejs              nodejs              nodejs              nodejs         nodejs
	npm                 npm                 npm-default         npm            npm
	openmpi-bin         openmpi             openmpi             openmpi        openmpi
	pciutils            pciutils            pciutils            pciutils       pciutils
	procps              procps-ng           procps              procps-ng      procps-ng
	python3-pytest      python3-pytest      python3-pytest      py3-pytest     python-pytest
	python3-pyverbs     python3-pyverbs     python3-pyverbs     -              -
	python3-yaml        python3-pyyaml      python3-PyYAML      py3-yaml       python-yaml
	qperf               qperf               qperf               -              -
	rdma-core           rdma-core           rdma-core           -              -
	relacy-dev          -                   -                   -              -
	rdmacm-utils        librdmacm-utils     librdmacm-utils     -              -
	rpm                 rpm-build           rpm-build           -              -
	shellcheck          ShellCheck          ShellCheck          shellcheck     shellcheck
	spin                -                   -                   -              -
	strace              strace              strace              strace         strace
	tshark              wireshark-cli       wireshark           tshark         wireshark-cli
	ucx-utils           ucx                 openucx-tools       -              openucx
	valgrind            valgrind            valgrind            valgrind       valgrind

	[the applications]
	dapl2-utils         -                   -                   -              -
	libgloo-dev         -                   -                   -              -
	libiscsi-bin        libiscsi-utils      libiscsi-utils      -              libiscsi
	libmpich-dev        -                   -                   -              -
	libopenmpi-dev      -                   -                   -              -
	librpma-dev         -                   -                   -              -
	mpich               -                   -                   -              -
	qemu-block-extra    qemu-block-iscsi    qemu-block-iscsi    -              qemu-block-iscsi
	qemu-system-x86     qemu-system-x86     qemu-x86            -              qemu-system-x86
	qemu-utils          qemu-img            qemu-img            -              qemu-img
	END
}

# packages_for KIND [MANAGER]: one name a line.
packages_for()
{
	packages_table | awk -v kind="[$1]" -v manager="${2:-apt}" '
		BEGIN {
			n = split("apt dnf zypper apk pacman", managers)
			for (i = 1; i <= n; i++)
				if (managers[i] == manager)
					column = i
		}
		/^\[/ { mine = $0 == kind; next }
		mine && NF && $column != "-" { print $column }'
}

# The first of the managers of packages that this system has.
package_manager()
{
	local manager

	if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null
	then
		echo apt
		return
	fi
	for manager in dnf zypper apk pacman; do
		if command -v "$manager" >/dev/null; then
			echo "$manager"
			return
		fi
	done
	return 1
}

# What its user types to install packages.
install_line()
{
	case $1 in
	apt) echo 'apt-get install --no-install-recommends' ;;
	dnf | zypper) echo "$1 install" ;;
	apk) echo 'apk add' ;;
	pacman) echo 'pacman -S --needed' ;;
	esac
}

# have_package MANAGER NAME
have_package()
{
	# Some who package node have it there, and Debian's cannot stand beside.
	[[ $2 != npm ]] || ! command -v npm >/dev/null || return 0
	case $1 in
	apt) [[ $(dpkg-query -W -f='${Status}' "$2" 2>/dev/null) == \
		'install ok installed' ]] ;;
	dnf | zypper) rpm -q --whatprovides "$2" ;;
	apk) apk info -e "$2" ;;
	pacman) pacman -Q "$2" ;;
	esac >/dev/null 2>&1
}

# missing_packages KIND MANAGER: names of the packages that are not installed.
missing_packages()
{
	local p

	for p in $(packages_for "$1" "$2"); do
		have_package "$2" "$p" || echo "$p"
	done
}

# want_packages KIND: install what is missing, with apt, or say what to type.
# Fails, after saying what is missing, if some still are.
want_packages()
{
	local kind=$1 manager prefix p
	local -a missing root

	if ! manager=$(package_manager); then
		mapfile -t missing < <(packages_for "$kind")
		say "No known manager of packages: going on with what there is."
		say "Packages for $kind, by their Debian names: ${missing[*]}"
		return 0
	fi
	mapfile -t missing < <(missing_packages "$kind" "$manager")
	[[ ${#missing[@]} -gt 0 ]] || return 0

	if [[ $manager != apt ]] || ! prefix=$(root_prefix); then
		say "Missing packages for $kind: ${missing[*]}"
		[[ $manager != apt ]] ||
			say "You are not root and sudo does not let you in."
		say "Type, as root:"
		say "  $(install_line "$manager") ${missing[*]}"
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
	mapfile -t missing < <(missing_packages "$kind" apt)
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
	for p in libibverbs libnl-3.0; do
		if ! pkg-config --exists "$p" 2>/dev/null; then
			say "$p is missing (no $p.pc for pkg-config)."
			ok=1
		fi
	done
	if ! v=$(meson --version 2>/dev/null); then
		say "meson is missing; urxe is built with meson 0.61 or newer."
		ok=1
	elif [[ $(printf '%s\n0.61\n' "$v" | sort -V | head -n 1) != 0.61 ]]
	then
		say "meson $v is too old: urxe needs 0.61 (Ubuntu 22.04 has that)."
		say "Type:"
		say "  python3 -m pip install --user --upgrade meson"
		ok=1
	fi
	return "$ok"
}

# Can what is built in this checkout be loaded into programs?  Says if not.
can_preload()
{
	case $PWD in
	*[[:space:]:]*)
		say "LD_PRELOAD cannot hold the path of this checkout, $PWD:"
		say "it has a space or a colon in it.  Move it to another one."
		return 1
		;;
	esac
}

# A place for fabrics that nobody else uses.  The caller removes $URXE_DIR.
own_fabric()
{
	unset URXE_FABRIC
	URXE_DIR=$(mktemp -d /dev/shm/urxe-run.XXXXXX 2>/dev/null) ||
		URXE_DIR=$(mktemp -d /tmp/urxe-run.XXXXXX) || return 1
	export URXE_DIR
}
