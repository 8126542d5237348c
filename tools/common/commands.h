/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The urxe command: the table of subcommands, and functions that several of
 * them use.  The functions are in commands.c if no other file is named.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "options.h"

#define EXIT_USAGE 2

struct command {
	const char *name;
	int (*run)(int argc, char **argv); /* returns the exit code */
	const char *operands; /* after the options in the synopsis */
	const char *what; /* description, one sentence; it is wrapped */
	const struct command_option *options; /* NULL: none */
	const char *examples; /* complete lines, or NULL */
};

extern const struct command command_run, command_env, command_info, command_rm,
	command_port, command_profile, command_doctor, command_lesson,
	command_trace, command_top, command_bench, command_why;

/* Print "urxe: ", the message and a newline on stderr.  Return code. */
int fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The command that runs; main.c sets it. */
extern const struct command *current_command;
void print_synopsis(FILE *to, const struct command *c);
/* Print the synopsis of the current command on stderr.  Return EXIT_USAGE. */
int usage(void);

/*
 * Report an invalid value of an option or operand: 'OPTION: "WORD": use A,
 * B or C', and the word with the least edit distance.  `words` ends with
 * NULL.  Return EXIT_USAGE.
 */
int fail_word(const char *option, const char *word, const char *const *words);

/*
 * Report that a file cannot be opened.  If err is ENOENT, print "PREFIXno
 * file /absolute/path" followed by `what`, else strerror(err).  Return
 * code.
 */
int fail_file(int code, const char *prefix, const char *path, int err,
	      const char *what);

/*
 * Find the file that execvp(3) would execute for cmd.  Return false if no
 * directory of PATH has it.  If cmd has a slash, or PATH is unset, buf is
 * cmd, unchecked (run.c).
 */
bool find_program(const char *cmd, char *buf, size_t len);

/*
 * Write the real path of file `name` in dir to buf.  A relative dir starts at
 * the directory of this executable.  Return 0 or -errno; the file must exist.
 */
int find_relative(const char *dir, const char *name, char *buf, size_t len);

/*
 * Find a program that is installed next to the provider; `built` is its
 * directory in the build tree, relative to this executable.  Return 0, or 1
 * after a message.
 */
int find_helper(const char *name, const char *built, char *path, size_t len);

/*
 * Find the preload library and the provider: in the build tree of this
 * executable, or installed.  `preload` is set to the path of the library,
 * `provider_dir` to the directory of the provider, or to "" if that is the
 * same directory.  Return 0 or -ENOENT.
 */
int find_libraries(char *preload, size_t len, char *provider_dir, size_t dlen);

/*
 * Select fabric `name` (NULL: that of URXE_FABRIC, or "default") for this
 * process and the programs that it executes: set URXE_FABRIC.  Write the
 * fabric's directory to dir.  Return 0 or the exit code.
 */
int choose_fabric(const char *name, char dir[256]);

/*
 * Set the environment of this process to the one that urxe run gives a
 * program: fabric `name` as in choose_fabric(), with or without the RDMA
 * devices of the host.  Return 0 or the exit code (run.c).
 */
int set_environment(const char *name, bool host);

/*
 * Add the value of a --fault option, a rule or @FILE, to URXE_FAULTS
 * (fault.c).  Return 0 or the exit code; the error has been printed.
 */
int add_fault(const char *rule);
int explain_faults(void); /* --fault=help */
bool faults_are_given(void);
/* Create the file of fault counters.  Return 0 or the exit code. */
int faults_begin_run(void);
/*
 * Remove the file of fault counters.  If the program ran, report the rules
 * that were never applied.
 */
void faults_end_run(bool ran);

/*
 * Set the environment for programs that were built with a sanitizer.  preload
 * is the path of the preload library (sanitizer.c).
 */
void set_sanitizers(const char *preload);

/* Print a word quoted for a POSIX shell (env.c). */
void print_quoted(FILE *to, const char *word);

/*
 * Report why execvp(3) of cmd failed with err.  Return the exit code
 * (run.c).
 */
int cannot_run(const char *cmd, int err);

/*
 * Return the argument vector, ending with NULL, of the user's shell with a
 * prompt that names the fabric.  It is valid until the process ends
 * (shell.c).
 */
char **shell_words(const char *fabric);

/*
 * List the names of the fabrics in the directory `base`, sorted.  The caller
 * frees each name and the list.  Return their number or -errno (fabrics.c).
 */
int fabrics_list(const char *base, char ***names);

/*
 * Write to buf the message that there is no fabric at dir, with the names of
 * the fabrics that exist next to it.  Return buf (fabrics.c).
 */
#define FABRICS_TEXT 512
const char *no_fabric_text(const char *dir, char buf[FABRICS_TEXT]);

/*
 * Map the fabric at dir with fabric_open(), which creates it if create is
 * set.  Return 0, or the exit code after printing the error.
 */
struct urxe_fabric;
int use_fabric(const char *dir, bool create, struct urxe_fabric **f);
