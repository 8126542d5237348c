// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * urxe doctor: whether processes can access each other's memory (Yama,
 * process_vm_readv(2)), and the number of CPUs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor.h"

static const char cost_vm[] =
	"a thread of the owning process copies private memory: microseconds more per message, a few GB/s; device memory and shared mappings are not affected";

void check_yama(void)
{
	static const char path[] = "/proc/sys/kernel/yama/ptrace_scope";
	static const char *const meaning[] = {
		"to all processes of the same user", "to descendants only",
		"with CAP_SYS_PTRACE only", "to no process, until reboot"
	};
	char c = 0;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		ok("Yama: not active");
		return;
	}
	if (read(fd, &c, 1) != 1 || c < '0' || c > '3')
		c = 0;
	close(fd);
	if (!c)
		report(WARN, "unknown", NULL, "Yama: cannot read %s", path);
	else if (c == '0')
		ok("Yama: ptrace_scope 0: memory access is permitted %s",
		   meaning[0]);
	else
		report(WARN, "see the result for process_vm_readv",
		       "sysctl kernel.yama.ptrace_scope=0 (persistently: in /etc/sysctl.d)",
		       "Yama: ptrace_scope %c: memory access is permitted %s",
		       c, meaning[c - '0']);
}

static const char secret[] = "urxe doctor";
static char window[sizeof(secret)];

/*
 * Read the secret of process pid and write it to the window of that process.
 * Both have the same addresses there, since the children are forked.  Return
 * 0 or errno.
 */
static int reach(pid_t pid)
{
	char got[sizeof(secret)] = "";
	struct iovec here = { got, sizeof(got) };
	struct iovec there = { (void *)secret, sizeof(secret) };

	if (process_vm_readv(pid, &here, 1, &there, 1, 0) != sizeof(got))
		return errno;
	if (memcmp(got, secret, sizeof(got)))
		return EIO;
	there.iov_base = window;
	if (process_vm_writev(pid, &here, 1, &there, 1, 0) != sizeof(got))
		return errno;
	return 0;
}

/*
 * Child process: for each PID read from `in`, write the result of reach() to
 * `out`.  Exit at the end of file.
 */
static void child_main(int in, int out)
{
	pid_t pid;
	int err;

	while (read(in, &pid, sizeof(pid)) == sizeof(pid)) {
		err = reach(pid);
		if (write(out, &err, sizeof(err)) != sizeof(err))
			break;
	}
	_exit(0);
}

struct child {
	pid_t pid;
	int to, from; /* pipes to and from the child */
};

static int child_start(struct child *c)
{
	int to[2], from[2];

	if (pipe2(to, O_CLOEXEC))
		return errno;
	if (pipe2(from, O_CLOEXEC))
		goto err_close_to;
	c->pid = fork();
	if (c->pid < 0)
		goto err_close_from;
	if (!c->pid) {
		close(to[1]);
		close(from[0]);
		child_main(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	c->to = to[1];
	c->from = from[0];
	return 0;

err_close_from:
	close(from[0]);
	close(from[1]);
err_close_to:
	close(to[0]);
	close(to[1]);
	return errno;
}

static void child_stop(struct child *c)
{
	close(c->to);
	close(c->from);
	waitpid(c->pid, NULL, 0);
}

/* Have child c access the memory of process pid.  Return 0 or errno. */
static int child_access(struct child *c, pid_t pid)
{
	int err = EPIPE;

	if (write(c->to, &pid, sizeof(pid)) != sizeof(pid) ||
	    read(c->from, &err, sizeof(err)) != sizeof(err))
		return EPIPE;
	return err;
}

/*
 * Test between two sibling processes, which is the relation of two programs
 * started from one shell: neither is a descendant of the other (Yama).
 */
void check_process_vm(void)
{
	struct child a, b;
	int err;

	/*
	 * The second child inherits the pipes of the first.  It is stopped
	 * before the first one, which then reads the end of file.
	 */
	err = child_start(&a);
	if (err)
		goto out;
	err = child_start(&b);
	if (!err) {
		err = child_access(&a, b.pid);
		if (!err)
			err = child_access(&b, a.pid);
		child_stop(&b);
	}
	child_stop(&a);
out:
	if (!err)
		ok("process_vm_readv and _writev: work between processes in both directions");
	else if (err == EPERM)
		report(WARN, cost_vm,
		       "sysctl kernel.yama.ptrace_scope=0; in a container: --cap-add SYS_PTRACE, or a seccomp profile that allows process_vm_readv and process_vm_writev",
		       "process_vm_readv or _writev: %s (Yama, seccomp or user namespaces)",
		       strerror(err));
	else if (err == ENOSYS)
		report(WARN, cost_vm,
		       "use a seccomp profile that allows them, or a kernel with CONFIG_CROSS_MEMORY_ATTACH",
		       "process_vm_readv or _writev: %s", strerror(err));
	else
		report(WARN, cost_vm, NULL, "process_vm_readv or _writev: %s",
		       strerror(err));
}

void check_cpus(void)
{
	cpu_set_t set;
	int n;

	if (sched_getaffinity(0, sizeof(set), &set))
		return;
	n = CPU_COUNT(&set);
	if (n < 2)
		report(WARN,
		       "two programs that poll share one CPU: latencies of milliseconds",
		       "use two CPUs, or programs that wait for completion events",
		       "CPUs: %d", n);
	else
		ok("CPUs: %d", n);
}
