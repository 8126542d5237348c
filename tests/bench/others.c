/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Run ucx_perftest and fi_pingpong as pairs of processes, and parse their
 * output
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "others.h"

#define LIMIT 60000000000ull /* ns after which a program counts as hung */
#define MAX_WORDS 16

/* A server and its client: two processes of one program */
struct duo {
	const struct others *o;
	enum regime regime;
	char *words[MAX_WORDS]; /* of both processes */
	const char *port_option[2];
	char port[16];
	pid_t pid[2]; /* client, server */
	int terminal; /* pseudo-terminal for their standard input, or -1 */
	int out; /* the client's standard output */
};

static bool is_installed(const char *program)
{
	char path[4096], *dirs = strdup(getenv("PATH") ?: ""), *rest = dirs;
	bool found = false;
	const char *dir;

	while (dirs && !found && (dir = strsep(&rest, ":"))) {
		snprintf(path, sizeof(path), "%s/%s", dir, program);
		found = !access(path, X_OK);
	}
	free(dirs);
	return found;
}

/* Store the number of a TCP port on which no socket listens at present. */
static bool free_port(char port[16])
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(a);
	bool ok;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ok = fd >= 0 && !bind(fd, (struct sockaddr *)&a, len) &&
	     !getsockname(fd, (struct sockaddr *)&a, &len);
	if (fd >= 0)
		close(fd);
	snprintf(port, 16, "%u", ntohs(a.sin_port));
	return ok;
}

/*
 * Return whether a socket listens on @port.  This reads /proc/net, because
 * the server would accept a trial connection as its client.
 */
static bool listening(const char *port)
{
	static const char *const tables[] = { "/proc/net/tcp",
					      "/proc/net/tcp6" };
	char line[256], end[32];
	bool found = false;
	FILE *f;
	int i;

	snprintf(end, sizeof(end), ":%04X ", atoi(port));
	for (i = 0; i < 2 && !found; i++) {
		f = fopen(tables[i], "re");
		while (f && !found && fgets(line, sizeof(line), f))
			/*
			 * a line is "0: 0100007F:3419 00000000:0000 0A"; 0A
			 * is LISTEN
			 */
			found = strstr(line, end) && strstr(line, ":0000 0A ");
		if (f)
			fclose(f);
	}
	return found;
}

/*
 * A ucx_perftest that is linked with MPI (Debian 13) acts as a server or a
 * client only if its standard input is a terminal.  Otherwise it runs as an
 * MPI rank, and fails without mpirun.  Return the master of a
 * pseudo-terminal, or -1.
 */
static int terminal_open(void)
{
	int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0 && unlockpt(fd)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void __attribute__((noreturn))
duo_execute(struct duo *d, int which, int out)
{
	int null = open("/dev/null", O_RDWR), in = -1, n = 0;
	char *argv[MAX_WORDS + 4];
	cpu_set_t cpus;

	/* SIGTERM lets the programs remove their files */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	signal(SIGCHLD, SIG_DFL);
	if (d->o->cpu[which] >= 0) {
		CPU_ZERO(&cpus);
		CPU_SET(d->o->cpu[which], &cpus);
		sched_setaffinity(0, sizeof(cpus), &cpus);
	}
	regime_enter(d->regime);
	unsetenv("LD_PRELOAD");
	setenv("UCX_TLS", "posix,cma,self", 1); /* only UCP tests use this */
	setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 1);
	if (d->terminal >= 0)
		in = open(ptsname(d->terminal), O_RDWR | O_NOCTTY);
	dup2(in >= 0 ? in : null, 0);
	dup2(which ? null : out, 1);
	dup2(null, 2);
	for (; d->words[n]; n++)
		argv[n] = d->words[n];
	argv[n++] = (char *)d->port_option[which];
	argv[n++] = d->port;
	if (!which)
		argv[n++] = "127.0.0.1";
	argv[n] = NULL;
	execvp(argv[0], argv);
	_exit(127);
}

static bool duo_start(struct duo *d, int which, int out)
{
	d->pid[which] = fork();
	if (!d->pid[which])
		duo_execute(d, which, out);
	return d->pid[which] > 0;
}

static bool ended(pid_t pid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
	       info.si_pid == pid;
}

static bool duo_begin(struct duo *d)
{
	uint64_t until = bench_now() + LIMIT;
	int p[2];

	if (!free_port(d->port) || !duo_start(d, 1, -1))
		return false;
	while (!listening(d->port)) {
		if (bench_now() > until || ended(d->pid[1]))
			return false;
		usleep(5000);
	}
	if (pipe2(p, O_CLOEXEC))
		return false;
	d->out = p[0];
	if (!duo_start(d, 0, p[1])) {
		close(p[1]);
		return false;
	}
	close(p[1]);
	return true;
}

/*
 * Read the client's output until the client closes it.  Store "" if it hangs.
 */
static void duo_read(struct duo *d, char *text, size_t len)
{
	uint64_t until = bench_now() + LIMIT;
	struct pollfd p = { .fd = d->out, .events = POLLIN };
	size_t have = 0;
	ssize_t got;

	while (have < len - 1 && bench_now() < until) {
		if (poll(&p, 1, 1000) < 1)
			continue;
		got = read(d->out, text + have, len - 1 - have);
		if (got <= 0) {
			text[have] = 0;
			return;
		}
		have += (size_t)got;
	}
	*text = 0;
}

static void duo_end(struct duo *d)
{
	uint64_t until;
	int i;

	if (d->out >= 0)
		close(d->out);
	if (d->terminal >= 0)
		close(d->terminal);
	for (i = 0; i < 2; i++) {
		if (d->pid[i] <= 0)
			continue;
		/* the server may be about to exit */
		for (until = bench_now() + 500000000;
		     !ended(d->pid[i]) && bench_now() < until;)
			usleep(1000);
		kill(d->pid[i], SIGTERM);
		for (until = bench_now() + 2000000000;
		     !ended(d->pid[i]) && bench_now() < until;)
			usleep(1000);
		kill(d->pid[i], SIGKILL);
		waitpid(d->pid[i], NULL, 0);
	}
}

static bool duo_run(struct duo *d, char *text, size_t len)
{
	bool ok;

	d->out = -1;
	d->terminal = terminal_open();
	*text = 0;
	ok = duo_begin(d);
	if (ok)
		duo_read(d, text, len);
	duo_end(d);
	return *text;
}

static uint32_t operations(const struct others *o, int i)
{
	uint32_t n = rows[i].n / (uint32_t)o->shrink;

	return n ? n : 1;
}

/*
 * Write the batch file of ucx_perftest, one line for each test.  The name of
 * a test is its row number.
 */
static int write_batch(const struct others *o)
{
	int fd = memfd_create("urxe-bench", 0), i;
	uint32_t n;

	for (i = 0; i < n_rows && fd >= 0; i++) {
		n = operations(o, i);
		if (rows[i].where == IN_UCX)
			dprintf(fd, "%d %s -s %u -n %u -w %u\n", i,
				rows[i].program, rows[i].size, n, n / 10 + 1);
	}
	return fd;
}

/*
 * A line of output: "ROW,iterations,50% us,average us,us,average
 * MB/s,MB/s,average 1/s,1/s".  In each group the value of the last interval
 * precedes the value of the whole test.
 */
static void take_ucx(char *text, enum regime g, int round)
{
	double us, rate;
	char *line;
	int row;

	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (sscanf(line, "%d,%*[^,],%*f,%*f,%lf,%*f,%*f,%*f,%lf", &row,
			   &us, &rate) == 3 &&
		    row >= 0 && row < n_rows && us > 0 && rate > 0)
			sample_set(g, row, round,
				   rows[row].unit == UNIT_NS ? us * 1e3 :
							       1e9 / rate);
}

static bool run_ucx(struct others *o, enum regime g, int round)
{
	char text[16384], path[64];
	struct duo d = {
		.o = o,
		.regime = g,
		.port_option = { "-p", "-p" },
		.words = { "ucx_perftest", "-f", "-v", "-b", path },
	};
	int fd = write_batch(o);
	bool ok;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ok = fd >= 0 && duo_run(&d, text, sizeof(text));
	if (fd >= 0)
		close(fd);
	if (ok)
		take_ucx(text, g, round);
	return ok;
}

/*
 * Columns of the last line: bytes, sent, acknowledged, total, time, MB/s, us,
 * 1/us
 */
static bool run_libfabric(struct others *o, enum regime g, int round, int i)
{
	char text[4096], size[16], n[16];
	struct duo d = {
		.o = o,
		.regime = g,
		.port_option = { "-P", "-B" },
		.words = { "fi_pingpong", "-p", "shm", "-e", "rdm", "-S", size,
			   "-I", n },
	};
	const char *last;
	double us;

	snprintf(size, sizeof(size), "%u", rows[i].size);
	snprintf(n, sizeof(n), "%u", operations(o, i));
	if (!duo_run(&d, text, sizeof(text)) || !(last = strchr(text, '\n')) ||
	    sscanf(last, "%*s %*s %*s %*s %*s %*s %lf", &us) != 1 || us <= 0)
		return false;
	sample_set(g, i, round, us * 1e3);
	return true;
}

static void say(struct others *o, const char *what)
{
	size_t len = strlen(o->missing);

	if (!strstr(o->missing, what))
		snprintf(o->missing + len, sizeof(o->missing) - len, "%s%s",
			 len ? "; " : "", what);
}

void others_run(struct others *o, enum regime g, int round)
{
	int i;

	if (!is_installed("ucx_perftest"))
		say(o, "no UCX: ucx_perftest (Debian: ucx-utils) is not "
		       "installed");
	else if (!run_ucx(o, g, round))
		say(o, "no UCX: ucx_perftest failed");
	if (!is_installed("fi_pingpong")) {
		say(o, "no libfabric: fi_pingpong (Debian: libfabric-bin) is "
		       "not installed");
		return;
	}
	for (i = 0; i < n_rows; i++)
		/*
		 * each chart point starts a program, so a short run skips
		 * them
		 */
		if (rows[i].where == IN_LIBFABRIC &&
		    !(rows[i].chart && o->shrink > 1) &&
		    !run_libfabric(o, g, round, i)) {
			say(o, "fi_pingpong failed");
			return;
		}
}
