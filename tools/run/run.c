// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * urxe run: execute a command, or a shell, in the environment in which
 * programs see the device.  If an adversary, a timeout, --check or --fault
 * is requested, trial.c supervises the command; otherwise this process
 * executes it.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fabric/fabric.h"
#include "common/commands.h"
#include "common/profiles.h"
#include "record.h"
#include "trial.h"

/* Exit codes of env(1) and of shells. */
#define EXIT_CANNOT_RUN 126
#define EXIT_NOT_FOUND 127

/* Return whether a list separated by colons or spaces has that entry. */
static bool has_entry(const char *list, const char *entry)
{
	size_t n = strlen(entry);

	while (*list) {
		if (!strncmp(list, entry, n) &&
		    (!list[n] || list[n] == ':' || list[n] == ' '))
			return true;
		list += strcspn(list, ": ");
		list += strspn(list, ": ");
	}
	return false;
}

/* Put lib first in LD_PRELOAD, unless it is there already. */
static int set_preload(const char *lib)
{
	const char *old = getenv("LD_PRELOAD");
	char *value;
	int ret;

	if (strpbrk(lib, ": "))
		return fail(1,
			    "LD_PRELOAD cannot contain the path \"%s\": the "
			    "path has a space or a colon",
			    lib);
	if (old && has_entry(old, lib))
		return 0;
	if (asprintf(&value, "%s%s%s", lib, old && *old ? ":" : "",
		     old ? old : "") < 0)
		return fail(1, "no memory");
	ret = setenv("LD_PRELOAD", value, 1);
	free(value);
	return ret ? fail(1, "no memory") : 0;
}

bool find_program(const char *cmd, char *buf, size_t len)
{
	const char *path = getenv("PATH"), *end;

	if (strchr(cmd, '/') || !path) {
		snprintf(buf, len, "%s", cmd);
		return true;
	}
	for (;; path = end + 1) {
		end = strchrnul(path, ':');
		snprintf(buf, len, "%.*s/%s", (int)(end - path), path, cmd);
		if (!access(buf, X_OK))
			return true;
		if (!*end)
			return false;
	}
}

/* Return whether fd is a 64-bit ELF file without a program interpreter. */
static bool is_static(int fd)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	int i;

	if (pread(fd, &eh, sizeof(eh), 0) != sizeof(eh) ||
	    memcmp(eh.e_ident, ELFMAG, SELFMAG) ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_phentsize != sizeof(ph))
		return false;
	for (i = 0; i < eh.e_phnum; i++)
		if (pread(fd, &ph, sizeof(ph),
			  (off_t)(eh.e_phoff + (size_t)i * sizeof(ph))) ==
			    sizeof(ph) &&
		    ph.p_type == PT_INTERP)
			return false;
	return true;
}

/*
 * Return whether the program would be executed with other IDs or capabilities
 * than the caller's (AT_SECURE).  The dynamic linker then ignores LD_PRELOAD;
 * see ld.so(8).  execve(2) describes when the kernel ignores the mode bits.
 */
static bool is_secure(const char *path)
{
	struct statvfs fs;
	struct stat st;

	if (stat(path, &st) || statvfs(path, &fs) || fs.f_flag & ST_NOSUID ||
	    prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0))
		return false;
	return (st.st_mode & S_ISUID && st.st_uid != getuid()) ||
	       (st.st_mode & S_ISGID && st.st_mode & S_IXGRP &&
		st.st_gid != getgid()) ||
	       (getuid() && getxattr(path, "security.capability", NULL, 0) > 0);
}

static bool is_script(int fd)
{
	char magic[2];

	return pread(fd, magic, 2, 0) == 2 && magic[0] == '#' &&
	       magic[1] == '!';
}

/* Warn if the program ignores LD_PRELOAD: it runs, but without the device. */
static void warn_unreachable(const char *cmd)
{
	char path[4096];
	int fd;

	if (!find_program(cmd, path, sizeof(path)))
		return;
	/* -1 if it is executable and not readable */
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && is_static(fd))
		fail(0,
		     "%s is statically linked: the device is not visible to the program",
		     path);
	else if (is_secure(path) && !(fd >= 0 && is_script(fd)))
		fail(0,
		     "%s is set-user-ID, set-group-ID or has capabilities: the dynamic linker ignores LD_PRELOAD, and the device is not visible to the program; run a copy without these attributes",
		     path);
	if (fd >= 0)
		close(fd);
}

/*
 * Warn if the usual directory of fabrics is not usable and dir replaces it.
 * Programs with another version of urxe, or with URXE_DIR, use another one.
 */
static void warn_substitute(const char *dir)
{
	char by[128];

	if (place_is_taken(by, sizeof(by)))
		fail(0, "%s and is not used: the fabric is %s", by, dir);
}

/* Check that the wire is off, or the fabric has one Ethernet device. */
static int check_wire(const struct urxe_fabric *f)
{
	const char *name = strrchr(f->dir, '/') + 1;

	if (!env_is_set("URXE_WIRE"))
		return 0;
	if (f->dev->cluster)
		return fail(1, "--wire cannot be combined with a cluster file");
	if (dev_hcas(f->dev) > 1)
		return fail(
			1,
			"--wire needs a fabric with one device, and the fabric %s has %u",
			name, dev_hcas(f->dev));
	if (f->dev->hca[0].infiniband)
		return fail(
			1,
			"--wire needs an Ethernet device, and that of the fabric %s is an InfiniBand device",
			name);
	return 0;
}

/*
 * Make URXE_CLUSTER an absolute path, since programs may change their
 * directory, and set where its profiles are.
 */
static int set_cluster(void)
{
	const char *file = getenv("URXE_CLUSTER");
	char *path = realpath(file, NULL);

	if (!path)
		return fail_file(1, "--cluster: ", file, errno, "");
	setenv("URXE_CLUSTER", path, 1);
	free(path);
	return env_is_set("URXE_PROFILE_DIR") ? 0 : profiles_set_dir();
}

/*
 * Check that the fabric has the devices, profiles and link layers that are
 * requested, if any are, and that the wire is off if it cannot be used.
 */
static int check_devices(const char *dir)
{
	const bool profiles = env_is_set("URXE_PROFILE");
	const bool layers = env_is_set("URXE_LINK_LAYER") ||
			    env_is_set("URXE_SM");
	const bool cluster = env_is_set("URXE_CLUSTER");
	const bool host = env_is_set("URXE_HOST");
	struct urxe_fabric *f;
	uint32_t want, infiniband, k;
	int ret;

	if (cluster && set_cluster())
		return 1;
	if (hcas_by_env(&want))
		return fail(1, "%s", fabric_why());
	/* each word of the list, then the first one */
	for (k = URXE_HOST_HCAS; k--;)
		if (link_layer_by_env(&infiniband, k))
			return fail(1, "%s", fabric_why());
	if (infiniband && env_is_set("URXE_WIRE"))
		return fail(
			1,
			"--wire needs an Ethernet device, not --link-layer infiniband");
	if (want > 1 && env_is_set("URXE_WIRE"))
		return fail(
			1,
			"--wire needs a fabric with one device, not --devices %u",
			want);
	/* if devices are requested, it replaces an unused fabric with others */
	ret = fabric_open(dir, want || profiles || layers || cluster || host,
			  &f);
	if (ret && *fabric_why() && (cluster || host))
		return fail(1, "%s: %s", cluster ? "--cluster" : "--host",
			    fabric_why());
	if (ret && *fabric_why() && (profiles || layers))
		return fail(1, "%s: %s",
			    profiles			  ? "--profile" :
			    env_is_set("URXE_LINK_LAYER") ? "--link-layer" :
							    "--sm",
			    fabric_why());
	if (want && ret == -EINVAL)
		return fail(1, "--devices %u: %s", want, fabric_why());
	if (ret)
		return 0;
	ret = check_wire(f);
	fabric_close(f);
	return ret;
}

int set_environment(const char *fabric, bool host)
{
	char preload[4096], provider_dir[4096], dir[256];
	int ret;

	ret = choose_fabric(fabric, dir);
	if (!ret)
		ret = check_devices(dir);
	if (ret)
		return ret;
	warn_substitute(dir);
	if (find_libraries(preload, sizeof(preload), provider_dir,
			   sizeof(provider_dir)))
		return fail(1, "liburxe-kshim.so is neither next to this "
			       "program nor in " URXE_LIBDIR
			       "; build all targets, or run meson install");
	ret = set_preload(preload);
	if (ret)
		return ret;
	set_sanitizers(preload);
	if (*provider_dir)
		setenv("URXE_PROVIDER_DIR", provider_dir, 1);
	if (host)
		setenv("URXE_HOST_DEVICES", "1", 1);
	else
		unsetenv("URXE_HOST_DEVICES");
	return 0;
}

/* Return the Debian package that has a well-known RDMA program, or NULL. */
static const char *package_of(const char *cmd)
{
	static const struct {
		const char *pattern, *package;
	} known[] = {
		{ "ibv_*", "ibverbs-utils" },
		{ "ib_*_bw", "perftest" },
		{ "ib_*_lat", "perftest" },
		{ "ibstat*", "infiniband-diags" },
		{ "rping", "rdmacm-utils" },
		{ "ucmatose", "rdmacm-utils" },
		{ "udaddy", "rdmacm-utils" },
		{ "mckey", "rdmacm-utils" },
		{ "rstream", "rdmacm-utils" },
		{ "rdma_*", "rdmacm-utils" },
		{ "ucx_*", "ucx-utils" },
		{ "fi_*", "libfabric-bin" },
		{ "rdma", "iproute2" },
	};
	unsigned int i;

	for (i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!fnmatch(known[i].pattern, cmd, 0))
			return known[i].package;
	return NULL;
}

/*
 * Report that the file exists and its interpreter does not: ENOENT, see
 * execve(2).
 */
static int no_interpreter(const char *path)
{
	char line[256] = "";
	FILE *f = fopen(path, "re");
	bool script = f && fgets(line, sizeof(line), f) &&
		      !strncmp(line, "#!", 2);

	if (f)
		fclose(f);
	if (!script)
		return fail(
			EXIT_NOT_FOUND,
			"%s: its dynamic linker does not exist (readelf -l prints the path)",
			path);
	return fail(EXIT_NOT_FOUND, "%s: its interpreter %.*s does not exist",
		    path, (int)strcspn(line + 2, "\r\n"), line + 2);
}

/* Report that there is no such program, with the package that has it. */
static int not_found(const char *cmd)
{
	const char *package = package_of(cmd), *path = getenv("PATH");

	if (strchr(cmd, '/'))
		return fail_file(EXIT_NOT_FOUND, "", cmd, ENOENT, "");
	if (package)
		return fail(EXIT_NOT_FOUND,
			    "%s: %s; the Debian package is %s: "
			    "apt install %s",
			    cmd, strerror(ENOENT), package, package);
	fail(0, "no program %s in the directories of PATH: %s", cmd,
	     path ? path : "");
	if (!access(cmd, X_OK))
		fail(0, "did you mean ./%s?", cmd);
	return EXIT_NOT_FOUND;
}

int cannot_run(const char *cmd, int err)
{
	char path[4096];
	bool found = find_program(cmd, path, sizeof(path));

	/* execvp() returns EACCES if a directory in PATH is not searchable */
	if (err == EACCES && !found)
		err = ENOENT;
	if (err != ENOENT)
		return fail(EXIT_CANNOT_RUN, "%s: %s", path, strerror(err));
	if (found && !access(path, F_OK))
		return no_interpreter(path);
	return not_found(cmd);
}

/* Supervise the command if a trial is requested, else execute it. */
static int run(struct trial *t, char **argv)
{
	int ret;

	warn_unreachable(argv[0]);
	if (trial_is_wanted(t))
		return trial_run(t, argv);
	ret = trial_set_environment(t);
	if (ret)
		return ret;
	execvp(argv[0], argv);
	return cannot_run(argv[0], errno);
}

/*
 * Execute a shell, with the environment of the trial for the commands in it.
 * The shell is not supervised.
 */
static int run_shell(const struct trial *t)
{
	char **words;
	int ret;

	/* as with an empty $CMD in "urxe run $CMD": the shell would exit */
	if (!isatty(STDIN_FILENO)) {
		fail(0,
		     "no command, and no terminal for a shell; for a script: urxe run sh SCRIPT");
		return usage();
	}
	if (t->limit)
		return fail(EXIT_USAGE, "--timeout requires a COMMAND");
	ret = trial_set_environment(t);
	if (ret)
		return ret;
	check_set_environment(&t->check);
	words = shell_words(getenv("URXE_FABRIC"));
	execvp(words[0], words);
	return cannot_run(words[0], errno);
}

/* clang-format off */
static const struct command_option options[] = {
	DEVICE_OPTIONS,
	{ 'm', "memlock", "enforce", "refuse memory registrations beyond "
	  "RLIMIT_MEMLOCK (ulimit -l), as a NIC does for a user", "no limit" },
	OPTION_HEADING("Adversary, faults and time"),
	ADVERSARY_OPTIONS,
	{ 'F', "fault", "RULE|@FILE", "inject a fault; may be repeated; "
	  "--fault=help lists the rules", "none" },
	{ 't', "timeout", "TIME", "after TIME (seconds, or as 2m, 1h), terminate "
	  "COMMAND and all processes that it started; exit status 124", "none" },
	OPTION_HEADING("Referee"),
	{ 'C', "check", "[=LEVEL]", "report misuse that urxe tolerates and a NIC may "
	  "not; LEVEL is error, warning or note, and includes the levels before it",
	  "off; warning if LEVEL is not given" },
	{ 'e', "exitcode", "N", "exit with N if the referee has findings and COMMAND "
	  "exits with 0", "as COMMAND" },
	{ 'l', "leaks", NULL, "report objects that are left at exit as warnings", "notes" },
	{ 's', "suppressions", "FILE", "findings not to report, one RULE:PATTERN a line",
	  "none" },
	{ 'r', "report", "FORMAT[:FILE]", "write all findings at the end: json, junit "
	  "or github; may be repeated", "none; without FILE to standard error" },
	RECORD_OPTIONS,
	OPTIONS_END,
};
/* clang-format on */

static int set_memlock(const char *value)
{
	if (strcmp(value, "enforce"))
		return fail(EXIT_USAGE,
			    "--memlock: \"%s\": the only value is enforce",
			    value);
	setenv("URXE_MEMLOCK", value, 1);
	return TRIAL_CHOSEN;
}

static int cmd_run(int argc, char **argv)
{
	struct trial trial = { .words = argv };
	struct record_options record = { 0 };
	struct device_options device = { 0 };
	int c, ret = TRIAL_CHOSEN;

	while ((c = option_next(argc, argv, options, 1)) >= 0) {
		if (c == 'm')
			ret = set_memlock(optarg);
		else if (c == 't')
			ret = trial_limit(&trial, optarg);
		else if (c == 'F' && !strcmp(optarg, "help"))
			return explain_faults();
		else if (c == 'F')
			ret = add_fault(optarg) ? EXIT_USAGE : TRIAL_CHOSEN;
		else if (c == 'C')
			ret = check_choose(&trial.check, optarg);
		else if (c == 'e')
			ret = check_set_exitcode(&trial.check, optarg);
		else if (c == 'l')
			ret = check_set_leaks(&trial.check);
		else if (c == 's')
			ret = check_set_suppressions(&trial.check, optarg);
		else if (c == 'r')
			ret = check_add_report(&trial.check, optarg);
		else
			ret = trial_option(&trial, &device, &record, c, optarg);
		if (ret == TRIAL_OTHER)
			return usage();
		if (ret != TRIAL_CHOSEN)
			return ret;
		if (c == 'A')
			trial.word = optind - 1;
	}
	if (trial.profiles && record.path)
		return fail(
			EXIT_USAGE,
			"--trace cannot be combined with --profile sweep: all runs would write the same file");
	ret = check_complete(&trial.check);
	if (ret != CHECK_CHOSEN)
		return ret;
	trial.own_fabric = !device.fabric;
	setenv("URXE_RUN", "1", 1);
	ret = set_environment(device.fabric, device.host);
	if (!ret)
		ret = record_set_environment(&record);
	if (ret)
		return ret;
	return optind < argc ? run(&trial, argv + optind) : run_shell(&trial);
}

/* clang-format off */
const struct command command_run = {
	.name = "run",
	.run = cmd_run,
	.operands = "[--] [COMMAND [ARGUMENT...]]",
	.what = "Run COMMAND, or a shell, with the RDMA device urxe0, or several devices.",
	.options = options,
	.examples = "  urxe run ibv_devinfo\n"
		    "  urxe run --fabric test\n"
		    "  urxe run --devices 4 -- ./my-test\n"
		    "  urxe run ib_write_bw -R & urxe run ib_write_bw -R localhost\n"
		    "  urxe run --check --exitcode 9 --adversary=hardware,sweep:60 -- ./my-test\n"
		    "  urxe run --timeout 2m --fault wr:nth=100:RETRY_EXC_ERR -- ./my-test\n"
		    "  urxe run --trace t.urxe -- ./my-test; urxe trace --html t.html t.urxe\n",
};
/* clang-format on */
