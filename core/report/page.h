/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the page is written with: text that comes from outside, and pictures
 * as SVG
 *
 * A picture takes its colours from the page's style sheet, by class, and
 * shrinks to the page's width. Each has a title, which is also read aloud.
 */
#ifndef PINGPONG_REPORT_PAGE_H
#define PINGPONG_REPORT_PAGE_H

#include <stddef.h>
#include <stdio.h>

/* Escaped for text and for attributes; control characters and what is no
 * UTF-8 as \xNN */
void page_text(FILE *f, const char *s);

/* format: of this program, not from outside; each %s escaped */
void page_printf(FILE *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

struct svg_point {
	double x, y;
};

struct svg_series {
	const char *name;
	const struct svg_point *points;
	size_t num;
};

/* Lines with points; both axes begin at 0. x_marks: whole numbers only */
void svg_lines(FILE *f, const char *title, const char *x_name,
	       const char *y_name, const struct svg_series *series,
	       size_t num);

/* One row each, a dot for each value, on a logarithmic axis */
struct svg_row {
	const char *name;
	const double *values;
	size_t num;
};

void svg_dots(FILE *f, const char *title, const char *x_name,
	      const struct svg_row *rows, size_t num);

/* num x num cells; classes: of cell [row * num + column], NULL: empty */
void svg_matrix(FILE *f, const char *title, const char *const *classes,
		size_t num);

#endif
