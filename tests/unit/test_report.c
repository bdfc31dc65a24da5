/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reports against tests/unit/golden (in the directory TESTS_DIR, else
 * "tests"). In a golden file @VERSION@ stands for the version.
 */
#include <errno.h>
#include <stdlib.h>

#include "core/config.h"
#include "core/report/report.h"
#include "tests/unit/verdict_fixture.h"

static char *read_golden(TALLOC_CTX *mem_ctx, const char *name)
{
	const char *dir = getenv("TESTS_DIR");
	char *path = talloc_asprintf(mem_ctx, "%s/unit/golden/%s",
				     dir != NULL ? dir : "tests", name);
	char *text = talloc_strdup(mem_ctx, "");
	char line[4096];
	FILE *f = fopen(path, "re");

	if (f == NULL) {
		fail_msg("%s: %s", path, strerror(errno));
	}
	while (fgets(line, sizeof(line), f) != NULL) {
		char *version = strstr(line, "@VERSION@");

		if (version == NULL) {
			text = talloc_strdup_append(text, line);
			continue;
		}
		*version = '\0';
		text = talloc_asprintf_append(text, "%s%s%s", line,
					      PINGPONG_VERSION,
					      version + strlen("@VERSION@"));
	}
	fclose(f);
	return text;
}

static struct report report_of(struct fixture *f, unsigned uses)
{
	static const char *places[] = {"/mnt/a/dir", "/mnt/b/dir", NULL};
	const struct verdict *v = fixture_judge(f);

	return (struct report){
		.places = places,
		.started = 1700000000,
		.duration_s = 1.25,
		.uses = uses,
		.seed = 42,
		.input = &f->input,
		.verdict = v,
		.exit = verdict_exit(v, uses),
	};
}

static char *text_of(TALLOC_CTX *mem_ctx, const struct report *report,
		     bool color)
{
	char *buf = NULL;
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&buf, &size);
	int ret;

	assert_non_null(f);
	ret = report_text(report, f, color);
	assert_int_equal(ret, 0);
	fclose(f);
	text = talloc_strdup(mem_ctx, buf);
	free(buf);
	return text;
}

static void check_text(struct fixture *f, unsigned uses, const char *golden)
{
	struct report report = report_of(f, uses);
	char *want = read_golden(f, golden);
	char *text = text_of(f, &report, false);

	if (strcmp(text, want) != 0) {
		fprintf(stderr, "---- %s\n%s----\n", golden, text);
	}
	assert_string_equal(text, want);
}

static void check_json(struct fixture *f, unsigned uses, const char *golden)
{
	struct report report = report_of(f, uses);
	json_t *want = json_loads(read_golden(f, golden), 0, NULL);
	json_t *json = report_json(&report);

	assert_non_null(json);
	if (!json_equal(json, want)) {
		char *text = json_dumps(json, JSON_INDENT(1));

		fprintf(stderr, "---- %s\n%s\n----\n", golden, text);
		free(text);
	}
	assert_true(json_equal(json, want));
	json_decref(json);
	json_decref(want);
}

/* ---- the runs that are told */

static struct fixture *healthy(void)
{
	struct fixture *f = fixture_new();
	struct check_result *r = fixture_result(f, "lock.ring");

	json_object_set_new(r->metrics, "turns_per_s", json_integer(81234));
	json_object_set_new(r->metrics, "trials", json_integer(40617));
	json_object_set_new(r->metrics, "violations", json_integer(0));
	json_object_set_new(r->metrics, "violation_bound_95",
			    json_real(7.375e-5));
	json_object_set_new(r->metrics, "latency_us", json_object());
	fixture_set(f, "lock.handoff", OUTCOME_SLOW,
		    "1.2 s from unlock to grant, CTDB warns from 1 s on");
	return f;
}

/* Locks local to the node, on a mount that asked for it */
static struct fixture *local_locks(void)
{
	struct fixture *f = fixture_new();
	struct check_result *r = NULL;

	fixture_mount(f, "nfs", "srv:/export", "vers=3,nolock");
	r = fixture_set(f, "lock.exclusion", OUTCOME_FAIL,
			"a byte write-locked at /mnt/a was granted at /mnt/b");
	r->evidence = (struct evidence){
		.operation = "F_SETLK F_WRLCK",
		.member = "1 (/mnt/b) against 0 (/mnt/a)",
		.range = "[0, 1)",
		.expected = "refused (EAGAIN)",
		.seen = "granted",
	};
	json_object_set_new(r->metrics, "local", json_true());
	json_object_set_new(r->metrics, "trials", json_integer(20));
	fixture_set(f, "lock.ring", OUTCOME_SKIPPED,
		    "locks do not exclude (lock.exclusion)");
	fixture_set(f, "io.increment", OUTCOME_SKIPPED,
		    "locks do not exclude (lock.exclusion)");
	fixture_set(f, "mmap.increment", OUTCOME_SKIPPED,
		    "locks do not exclude (lock.exclusion)");
	r = fixture_set(f, "mmap.visibility", OUTCOME_UNSUPPORTED, NULL);
	r->err = ENODEV;
	fixture_set(f, "mmap.mixed", OUTCOME_UNSUPPORTED, "mmap: ENODEV");
	return f;
}

static struct fixture *hanging(void)
{
	struct fixture *f = fixture_new();
	struct check_result *r = NULL;

	r = fixture_set(f, "lock.handoff", OUTCOME_HUNG,
			"no answer in 5 s from the waiter at /mnt/b/dir");
	r->evidence = (struct evidence){
		.operation = "F_SETLKW F_WRLCK",
		.member = "1 (/mnt/b/dir)",
		.range = "[0, 1)",
		.expected = "granted",
		.seen = "nothing",
		.detail = "state D, wchan request_wait_answer\n"
			  "  request_wait_answer+0x12c/0x210\n"
			  "  fuse_simple_request+0x18a/0x2e0",
	};
	fixture_set(f, "lock.ring", OUTCOME_SKIPPED, "lock.handoff hangs");
	fixture_set(f, "io.increment", OUTCOME_SKIPPED, "lock.handoff hangs");
	r = fixture_set(f, "id.device", OUTCOME_FAIL,
			"st_dev is 0:50 at /mnt/a/dir, 0:51 at /mnt/b/dir");
	json_object_set_new(r->metrics, "algorithms",
			    json_pack("{s:s, s:s}", "fsname", "agree", "fsid",
				      "zero"));
	return f;
}

static struct fixture *one_node(void)
{
	struct fixture *f = fixture_new();

	f->members[1] = f->members[0];
	f->members[1].number = 1;
	f->members[1].name = "/mnt/a/dir#2";
	return f;
}

static void test_fit(void **state)
{
	struct fixture *f = healthy();

	(void)state;
	check_text(f, USES_DEFAULT, "fit.txt");
	check_json(f, USES_DEFAULT, "fit.json");
	talloc_free(f);
}

static void test_unfit(void **state)
{
	struct fixture *f = local_locks();

	(void)state;
	check_text(f, USES_DEFAULT, "unfit.txt");
	check_json(f, USES_DEFAULT, "unfit.json");
	talloc_free(f);
}

static void test_hung(void **state)
{
	struct fixture *f = hanging();

	(void)state;
	check_text(f, USES_DEFAULT, "hung.txt");
	check_json(f, USES_DEFAULT, "hung.json");
	/* for the other uses a setting is enough */
	check_text(f, USE_BIT(USE_FILE_ID) | USE_BIT(USE_SHARE),
		   "mended.txt");
	talloc_free(f);
}

static void test_one_node(void **state)
{
	struct fixture *f = one_node();

	(void)state;
	check_text(f, USES_DEFAULT, "one_node.txt");
	f->members[0].path = "/mnt/it's here";
	check_text(f, 0x3f, "one_node_quoted.txt");
	f->input.local = true;
	check_text(f, USES_DEFAULT, "local.txt");
	talloc_free(f);
}

static void test_not_same(void **state)
{
	struct fixture *f = fixture_new();

	(void)state;
	f->input.same_directory = false;
	f->input.not_same = "/mnt/b/dir does not show what is made at "
			    "/mnt/a/dir: \"40 1 0:50 / /mnt/a rw - fuse.x x "
			    "rw\", \"26 1 8:1 / / rw - ext4 /dev/sda1 rw\"";
	f->input.num_results = 0;
	check_text(f, USES_DEFAULT, "not_same.txt");
	check_json(f, USES_DEFAULT, "not_same.json");
	talloc_free(f);
}

/* ---- what a terminal, a file name and an output can do to it */

static void test_color(void **state)
{
	static const char *const paints[] = {"\033[31m", "\033[32m",
					     "\033[33m", "\033[1m", "\033[0m"};
	struct fixture *f = local_locks();
	struct report report = report_of(f, USES_DEFAULT);
	char *plain = text_of(f, &report, false);
	char *color = text_of(f, &report, true);
	char *bare = talloc_strdup(f, "");
	const char *s = color;
	size_t i;

	(void)state;
	assert_null(strchr(plain, '\033'));
	for (i = 0; i < sizeof(paints) / sizeof(*paints); i++) {
		assert_non_null(strstr(color, paints[i]));
	}
	/* the same, but for the colours */
	while (*s != '\0') {
		if (*s == '\033') {
			s = strchr(s, 'm') + 1;
			continue;
		}
		bare = talloc_strndup_append(bare, s, 1);
		s++;
	}
	assert_string_equal(bare, plain);
	talloc_free(f);
}

static void test_hostile_names(void **state)
{
	struct fixture *f = fixture_new();
	struct report report;
	json_t *json = NULL;
	json_t *member = NULL;
	char *text = NULL;

	(void)state;
	f->members[0].name = "/mnt/\033[2J\n\xff";
	f->members[0].path = "/mnt/\xc3\xa9 \"\\";
	f->members[0].inode = UINT64_MAX;
	report = report_of(f, USES_DEFAULT);

	text = text_of(f, &report, false);
	assert_null(strchr(text, '\033'));
	assert_non_null(strstr(text, "/mnt/\\x1b[2J\\x0a"));

	json = report_json(&report);
	assert_non_null(json);
	member = json_array_get(json_object_get(json, "members"), 0);
	assert_string_equal(json_string_value(json_object_get(member, "name")),
			    "/mnt/\033[2J\n\\xff");
	assert_string_equal(json_string_value(json_object_get(member, "path")),
			    "/mnt/\xc3\xa9 \"\\");
	assert_string_equal(json_string_value(json_object_get(member,
							      "inode")),
			    "18446744073709551615");
	json_decref(json);
	talloc_free(f);
}

/* The page of a report as a string */
static char *page_of(TALLOC_CTX *mem_ctx, const struct report *report)
{
	char *buf = NULL;
	char *page = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&buf, &size);
	int ret;

	assert_non_null(f);
	ret = report_html(report, f);
	assert_int_equal(ret, 0);
	fclose(f);
	page = talloc_strdup(mem_ctx, buf);
	free(buf);
	return page;
}

static void test_page(void **state)
{
	static const char *places[] = {"<b>&\"'", NULL};
	struct fixture *f = local_locks();
	struct check_result *r = fixture_result(f, "lock.exclusion");
	struct report report;
	char *page = NULL;

	(void)state;
	f->members[0].name = "/mnt/<img src=x>\033\xff\xc3\xa9";
	r->evidence.detail = "</pre><script>";
	json_object_set_new(r->metrics, "pairs",
			    json_pack("[[iis][iis]]", 0, 1, "fail", 7, 9,
				      "pass"));
	json_object_set_new(r->metrics, "slices_per_s",
			    json_pack("[fff]", 1.0, 0.0, 3e9));
	report = report_of(f, USES_DEFAULT);
	report.places = places;
	page = page_of(f, &report);
	assert_non_null(strstr(page, "<h1 class=\"bad\">Unfit: cluster-lock"));
	assert_non_null(strstr(page, "/mnt/&#60;img src=x&#62;\\x1b\\xff"
				     "\xc3\xa9"));
	assert_non_null(strstr(page, "&#60;b&#62;&#38;&#34;&#39;"));
	assert_non_null(strstr(page, "&#60;/pre&#62;&#60;script&#62;"));
	assert_null(strstr(page, "<script"));
	assert_null(strstr(page, "<img"));
	assert_non_null(strstr(page, "<rect class=\"fail\""));
	assert_null(strstr(page, "<rect class=\"pass\""));
	assert_null(strstr(page, "nan"));
	assert_non_null(strstr(page, "None is known that mends cluster-lock"));
	talloc_free(f);
}

static void test_output_error(void **state)
{
	struct fixture *f = healthy();
	struct report report = report_of(f, USES_DEFAULT);
	FILE *full = fopen("/dev/full", "we");
	int ret;

	(void)state;
	assert_non_null(full);
	ret = report_text(&report, full, false);
	assert_int_equal(ret, ENOSPC);
	ret = report_html(&report, full);
	assert_int_equal(ret, ENOSPC);
	fclose(full);
	talloc_free(f);
}

/* Every line fits a terminal, but for the words that do not. */
static void test_width(void **state)
{
	struct fixture *f = hanging();
	struct report report = report_of(f, USES_DEFAULT);
	const char *line = NULL;

	(void)state;
	for (line = text_of(f, &report, false); *line != '\0'; line++) {
		size_t len = strcspn(line, "\n");

		assert_in_range(len, 0, 80);
		assert_true(len == 0 || line[len - 1] != ' ');
		line += len;
	}
	talloc_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fit),
		cmocka_unit_test(test_unfit),
		cmocka_unit_test(test_hung),
		cmocka_unit_test(test_one_node),
		cmocka_unit_test(test_not_same),
		cmocka_unit_test(test_color),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_output_error),
		cmocka_unit_test(test_width),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
