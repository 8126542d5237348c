/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The urxe command: one function per subcommand, which returns exit codes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "options.h"

#define EXIT_USAGE 2

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *operands; /* behind the options in its synopsis */
	const char *what; /* a sentence, which is wrapped */
	const struct command_option *options; /* NULL: none */
	const char *examples; /* lines, or NULL */
};

extern const struct command command_run, command_env, command_info, command_rm,
	command_port, command_doctor, command_lesson, command_trace,
	command_top, command_bench, command_why;

/* May what goes to this descriptor be coloured?  NO_COLOR (no-color.org). */
bool colour_wanted(int fd);

/* "urxe: " and the message on stderr; returns code. */
int fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* How the command that runs is called, on stderr; returns EXIT_USAGE. */
int usage(void);

/*
 * Refuse the word of an option or an operand: "OPTION: WORD: it is A, B or C",
 * and the nearest of the words, which end with NULL.  Returns EXIT_USAGE.
 */
int fail_word(const char *option, const char *word, const char *const *words);

/*
 * A file does not exist: "PREFIXthere is no file /absolute/path", and then
 * `what`, or strerror(err) if it is another error.
 */
int fail_file(int code, const char *prefix, const char *path, int err,
	      const char *what);

/* The file that execvp would take; false if there is none (run.c). */
bool find_program(const char *cmd, char *buf, size_t len);

/*
 * The file `name` in dir, which may be relative to this program's; it must be
 * there.  -errno
 */
int find_beside(const char *dir, const char *name, char *buf, size_t len);

/*
 * Where the preload library is (the path is written) and where the provider
 * is, if that is not the same directory (else ""): beside this program in a
 * build tree, or installed.  -ENOENT
 */
int find_libraries(char *preload, size_t len, char *provider_dir, size_t dlen);

/*
 * Use fabric `name` (NULL: the environment's) from now on, in this process and
 * what it executes.  Its directory goes to dir.
 */
int choose_fabric(const char *name, char dir[256]);

/*
 * What urxe run gives a program, in this process's environment (run.c): in
 * fabric `name` (NULL: the environment's), with the host's devices or without.
 */
int set_environment(const char *name, bool host);

/*
 * One --fault more, a rule or @FILE, for what is run (fault.c).  Not 0: it
 * cannot be understood, and that was said.
 */
int add_fault(const char *rule);
int explain_faults(void); /* --fault=help */
bool faults_are_given(void);
/* Before what is run.  0, or the exit code. */
int faults_begin_run(void);
/* And after it, if it ran: says which rules never struck. */
void faults_end_run(bool ran);

/*
 * Prepare the environment of programs that were built with a sanitizer
 * (sanitizer.c).
 */
void set_sanitizers(const char *preload);

/* One word of a command line, as a shell takes it (env.c). */
void print_quoted(FILE *to, const char *word);

/* How execvp failed: says why, returns the exit code (run.c). */
int cannot_run(const char *cmd, int err);

/*
 * The words of a shell for the user, whose prompt names the fabric, end with
 * NULL (shell.c).  They are valid until the process ends.
 */
char **shell_words(const char *fabric);

/*
 * Names of the fabrics in the directory `base`, sorted; free each and the list
 * (fabrics.c).  How many, or -errno.
 */
int fabrics_list(const char *base, char ***names);

/* There is no fabric at dir: that, and which there are (fabrics.c). */
#define FABRICS_TEXT 512
const char *no_fabric_text(const char *dir, char buf[FABRICS_TEXT]);

/* Map the fabric at dir, or say why not; create: see fabric_open. */
struct urxe_fabric;
int use_fabric(const char *dir, bool create, struct urxe_fabric **f);
