/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "core/config.h"
#include "core/report/baseline.h"
#include "core/report/report.h"

#define WIDTH 80

enum paint { PLAIN, GOOD, BAD, UNSURE, BOLD };

static const char *const paints[] = {
	[GOOD] = "\033[32m",
	[BAD] = "\033[31m",
	[UNSURE] = "\033[33m",
	[BOLD] = "\033[1m",
};

struct text {
	FILE *f;
	bool color;
	unsigned column;
	const char *reason;	/* the last one told that takes many lines, */
	enum use reason_of;	/* not to be told again for the next use */
};

/*
 * One character; those that a terminal would obey (a path may hold them) as
 * \xNN. Columns are counted in characters, of UTF-8 the first byte.
 */
static void put_char(struct text *t, unsigned char c)
{
	if (c < ' ' || c == 0x7f) {
		t->column += fprintf(t->f, "\\x%02x", c);
		return;
	}
	fputc(c, t->f);
	t->column += (c & 0xc0) != 0x80;
}

static void put(struct text *t, enum paint paint, const char *s)
{
	bool painted = t->color && paint != PLAIN;

	if (painted) {
		fputs(paints[paint], t->f);
	}
	while (*s != '\0') {
		put_char(t, *s);
		s++;
	}
	if (painted) {
		fputs("\033[0m", t->f);
	}
}

static void end_line(struct text *t)
{
	fputc('\n', t->f);
	t->column = 0;
}

/* At least one space, up to the column. */
static void go_to(struct text *t, unsigned column)
{
	if (t->column > 0) {
		put(t, PLAIN, " ");
	}
	while (t->column < column) {
		put(t, PLAIN, " ");
	}
}

/* Words, folded at WIDTH and going on where they began. */
static void put_words(struct text *t, const char *s)
{
	unsigned indent = t->column;

	while (*s != '\0') {
		size_t len = strcspn(s, " ");

		if (t->column > indent && t->column + len >= WIDTH) {
			end_line(t);
			go_to(t, indent);
		} else if (t->column > indent) {
			put(t, PLAIN, " ");
		}
		while (len > 0) {
			put_char(t, *s);
			s++;
			len--;
		}
		s += strspn(s, " ");
	}
	end_line(t);
}

static void heading(struct text *t, const char *s)
{
	end_line(t);
	put(t, BOLD, s);
	end_line(t);
}

/* Lines as they are, each from the column on. */
static void put_lines(struct text *t, unsigned column, const char *s)
{
	while (*s != '\0') {
		size_t len = strcspn(s, "\n");

		go_to(t, column);
		while (len > 0) {
			put_char(t, *s);
			s++;
			len--;
		}
		end_line(t);
		s += *s == '\n';
	}
}

static enum paint fitness_paint(const struct use_verdict *v)
{
	switch (v->fitness) {
	case FIT:
		return GOOD;
	case UNFIT:
		return v->mended_by[0] != NULL ? UNSURE : BAD;
	case UNKNOWN:
		break;
	}
	return UNSURE;
}

static void put_headline(struct text *t, const struct report *report)
{
	static const struct {
		const char *words;
		enum paint paint;
	} headlines[] = {
		{"FIT: ", GOOD},
		{"FIT WITH THE SETTINGS BELOW: ", UNSURE},
		{"UNFIT: ", BAD},
		{"UNFIT, IT HANGS: ", BAD},
		{"UNKNOWN: ", UNSURE},
	};
	int status = verdict_exit(report->verdict, report->uses);
	char *uses = report_deciding(NULL, report);

	put(t, headlines[status].paint, headlines[status].words);
	put(t, BOLD, uses != NULL ? uses : "");
	talloc_free(uses);
	if (status <= 1 && report->verdict->scope == SCOPE_LOCAL) {
		put(t, BOLD, " (on this node alone)");
	}
	end_line(t);
}

#define REASON_COLUMN 26

static char *reason_line(struct text *t, enum use use,
			 const struct use_verdict *v)
{
	const char *reason = v->reason != NULL ? v->reason : "";

	if (t->reason != NULL && strcmp(t->reason, reason) == 0) {
		return talloc_asprintf(NULL, "as %s", use_name(t->reason_of));
	}
	if (strlen(reason) > WIDTH - REASON_COLUMN) {
		t->reason = reason;
		t->reason_of = use;
	}
	return talloc_strdup(NULL, reason);
}

static void put_use(struct text *t, enum use use, const struct use_verdict *v)
{
	const char *const *name = NULL;
	char *line = NULL;

	go_to(t, 2);
	put(t, PLAIN, use_name(use));
	go_to(t, 17);
	put(t, fitness_paint(v), fitness_name(v->fitness));

	line = reason_line(t, use, v);
	for (name = v->mended_by; *name != NULL; name++) {
		line = talloc_asprintf_append(
			line, "%s`%s`",
			name == v->mended_by ? "; mended by " : ", ", *name);
	}
	if (line != NULL && line[0] != '\0') {
		go_to(t, REASON_COLUMN);
	}
	put_words(t, line != NULL ? line : "");
	talloc_free(line);
}

static void put_uses(struct text *t, const struct report *report, bool asked)
{
	unsigned i;

	for (i = 0; i < USE_COUNT; i++) {
		if (((report->uses & USE_BIT(i)) != 0) == asked &&
		    report_tells(report, i)) {
			put_use(t, i, &report->verdict->uses[i]);
		}
	}
}

static void put_members(struct text *t, const struct verdict_input *input)
{
	size_t i;

	heading(t, "Members");
	for (i = 0; i < input->num_members; i++) {
		const struct member_info *m = input->members[i];
		char *line = talloc_asprintf(
			NULL, "%s: %s, %s, device %u:%u, on %s (Linux %s)",
			m->name, m->fstype, m->source, m->major, m->minor,
			m->host, m->kernel);

		go_to(t, m->number < 10 ? 3 : 2);
		t->column += fprintf(t->f, "%u", m->number);
		go_to(t, 6);
		put_words(t, line != NULL ? line : m->name);
		talloc_free(line);
	}
}

/* What a line of a check can hold of its metrics, in this order */
static const struct {
	const char *name;
	const char *text;
} told_metrics[] = {
	{ "turns_per_s", "%.0f turns/s" },
	{ "turn_p99_us", "99 %% under %.0f us" },
	{ "handover_max_ms", "hand-over within %.1f ms" },
	{ "held", "%.0f locks held" },
	{ "alone_turns_per_s", "alone %.0f/s" },
	{ "together_turns_per_s", "together %.0f/s" },
	{ "again_turns_per_s", "alone again %.0f/s" },
	{ "drop_each", "each %.1f times slower with a second" },
	{ "recovery", "%.2f of it came back" },
	{ "trials", "%.0f trials" },
};

/* "31320 turns/s, 11245 trials" */
static char *metrics_line(const struct check_result *r)
{
	char *line = talloc_strdup(NULL, "");
	const char *comma = "";
	size_t i;

	for (i = 0; i < sizeof(told_metrics) / sizeof(*told_metrics); i++) {
		const json_t *value = json_object_get(r->metrics,
						      told_metrics[i].name);

		if (!json_is_number(value) || line == NULL) {
			continue;
		}
		line = talloc_strdup_append(line, comma);
		line = talloc_asprintf_append(
			line, told_metrics[i].text,
			json_number_value(value));
		comma = ", ";
	}
	return line;
}

static enum paint outcome_paint(const struct check_result *r)
{
	bool broken = verdict_broken(r);

	if (broken) {
		return BAD;
	}
	return r->outcome == OUTCOME_PASS ? GOOD : UNSURE;
}

static void put_evidence(struct text *t, const struct evidence *e)
{
	const struct {
		const char *name;
		const char *value;
	} lines[] = {
		{"operation", e->operation}, {"member", e->member},
		{"range", e->range},	     {"expected", e->expected},
		{"seen", e->seen},
	};
	size_t i;

	for (i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		if (lines[i].value != NULL) {
			go_to(t, 18);
			put(t, PLAIN, lines[i].name);
			go_to(t, 29);
			put_words(t, lines[i].value);
		}
	}
	if (e->detail != NULL) {
		put_lines(t, 18, e->detail);
	}
}

static void put_check(struct text *t, const struct check_result *r)
{
	bool refused = r->outcome == OUTCOME_UNSUPPORTED && r->err != 0;
	char *line = NULL;

	go_to(t, 2);
	put(t, outcome_paint(r), outcome_name(r->outcome));
	go_to(t, 15);
	put(t, PLAIN, r->check->name);
	if (r->why != NULL) {
		line = talloc_strdup(NULL, r->why);
	} else if (refused) {
		line = talloc_strdup(NULL, strerror(r->err));
	} else {
		line = metrics_line(r);
	}
	if (line != NULL && line[0] != '\0') {
		go_to(t, 32);
	}
	put_words(t, line != NULL ? line : "");
	talloc_free(line);
	if (r->outcome != OUTCOME_PASS) {
		put_evidence(t, &r->evidence);
	}
}

static void put_checks(struct text *t, const struct verdict_input *input)
{
	size_t i;

	if (input->num_results == 0) {
		return;
	}
	heading(t, "Checks");
	for (i = 0; i < input->num_results; i++) {
		if (input->results[i]->outcome != OUTCOME_SKIPPED) {
			put_check(t, input->results[i]);
		}
	}
}

/* From here on a check says little about rare faults */
#define BOUND_TOLD 0.01

/* How rare a fault may be and still have gone unseen */
static void put_limit(struct text *t, const struct verdict_input *input)
{
	char *line = talloc_strdup(NULL, "What goes wrong more seldom than "
				   "this may not have been seen (95 %); "
				   "--thorough looks longer:");
	const char *comma = "";
	size_t i;

	for (i = 0; i < input->num_results; i++) {
		const struct check_result *r = input->results[i];
		double bound = json_number_value(json_object_get(
			r->metrics, "violation_bound_95"));
		bool right = r->outcome == OUTCOME_PASS ||
			     r->outcome == OUTCOME_SLOW;

		if (right && bound > 0 && bound < BOUND_TOLD) {
			line = talloc_asprintf_append(
				line, "%s %s 1 in %.0f", comma,
				r->check->name, 1 / bound);
			comma = ",";
		}
	}
	if (line != NULL && comma[0] != '\0') {
		heading(t, "Detection limit");
		go_to(t, 2);
		put_words(t, line);
	}
	talloc_free(line);
}

static void put_setting(struct text *t, const struct setting *s)
{
	char *line = NULL;

	if (strcmp(s->file, "mount options") != 0) {
		line = talloc_asprintf(NULL, "%s [%s] %s = %s", s->file,
				       s->section, s->parameter, s->value);
	} else if (s->value[0] == '\0') {
		line = talloc_asprintf(NULL, "mount %s without %s", s->section,
				       s->parameter);
	} else if (strcmp(s->value, s->parameter) == 0) {
		line = talloc_asprintf(NULL, "mount %s with %s", s->section,
				       s->value);
	} else {
		line = talloc_asprintf(NULL, "mount %s with %s instead of %s",
				       s->section, s->value, s->parameter);
	}
	go_to(t, 2);
	put(t, BOLD, line != NULL ? line : s->parameter);
	end_line(t);
	talloc_free(line);
	go_to(t, 6);
	put_words(t, s->because);
}

enum heed { TO_CHANGE, CAUSE, NOT_ASKED, ADVICE };

/* What is needed, but only by uses that were not asked for, is not to be
 * changed in passing */
static enum heed heed(const struct report *report, const struct setting *s)
{
	if (!s->needed) {
		return ADVICE;
	}
	if ((s->uses & report->uses) == 0) {
		return NOT_ASKED;
	}
	return report_mends(report, s) ? TO_CHANGE : CAUSE;
}

static bool no_remedy(const struct report *report)
{
	return report->exit == 2 || report->exit == 3;
}

/* So that what is listed for others is not taken for a remedy */
static void put_no_remedy(struct text *t, const struct report *report)
{
	char *uses = report_deciding(NULL, report);
	char *line = talloc_asprintf(NULL, "none is known that mends %s",
				     uses != NULL ? uses : "it");

	if (no_remedy(report)) {
		heading(t, "Settings to change");
		go_to(t, 2);
		put_words(t, line != NULL ? line : "none");
	}
	talloc_free(line);
	talloc_free(uses);
}

static void put_settings(struct text *t, const struct report *report)
{
	static const char *const titles[] = {
		[TO_CHANGE] = "Settings to change",
		[CAUSE] = "A likely cause",
		[NOT_ASKED] = "Settings only for what was not asked for",
		[ADVICE] = "Advice",
	};
	const struct verdict *v = report->verdict;
	unsigned h;
	size_t i;

	put_no_remedy(t, report);
	for (h = TO_CHANGE; h <= ADVICE; h++) {
		bool any = false;

		for (i = 0; i < v->num_settings; i++) {
			enum heed this = heed(report, &v->settings[i]);

			if (this != h) {
				continue;
			}
			if (!any) {
				heading(t, h == TO_CHANGE && no_remedy(report)
					   ? "Settings to change for the rest"
					   : titles[h]);
				any = true;
			}
			put_setting(t, &v->settings[i]);
		}
	}
}

/* A place as a shell takes it */
static char *quoted(const char *place)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789/._-+:@%,=";
	char *line = NULL;

	if (place[strspn(place, plain)] == '\0') {
		return talloc_strdup(NULL, place);
	}
	line = talloc_strdup(NULL, "'");
	while (*place != '\0' && line != NULL) {
		line = talloc_asprintf_append(
			line, *place == '\'' ? "'\\''" : "%c", *place);
		place++;
	}
	return talloc_asprintf_append(line, "'");
}

static void put_command(struct text *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void put_command(struct text *t, const char *format, ...)
{
	char *line = NULL;
	va_list ap;

	va_start(ap, format);
	line = talloc_vasprintf(NULL, format, ap);
	va_end(ap);
	go_to(t, 2);
	put(t, BOLD, line != NULL ? line : "pingpong check");
	end_line(t);
	talloc_free(line);
}

/* When only one node was there */
static void put_next_node(struct text *t, const struct report *report)
{
	char *here = quoted(report->input->members[0]->path);

	put_command(t, "pingpong check %s OTHER-NODE:%s", here, here);
	go_to(t, 2);
	put_words(t, "or, where no other node ever serves these files:");
	put_command(t, "pingpong check --local %s", here);
	talloc_free(here);
}

/* The same operations with the same random choices, for what went wrong */
static void put_repeat(struct text *t, const struct report *report)
{
	char *line = talloc_asprintf(NULL, "pingpong check --seed %llu%s",
				     (unsigned long long)report->seed,
				     report->input->local ? " --local" : "");
	const char *comma = " --only ";
	size_t i;

	for (i = 0; i < report->input->num_results; i++) {
		const struct check_result *r = report->input->results[i];

		if (r->outcome == OUTCOME_FAIL) {
			line = talloc_asprintf_append(line, "%s%s", comma,
						      r->check->name);
			comma = ",";
		}
	}
	for (i = 0; report->places[i] != NULL; i++) {
		char *place = quoted(report->places[i]);

		line = talloc_asprintf_append(line, " %s", place);
		talloc_free(place);
	}
	if (line != NULL && comma[0] == ',') {
		heading(t, "To see it again");
		go_to(t, 2);
		put(t, BOLD, line);
		end_line(t);
	}
	talloc_free(line);
}

static const json_t *metric_list(const struct check_result *r,
				 const char *name)
{
	const json_t *list = json_object_get(r->metrics, name);

	return json_is_array(list) ? list : NULL;
}

static size_t num_steps(const struct verdict_input *input)
{
	size_t i, most = 0;

	for (i = 0; i < input->num_results; i++) {
		size_t n = json_array_size(
			metric_list(input->results[i], "steps"));

		most = n > most ? n : most;
	}
	return most;
}

/* Why the first use is as it is that decides; NULL: no check says it */
static const char *first_because(const struct report *report,
				 enum fitness fitness)
{
	unsigned i;

	for (i = 0; i < USE_COUNT; i++) {
		const struct use_verdict *v = &report->verdict->uses[i];

		if ((report->uses & USE_BIT(i)) != 0 &&
		    v->fitness == fitness && v->because[0] != NULL) {
			return v->because[0];
		}
	}
	return NULL;
}

static char *quoted_places(TALLOC_CTX *mem_ctx, const struct report *report)
{
	char *line = talloc_strdup(mem_ctx, "");
	size_t i;

	for (i = 0; report->places[i] != NULL && line != NULL; i++) {
		char *place = quoted(report->places[i]);

		line = talloc_asprintf_append(line, "%s%s",
					      i > 0 ? " " : "", place);
		talloc_free(place);
	}
	return line;
}

static void put_next(struct text *t, const struct report *report)
{
	const char *because = first_because(report, UNFIT);
	const char *local = report->input->local ? " --local" : "";
	char *places = quoted_places(NULL, report);

	if (report->exit == 0) {
		talloc_free(places);
		return;
	}
	heading(t, "Run next");
	if (because != NULL) {
		put_command(t, "pingpong explain %s", because);
	}
	if (num_steps(report->input) > 0) {
		put_command(t, "pingpong check%s %s", local, places);
	} else if (no_remedy(report)) {
		put_command(t, "pingpong check%s --html=report.html %s", local,
			    places);
		go_to(t, 2);
		put_words(t, "makes a page for the file system's vendor");
	} else if (report->verdict->one_node &&
		   report->input->num_members > 0) {
		put_next_node(t, report);
	} else if (report->exit == 4 && report->input->same_directory) {
		put_command(t, "pingpong check%s --timeout=600 %s", local,
			    places);
	} else if (report->exit == 4) {
		put_command(t, "findmnt --target DIRECTORY");
		go_to(t, 2);
		put_words(t, "on each node: is it the file system that is "
			     "meant?");
	} else if (report->exit == 1) {
		go_to(t, 2);
		put_words(t, "after the settings are changed:");
		put_command(t, "pingpong check%s %s", local, places);
	}
	talloc_free(places);
}

static void put_untested(struct text *t, const struct report *report)
{
	const struct verdict_input *input = report->input;
	bool one_node = report->verdict->one_node && input->num_members > 0;
	bool any = false;
	size_t i;

	for (i = 0; i < input->num_results; i++) {
		any |= input->results[i]->outcome == OUTCOME_SKIPPED;
	}
	if (!any && !one_node) {
		return;
	}
	heading(t, "Not tested");
	for (i = 0; i < input->num_results; i++) {
		const struct check_result *r = input->results[i];

		if (r->outcome == OUTCOME_SKIPPED) {
			go_to(t, 2);
			put(t, PLAIN, r->check->name);
			go_to(t, 19);
			put_words(t, r->why != NULL ? r->why : "");
		}
	}
	if (one_node) {
		go_to(t, 2);
		put_words(t, "anything between nodes: the places are one node, "
			     "which shows what is wrong on it, but not that "
			     "nodes agree");
	}
}

/* ---- a sweep ------------------------------------------------------------- */

static void put_step(struct text *t, const struct verdict_input *input,
		     size_t step)
{
	bool first = true;
	size_t i;

	for (i = 0; i < input->num_results; i++) {
		const json_t *s = json_array_get(
			metric_list(input->results[i], "steps"), step);
		json_t *members = json_object_get(s, "members");

		if (s != NULL && first) {
			t->column += fprintf(
				t->f, "  %7lld",
				(long long)json_integer_value(members));
			first = false;
		}
		if (s != NULL) {
			t->column += fprintf(
				t->f, "  %10.0f", json_number_value(
					json_object_get(s, "rate")));
		} else if (!first) {
			t->column += fprintf(t->f, "  %10s", "-");
		}
	}
	end_line(t);
}

static void put_sweep(struct text *t, const struct verdict_input *input)
{
	size_t steps = num_steps(input);
	const json_t *line = NULL;
	size_t i, j;

	if (steps == 0) {
		return;
	}
	heading(t, "Turns a second, all members together");
	t->column += fprintf(t->f, "  members");
	for (i = 0; i < input->num_results; i++) {
		const char *mode = json_string_value(json_object_get(
			input->results[i]->metrics, "mode"));

		t->column += fprintf(t->f, "  %10s",
				     mode != NULL ? mode : "-");
	}
	end_line(t);
	for (i = 0; i < steps; i++) {
		put_step(t, input, i);
	}
	for (i = 0; i < input->num_results; i++) {
		json_array_foreach(metric_list(input->results[i], "remarks"),
				   j, line) {
			char *text = talloc_asprintf(
				NULL, "%s: %s", json_string_value(
					json_object_get(
						input->results[i]->metrics,
						"mode")),
				json_string_value(line));

			go_to(t, 2);
			put_words(t, text != NULL ? text : "");
			talloc_free(text);
		}
	}
}

static void put_compared(struct text *t, const struct report *report)
{
	const struct baseline_result *c = report->compared;
	const char **line = NULL;
	char *title = NULL;

	if (c == NULL) {
		return;
	}
	title = talloc_asprintf(NULL, "Compared with %s, which has %u run%s",
				c->name, c->runs, c->runs == 1 ? "" : "s");
	heading(t, title != NULL ? title : c->name);
	talloc_free(title);
	go_to(t, 2);
	if (c->runs < BASELINE_RUNS_LEAST) {
		put_words(t, "nothing can be said: save another run, so that "
			     "it is known how much they differ");
	} else if (c->slower == NULL) {
		put_words(t, "nothing is slower than in all of them");
	} else {
		put_words(t, "slower than in all of them:");
	}
	for (line = c->slower; line != NULL && *line != NULL; line++) {
		go_to(t, 2);
		put_words(t, *line);
	}
}

int report_text(const struct report *report, FILE *out, bool color)
{
	struct text t = {.f = out, .color = color};
	int ret;

	put_headline(&t, report);
	put_uses(&t, report, true);
	if (report->uses != USE_BIT(USE_COUNT) - 1) {
		heading(&t, "Not asked for");
		put_uses(&t, report, false);
	}
	put_members(&t, report->input);
	put_checks(&t, report->input);
	put_limit(&t, report->input);
	put_sweep(&t, report->input);
	put_compared(&t, report);
	put_settings(&t, report);
	if (num_steps(report->input) == 0) {
		put_repeat(&t, report);
	}
	put_untested(&t, report);
	put_next(&t, report);
	end_line(&t);
	fprintf(out, "pingpong %s: %zu members, scope %s, %.1f s, seed %llu\n",
		PINGPONG_VERSION, report->input->num_members,
		report->verdict->scope == SCOPE_LOCAL ? "local" : "cluster",
		report->duration_s, (unsigned long long)report->seed);

	errno = 0;
	ret = fflush(out);
	if (ret == 0 && !ferror(out)) {
		return 0;
	}
	return errno != 0 ? errno : EIO;
}
