/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The model of urxe top: two successive views of a fabric (view.h), the rates
 * between them, and the waits (stall.h). top.c fills it, top_print.c prints
 * it as a table or as JSON, and top_screen.c runs it on a terminal.
 */
#pragma once

#include "why/stall.h"

/* A QP, and its rates between the two views. */
struct top_row {
	const struct view_qp *qp;
	double packets, bytes, receives; /* per second */
	const struct stall *waits; /* NULL: the QP does not wait */
};

struct top {
	const char *dir; /* directory of the fabric */
	struct view *before, *now;
	double seconds; /* between the views */
	struct stalls stalls;
	struct top_row *row;
	uint32_t rows;
};

enum top_order {
	TOP_WAITS, /* QPs that stall first, longest wait first */
	TOP_PID,
	TOP_NAME,
	TOP_QPN,
	TOP_PACKETS,
	TOP_BYTES,
	TOP_ORDERS
};

/*
 * Take another view. Return false if the fabric does not exist; this is
 * logged unless @quiet. Rates and waits are available from the second call
 * on.
 */
bool top_refresh(struct top *t, bool quiet);
void top_sort(struct top *t, enum top_order order);
void top_close(struct top *t);
/* Rate per second of a counter of the port: all QPs together. */
double top_counter(const struct top *t, enum urxe_counter which);

/*
 * Print the table of QPs from row @first on, cut to @columns and @lines. If
 * @columns is 0, nothing is cut and no escape sequences are written.
 */
void top_print(const struct top *t, FILE *to, int columns, int lines,
	       uint32_t first);
void top_print_json(const struct top *t, FILE *to);
/*
 * Run on a terminal until q is typed or a signal arrives. Return the exit
 * code.
 */
int top_run(struct top *t, enum top_order order, double delay);
