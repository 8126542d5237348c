// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * urxe lesson: list the lessons in docs/lessons/course, or run one in a
 * fabric of its own.
 *
 * The text of a lesson is in its Markdown page NN-NAME.md.  The first line
 * of the page is "# Lesson N: TITLE".  The section "## Say first what you
 * expect" has the questions that are printed before the program runs.  Its
 * first command "urxe run" has the options with which the program runs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chaos/number.h"
#include "common/commands.h"

#define QUESTIONS "## Say first what you expect"
#define COMMAND "    urxe run "
#define MAX_WORDS 16 /* of options in it */

/*
 * Directories of the pages with the sources, and of the programs, in the
 * order of find_libraries().
 */
static const struct {
	const char *pages, *programs;
} places[] = {
	{ "../docs/lessons/course", "../docs/lessons" },
	{ "../" URXE_DATADIR_REL "/urxe/lessons",
	  "../" URXE_LIBDIR_REL "/lessons" },
	{ URXE_DATADIR "/urxe/lessons", URXE_LIBDIR "/lessons" },
};

struct course {
	char pages[4096], programs[4096];
	glob_t found; /* paths of the pages, sorted by number */
};

static bool course_find(struct course *c)
{
	char pattern[4200];
	unsigned int i;

	for (i = 0; i < sizeof(places) / sizeof(*places); i++) {
		if (find_relative(places[i].pages, "", c->pages,
				  sizeof(c->pages)) ||
		    find_relative(places[i].programs, "", c->programs,
				  sizeof(c->programs)))
			continue;
		snprintf(pattern, sizeof(pattern), "%s/[0-9][0-9]-*.md",
			 c->pages);
		if (!glob(pattern, 0, NULL, &c->found))
			return true;
	}
	return false;
}

/* Get the name of a lesson, as "03-send-receive". */
static void lesson_name(const char *page, char name[256])
{
	const char *base = strrchr(page, '/') + 1;

	snprintf(name, 256, "%.*s", (int)(strlen(base) - strlen(".md")), base);
}

/* Read the first line of a page to title: "Lesson 3: Send and receive". */
static void lesson_title(FILE *page, char title[256])
{
	char line[256];

	*title = 0;
	if (fgets(line, sizeof(line), page) && !strncmp(line, "# ", 2))
		snprintf(title, 256, "%.*s", (int)strcspn(line + 2, "\n"),
			 line + 2);
}

static int course_list(const struct course *c)
{
	char title[256];
	size_t i;
	FILE *page;

	for (i = 0; i < c->found.gl_pathc; i++) {
		page = fopen(c->found.gl_pathv[i], "re");
		if (!page)
			return fail(1, "%s: %s", c->found.gl_pathv[i],
				    strerror(errno));
		lesson_title(page, title);
		puts(title);
		fclose(page);
	}
	printf("\nurxe lesson N runs lesson N; the pages are in %s\n",
	       c->pages);
	return 0;
}

/* Return the path of the page of lesson `number`, or NULL. */
static const char *course_page(const struct course *c, uint64_t number)
{
	const char *path;
	size_t i;

	for (i = 0; i < c->found.gl_pathc; i++) {
		path = c->found.gl_pathv[i];
		if (strtoul(strrchr(path, '/') + 1, NULL, 10) == number)
			return path;
	}
	return NULL;
}

/* Print the title of the page and its section of questions. */
static int show_questions(const char *path)
{
	char line[1024], title[256];
	bool shown = false;
	FILE *page = fopen(path, "re");

	if (!page)
		return fail(1, "%s: %s", path, strerror(errno));
	lesson_title(page, title);
	printf("%s\n\n", title);
	while (fgets(line, sizeof(line), page)) {
		if (!strncmp(line, "## ", 3))
			shown = !strncmp(line, QUESTIONS, strlen(QUESTIONS));
		if (shown)
			fputs(line, stdout);
	}
	fclose(page);
	return 0;
}

/* On a terminal, wait for Enter after the questions. */
static void wait_for_reader(void)
{
	int c;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return;
	printf("Press Enter to run the program. ");
	fflush(stdout);
	do
		c = getchar();
	while (c != '\n' && c != EOF);
}

/* Get the options of the first "urxe run" of the page. */
static void run_options(const char *path, char text[256])
{
	char line[256], *end;
	FILE *page = fopen(path, "re");

	*text = 0;
	while (page && fgets(line, sizeof(line), page)) {
		if (strncmp(line, COMMAND, strlen(COMMAND)))
			continue;
		end = strstr(line, "-- ./");
		if (end)
			snprintf(text, 256, "%.*s",
				 (int)(end - line - strlen(COMMAND)),
				 line + strlen(COMMAND));
		break;
	}
	if (page)
		fclose(page);
}

/* Print a command line as in the page, and run the program. */
static int run_program(const char *page, const char *fabric, const char *path)
{
	char *argv[MAX_WORDS + 6] = { "urxe", "run", "--fabric",
				      (char *)fabric };
	char text[256], *word, *rest;
	int status, n = 4;
	pid_t pid;

	run_options(page, text);
	printf("$ urxe run %s-- %s\n", text, path);
	fflush(stdout);
	for (word = strtok_r(text, " ", &rest); word && n < MAX_WORDS + 4;
	     word = strtok_r(NULL, " ", &rest))
		argv[n++] = word;
	argv[n++] = "--";
	argv[n] = (char *)path;
	pid = fork();
	if (pid < 0)
		return fail(1, "fork: %s", strerror(errno));
	if (!pid) {
		execv("/proc/self/exe", argv);
		_exit(cannot_run(path, errno));
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return fail(1, "waitpid: %s", strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int lesson_run(const struct course *c, const char *page)
{
	char name[256], program[4400], fabric[32];
	int ret;

	lesson_name(page, name);
	snprintf(program, sizeof(program), "%s/%s", c->programs, name);
	if (access(program, X_OK))
		return fail(
			1,
			"no program %s: lessons with rdma_cm are built only if librdmacm-dev is installed",
			program);
	snprintf(fabric, sizeof(fabric), "lesson-%d", (int)getpid());
	ret = show_questions(page);
	if (ret)
		return ret;
	wait_for_reader();
	ret = run_program(page, fabric, program);
	printf("\nExplanation and experiments: %s\n", page);
	return ret;
}

/* Print the paths of page, source and program, a line each. */
static int lesson_files(const struct course *c, const char *page)
{
	char name[256];

	lesson_name(page, name);
	printf("%s\n%s/%s.c\n%s/%s\n", page, c->pages, name, c->programs, name);
	return 0;
}

/* clang-format off */
static const struct command_option options[] = {
	{ 'f', "files", NULL, "print the paths of page, source and program", "run it" },
	OPTIONS_END,
};
/* clang-format on */

static int cmd_lesson(int argc, char **argv)
{
	static struct course course;
	bool files = false;
	const char *page;
	uint64_t number;
	int c;

	while ((c = option_next(argc, argv, options, 0)) >= 0) {
		if (c != 'f')
			return usage();
		files = true;
	}
	if (argc - optind > 1 || (files && optind == argc))
		return usage();
	if (!course_find(&course))
		return fail(1, "no lessons found relative to this program or "
			       "in " URXE_DATADIR "/urxe/lessons");
	if (optind == argc)
		return course_list(&course);
	if (!number_parse(argv[optind], strlen(argv[optind]), 99, &number))
		return usage();
	page = course_page(&course, number);
	if (!page)
		return fail(EXIT_USAGE,
			    "no lesson %s; urxe lesson lists the "
			    "lessons",
			    argv[optind]);
	return files ? lesson_files(&course, page) : lesson_run(&course, page);
}

/* clang-format off */
const struct command command_lesson = {
	.name = "lesson",
	.run = cmd_lesson,
	.operands = "[N]",
	.what = "List the lessons of a course in RDMA, or run lesson N in a fabric of its own.",
	.options = options,
};
/* clang-format on */
