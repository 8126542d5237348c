# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Common parts of ./quickstart and ./check: packages, building.  Sourced, not run.

say()
{
	printf '%s\n' "$*" >&2
}

# Print the command that runs a program as root, or fail.
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
	# Container images omit /usr/share/doc, but the tests of pyverbs are
	# tests there.
	"${root[@]}" env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq --no-install-recommends \
		-o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
		-o Dpkg::Options::='--path-include=/usr/share/doc/rdma-core/*' \
		"$@" </dev/null >/dev/null
}

# The packages for each kind of work, by their names in Debian and Ubuntu (apt),
# Fedora (dnf), openSUSE (zypper), Alpine (apk) and Arch (pacman).  A dash: part of
# another package, or not available.
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
	hwloc-nox           hwloc               hwloc               hwloc          hwloc
	infiniband-diags    infiniband-diags    infiniband-diags    -              -
	iperf               iperf               iperf               iperf          iperf
	iproute2            iproute             iproute2            iproute2       iproute2
	libfabric-bin       libfabric           libfabric           -              libfabric
	libc6-dev-arm64-cross  -                -                   -              -
	librdmacm-dev       -                   -                   -              -
	lintian             -                   -                   -              -
	netcat-traditional  -                   -                   -              -
	nftables            nftables            nftables            nftables       nftables
	nodejs              nodejs              nodejs              nodejs         nodejs
	npm                 npm                 npm-default         npm            npm
	opensm              opensm              opensm              -              -
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

# packages_for KIND [MANAGER]: print one name a line.
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

# Print the package manager of this system.
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

# Print the command that installs packages.
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
	# node may come from another package, which conflicts with Debian's
	[[ $2 != npm ]] || ! command -v npm >/dev/null || return 0
	case $1 in
	apt) [[ $(dpkg-query -W -f='${Status}' "$2" 2>/dev/null) == \
		'install ok installed' ]] ;;
	dnf | zypper) rpm -q --whatprovides "$2" ;;
	apk) apk info -e "$2" ;;
	pacman) pacman -Q "$2" ;;
	esac >/dev/null 2>&1
}

# missing_packages KIND MANAGER: print the packages that are not installed.
missing_packages()
{
	local p

	for p in $(packages_for "$1" "$2"); do
		have_package "$2" "$p" || echo "$p"
	done
}

# want_packages KIND: install missing packages with apt, or print the command that
# does so.  Fail if packages are still missing, and list them.
want_packages()
{
	local kind=$1 manager prefix p
	local -a missing root

	if ! manager=$(package_manager); then
		mapfile -t missing < <(packages_for "$kind")
		say "No known package manager: continuing with the installed packages."
		say "Packages for $kind (Debian names): ${missing[*]}"
		return 0
	fi
	mapfile -t missing < <(missing_packages "$kind" "$manager")
	[[ ${#missing[@]} -gt 0 ]] || return 0

	if [[ $manager != apt ]] || ! prefix=$(root_prefix); then
		say "Missing packages for $kind: ${missing[*]}"
		[[ $manager != apt ]] ||
			say "Cannot install them: not root, and sudo is not permitted."
		say "Run as root:"
		say "  $(install_line "$manager") ${missing[*]}"
		return 1
	fi
	read -ra root <<<"$prefix"
	say "Installing packages for $kind: ${missing[*]}"
	if [[ -z ${apt_updated-} ]]; then
		"${root[@]}" apt-get update -qq </dev/null >&2 ||
			say "apt-get update failed; using the old package lists."
		apt_updated=1
	fi
	if ! apt_install "${missing[@]}"; then
		# one unknown name must not prevent the others
		for p in "${missing[@]}"; do
			apt_install "$p" || true
		done
	fi
	mapfile -t missing < <(missing_packages "$kind" apt)
	[[ ${#missing[@]} -gt 0 ]] || return 0
	say "Could not install packages for $kind: ${missing[*]}"
	return 1
}

# meson_configure DIR [OPTION...]: configure DIR unless it is configured.
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

# meson_build DIR [OPTION...]: configure and build DIR.
meson_build()
{
	meson_configure "$@" || return 1
	ninja -C "$1" </dev/null
}

# Check that all tools and libraries for a build are installed; list missing ones.
can_build()
{
	local v p ok=0

	for p in "${CC:-gcc}" ninja pkg-config; do
		if ! command -v "$p" >/dev/null; then
			say "$p is not installed."
			ok=1
		fi
	done
	for p in libibverbs libnl-3.0; do
		if ! pkg-config --exists "$p" 2>/dev/null; then
			say "$p is not installed (pkg-config finds no $p.pc)."
			ok=1
		fi
	done
	if ! v=$(meson --version 2>/dev/null); then
		say "meson is not installed; urxe needs meson 0.61 or newer."
		ok=1
	elif [[ $(printf '%s\n0.61\n' "$v" | sort -V | head -n 1) != 0.61 ]]
	then
		say "meson $v is too old: urxe needs 0.61 or newer (as in Ubuntu 22.04)."
		say "Type:"
		say "  python3 -m pip install --user --upgrade meson"
		ok=1
	fi
	return "$ok"
}

# Check that LD_PRELOAD can contain the path of this checkout.
can_preload()
{
	case $PWD in
	*[[:space:]:]*)
		say "LD_PRELOAD cannot contain the path of this checkout, $PWD,"
		say "which has a space or a colon; move the checkout to another directory."
		return 1
		;;
	esac
}

# Create a private directory for fabrics.  The caller removes $URXE_DIR.
own_fabric()
{
	unset URXE_FABRIC
	URXE_DIR=$(mktemp -d /dev/shm/urxe-run.XXXXXX 2>/dev/null) ||
		URXE_DIR=$(mktemp -d /tmp/urxe-run.XXXXXX) || return 1
	export URXE_DIR
}
