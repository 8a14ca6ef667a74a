/* The form of a report: its text within a width, its JSON, and which parts of it a job has. */
#include "common/json.h"
#include "common/mem.h"
#include "controller/report/page.h"
#include "tests/support/measured_job.h"
#include "tests/support/report_reading.h"
#include "tests/support/store_sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static size_t longest_line(const char *text)
{
    size_t longest = 0;
    char *copy = mem_strdup(text);
    char *rest = copy;
    while (rest != NULL) {
        size_t width = page_text_width(strsep(&rest, "\n"));
        longest = width > longest ? width : longest;
    }
    free(copy);
    return longest;
}

static void test_text_fits_its_width(void **state)
{
    struct measured *m = *state;
    measured_add_job(m, 3);
    measured_add_all(m, 3);
    struct report *r = measured_report(m);
    static const unsigned widths[] = {80, 81, 100, 120, 160, 200};
    for (size_t i = 0; i < ARRAY_LEN(widths); i++) {
        char *text = reading_text(r, widths[i]);
        assert_in_range(longest_line(text), 60, widths[i]);
        free(text);
    }
    char *narrow = reading_text(r, 40); /* taken as 80 */
    assert_in_range(longest_line(narrow), 60, 80);
    if (getenv("SPLITBENCH_SHOW") != NULL) {
        char *wide = reading_text(r, 120);
        printf("%s\n\n%s\n", narrow, wide);
        free(wide);
    }
    free(narrow);
    struct buf small;
    buf_init(&small, 500);
    assert_int_equal(report_write_text(r, 80, &small), ERR_TOO_BIG);
    buf_fini(&small);
    report_free(r);
}

static const struct json_value *at(const struct json_value *array, size_t index)
{
    const struct json_value *v = json_first(array);
    for (size_t i = 0; v != NULL && i < index; i++)
        v = json_next(v);
    assert_non_null(v);
    return v;
}

static void test_json_has_everything(void **state)
{
    struct measured *m = *state;
    measured_add_job(m, 2);
    measured_add_all(m, 2);
    measured_end_job(m);
    struct report *r = measured_report(m);
    char *out = reading_json(r);
    struct json_value *root = NULL;
    struct err_detail d = {{0}};
    if (json_parse(out, strlen(out), NULL, &root, &d) != ERR_OK)
        fail_msg("%s", d.text);
    const char *text = NULL;
    assert_int_equal(json_get_string(root, "format", &text, NULL), ERR_OK);
    assert_string_equal(text, "splitbench-report/1");
    bool complete = false;
    assert_int_equal(json_get_bool(root, "complete", &complete, NULL), ERR_OK);
    assert_true(complete);
    assert_int_equal(json_get_string(root, "experiment_sha256", &text, NULL), ERR_OK);
    assert_int_equal(strlen(text), 64);
    assert_int_equal(json_get_string(json_member(root, "experiment"), "name", &text, NULL), ERR_OK);
    assert_string_equal(text, "three-servers");
    assert_int_equal(json_count(json_member(root, "hosts")), 2);
    assert_int_equal(json_count(json_member(root, "targets")), 3);
    assert_int_equal(json_count(json_member(at(json_member(root, "targets"), 1), "runs")), 2);
    const struct json_value *labels = json_member(at(json_member(root, "targets"), 1), "labels");
    assert_int_equal(json_count(labels), 2);
    assert_int_equal(json_get_string(labels, "version", &text, NULL), ERR_OK);
    assert_string_equal(text, "1.22");
    assert_int_equal(json_count(json_member(at(json_member(root, "targets"), 0), "labels")), 0);

    const struct json_value *cells = json_member(root, "cells");
    assert_int_equal(json_count(cells), 9);
    size_t attempts = 0;
    for (const struct json_value *c = json_first(cells); c != NULL; c = json_next(c))
        attempts += json_count(json_member(c, "attempts"));
    assert_int_equal(attempts, 18);
    const struct json_value *cell = at(cells, 3); /* nginx, small, 10 */
    double mean = 0;
    assert_int_equal(
        json_to_double(json_member(json_member(cell, "rate_per_s"), "mean"), 0, 1e9, &mean, NULL), ERR_OK);
    assert_near(mean, 1010);
    assert_int_equal(json_kind(json_member(json_member(cell, "foreign_cpu_cores_load"), "mean")), JSON_NULL);
    const struct json_value *result = json_member(at(json_member(cell, "attempts"), 0), "result");
    uint64_t ok = 0;
    assert_int_equal(json_get_u64(json_member(result, "window"), "ok", 0, 1u << 30, &ok, NULL), ERR_OK);
    assert_int_equal(ok, 2000);
    assert_int_equal(json_get_string(result, "latency_hdr", &text, NULL), ERR_OK);
    struct hist *h = hist_new();
    assert_int_equal(hist_decode(h, text, strlen(text), NULL), ERR_OK);
    assert_int_equal(h->count, 2000);
    hist_free(h);
    json_free(root);
    free(out);
    report_free(r);
}

struct full {
    size_t pieces;
    size_t bytes;
    size_t bytes_max;
};

static enum err take_until_full(void *arg, const char *data, size_t len, struct err_detail *d)
{
    struct full *f = arg;
    f->pieces++;
    f->bytes += len;
    assert_non_null(data);
    return f->bytes <= f->bytes_max ? ERR_OK : err_set(d, ERR_FULL, "no room for a report");
}

/* Attempts go out while they are read, so that a report of any length takes little memory. */
static void test_json_goes_out_in_pieces_until_one_is_refused(void **state)
{
    struct measured *m = *state;
    struct err_detail d = {{0}};
    measured_add_job(m, MEASURED_ROUNDS_MAX);
    measured_add_all(m, MEASURED_ROUNDS_MAX);
    struct report *r = measured_report(m);
    struct full whole = {.bytes_max = SIZE_MAX};
    struct report_sink sink = {.write = take_until_full, .arg = &whole};
    assert_int_equal(report_write_json(r, &sink, &d), ERR_OK);
    assert_in_range(whole.pieces, 2, 100);
    struct full full = {.bytes_max = 1};
    sink.arg = &full;
    assert_int_equal(report_write_json(r, &sink, &d), ERR_FULL);
    assert_string_equal(d.text, "no room for a report");
    assert_int_equal(full.pieces, 1);
    report_free(r);
}

static void expect_libraries(struct measured *m, const char *text_says, const char *json_says)
{
    struct report *r = measured_report(m);
    char *text = reading_text(r, 100);
    assert_says(text, text_says);
    free(text);
    char *json = reading_json(r);
    assert_says(json, json_says);
    free(json);
    report_free(r);
}

static void test_libraries_are_told_once_each(void **state)
{
    struct measured *m = *state;
    measured_add_job(m, 2);
    expect_libraries(m, "\nlibraries   server, load: nng 1.5.2, libuv 1.44.2\ndesign ",
                     "\"libraries\": \"nng 1.5.2, libuv 1.44.2\"");
    struct msg_host facts = measured_host_facts("box2", "AMD", "b2");
    facts.libraries = SAMPLE_TEXT("nng 1.10.0, libuv 1.50.0");
    measured_put_host(m, "load", "gen1", facts);
    expect_libraries(m,
                     "\nlibraries   server: nng 1.5.2, libuv 1.44.2"
                     "\n            load: nng 1.10.0, libuv 1.50.0\ndesign ",
                     "\"libraries\": \"nng 1.10.0, libuv 1.50.0\"");
    facts.libraries = NULL; /* an agent that does not know the question */
    measured_put_host(m, "load", "gen1", facts);
    expect_libraries(m, "\n            load: unknown, the agent did not say\n", "\"libraries\": null");
}

static void test_a_queued_job_has_no_placement(void **state)
{
    struct measured *m = *state;
    measured_add_job(m, 2); /* for its text */
    struct store_job first;
    assert_int_equal(store_get_job(m->store, "j1", &first, NULL), ERR_OK);
    struct store_job job = sample_job("j2");
    job.experiment_json = first.experiment_json;
    job.placement = STORE_PLACEMENT_SHARED; /* as a job is stored before it has hosts */
    assert_int_equal(store_add_job(m->store, &job, NULL), ERR_OK);
    store_job_fini(&first);
    struct report *r = NULL;
    assert_int_equal(report_build(m->store, "j2", &r, NULL), ERR_OK);
    assert_false(reading_warns(r, "shared CPUs"));
    for (int i = 0; i < STORE_PLACEMENT_COUNT; i++)
        assert_false(r->placements[i]);
    char *text = reading_text(r, 80);
    assert_says(text, "not placed yet");
    assert_says(text, "no number yet");
    assert_null(strstr(text, "req/s")); /* nothing to put into a table, nothing to explain */
    free(text);
    report_free(r);
}

static void test_failures_come_before_numbers(void **state)
{
    struct measured *m = *state;
    measured_add_job(m, 2);
    measured_add_run(m, 0, NGINX, NULL, NULL);
    measured_add_attempt(m, (struct measured_attempt){.target = NGINX, .connections = 10, .ok = 10});
    measured_add_run(m, 0, LIGHTTPD, NULL, "port 8003 is in use by \"cat\"");
    measured_end_job(m);
    struct report *r = measured_report(m);
    char *text = reading_text(r, 80);
    const char *failure = strstr(text, "port 8003 is in use");
    const char *number = strstr(text, "req/s");
    assert_true(failure != NULL && number != NULL && failure < number);
    assert_says(text, "    no number\n"); /* the cells of 100 and 4 connections */
    assert_says(text, "    nginx: runtime=C, version=1.22\n");
    free(text);
    report_free(r);
}

static void test_a_verified_job_has_targets_only(void **state)
{
    struct measured *m = *state;
    measured_add_job(m, 2);
    report_free(measured_report(m));
    struct store_job job = sample_job("j2");
    struct store_job first;
    assert_int_equal(store_get_job(m->store, "j1", &first, NULL), ERR_OK);
    job.mode = MSG_MODE_VERIFY;
    job.experiment_json = first.experiment_json;
    assert_int_equal(store_add_job(m->store, &job, NULL), ERR_OK);
    assert_int_equal(store_set_job_state(m->store, "j2", STORE_JOB_DONE, "", 0, NULL), ERR_OK);
    store_job_fini(&first);
    struct report *r = NULL;
    assert_int_equal(report_build(m->store, "j2", &r, NULL), ERR_OK);
    assert_int_equal(r->windows_missing, 0);
    assert_int_equal(r->warnings.count, 0);
    char *text = reading_text(r, 80);
    assert_says(text, "verified only");
    assert_null(strstr(text, "req/s"));
    free(text);
    report_free(r);
}

static void test_no_such_job(void **state)
{
    struct measured *m = *state;
    struct report *r = NULL;
    struct err_detail d;
    assert_int_equal(report_build(m->store, "nope", &r, &d), ERR_NOT_FOUND);
    struct store_job job = sample_job("bad");
    job.experiment_json = SAMPLE_TEXT("{}");
    assert_int_equal(store_add_job(m->store, &job, NULL), ERR_OK);
    assert_int_equal(report_build(m->store, "bad", &r, &d), ERR_INVALID);
    assert_non_null(strstr(d.text, "job bad"));
    assert_null(r);
}

#define REPORT_TEST(f) cmocka_unit_test_setup_teardown(f, measured_set_up, measured_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        REPORT_TEST(test_text_fits_its_width),
        REPORT_TEST(test_json_has_everything),
        REPORT_TEST(test_json_goes_out_in_pieces_until_one_is_refused),
        REPORT_TEST(test_libraries_are_told_once_each),
        REPORT_TEST(test_libraries_are_told_once_each),
        REPORT_TEST(test_a_queued_job_has_no_placement),
        REPORT_TEST(test_failures_come_before_numbers),
        REPORT_TEST(test_a_verified_job_has_targets_only),
        REPORT_TEST(test_no_such_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
