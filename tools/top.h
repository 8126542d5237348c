/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Two views of a fabric, and what went on between them. */
#pragma once

#include "stall.h"

/* A QP, and its rates in the time between the views. */
struct top_row {
	const struct view_qp *qp;
	double packets, bytes, receives; /* a second */
	const struct stall *waits; /* NULL: for nothing */
};

struct top {
	const char *dir; /* the fabric's */
	struct view *before, *now;
	double seconds; /* between them */
	struct stalls stalls;
	struct top_row *row;
	uint32_t rows;
};

enum top_order {
	TOP_WAITS, /* who stalls first, and for longest */
	TOP_PID,
	TOP_NAME,
	TOP_QPN,
	TOP_PACKETS,
	TOP_BYTES,
	TOP_ORDERS
};

/*
 * A view more; false: there is no fabric.  Nothing is compared before the
 * second one.
 */
bool top_look(struct top *t, bool quiet);
void top_sort(struct top *t, enum top_order order);
void top_close(struct top *t);
/* Of all QPs together. */
double top_counter(const struct top *t, enum urxe_counter which);

/* As a table; columns 0: as wide as it gets.  From row `first` on. */
void top_print(const struct top *t, FILE *to, int columns, int lines,
	       uint32_t first);
void top_print_json(const struct top *t, FILE *to);
/* On a terminal, until q; the exit code. */
int top_run(struct top *t, enum top_order order, double delay);
