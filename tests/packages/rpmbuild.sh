#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# rpmbuild.sh TARBALL [OPTION...]
#
# rpmbuild builds the packages of the spec in the tarball; "urxe" must work where they
# are unpacked.  Fedora has the macros and the required packages; on other
# distributions the macros are defined here, and the requirements are ignored.

# shellcheck source=tests/packages/lib.sh
. "$(dirname "$0")/lib.sh"

tarball=$(realpath "$1")
shift
command -v rpmbuild >/dev/null || skip 'rpmbuild is not installed'
unset URXE_DIR # the trap removes only our own directory
dir=$(mktemp -d)
trap 'rm -rf "$dir" "${URXE_DIR:-}"' EXIT

options=()
if [[ $(rpm --eval '%meson') == %meson ]]; then
	# The macros of Fedora's meson package, and its flags
	cat >"$dir/macros" <<-'END'
	%_libdir %{_prefix}/lib64
	%optflags -O2 -flto=auto -ffat-lto-objects -g -Wall -Werror=format-security -Wp,-U_FORTIFY_SOURCE,-D_FORTIFY_SOURCE=3 -fstack-protector-strong
	%meson CFLAGS="%{optflags}" LDFLAGS="-Wl,-z,relro -Wl,-z,now" meson setup --buildtype=plain --prefix=%{_prefix} --libdir=%{_libdir} --auto-features=enabled . build
	%meson_build ninja -C build
	%meson_install DESTDIR=%{buildroot} meson install -C build --no-rebuild
	%meson_test meson test -C build --print-errorlogs
	END
	options=(--nodeps --load "$dir/macros")
fi

rpmbuild -tb "${options[@]}" "$@" --define "_topdir $dir" "$tarball" \
	>"$dir/log" 2>&1 </dev/null || {
	tail -n 60 "$dir/log"
	die 'rpmbuild'
}
rpm=$(find "$dir/RPMS" -name 'urxe-[0-9]*.rpm')
rpm -qp --list --requires --provides "$rpm" 2>/dev/null
rpm -qp --provides "$rpm" 2>/dev/null | grep 'liburxe' &&
	die 'the package provides its private libraries'

# Unpack it without cpio, which some systems lack.
cp "$rpm" "$dir/urxe.rpm"
rpm2archive "$dir/urxe.rpm" || die 'rpm2archive'
mkdir "$dir/root"
tar -C "$dir/root" -xf "$dir/urxe.rpm.tgz" || die 'unpacking'
export PATH="$dir/root/usr/bin:$PATH"
urxe --version || die 'urxe --version'
if command -v ibv_rc_pingpong >/dev/null; then
	URXE_DIR=$(mktemp -d /dev/shm/urxe-test-XXXXXX) || die '/dev/shm'
	export URXE_DIR
	"$(dirname "$0")/../../debian/tests/pingpong" || die 'pingpong'
fi
