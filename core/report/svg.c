/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <talloc.h>

#include "core/report/page.h"

/* ---- text ---------------------------------------------------------------- */

/* Bytes of the UTF-8 character at s, 0: none */
static size_t utf8_length(const unsigned char *s)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 :
		   s[0] >= 0xe0 && s[0] < 0xf0 ? 3 :
		   s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
	size_t i;

	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80) {
			return 0;
		}
	}
	return n;
}

void page_text(FILE *f, const char *s)
{
	const unsigned char *p = (const unsigned char *)s;

	while (*p != '\0') {
		size_t n = utf8_length(p);

		if (*p == '&' || *p == '<' || *p == '>' || *p == '"' ||
		    *p == '\'') {
			fprintf(f, "&#%u;", *p);
		} else if (n == 0 || *p == 0x7f || (*p < ' ' && *p != '\n')) {
			fprintf(f, "\\x%02x", *p);
			n = 1;
		} else {
			fwrite(p, 1, n, f);
		}
		p += n;
	}
}

void page_printf(FILE *f, const char *format, ...)
{
	char *line = NULL;
	va_list ap;

	va_start(ap, format);
	line = talloc_vasprintf(NULL, format, ap);
	va_end(ap);
	page_text(f, line != NULL ? line : "");
	talloc_free(line);
}

/* ---- what all pictures have ---------------------------------------------- */

#define WIDTH 720.0
#define LEFT 90.0
#define RIGHT 20.0
#define TOP 10.0
#define PLOT_HEIGHT 220.0
#define BOTTOM 44.0
#define ROW 16.0

static void svg_begin(FILE *f, const char *title, double height)
{
	fprintf(f, "<figure><figcaption>");
	page_text(f, title);
	fprintf(f, "</figcaption>\n<svg viewBox=\"0 0 %.0f %.0f\" "
		"role=\"img\"><title>", WIDTH, height);
	page_text(f, title);
	fprintf(f, "</title>\n");
}

static void svg_end(FILE *f)
{
	fprintf(f, "</svg></figure>\n");
}

/* anchor: start, middle, end */
static void svg_label(FILE *f, double x, double y, const char *anchor,
		      const char *text)
{
	fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y,
		anchor);
	page_text(f, text);
	fprintf(f, "</text>\n");
}

static void svg_rule(FILE *f, double x1, double y1, double x2, double y2)
{
	fprintf(f, "<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" "
		"y2=\"%.1f\"/>\n", x1, y1, x2, y2);
}

static void svg_number(FILE *f, double x, double y, const char *anchor,
		       double n)
{
	char text[32];

	if (n >= 10000000) {
		snprintf(text, sizeof(text), "%.0fM", n / 1000000);
	} else if (n >= 10000) {
		snprintf(text, sizeof(text), "%.0fk", n / 1000);
	} else {
		snprintf(text, sizeof(text), "%.4g", n);
	}
	svg_label(f, x, y, anchor, text);
}

/* 1, 2 or 5 times a power of ten, so that about so many steps reach most */
static double nice_step(double most, unsigned steps, bool whole)
{
	double raw = most > 0 ? most / steps : 1;
	double power = pow(10, floor(log10(raw)));
	double step = raw / power <= 1 ? power : raw / power <= 2 ? 2 * power :
		      raw / power <= 5 ? 5 * power : 10 * power;

	return whole && step < 1 ? 1 : step;
}

/* ---- lines --------------------------------------------------------------- */

struct frame {
	double most_x, most_y;
};

static double frame_x(const struct frame *frame, double x)
{
	return LEFT + (WIDTH - LEFT - RIGHT) * x / frame->most_x;
}

static double frame_y(const struct frame *frame, double y)
{
	return TOP + PLOT_HEIGHT * (1 - y / frame->most_y);
}

static void frame_axes(FILE *f, const struct frame *frame, const char *x_name,
		       const char *y_name)
{
	double step = nice_step(frame->most_y, 4, false);
	double v;

	for (v = 0; v <= frame->most_y * 1.001; v += step) {
		svg_rule(f, LEFT, frame_y(frame, v), WIDTH - RIGHT,
			 frame_y(frame, v));
		svg_number(f, LEFT - 6, frame_y(frame, v) + 4, "end", v);
	}
	step = nice_step(frame->most_x, 10, true);
	for (v = 0; v <= frame->most_x * 1.001; v += step) {
		svg_number(f, frame_x(frame, v), TOP + PLOT_HEIGHT + 16,
			   "middle", v);
	}
	svg_label(f, WIDTH - RIGHT, TOP + PLOT_HEIGHT + 34, "end", x_name);
	svg_label(f, 4, TOP + PLOT_HEIGHT + 34, "start", y_name);
}

static void put_series(FILE *f, const struct frame *frame,
		       const struct svg_series *series, size_t number)
{
	size_t i;

	fprintf(f, "<polyline class=\"line s%zu\" points=\"", number % 4);
	for (i = 0; i < series->num; i++) {
		fprintf(f, "%.1f,%.1f ", frame_x(frame, series->points[i].x),
			frame_y(frame, series->points[i].y));
	}
	fprintf(f, "\"/>\n");
	for (i = 0; i < series->num; i++) {
		fprintf(f, "<circle class=\"dot s%zu\" cx=\"%.1f\" cy=\"%.1f\" "
			"r=\"3\"/>\n", number % 4,
			frame_x(frame, series->points[i].x),
			frame_y(frame, series->points[i].y));
	}
}

static void put_legend(FILE *f, const struct svg_series *series, size_t num)
{
	size_t i;

	fprintf(f, "<p class=\"legend\">");
	for (i = 0; i < num; i++) {
		fprintf(f, "<span class=\"key s%zu\"></span>", i % 4);
		page_text(f, series[i].name);
		fputc('\n', f);
	}
	fprintf(f, "</p>\n");
}

void svg_lines(FILE *f, const char *title, const char *x_name,
	       const char *y_name, const struct svg_series *series,
	       size_t num)
{
	struct frame frame = { 1, 1 };
	size_t i, j;

	for (i = 0; i < num; i++) {
		for (j = 0; j < series[i].num; j++) {
			frame.most_x = fmax(frame.most_x,
					    series[i].points[j].x);
			frame.most_y = fmax(frame.most_y,
					    series[i].points[j].y);
		}
	}
	svg_begin(f, title, TOP + PLOT_HEIGHT + BOTTOM);
	frame_axes(f, &frame, x_name, y_name);
	for (i = 0; i < num; i++) {
		put_series(f, &frame, &series[i], i);
	}
	svg_end(f);
	put_legend(f, series, num);
}

/* ---- dots ---------------------------------------------------------------- */

void svg_dots(FILE *f, const char *title, const char *x_name,
	      const struct svg_row *rows, size_t num)
{
	double least = HUGE_VAL, most = 0, from, to, v;
	double bottom = TOP + ROW * (double)num;
	size_t i, j;

	for (i = 0; i < num; i++) {
		for (j = 0; j < rows[i].num; j++) {
			least = fmin(least, rows[i].values[j]);
			most = fmax(most, rows[i].values[j]);
		}
	}
	from = floor(log10(fmax(fmin(least, most), 1e-4)));
	to = fmax(ceil(log10(fmax(most, 1e-4))), from + 1);
	svg_begin(f, title, bottom + BOTTOM);
	for (v = from; v <= to; v++) {
		double x = LEFT + (WIDTH - LEFT - RIGHT) * (v - from) /
				  (to - from);

		svg_rule(f, x, TOP, x, bottom);
		svg_number(f, x, bottom + 16, "middle", pow(10, v));
	}
	svg_label(f, WIDTH - RIGHT, bottom + 34, "end", x_name);
	for (i = 0; i < num; i++) {
		double y = TOP + ROW * ((double)i + 0.5);

		svg_label(f, LEFT - 6, y + 4, "end", rows[i].name);
		for (j = 0; j < rows[i].num; j++) {
			double at = log10(fmax(rows[i].values[j], 1e-4));

			fprintf(f, "<circle class=\"dot s0\" cx=\"%.1f\" "
				"cy=\"%.1f\" r=\"3\"/>\n",
				LEFT + (WIDTH - LEFT - RIGHT) * (at - from) /
				       (to - from), y);
		}
	}
	svg_end(f);
}

/* ---- matrix -------------------------------------------------------------- */

void svg_matrix(FILE *f, const char *title, const char *const *classes,
		size_t num)
{
	double cell = fmin(32, (WIDTH - 60) / (double)num);
	/* so that the numbers do not touch */
	size_t each = cell < 8 ? 8 : cell < 18 ? 4 : 1;
	char number[24];
	size_t i, j;

	svg_begin(f, title, 24 + cell * (double)num);
	for (i = 0; i < num; i += each) {
		double at = (double)i * cell + cell / 2;

		snprintf(number, sizeof(number), "%zu", i);
		svg_label(f, 40 + at, 14, "middle", number);
		svg_label(f, 34, 24 + at, "end", number);
	}
	for (i = 0; i < num; i++) {
		for (j = 0; j < num; j++) {
			const char *class = classes[i * num + j];

			fprintf(f, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" "
				"width=\"%.1f\" height=\"%.1f\"/>\n",
				class != NULL ? class : "none",
				40 + (double)j * cell, 20 + (double)i * cell,
				cell - 1, cell - 1);
		}
	}
	svg_end(f);
}
