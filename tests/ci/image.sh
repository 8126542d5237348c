#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# image.sh [BASE.tar]
#
# Build packaging/container/Containerfile with podman, and run two containers of that
# image as in compose.yaml: with the default seccomp filter, no capabilities, a
# read-only root, and one /dev/shm of 64 MiB.  BASE.tar is a Debian root file system
# (made by debootstrap), for machines that cannot reach a registry.  This needs podman,
# root and a Debian mirror.  Exit status 77: skipped.

set -eu
checkout=$(realpath "$(dirname "$0")/../..")
image=localhost/urxe-test-$$
base=${1:+localhost/urxe-test-base-$$}
server=
work=$(mktemp -d)

skip()
{
	echo "SKIP: $*"
	exit 77
}

clean_up()
{
	[[ ! $server ]] || podman rm -f -t 0 "$server" >/dev/null || true
	podman rmi -f "$image" $base >/dev/null 2>&1 || true
	rm -rf "$work"
}

die()
{
	echo "failed: $*"
	exit 1
}

command -v podman >/dev/null || skip 'podman is not installed'
[[ ! ${1-} || -r $1 ]] || skip "no $1"
trap clean_up EXIT

# crun does not support hybrid cgroup hierarchies
podman=(podman)
[[ ! $(command -v runc) ]] || podman+=(--runtime runc)

# only limits that this user may set
run=("${podman[@]}" run --ulimit nofile=1024:1024 --ulimit nproc=1000:1000
	--network none --cap-drop ALL --read-only
	--security-opt no-new-privileges)

[[ ! $base ]] || podman import "$1" "$base" >/dev/null 2>&1
git -C "$checkout" archive HEAD | tar -C "$work" -x
podman build --isolation chroot ${base:+--pull-never --build-arg "BASE=$base"} \
	-t "$image" -f packaging/container/Containerfile "$work" \
	>"$work/log" 2>&1 || { tail -n 40 "$work/log"; die 'podman build failed'; }

"${run[@]}" --rm "$image" true 2>"$work/why" ||
	skip "podman cannot run containers here: $(cat "$work/why")"

out=$("${run[@]}" --rm "$image") || die "the default command failed: $out"
grep -q 'hca_id:.*urxe0' <<<"$out" || die "no device: $out"
out=$("${run[@]}" --rm "$image" urxe doctor) || die "doctor: $out"
out=$("${run[@]}" --rm "$image" id -u)
[[ $out != 0 ]] || die 'the user of the image is root'

server=$("${run[@]}" -d --ipc shareable "$image" \
	timeout 100 ib_write_bw -d urxe0 -F -n 1000)
for _ in {1..300}; do
	podman exec "$server" grep -q ':4853 .* 0A ' /proc/net/tcp \
		/proc/net/tcp6 2>/dev/null && break
	sleep 0.1
done
# the same network, for the TCP connection of perftest; separate other namespaces
words=("${run[@]}" --rm --ipc "container:$server")
words=("${words[@]/none/container:$server}")
out=$("${words[@]}" "$image" timeout 100 ib_write_bw -d urxe0 -F -n 1000 \
	127.0.0.1 2>&1) || die "$out $(podman logs "$server" 2>&1)"
grep -qE '^ *65536 +1000 ' <<<"$out" || die "$out"
status=$(podman wait "$server")
[[ $status == 0 ]] || die "server: $status"
size()
{
	podman image inspect --format '{{.Size}}' "$1"
}
echo "$(($(size "$image") / 1000000)) MB${base:+, of which the base has \
$(($(size "$base") / 1000000))}"
