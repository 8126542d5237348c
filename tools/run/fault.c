// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * urxe run --fault: parse fault injection rules (chaos/fault.h) before
 * COMMAND starts, pass them on in URXE_FAULTS, and report afterwards the
 * rules that were never applied.
 *
 * The processes count in a shared file that URXE_FAULT_TALLY names
 * (chaos/fault_tally.h).  A nested urxe run makes a file of its own; at its
 * end it adds the counts of the rules that it inherited to the outer file.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/plural.h"
#include "base/atomic.h"
#include "chaos/fault_tally.h"
#include "common/commands.h"

static const char help[] =
	"A rule is WHAT[:KEY=VALUE]...:EFFECT; --fault may be given several times,\n"
	"and --fault @FILE reads a file with one rule a line, and comments after #.\n"
	"\n"
	"WHAT                    EFFECT\n"
	"ibv_NAME, ibv_NAM*      the verb fails: ENOMEM, EAGAIN, ...\n"
	"rdma_NAME               the call fails: ENOMEM, ...\n"
	"rdma_resolve_addr       ETIMEDOUT, ADDR_ERROR=ERRNO: an event\n"
	"rdma_resolve_route      ETIMEDOUT, ROUTE_ERROR=ERRNO: an event\n"
	"rdma_connect            REJECTED[=REASON], ETIMEDOUT, UNREACHABLE=ERRNO: an\n"
	"                        event; SILENT: no reply\n"
	"wr                      a work request fails with LOC_LEN_ERR, LOC_QP_OP_ERR,\n"
	"                        LOC_PROT_ERR, WR_FLUSH_ERR, MW_BIND_ERR, FATAL_ERR,\n"
	"                        GENERAL_ERR, BAD_RESP_ERR, RETRY_EXC_ERR,\n"
	"                        RNR_RETRY_EXC_ERR, REM_INV_REQ_ERR, REM_ACCESS_ERR,\n"
	"                        REM_OP_ERR\n"
	"packet                  LOST, DUPLICATED, LATE, DAMAGED: on the wire\n"
	"qp                      QP_FATAL, QP_REQ_ERR, QP_ACCESS_ERR, COMM_EST,\n"
	"                        PATH_MIG, PATH_MIG_ERR\n"
	"cq                      CQ_ERR\n"
	"srq                     SRQ_ERR, SRQ_LIMIT_REACHED\n"
	"port                    DOWN, DOWN=MS, UP, RATE=GBPS, LID_CHANGE, PKEY_CHANGE,\n"
	"                        GID_CHANGE, SM_CHANGE, CLIENT_REREGISTER\n"
	"device                  DEVICE_FATAL\n"
	"process                 KILL, STOP, SLEEP=MS\n"
	"\n"
	"KEY\n"
	"prog=NAME host=NAME dev=NAME\n"
	"                        only in programs of that name or host, for that device\n"
	"qp=N type=RC op=SEND,RDMA_WRITE wr_id=N\n"
	"                        only of that QP, type, opcode, wr_id\n"
	"nth=N every=N p=0.01    only the Nth match; every Nth match; each with this\n"
	"                        probability.  Default: every match\n"
	"times=N                 at most N times; with nth=, N times from there on\n"
	"at=completion|post|recv\n"
	"                        for qp, cq, port, device, process: what is counted\n"
	"ms=N                    for these, in place of at=: N ms after the device was\n"
	"                        opened; with times= or p= every N ms\n"
	"link=NAME ready=MS      for port: a link of a cluster file goes down, or that\n"
	"                        of another device; no packet passes at first\n"
	"\n"
	"For example:\n"
	"  --fault ibv_reg_mr:nth=5:ENOMEM\n"
	"  --fault wr:op=RDMA_WRITE:nth=100:RETRY_EXC_ERR\n"
	"  --fault port:at=post:nth=10:DOWN=300\n"
	"  --fault port:link=leaf0/3:ms=100:times=20:DOWN=30\n"
	"  --fault process:prog=server:nth=1000:KILL\n"
	"\n"
	"URXE_FAULT_SEED=N is the seed of p=; the default is the adversary's seed.\n"
	"man urxe-faults describes all rules\n";

int explain_faults(void)
{
	fputs(help, stdout);
	return 0;
}

/*
 * Read a whole file as a string, without a byte order mark; the caller frees
 * it.  Return NULL with errno set; EILSEQ if the file has a NUL byte.
 */
static char *file_read(const char *path)
{
	static const char mark[] =
		"\xef\xbb\xbf"; /* UTF-8 byte order mark, from editors */
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t room = 0;
	ssize_t n;
	int err;

	if (!f)
		return NULL;
	n = getdelim(&text, &room, 0, f);
	err = ferror(f) ? errno : n > 0 && !text[n - 1] ? EILSEQ : 0;
	fclose(f);
	if (!err && n < 0) {
		free(text);
		return strdup("");
	}
	if (!err && !strncmp(text, mark, strlen(mark)))
		memmove(text, text + strlen(mark),
			(size_t)n + 1 - strlen(mark));
	if (!err)
		return text;
	free(text);
	errno = err;
	return NULL;
}

/* Append a rule to URXE_FAULTS.  Return 0 or the exit code. */
static int environment_add(const char *rule)
{
	const char *old = getenv("URXE_FAULTS");
	char *all;
	int ret;

	if (asprintf(&all, "%s%s%s", old ? old : "", old && *old ? "\n" : "",
		     rule) < 0)
		return fail(1, "no memory");
	ret = setenv("URXE_FAULTS", all, 1);
	free(all);
	return ret ? fail(1, "no memory") : 0;
}

static struct {
	struct faults given; /* the rules of --fault, by add_fault() */
	/* the rules in URXE_FAULTS: inherited ones first, then `given` */
	struct faults all;
	/* counters of this run and of an outer urxe run; NULL: none */
	struct fault_tally *tally, *outer;
	char path[4096]; /* of `tally` */
} run;

int add_fault(const char *rule)
{
	unsigned int i = run.given.n;
	char why[400];
	char *text;
	int ret = 0;

	text = *rule == '@' ? file_read(rule + 1) : strdup(rule);
	if (!text)
		return fail_file(EXIT_USAGE, "--fault @: ", rule + 1, errno,
				 "");
	if (!faults_parse(&run.given, text, why, sizeof(why)))
		ret = fail(EXIT_USAGE, "--fault: %s; see urxe run --fault=help",
			   why);
	else if (i == run.given.n)
		ret = fail(EXIT_USAGE, "--fault %s: no rule found", rule);
	for (; i < run.given.n && !ret; i++)
		ret = environment_add(run.given.rule[i].text);
	free(text);
	return ret;
}

/* ------------------------------------------------------- counters */

bool faults_are_given(void)
{
	return run.given.n;
}

/* Create the file of counters in dir and map it.  Return false on failure. */
static bool tally_open(const char *dir)
{
	int fd;

	if (!dir || !*dir)
		return false;
	snprintf(run.path, sizeof(run.path), "%s/urxe-faults-XXXXXX", dir);
	fd = mkostemp(run.path, O_CLOEXEC);
	if (fd < 0)
		return false;
	if (!ftruncate(fd, FAULT_TALLY_BYTES))
		run.tally = fault_tally_map(run.path);
	close(fd);
	if (!run.tally)
		unlink(run.path);
	return run.tally;
}

int faults_begin_run(void)
{
	const char *there = getenv(FAULT_TALLY);
	char why[400];

	if (!run.given.n)
		return 0;
	if (!faults_parse(&run.all, getenv("URXE_FAULTS"), why, sizeof(why)))
		return fail(EXIT_USAGE, "URXE_FAULTS: %s", why);
	if (there)
		run.outer = fault_tally_map(there);
	if (tally_open(getenv("TMPDIR")) || tally_open("/tmp") ||
	    tally_open("/dev/shm"))
		return setenv(FAULT_TALLY, run.path, 1) ? fail(1, "no memory") :
							  0;
	unsetenv(FAULT_TALLY);
	return fail(
		0,
		"--fault: cannot create the file of counters: %s; rules that never strike are not reported",
		strerror(errno));
}

/* Report the rule if it was never applied: then the test covered nothing. */
static void fault_print_unused(const struct fault_rule *r)
{
	const uint64_t matched = load_relaxed(&run.tally[r->index].matched);

	if (load_relaxed(&run.tally[r->index].struck))
		return;
	if (matched)
		fail(0, "--fault: \"%s\" never struck: it matched %llu time%s",
		     r->text, (unsigned long long)matched, plural(matched));
	else
		fail(0, "--fault: \"%s\" never struck: nothing matched it",
		     r->text);
}

void faults_end_run(bool ran)
{
	unsigned int i, before = run.all.n - run.given.n;

	if (!run.tally)
		return;
	for (i = 0; i < run.all.n && ran; i++)
		if (i >= before) {
			fault_print_unused(&run.all.rule[i]);
		} else if (run.outer) {
			fetch_add_relaxed(&run.outer[i].matched,
					  load_relaxed(&run.tally[i].matched));
			fetch_add_relaxed(&run.outer[i].struck,
					  load_relaxed(&run.tally[i].struck));
		}
	unlink(run.path);
}
