/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The charts as SVG, one below the other.  Both axes are logarithmic, and the
 * name of each line is at its end.  The colour shows the implementation.  A
 * media query selects light or dark colours.
 */
#include <math.h>
#include <string.h>

#include "rows.h"

#define WIDTH 900
#define HEAD 62 /* above the first chart */
#define PANEL 372 /* height of a chart, with its title and its axis */
#define LEFT 84
#define RIGHT 680 /* right edge of the plot; the names follow it */
#define TOP 34 /* of the plot, within its panel */
#define BOTTOM 318
#define NAME_APART 16 /* minimum distance of two names */
#define MAX_SERIES 16

static const char style[] =
	"<style>"
	"svg{--page:#fff;--ink:#1f2328;--faint:#59636e;--grid:#e3e6ea;"
	"--c0:#6e7781;--c1:#0550ae;--c2:#bc4c00;--c3:#8250df}"
	"@media(prefers-color-scheme:dark){"
	"svg{--page:#0d1117;--ink:#e6edf3;--faint:#9198a1;--grid:#262c36;"
	"--c0:#a5adb8;--c1:#6cb6ff;--c2:#ffa657;--c3:#d2a8ff}}"
	"text{font:13px system-ui,-apple-system,'Segoe UI',sans-serif;"
	"fill:var(--ink)}"
	".h{font-size:16px;font-weight:600}.t{font-weight:600}"
	".f{fill:var(--faint);font-size:12px}"
	".g{stroke:var(--grid);fill:none}"
	".s{fill:none;stroke-width:2;stroke-linejoin:round}"
	".l{stroke-width:1;opacity:.5}"
	"</style>\n";

/* Dash patterns of the series with the same colour; the first is solid */
static const char *const dashes[] = { "", "7 4", "2 4" };

struct line {
	int first, end; /* rows */
	int nth; /* index among the lines of its colour */
	double end_y, name_y; /* y of its last point and of its name */
};

struct panel {
	enum chart chart;
	enum regime regime;
	double top; /* y in the picture */
	double x_min, x_max, y_min, y_max; /* limits of the axes */
	struct line lines[MAX_SERIES];
	int n;
};

static double value(const struct panel *p, int row)
{
	return row_figure(p->regime, row).median;
}

static double share(double v, double min, double max)
{
	return log(v / min) / log(max / min);
}

static double x_of(const struct panel *p, double v)
{
	return LEFT + share(v, p->x_min, p->x_max) * (RIGHT - LEFT);
}

static double y_of(const struct panel *p, double v)
{
	return p->top + BOTTOM - share(v, p->y_min, p->y_max) * (BOTTOM - TOP);
}

/* Return whether the line has one value for all list lengths (UCX). */
static bool is_flat(const struct line *l)
{
	return rows[l->first].chart == CHART_RATE && !rows[l->first].fn;
}

static void panel_add(struct panel *p, int first)
{
	struct line *l = &p->lines[p->n];
	int i, drawn = 0;
	double v;

	*l = (struct line){ .first = first, .end = series_end(first) };
	for (i = first; i < l->end; i++) {
		v = value(p, i);
		if (isnan(v))
			continue;
		drawn++;
		p->y_min = fmin(p->y_min, v);
		p->y_max = fmax(p->y_max, v);
		if (is_flat(l))
			continue;
		p->x_min = fmin(p->x_min, rows[i].size);
		p->x_max = fmax(p->x_max, rows[i].size);
	}
	for (i = 0; i < p->n; i++)
		l->nth += rows[p->lines[i].first].who == rows[first].who;
	if (drawn && p->n < MAX_SERIES)
		p->n++;
}

/*
 * Return 1, 2 or 5 times a power of ten: the nearest that is at least @v if
 * @up, else at most @v.
 */
static double round_number(double v, bool up)
{
	double ten = pow(10, floor(log10(v) + 1e-9));
	double m = v / ten;

	if (up)
		m = m <= 1.0001 ? 1 : m <= 2 ? 2 : m <= 5 ? 5 : 10;
	else
		m = m >= 5 ? 5 : m >= 2 ? 2 : 1;
	return m * ten;
}

static void panel_make(struct panel *p, const struct run *r, enum chart c,
		       double top)
{
	int i;

	*p = (struct panel){ .chart = c,
			     .regime = run_best_regime(r),
			     .top = top,
			     .x_min = INFINITY,
			     .y_min = INFINITY };
	for (i = chart_series(c, 0); i < n_rows;
	     i = chart_series(c, series_end(i)))
		panel_add(p, i);
	p->y_min = round_number(p->y_min * 0.98, false);
	p->y_max = round_number(p->y_max * 1.02, true);
}

/* Escape the text: strings from /proc may contain any characters. */
static void put_text(FILE *to, const char *s)
{
	for (; *s; s++)
		if (*s == '&' || *s == '<')
			fprintf(to, "&#%d;", *s);
		else
			fputc(*s, to);
}

/* Format a value in the unit that makes the number shortest. */
static void y_name(enum chart c, double v, char *s, size_t len)
{
	const char *const units[3][3] = { { "ns", "µs", "ms" },
					  { "MB/s", "GB/s", "TB/s" },
					  { "k/s", "M/s", "G/s" } };
	int k = 0;

	if (c != CHART_LATENCY)
		v *= 1000;
	for (; v > 999 && k < 2; k++)
		v /= 1000;
	snprintf(s, len, "%.3g %s", v, units[c - FIRST_CHART][k]);
}

static void x_name(enum chart c, uint32_t v, char *s, size_t len)
{
	if (c == CHART_RATE)
		snprintf(s, len, "%u", v);
	else if (v >= 1u << 20)
		snprintf(s, len, "%u MiB", v >> 20);
	else if (v >= 1024)
		snprintf(s, len, "%u KiB", v >> 10);
	else
		snprintf(s, len, "%u B", v);
}

static void draw_y_axis(FILE *to, const struct panel *p)
{
	/* a wide range has only powers of ten, others 1, 2 and 5 */
	const bool wide = p->y_max / p->y_min > 2000;
	double v, y;
	char s[32];

	for (v = p->y_min; v < p->y_max * 1.001;
	     v = round_number(v * 1.01, true)) {
		if (wide && fabs(log10(v) - round(log10(v))) > 1e-6)
			continue;
		y = y_of(p, v);
		y_name(p->chart, v, s, sizeof(s));
		fprintf(to,
			"<path class='g' d='M%d %.1fH%d'/><text class='f' "
			"x='%d' y='%.1f' text-anchor='end'>%s</text>\n",
			LEFT, y, RIGHT, LEFT - 8, y + 4, s);
	}
}

static void draw_x_axis(FILE *to, const struct panel *p)
{
	int i = p->lines[0].first;
	char s[32];

	for (; i < p->lines[0].end; i++) {
		x_name(p->chart, rows[i].size, s, sizeof(s));
		fprintf(to,
			"<path class='g' d='M%.1f %.1fv%d'/><text class='f' "
			"x='%.1f' y='%.1f' text-anchor='middle'>%s</text>\n",
			x_of(p, rows[i].size), p->top + TOP, BOTTOM - TOP,
			x_of(p, rows[i].size), p->top + BOTTOM + 18, s);
	}
	if (p->chart == CHART_RATE)
		fprintf(to,
			"<text class='f' x='%d' y='%.1f' "
			"text-anchor='middle'>%s</text>\n",
			(LEFT + RIGHT) / 2, p->top + BOTTOM + 36,
			chart_x(p->chart));
}

static void draw_line(FILE *to, const struct panel *p, struct line *l)
{
	const struct row *row = &rows[l->first];
	char command = 'M';
	int i;

	fprintf(to,
		"<g style='stroke:var(--c%d)'><title>%s</title>"
		"<path class='s' stroke-dasharray='%s' d='",
		row->who, row->name, dashes[l->nth % 3]);
	for (i = l->first; i < l->end; i++) {
		if (isnan(value(p, i)))
			continue;
		l->end_y = y_of(p, value(p, i));
		fprintf(to, "%c%.1f %.1f", command,
			is_flat(l) ? LEFT : x_of(p, rows[i].size), l->end_y);
		command = 'L';
	}
	if (is_flat(l))
		fprintf(to, "H%d", RIGHT);
	fputs("'/></g>\n", to);
}

static void sort_by_end(struct line *l, int n)
{
	struct line swap;
	int i, k;

	for (i = 1; i < n; i++)
		for (k = i; k && l[k].end_y < l[k - 1].end_y; k--) {
			swap = l[k];
			l[k] = l[k - 1];
			l[k - 1] = swap;
		}
}

/*
 * Place each name next to the end of its line, and at least NAME_APART from
 * other names.  The names above limit it from above, and the names below
 * limit it from below.
 */
static void place_names(struct panel *p)
{
	double down[MAX_SERIES], up = p->top + BOTTOM + NAME_APART;
	struct line *l = p->lines;
	int i;

	sort_by_end(l, p->n);
	for (i = 0; i < p->n; i++)
		down[i] = i ? fmax(l[i].end_y, down[i - 1] + NAME_APART) :
			      l[i].end_y;
	for (i = p->n - 1; i >= 0; i--) {
		up = fmin(l[i].end_y, up - NAME_APART);
		l[i].name_y = (down[i] + up) / 2;
	}
}

static void draw_name(FILE *to, const struct line *l)
{
	const struct row *row = &rows[l->first];

	fprintf(to,
		"<path class='l' style='stroke:var(--c%d)' d='M%d %.1fL%d "
		"%.1f'/><text style='fill:var(--c%d)' x='%d' "
		"y='%.1f'>%s</text>\n",
		row->who, RIGHT + 2, l->end_y, RIGHT + 14, l->name_y, row->who,
		RIGHT + 18, l->name_y + 4, row->name);
}

static void draw_panel(FILE *to, struct panel *p)
{
	int i;

	fprintf(to, "<text class='t' x='%d' y='%.1f'>%s%s</text>\n", LEFT,
		p->top + TOP - 12, chart_title(p->chart),
		p->chart == CHART_RATE ? "" : ", by size of the message");
	if (!p->n)
		return;
	draw_y_axis(to, p);
	draw_x_axis(to, p);
	for (i = 0; i < p->n; i++)
		draw_line(to, p, &p->lines[i]);
	place_names(p);
	for (i = 0; i < p->n; i++)
		draw_name(to, &p->lines[i]);
}

void print_svg(FILE *to, const struct run *r)
{
	const int height = HEAD + (LAST_CHART - FIRST_CHART + 1) * PANEL;
	struct panel p;
	int c;

	fprintf(to,
		"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' "
		"width='%d' height='%d' role='img'>\n"
		"<title>urxe bench: latency, bandwidth and message rate</title>"
		"\n%s"
		"<rect width='100%%' height='100%%' "
		"style='fill:var(--page)'/>\n",
		WIDTH, height, WIDTH, height, style);
	fprintf(to,
		"<text class='h' x='24' y='30'>urxe between two processes of "
		"one machine</text>\n"
		"<text class='f' x='24' y='50'>");
	put_text(to, r->cpu);
	fprintf(to, ", %s, %s; %s priority, medians of %d rounds</text>\n",
		r->kernel, r->date, regime_name(run_best_regime(r)), r->rounds);
	for (c = FIRST_CHART; c <= LAST_CHART; c++) {
		panel_make(&p, r, c, HEAD + (c - FIRST_CHART) * PANEL);
		draw_panel(to, &p);
	}
	fputs("</svg>\n", to);
}
