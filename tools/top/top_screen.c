// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * urxe top on a terminal.
 *
 * Signals are blocked except during ppoll(2), so a handler only stores the
 * signal number in `caught_signal`. The terminal settings are restored before
 * the process stops or exits.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "common/commands.h"
#include "top.h"

/* Switch to the alternate screen and hide the cursor; and back. */
#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[?25h\033[?1049l"

/* signal that interrupted the last ppoll(), or 0 */
static _Atomic int caught_signal;
static_assert(ATOMIC_INT_LOCK_FREE == 2, "a handler stores it");

static void note(int sig)
{
	store_relaxed(&caught_signal, sig);
}

struct screen {
	struct termios before;
	sigset_t open; /* signal mask during ppoll() */
	uint32_t first; /* first row shown */
	enum top_order order;
	double delay;
};

static void put(const char *text, size_t n)
{
	ssize_t done;

	for (; n; text += done, n -= (size_t)done) {
		done = write(STDOUT_FILENO, text, n);
		if (done < 0 && errno == EINTR)
			done = 0;
		else if (done < 0)
			/* the terminal is gone; the process exits soon */
			return;
	}
}

static void screen_enter(struct screen *s)
{
	struct termios raw;

	tcgetattr(STDIN_FILENO, &s->before);
	raw = s->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
	put(ENTER, strlen(ENTER));
}

static void screen_leave(const struct screen *s)
{
	put(LEAVE, strlen(LEAVE));
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &s->before);
}

static void signals_take(struct screen *s)
{
	static const int taken[] = { SIGINT,  SIGTERM,	SIGHUP, SIGQUIT,
				     SIGTSTP, SIGWINCH, SIGCONT };
	struct sigaction sa = { .sa_handler = note }, old;
	sigset_t set;
	unsigned int i;

	sigemptyset(&set);
	/* one signal for each ppoll(); the others stay pending */
	sigfillset(&sa.sa_mask);
	for (i = 0; i < sizeof(taken) / sizeof(*taken); i++) {
		if (!sigaction(taken[i], NULL, &old) &&
		    old.sa_handler == SIG_IGN)
			continue;
		sigaction(taken[i], &sa, NULL);
		sigaddset(&set, taken[i]);
	}
	sigprocmask(SIG_BLOCK, &set, &s->open);
}

/*
 * Perform the default action of the signal: terminate, or stop until SIGCONT.
 */
static void signal_obey(int sig)
{
	struct sigaction def = { .sa_handler = SIG_DFL }, ours;
	sigset_t it;

	sigaction(sig, &def, &ours);
	raise(sig);
	sigemptyset(&it);
	sigaddset(&it, sig);
	sigprocmask(SIG_UNBLOCK, &it, NULL); /* delivered here */
	sigprocmask(SIG_BLOCK, &it, NULL);
	sigaction(sig, &ours, NULL);
}

static void screen_draw(const struct screen *s, const struct top *t)
{
	struct winsize size = { 0 };
	char *text = NULL;
	size_t n = 0;
	FILE *to;

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	to = open_memstream(&text, &n);
	if (!to)
		return;
	fputs("\033[H", to);
	top_print(t, to, size.ws_col ? size.ws_col : 80,
		  size.ws_row ? size.ws_row : 24, s->first);
	fputs("\033[J", to);
	if (!fclose(to))
		put(text, n);
	free(text);
}

/* Handle a key. Return false to quit. */
static bool screen_key(struct screen *s, const struct top *t, char key)
{
	/* keys of orders[], in the same order; q quits instead */
	static const char keys[] = "wpnqob";
	static const enum top_order orders[] = { TOP_WAITS,   TOP_PID,
						 TOP_NAME,    TOP_ORDERS,
						 TOP_PACKETS, TOP_BYTES };
	const char *at = key ? strchr(keys, key) : NULL;

	if (key == 'q')
		return false;
	if (at)
		s->order = orders[at - keys];
	else if (key == 'i')
		s->order = TOP_QPN;
	else if ((key == 'j' || key == 'B') && s->first + 1 < t->rows)
		s->first++;
	else if ((key == 'k' || key == 'A') && s->first)
		s->first--;
	return true;
}

/*
 * Handle keys and signals until the next view is due. Return false to quit;
 * *sig is then the signal to obey, or 0.
 */
static bool screen_wait(struct screen *s, struct top *t, int *sig)
{
	const uint64_t until = clock_now() + (uint64_t)(s->delay * 1e9);
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	uint64_t now;
	struct timespec ts;
	char key;
	int n;

	for (;;) {
		now = clock_now();
		if (now >= until)
			return true;
		ts.tv_sec = (time_t)((until - now) / 1000000000);
		ts.tv_nsec = (long)((until - now) % 1000000000);
		n = ppoll(&in, 1, &ts, &s->open);
		*sig = exchange_relaxed(&caught_signal, 0);
		if (*sig == SIGTSTP) {
			screen_leave(s);
			signal_obey(SIGTSTP);
			screen_enter(s);
		} else if (*sig && *sig != SIGWINCH && *sig != SIGCONT) {
			return false;
		} else if (!*sig && n <= 0) {
			continue;
		}
		*sig = 0;
		if (n > 0 && (read(STDIN_FILENO, &key, 1) != 1 ||
			      !screen_key(s, t, key)))
			return false;
		top_sort(t, s->order);
		screen_draw(s, t);
	}
}

int top_run(struct top *t, enum top_order order, double delay)
{
	struct screen s = { .order = order, .delay = delay };
	bool running;
	int sig = 0;

	/* take the first two views quickly, so that rates show early */
	if (!top_refresh(t, false))
		return EXIT_USAGE;
	usleep(200000);
	signals_take(&s);
	screen_enter(&s);
	do {
		running = top_refresh(t, true);
		if (!running)
			break;
		top_sort(t, s.order);
		if (s.first >= t->rows)
			s.first = 0;
		screen_draw(&s, t);
		running = screen_wait(&s, t, &sig);
	} while (running);
	screen_leave(&s);
	if (sig)
		signal_obey(sig);
	return 0;
}
