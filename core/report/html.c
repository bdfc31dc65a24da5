/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <string.h>

#include "core/config.h"
#include "core/report/page.h"
#include "core/report/report.h"

static const char style[] =
	":root{color-scheme:light dark;--fg:#1b1b1b;--bg:#fff;--dim:#5c5c5c;"
	"--rule:#d8d8d8;--good:#1a7f37;--bad:#c62828;--unsure:#9a6700;"
	"--c0:#1f6fb2;--c1:#c2570c;--c2:#2e7d32;--c3:#7b4fb0}\n"
	"@media(prefers-color-scheme:dark){:root{--fg:#e6e6e6;--bg:#161616;"
	"--dim:#a0a0a0;--rule:#3a3a3a;--good:#5ccb74;--bad:#ff7b72;"
	"--unsure:#e3b341;--c0:#6cb6ff;--c1:#ffa657;--c2:#7ee787;"
	"--c3:#d2a8ff}}\n"
	"@media print{:root{--fg:#000;--bg:#fff;--dim:#444;--rule:#bbb;"
	"--good:#1a7f37;--bad:#c62828;--unsure:#7a5200;--c0:#1f6fb2;"
	"--c1:#c2570c;--c2:#2e7d32;--c3:#7b4fb0}"
	"figure,tr,.check{break-inside:avoid}}\n"
	"body{font:16px/1.45 system-ui,sans-serif;color:var(--fg);"
	"background:var(--bg);max-width:60rem;margin:0 auto;padding:1rem;"
	"overflow-wrap:anywhere}\n"
	"h1{font-size:1.5rem;margin:.2em 0}h2{font-size:1.15rem;"
	"margin:1.6em 0 .4em;border-bottom:1px solid var(--rule)}\n"
	".good{color:var(--good)}.bad{color:var(--bad)}"
	".unsure{color:var(--unsure)}.dim{color:var(--dim)}\n"
	".wide{overflow-x:auto}table{border-collapse:collapse;width:100%}"
	"td,th{text-align:left;vertical-align:top;padding:.25em .8em .25em 0;"
	"border-bottom:1px solid var(--rule)}"
	"td,th{overflow-wrap:break-word}.long{overflow-wrap:anywhere;"
	"min-width:6em}.list{overflow-wrap:anywhere;min-width:18em}"
	"td:first-child,.word{white-space:nowrap}\n"
	"pre,code{font:.85em/1.4 ui-monospace,monospace}"
	"pre{white-space:pre-wrap;margin:.3em 0 .3em 1em}"
	"dl{margin:.3em 0 .3em 1em;display:grid;"
	"grid-template-columns:max-content 1fr;gap:0 1em}dd{margin:0}\n"
	"figure{margin:1em 0 0}figcaption{font-weight:600}"
	"svg{width:100%;height:auto;max-width:720px}"
	"svg text{font:12px system-ui,sans-serif;fill:var(--dim)}"
	".grid{stroke:var(--rule)}.line{fill:none;stroke-width:2}\n"
	".line.s0{stroke:var(--c0)}.line.s1{stroke:var(--c1)}"
	".line.s2{stroke:var(--c2)}.line.s3{stroke:var(--c3)}"
	".dot.s0{fill:var(--c0)}.dot.s1{fill:var(--c1)}"
	".dot.s2{fill:var(--c2)}.dot.s3{fill:var(--c3)}\n"
	".key{display:inline-block;width:.8em;height:.8em;margin:0 .4em 0 1em}"
	".key.s0{background:var(--c0)}.key.s1{background:var(--c1)}"
	".key.s2{background:var(--c2)}.key.s3{background:var(--c3)}"
	".key.pass{background:var(--good)}.key.fail{background:var(--bad)}"
	".key.slow{background:var(--unsure)}.key.none{background:var(--rule)}\n"
	".legend{margin:.2em 0;print-color-adjust:exact}"
	"rect.pass{fill:var(--good)}rect.fail{fill:var(--bad)}"
	"rect.slow{fill:var(--unsure)}rect.none{fill:var(--rule)}\n";

/* ---- the verdict --------------------------------------------------------- */

static const struct {
	const char *words;
	const char *class;
} headlines[] = {
	{ "Fit", "good" },
	{ "Fit with the settings below", "unsure" },
	{ "Unfit", "bad" },
	{ "Unfit, it hangs", "bad" },
	{ "Unknown", "unsure" },
};

static void put_places(FILE *f, const struct report *report)
{
	size_t i;

	fprintf(f, "<p class=\"dim\">");
	for (i = 0; report->places[i] != NULL && i < 8; i++) {
		fprintf(f, "%s<code>", i > 0 ? " " : "");
		page_text(f, report->places[i]);
		fprintf(f, "</code>");
	}
	if (report->places[i] != NULL) {
		fprintf(f, " ... (%zu members)", report->input->num_members);
	}
	fprintf(f, "</p>\n");
}

static void put_headline(FILE *f, const struct report *report)
{
	int status = verdict_exit(report->verdict, report->uses);
	char *uses = report_deciding(NULL, report);

	fprintf(f, "<h1 class=\"%s\">%s: ", headlines[status].class,
		headlines[status].words);
	page_text(f, uses != NULL ? uses : "");
	fprintf(f, "</h1>\n");
	talloc_free(uses);
	put_places(f, report);
}

static const char *fitness_class(const struct use_verdict *v)
{
	switch (v->fitness) {
	case FIT:
		return "good";
	case UNFIT:
		return v->mended_by[0] != NULL ? "unsure" : "bad";
	default:
		return "unsure";
	}
}

static void put_use(FILE *f, const struct report *report, enum use use)
{
	const struct use_verdict *v = &report->verdict->uses[use];
	const char *const *name = NULL;

	fprintf(f, "<tr><td>%s%s</td><td class=\"word %s\">%s</td><td>",
		use_name(use),
		(report->uses & USE_BIT(use)) == 0 ? " <span class=\"dim\">"
		"(not asked for)</span>" : "", fitness_class(v),
		fitness_name(v->fitness));
	page_text(f, v->reason != NULL ? v->reason : "");
	for (name = v->mended_by; *name != NULL; name++) {
		fprintf(f, "%s<code>", name == v->mended_by
				       ? "; mended by " : ", ");
		page_text(f, *name);
		fprintf(f, "</code>");
	}
	fprintf(f, "</td></tr>\n");
}

static void put_uses(FILE *f, const struct report *report)
{
	unsigned i;

	fprintf(f, "<div class=\"wide\"><table>\n");
	for (i = 0; i < USE_COUNT; i++) {
		if (report_tells(report, i)) {
			put_use(f, report, i);
		}
	}
	fprintf(f, "</table></div>\n");
}

/* ---- settings ------------------------------------------------------------ */

static void put_setting(FILE *f, const struct report *report,
			const struct setting *s)
{
	const char *what = !s->needed ? "advice" :
			   report_mends(report, s) ? "to change" :
			   (s->uses & report->uses) != 0 ? "a likely cause"
			   : "not for what was asked";

	fprintf(f, "<tr><td>%s</td><td><code>", what);
	if (strcmp(s->file, "mount options") == 0) {
		page_printf(f, "mount %s: %s%s%s", s->section, s->parameter,
			    s->value[0] != '\0' ? " -> " : " left out",
			    s->value);
	} else {
		page_printf(f, "%s [%s] %s = %s", s->file, s->section,
			    s->parameter, s->value);
	}
	fprintf(f, "</code><br>");
	page_text(f, s->because);
	fprintf(f, "</td></tr>\n");
}

static void put_settings(FILE *f, const struct report *report)
{
	const struct verdict *v = report->verdict;
	size_t i;

	fprintf(f, "<h2>Settings</h2>\n");
	if (report->exit == 2 || report->exit == 3) {
		char *uses = report_deciding(NULL, report);

		fprintf(f, "<p>None is known that mends ");
		page_text(f, uses != NULL ? uses : "it");
		fprintf(f, ".</p>\n");
		talloc_free(uses);
	} else if (v->num_settings == 0) {
		fprintf(f, "<p>None to change.</p>\n");
	}
	if (v->num_settings > 0) {
		fprintf(f, "<div class=\"wide\"><table>\n");
		for (i = 0; i < v->num_settings; i++) {
			put_setting(f, report, &v->settings[i]);
		}
		fprintf(f, "</table></div>\n");
	}
}

/* ---- members ------------------------------------------------------------- */

static void put_cell(FILE *f, const char *class, const char *text)
{
	fprintf(f, "<td class=\"%s\">", class);
	page_text(f, text);
	fprintf(f, "</td>");
}

static void put_members(FILE *f, const struct verdict_input *input)
{
	size_t i;

	fprintf(f, "<h2>Members</h2>\n<div class=\"wide\"><table><tr><th>"
		"<th>place<th>type<th>source<th>device<th>host<th>Linux"
		"<th>mount options</tr>\n");
	for (i = 0; i < input->num_members; i++) {
		const struct member_info *m = input->members[i];

		fprintf(f, "<tr><td>%u</td>", m->number);
		put_cell(f, "long", m->name);
		put_cell(f, "word", m->fstype);
		put_cell(f, "long", m->source);
		fprintf(f, "<td class=\"word\">%u:%u</td>", m->major, m->minor);
		put_cell(f, "word", m->host);
		put_cell(f, "word", m->kernel);
		put_cell(f, "list", m->options);
		fprintf(f, "</tr>\n");
	}
	fprintf(f, "</table></div>\n");
	if (!input->same_directory && input->not_same != NULL) {
		fprintf(f, "<p class=\"bad\">");
		page_text(f, input->not_same);
		fprintf(f, "</p>\n");
	}
}

/* ---- checks -------------------------------------------------------------- */

static void put_evidence(FILE *f, const struct evidence *e)
{
	const struct {
		const char *name;
		const char *value;
	} lines[] = {
		{ "operation", e->operation }, { "member", e->member },
		{ "range", e->range }, { "expected", e->expected },
		{ "seen", e->seen },
	};
	size_t i;

	fprintf(f, "<dl>");
	for (i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		if (lines[i].value != NULL) {
			fprintf(f, "<dt class=\"dim\">%s</dt><dd>",
				lines[i].name);
			page_text(f, lines[i].value);
			fprintf(f, "</dd>");
		}
	}
	fprintf(f, "</dl>");
	if (e->detail != NULL) {
		fprintf(f, "<pre>");
		page_text(f, e->detail);
		fprintf(f, "</pre>");
	}
}

static void put_numbers(FILE *f, const struct check_result *r)
{
	const char *name = NULL, *comma = "";
	json_t *value = NULL;

	json_object_foreach(r->metrics, name, value) {
		if (json_is_number(value)) {
			fprintf(f, "%s", comma);
			page_printf(f, "%s %.6g", name,
				    json_number_value(value));
			comma = ", ";
		}
	}
}

static void put_check(FILE *f, const struct check_result *r)
{
	bool broken = verdict_broken(r);

	fprintf(f, "<tr class=\"check\"><td>");
	page_text(f, r->check->name);
	fprintf(f, "</td><td class=\"word %s\">%s</td><td>",
		broken ? "bad" : r->outcome == OUTCOME_PASS ? "good"
		: "unsure", outcome_name(r->outcome));
	if (r->why != NULL) {
		page_text(f, r->why);
	} else {
		fprintf(f, "<span class=\"dim\">");
		page_text(f, r->check->holds != NULL ? r->check->holds : "");
		fprintf(f, "</span>");
	}
	if (r->outcome != OUTCOME_PASS && r->outcome != OUTCOME_SKIPPED) {
		put_evidence(f, &r->evidence);
	}
	fprintf(f, "<div class=\"dim\">");
	put_numbers(f, r);
	fprintf(f, "</div></td></tr>\n");
}

static void put_checks(FILE *f, const struct verdict_input *input)
{
	size_t i;

	fprintf(f, "<h2>Checks</h2>\n<div class=\"wide\"><table>\n");
	for (i = 0; i < input->num_results; i++) {
		put_check(f, input->results[i]);
	}
	fprintf(f, "</table></div>\n");
}

/* ---- pictures ------------------------------------------------------------ */

#define SERIES_MAX 4

struct plot {
	TALLOC_CTX *mem_ctx;
	struct svg_series series[SERIES_MAX];
	size_t num;
};

static void plot_point(struct svg_series *series, TALLOC_CTX *mem_ctx,
		       double x, double y)
{
	struct svg_point *points = talloc_realloc(
		mem_ctx, (struct svg_point *)series->points, struct svg_point,
		series->num + 1);

	if (points == NULL) {
		return;
	}
	points[series->num++] = (struct svg_point){ x, y };
	series->points = points;
}

static struct svg_series *plot_series(struct plot *plot, const char *name)
{
	struct svg_series *series = &plot->series[plot->num];

	if (plot->num == SERIES_MAX) {
		return NULL;
	}
	plot->num++;
	series->name = name;
	return series;
}

static double number_of(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

static const char *mode_of(const struct check_result *r)
{
	const char *mode = json_string_value(
		json_object_get(r->metrics, "mode"));

	return mode != NULL ? mode : r->check->name;
}

/* Of a sweep's seconds, or of a check's slices */
static void add_rates(struct plot *plot, const struct check_result *r)
{
	const json_t *slices = json_object_get(r->metrics, "slices_per_s");
	const json_t *steps = json_object_get(r->metrics, "steps");
	const json_t *step = NULL, *rate = NULL;
	struct svg_series *series = NULL;
	size_t i, j;

	if (!json_is_array(slices) && !json_is_array(steps)) {
		return;
	}
	series = plot_series(plot, mode_of(r));
	if (series == NULL) {
		return;
	}
	json_array_foreach(slices, i, rate) {
		plot_point(series, plot->mem_ctx, (double)i + 1,
			   json_number_value(rate));
	}
	json_array_foreach(steps, i, step) {
		json_array_foreach(json_object_get(step, "rates"), j, rate) {
			plot_point(series, plot->mem_ctx,
				   (double)series->num + 1,
				   json_number_value(rate));
		}
	}
}

static void put_rates(FILE *f, TALLOC_CTX *mem_ctx,
		      const struct verdict_input *input)
{
	struct plot plot = { .mem_ctx = mem_ctx };
	bool sweep = input->catalogue != NULL;
	size_t i;

	for (i = 0; i < input->num_results; i++) {
		add_rates(&plot, input->results[i]);
	}
	if (plot.num > 0) {
		svg_lines(f, "Rates over time", sweep
			  ? "second (members join, then leave)"
			  : "slice of the ring, one after the other",
			  "turns a second, all members together", plot.series,
			  plot.num);
	}
}

/* The way up of a sweep; of a check what it has measured alone and together */
static void add_curve(struct plot *plot, const struct check_result *r,
		      size_t members)
{
	const json_t *steps = json_object_get(r->metrics, "steps");
	double together = number_of(r->metrics, "together_turns_per_s");
	struct svg_series *series = NULL;
	const json_t *step = NULL;
	size_t i, up = (json_array_size(steps) + 1) / 2;

	if (!json_is_array(steps) && together == 0) {
		return;
	}
	series = plot_series(plot, mode_of(r));
	if (series == NULL) {
		return;
	}
	if (together > 0) {
		plot_point(series, plot->mem_ctx, 1,
			   number_of(r->metrics, "alone_turns_per_s"));
		plot_point(series, plot->mem_ctx, (double)members, together);
	}
	json_array_foreach(steps, i, step) {
		if (i < up) {
			plot_point(series, plot->mem_ctx,
				   number_of(step, "members"),
				   number_of(step, "rate"));
		}
	}
}

static void put_curve(FILE *f, TALLOC_CTX *mem_ctx,
		      const struct verdict_input *input)
{
	struct plot plot = { .mem_ctx = mem_ctx };
	size_t i;

	for (i = 0; i < input->num_results; i++) {
		if (strcmp(input->results[i]->check->name,
			   "rate.recovery") != 0) {
			add_curve(&plot, input->results[i],
				  input->num_members);
		}
	}
	if (plot.num > 0) {
		svg_lines(f, "Rate by members", "members",
			  "turns a second, all members together", plot.series,
			  plot.num);
	}
}

static void put_handover(FILE *f, TALLOC_CTX *mem_ctx,
			 const struct verdict_input *input)
{
	const struct check_result *r = verdict_result(input, "lock.handoff");
	const json_t *pairs = r != NULL
		? json_object_get(r->metrics, "handover_pairs") : NULL;
	size_t i, j, num = json_array_size(pairs);
	struct svg_row *rows = talloc_zero_array(mem_ctx, struct svg_row, num);
	const json_t *pair = NULL, *ms = NULL;

	if (num == 0 || rows == NULL) {
		return;
	}
	json_array_foreach(pairs, i, pair) {
		const json_t *list = json_object_get(pair, "ms");
		const json_t *who = json_object_get(pair, "members");
		double *values = talloc_zero_array(rows, double,
						   json_array_size(list));

		if (values == NULL) {
			return;
		}
		json_array_foreach(list, j, ms) {
			values[j] = json_number_value(ms);
		}
		rows[i] = (struct svg_row){
			.name = talloc_asprintf(
				rows, "%lld and %lld",
				(long long)json_integer_value(
					json_array_get(who, 0)),
				(long long)json_integer_value(
					json_array_get(who, 1))),
			.values = values,
			.num = json_array_size(list),
		};
	}
	svg_dots(f, "Hand-over of a lock, by pair of members", "ms from unlock "
		 "to grant", rows, num);
}

/* The worse of what is there and an outcome */
static const char *worse(const char *class, const char *outcome)
{
	if (class != NULL && strcmp(class, "fail") == 0) {
		return class;
	}
	if (strcmp(outcome, "pass") == 0) {
		return class != NULL ? class : "pass";
	}
	if (strcmp(outcome, "slow") == 0 || strcmp(outcome, "skipped") == 0) {
		return "slow";
	}
	return "fail";
}

static bool fill_matrix(const struct check_result *r, const char **classes,
			size_t num)
{
	const json_t *pair = NULL;
	bool any = false;
	size_t i;

	json_array_foreach(json_object_get(r->metrics, "pairs"), i, pair) {
		size_t a = (size_t)json_integer_value(json_array_get(pair, 0));
		size_t b = (size_t)json_integer_value(json_array_get(pair, 1));
		const char *how = json_string_value(json_array_get(pair, 2));

		if (a >= num || b >= num || how == NULL) {
			continue;
		}
		classes[a * num + b] = worse(classes[a * num + b], how);
		classes[b * num + a] = worse(classes[b * num + a], how);
		any = true;
	}
	return any;
}

static void put_matrix(FILE *f, TALLOC_CTX *mem_ctx,
		       const struct verdict_input *input)
{
	size_t num = input->num_members;
	const char **classes = talloc_zero_array(mem_ctx, const char *,
						 num * num);
	bool any = false;
	size_t i;

	if (classes == NULL) {
		return;
	}
	for (i = 0; i < input->num_results; i++) {
		any |= fill_matrix(input->results[i], classes, num);
	}
	if (!any) {
		return;
	}
	svg_matrix(f, "Members against members, the worst of all checks of "
		   "pairs", classes, num);
	fprintf(f, "<p class=\"legend\"><span class=\"key pass\"></span>right"
		"<span class=\"key slow\"></span>slow, or could not tell"
		"<span class=\"key fail\"></span>wrong"
		"<span class=\"key none\"></span>in the checks of all members "
		"only</p>\n");
}

/* ---- all of it ----------------------------------------------------------- */

int report_html(const struct report *report, FILE *out)
{
	TALLOC_CTX *frame = talloc_new(NULL);
	char when[32];
	struct tm tm = {};

	if (frame == NULL) {
		return ENOMEM;
	}
	gmtime_r(&report->started, &tm);
	strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", &tm);
	fprintf(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset="
		"\"utf-8\">\n<meta name=\"viewport\" content=\"width="
		"device-width, initial-scale=1\">\n<title>pingpong</title>\n"
		"<style>\n%s</style></head><body>\n", style);
	put_headline(out, report);
	put_uses(out, report);
	put_settings(out, report);
	put_members(out, report->input);
	put_checks(out, report->input);
	fprintf(out, "<h2>Pictures</h2>\n");
	put_rates(out, frame, report->input);
	put_curve(out, frame, report->input);
	put_handover(out, frame, report->input);
	put_matrix(out, frame, report->input);
	fprintf(out, "<p class=\"dim\">pingpong %s, %s, %zu members, scope %s, "
		"%.1f s, seed %llu</p>\n</body></html>\n", PINGPONG_VERSION,
		when, report->input->num_members,
		report->verdict->scope == SCOPE_LOCAL ? "local" : "cluster",
		report->duration_s, (unsigned long long)report->seed);
	talloc_free(frame);
	errno = 0;
	if (fflush(out) == 0 && !ferror(out)) {
		return 0;
	}
	return errno != 0 ? errno : EIO;
}
