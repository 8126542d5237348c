#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# trace.sh URXE: no file outside the fabric is created, changed or removed
URXE=$1
. "$(dirname "$0")/lib.sh"
have strace || skip "strace is not installed"
log=$URXE_DIR/log
calls=creat,mkdir,mkdirat,mknod,mknodat,symlink,symlinkat,link,linkat
calls=$calls,rename,renameat,renameat2,unlink,unlinkat,rmdir,chmod,fchmodat
strace -f -o "$log" -e trace="$calls,open,openat" \
	"$URXE" run -- sh -c 'cat /sys/class/infiniband/urxe0/node_type
		exec ls /dev/infiniband' >/dev/null 2>&1 ||
	skip "strace does not work here"
grep -q mkdir "$log" || skip "strace reports no system calls"
# ignore the targets of symbolic links
sed -i 's/symlink(at)?\("[^"]*"/symlink\1(/' -E "$log"
# ignore linkat of unnamed files (O_TMPFILE)
sed -i -E 's/linkat\(AT_FDCWD(<[^>]*>)?, "\/proc\/self\/fd\/[0-9]+"/linkat(/' "$log"
# paths relative to the directory of the fabric have no leading slash
bad=$(grep -E 'O_CREAT|O_WRONLY|O_RDWR|^[0-9]+ +(mk|sym|link|re|un|rm|ch)' \
	"$log" | grep '"/' | grep -v -e "\"$URXE_DIR" -e '"/dev/null"' \
	-e '"/dev/tty"' -e ' = -1 ')
[ -z "$bad" ] || die "touched: $bad"
[ "$(ls "$URXE_DIR")" = log ] || die "left: $(ls "$URXE_DIR")"
