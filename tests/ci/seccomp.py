# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A seccomp filter like the default ones of container runtimes.

It refuses the system calls that docker and podman refuse to a container without
capabilities, with the same errno.  Their filters list allowed system calls; this one
lists forbidden ones, which are fewer.  `old` is the filter that they use on kernels
before 4.8, and that some hardened clusters use: it also forbids access to the memory
of other processes.
"""

import errno
import os
import struct
import subprocess

REFUSED = """
acct add_key bpf clock_settime create_module delete_module fanotify_init
finit_module fsconfig fsmount fsopen fspick get_kernel_syms get_mempolicy
init_module io_pgetevents io_uring_enter io_uring_register io_uring_setup ioperm
iopl kcmp kexec_file_load kexec_load keyctl lookup_dcookie mbind migrate_pages
mount mount_setattr move_mount move_pages name_to_handle_at nfsservctl
open_by_handle_at open_tree perf_event_open pidfd_getfd pivot_root
process_madvise query_module quotactl quotactl_fd reboot request_key
set_mempolicy setdomainname sethostname setns settimeofday swapoff swapon sysfs
syslog umount2 unshare uselib userfaultfd ustat vhangup vmsplice
""".split()
OLD = ["process_vm_readv", "process_vm_writev", "ptrace"]
NEWEST = "futex_waitv"  # ENOSYS for later system calls, which the runtimes do not know
PERSONALITIES = [0, 8, 0x20000, 0x20008, 0xffffffff]
NEW_NAMESPACES = 0x7e020000  # flags of clone
FAMILIES = [38, 40]  # AF_ALG, AF_VSOCK

LOAD, JEQ, JGT, JSET, RET = 0x20, 0x15, 0x25, 0x45, 0x06
NR, ARCH, ARG0 = 0, 4, 16  # offsets in struct seccomp_data
ALLOW, ERRNO = 0x7fff0000, 0x00050000
ARCHES = {"x86_64": 0xc000003e, "aarch64": 0xc00000b7}


def numbers(names):
    """Return the numbers of those system calls that this architecture has."""
    source = "#include <asm/unistd.h>\n" + "".join(
        f"number {name} __NR_{name}\n" for name in names)
    out = subprocess.run(["cc", "-E", "-P", "-x", "c", "-"], input=source,
                         capture_output=True, text=True, check=True).stdout
    words = [line.split() for line in out.splitlines()
             if line.startswith("number ")]
    return {w[1]: int(w[2]) for w in words if w[2].isdigit()}


def program(old=False, more=()):
    """Return the filter for the kernel; it also refuses the system calls in `more`."""
    refused = [*REFUSED, *(OLD if old else []), *more]
    nr = numbers([*refused, NEWEST, "clone", "clone3", "personality", "socket"])
    code = []

    def insn(op, k, true=0, false=0):
        code.append(struct.pack("=HBBI", op, true, false, k))

    def refuse(error):
        insn(RET, ERRNO | error)

    def unless_call(name, length):
        insn(JEQ, nr[name], 0, length)

    insn(LOAD, ARCH)
    insn(JEQ, ARCHES[os.uname().machine], 1, 0)
    refuse(errno.EPERM)
    insn(LOAD, NR)
    insn(JGT, nr[NEWEST], 0, 1)
    refuse(errno.ENOSYS)
    unless_call("clone3", 1)
    refuse(errno.ENOSYS)
    for name in refused:
        if name in nr:
            unless_call(name, 1)
            refuse(errno.EPERM)
    unless_call("clone", 4)
    insn(LOAD, ARG0)
    insn(JSET, NEW_NAMESPACES, 0, 1)
    refuse(errno.EPERM)
    insn(RET, ALLOW)
    unless_call("socket", 2 + 2 * len(FAMILIES))
    insn(LOAD, ARG0)
    for family in FAMILIES:
        insn(JEQ, family, 0, 1)
        refuse(errno.EPERM)
    insn(RET, ALLOW)
    unless_call("personality", 2 + 2 * len(PERSONALITIES))
    insn(LOAD, ARG0)
    for persona in PERSONALITIES:
        insn(JEQ, persona, 0, 1)
        insn(RET, ALLOW)
    refuse(errno.EPERM)
    insn(RET, ALLOW)
    return b"".join(code)
