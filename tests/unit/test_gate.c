#include "controller/run/failure_words.h"
#include "controller/run/gate.h"

#include "agent/load/fault.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct fixture {
    struct experiment_gates gates;
    struct msg_loaded loaded;
    struct gate_figures figures;
};

static struct fixture good(void)
{
    struct fixture f = {
        .loaded = {.window = {.scheduled = 110, .ok = 100, .in_flight = 10}},
        .figures = {.foreign_cpu_server = 0.1, .foreign_cpu_load = 0.1, .generator_cpu = 0.5}};
    return f;
}

static enum gate judge(struct fixture *f, char reason[GATE_REASON_BYTES])
{
    f->figures.loaded = &f->loaded;
    return gate_judge(&f->gates, &f->figures, reason);
}

static void test_good_window_passes(void **state)
{
    char reason[GATE_REASON_BYTES];
    struct fixture f = good();
    (void)state;
    assert_int_equal(judge(&f, reason), GATE_NONE);
    assert_string_equal(reason, "");
}

static void test_errors_up_to_the_limit(void **state)
{
    char reason[GATE_REASON_BYTES];
    struct fixture f = good();
    struct msg_error_class c = {
        .phase = (char *)(uintptr_t) "wait", .cause = (char *)(uintptr_t) "timeout", .count = 3};
    (void)state;
    f.gates.errors_max = 2;
    f.loaded.window.failed = 2;
    f.loaded.window.scheduled = 112;
    assert_int_equal(judge(&f, reason), GATE_NONE);
    f.loaded.window.failed = 3;
    f.loaded.window.scheduled = 113;
    f.loaded.errors = &c;
    f.loaded.error_count = 1;
    assert_int_equal(judge(&f, reason), GATE_ERRORS);
    assert_string_equal(reason, "3 requests failed, 2 allowed: 3 without an answer in time");
}

static void test_wrong_statuses_are_told_by_status(void **state)
{
    char reason[GATE_REASON_BYTES];
    struct fixture f = good();
    struct msg_error_class classes[] = {
        {.phase = (char *)(uintptr_t) "receive", .cause = (char *)(uintptr_t) "status", .count = 81},
        {.phase = (char *)(uintptr_t) "wait", .cause = (char *)(uintptr_t) "timeout", .count = 2}};
    struct msg_status_count statuses[] = {{200, 100}, {404, 1}, {501, 80}};
    (void)state;
    f.loaded.window.failed = 83;
    f.loaded.window.scheduled += 83;
    f.loaded.errors = classes;
    f.loaded.error_count = 2;
    f.loaded.statuses = statuses;
    f.loaded.status_count = 3;
    assert_int_equal(judge(&f, reason), GATE_ERRORS);
    assert_string_equal(reason,
                        "83 requests failed: 1 answered with status 404, 80 answered with status 501, "
                        "2 without an answer in time");
    f.loaded.window.ok = 0;
    f.loaded.window.scheduled -= 100;
    assert_int_equal(judge(&f, reason), GATE_ZERO);
    assert_non_null(strstr(reason, "83 failed: 1 answered with status 404"));
}

/* The generator's own words are explained only in docs/load.md; a newer generator's are shown as they are. */
static void test_failures_in_plain_words(void **state)
{
    char reason[GATE_REASON_BYTES];
    struct fixture f = good();
    struct msg_error_class classes[] = {
        {.phase = (char *)(uintptr_t) "wait", .cause = (char *)(uintptr_t) "stale", .count = 740},
        {.phase = (char *)(uintptr_t) "receive", .cause = (char *)(uintptr_t) "closed_early", .count = 12},
        {.phase = (char *)(uintptr_t) "connect", .cause = (char *)(uintptr_t) "refused", .count = 3},
        {.phase = (char *)(uintptr_t) "dream", .cause = (char *)(uintptr_t) "too_late", .count = 1}};
    (void)state;
    f.loaded.window.failed = 756;
    f.loaded.window.scheduled += 756;
    f.loaded.errors = classes;
    f.loaded.error_count = ARRAY_LEN(classes);
    assert_int_equal(judge(&f, reason), GATE_ERRORS);
    assert_string_equal(
        reason, "756 requests failed: 740 on kept-alive connections that the server had closed, "
                "12 whose connection the server closed amid the answer, 3 whose connection the server "
                "refused, 1 with dream too_late");
}

/* Every phase in which a cause can come has words for it, that fit a reason four at a time. */
static void test_every_failure_has_words(void **state)
{
    static const enum fault_phase all[] = {FAULT_CONNECT, FAULT_TLS, FAULT_SEND, FAULT_WAIT, FAULT_RECEIVE};
    (void)state;
    for (enum fault_cause c = 0; c < FAULT_CAUSE_COUNT; c++)
        for (size_t i = 0; i < ARRAY_LEN(all); i++) {
            bool opening = all[i] == FAULT_CONNECT || all[i] == FAULT_TLS;
            bool in_hand_shake = c >= CAUSE_VERSION && c <= CAUSE_VERIFY;
            bool answered = c == CAUSE_DESYNC || c == CAUSE_STATUS || c == CAUSE_CHECK;
            if (c == CAUSE_NOT_FOUND || (c == CAUSE_CLOSED_EARLY && all[i] == FAULT_CONNECT) ||
                (in_hand_shake && all[i] != FAULT_TLS) || (answered && all[i] != FAULT_RECEIVE) ||
                (opening && (c == CAUSE_STALE || c == CAUSE_TOO_BIG)))
                continue;
            const char *words = failure_words(fault_phase_text(all[i]), fault_cause_text(c));
            if (words == NULL || strlen(words) > 80)
                fail_msg("%s %s: %s", fault_phase_text(all[i]), fault_cause_text(c),
                         words ? words : "no words");
        }
    assert_null(failure_words("", ""));
}

static void test_nothing_completed(void **state)
{
    char reason[GATE_REASON_BYTES];
    struct fixture f = good();
    (void)state;
    f.gates.errors_max = 1000;
    f.loaded.window = (struct msg_accounts){.scheduled = 5, .failed = 5};
    assert_int_equal(judge(&f, reason), GATE_ZERO);
}

static void test_load_hosts_start_together(void **state)
{
    char reason[GATE_REASON_BYTES];
    struct fixture f = good();
    (void)state;
    f.figures.start_skew_max_ns = 250000000;
    f.figures.start_skew_ns = 250000000;
    assert_int_equal(judge(&f, reason), GATE_NONE);
    f.figures.start_skew_ns = 2000000000;
    assert_int_equal(judge(&f, reason), GATE_START_SKEW);
    assert_string_equal(reason, "the load hosts began their windows 2s apart, 250ms is allowed");
    f.figures.start_skew_ns = UINT64_MAX;
    assert_int_equal(judge(&f, reason), GATE_START_SKEW);
    assert_string_equal(reason, "it is not known whether the load hosts began their windows together");
}

static void test_accounts_must_balance(void **state)
{
    char reason[GATE_REASON_BYTES];
    struct fixture f = good();
    (void)state;
    f.loaded.window.scheduled = 111;
    assert_int_equal(judge(&f, reason), GATE_ACCOUNTS);
    assert_non_null(strstr(reason, "scheduled 111"));
    /* Numbers chosen to wrap around to a balance do not balance. */
    f = good();
    f.loaded.window = (struct msg_accounts){.scheduled = 0, .ok = UINT64_MAX, .failed = 1};
    assert_int_equal(judge(&f, reason), GATE_ACCOUNTS);
}

static void test_short_bodies(void **state)
{
    char reason[GATE_REASON_BYTES];
    struct fixture f = good();
    (void)state;
    f.loaded.figures[FIGURE_SHORT_BODIES] = figure_known(1);
    assert_int_equal(judge(&f, reason), GATE_SHORT_BODIES);
    assert_string_equal(reason, "1 response ended before the body was whole");
}

/* However many errors are allowed, a body of another size than expect.body_bytes is none of them. */
static void test_wrong_length(void **state)
{
    char reason[GATE_REASON_BYTES];
    struct fixture f = good();
    struct msg_error_class c = {
        .phase = (char *)(uintptr_t) "receive", .cause = (char *)(uintptr_t) "check", .count = 2};
    (void)state;
    f.gates.errors_max = 1000;
    f.loaded.window.failed = 2;
    f.loaded.window.scheduled = 112;
    assert_int_equal(judge(&f, reason), GATE_NONE);
    f.loaded.errors = &c;
    f.loaded.error_count = 1;
    assert_int_equal(judge(&f, reason), GATE_SHORT_BODIES);
    assert_string_equal(reason, "2 responses had another length than expect.body_bytes");
    f.loaded.window = (struct msg_accounts){.scheduled = 2, .failed = 2};
    assert_int_equal(judge(&f, reason), GATE_ZERO);
    assert_string_equal(reason, "no request was completed, 2 failed: 2 answered with another length than "
                                "expect.body_bytes");
}

/* A server that hangs in mid-window leaves good figures behind: what it never answered must count. */
static void test_unanswered_at_the_end(void **state)
{
    char reason[GATE_REASON_BYTES];
    struct fixture f = good();
    (void)state;
    f.gates.errors_max = 3;
    f.loaded.figures[FIGURE_UNANSWERED] = figure_known(3);
    assert_int_equal(judge(&f, reason), GATE_NONE);
    f.loaded.figures[FIGURE_UNANSWERED] = figure_known(4);
    assert_int_equal(judge(&f, reason), GATE_ERRORS);
    assert_string_equal(reason, "4 requests in flight at the end got no answer");
}

static void test_a_dead_server_comes_first(void **state)
{
    char reason[GATE_REASON_BYTES];
    struct fixture f = good();
    (void)state;
    f.figures.server_agent = "sut1";
    f.figures.server_died = "ended by signal 9";
    f.figures.generator_failed = "nothing came";
    assert_int_equal(judge(&f, reason), GATE_SERVER_DIED);
    assert_string_equal(reason, "the server on 'sut1' died: ended by signal 9");
    f.figures.server_died = NULL;
    assert_int_equal(judge(&f, reason), GATE_GENERATOR_FAILED);
    assert_string_equal(reason, "nothing came");
}

static void test_cpu_gates_only_when_asked(void **state)
{
    char reason[GATE_REASON_BYTES];
    struct fixture f = good();
    (void)state;
    f.figures.foreign_cpu_server = 5;
    f.figures.foreign_cpu_load = -1;
    f.figures.generator_cpu = 1;
    assert_int_equal(judge(&f, reason), GATE_NONE);
    f.gates.has_foreign_cpu = true;
    f.gates.foreign_cpu_max = 5;
    assert_int_equal(judge(&f, reason), GATE_FOREIGN_CPU); /* not known is not a pass */
    assert_non_null(strstr(reason, "load host is not known"));
    f.figures.foreign_cpu_load = 0;
    assert_int_equal(judge(&f, reason), GATE_NONE);
    f.figures.foreign_cpu_server = 5.01;
    assert_int_equal(judge(&f, reason), GATE_FOREIGN_CPU);
    assert_non_null(strstr(reason, "was 5.01 cores, 5 is allowed"));
    f.gates.foreign_cpu_max = 0.001; /* as it stands in the file, not rounded to nothing */
    assert_int_equal(judge(&f, reason), GATE_FOREIGN_CPU);
    assert_non_null(strstr(reason, "was 5.01 cores, 0.001 is allowed"));
    f.gates.has_foreign_cpu = false;
    f.gates.has_generator_cpu = true;
    f.gates.generator_cpu_max = 0.9;
    assert_int_equal(judge(&f, reason), GATE_GENERATOR_CPU);
    f.figures.generator_cpu = 0.9;
    assert_int_equal(judge(&f, reason), GATE_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_window_passes),
        cmocka_unit_test(test_errors_up_to_the_limit),
        cmocka_unit_test(test_wrong_statuses_are_told_by_status),
        cmocka_unit_test(test_failures_in_plain_words),
        cmocka_unit_test(test_every_failure_has_words),
        cmocka_unit_test(test_nothing_completed),
        cmocka_unit_test(test_load_hosts_start_together),
        cmocka_unit_test(test_accounts_must_balance),
        cmocka_unit_test(test_short_bodies),
        cmocka_unit_test(test_wrong_length),
        cmocka_unit_test(test_unanswered_at_the_end),
        cmocka_unit_test(test_a_dead_server_comes_first),
        cmocka_unit_test(test_cpu_gates_only_when_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
