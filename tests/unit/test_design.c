/* The schedule: orders, times, what remains, and the plan that prints it. */
#include "controller/experiment/design.h"
#include "controller/experiment/plan.h"

#include "common/clock.h"
#include "common/json.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct experiment *make(unsigned targets, unsigned rounds, const char *order)
{
    struct buf b;
    struct experiment *e = NULL;
    struct experiment_problems p;
    buf_init(&b, 1u << 16);
    assert_int_equal(buf_append_text(&b, "{\"name\":\"t\",\"targets\":["), ERR_OK);
    for (unsigned i = 0; i < targets; i++)
        assert_int_equal(
            buf_printf(&b, "%s{\"name\":\"t%u\",\"start\":[\"x\"],\"port\":1}", i > 0 ? "," : "", i), ERR_OK);
    assert_int_equal(buf_printf(&b,
                                "],\"workloads\":[{\"name\":\"/small\",\"request\":{\"path\":\"/\"},"
                                "\"connections\":[10,100],\"warmup\":\"2s\",\"duration\":\"5s\"},"
                                "{\"name\":\"big\",\"request\":{\"path\":\"/b\"},\"connections\":1,"
                                "\"duration\":\"3s\"}],\"design\":{\"rounds\":%u,\"order\":\"%s\","
                                "\"cooldown\":\"10s\",\"gap\":\"500ms\"}}",
                                rounds, order),
                     ERR_OK);
    if (experiment_parse(b.data, b.len, NULL, &e, &p) != ERR_OK)
        fail_msg("%s", p.items[0].text);
    buf_fini(&b);
    return e;
}

static void test_fixed_order(void **state)
{
    (void)state;
    struct experiment *e = make(2, 2, "fixed");
    struct design *d = NULL;
    char name[64];
    assert_int_equal(design_build(e, &d, NULL), ERR_OK);
    assert_int_equal(d->cell_count, 6);
    assert_int_equal(d->window_count, 12);
    assert_string_equal(design_cell_name(e, d, 0, name, sizeof name), "t0 /small c=10");
    assert_string_equal(design_cell_name(e, d, 1, name, sizeof name), "t0 /small c=100");
    assert_string_equal(design_cell_name(e, d, 5, name, sizeof name), "t1 big c=1");
    for (uint32_t i = 0; i < 12; i++) {
        assert_int_equal(d->windows[i].index, i);
        assert_int_equal(d->windows[i].cell, i % 6);
        assert_int_equal(d->windows[i].round, i / 6);
        assert_int_equal(d->windows[i].slot, i / 3 % 2);
    }
    design_free(d);
    experiment_free(e);
}

static void test_times(void **state)
{
    (void)state;
    struct experiment *e = make(2, 2, "fixed");
    struct design *d = NULL;
    assert_int_equal(design_build(e, &d, NULL), ERR_OK);
    /* One target: cooldown 10, warm-up 2, window 5, gap .5, 2 + 5, gap .5, 3 = 28 s. */
    const uint64_t slot_ns = 28 * NS_PER_S;
    assert_true(d->duration_ns == 4 * slot_ns);
    assert_true(d->windows[0].planned_start_ns == 12 * NS_PER_S);
    assert_true(d->windows[1].planned_start_ns == 19500 * NS_PER_MS);
    assert_true(d->windows[2].planned_start_ns == 25 * NS_PER_S);
    assert_true(d->windows[3].planned_start_ns == slot_ns + 12 * NS_PER_S);
    assert_true(design_remaining_ns(e, d, 0) == d->duration_ns);
    assert_true(design_remaining_ns(e, d, 1) == d->duration_ns - 17 * NS_PER_S);
    assert_true(design_remaining_ns(e, d, 3) == 3 * slot_ns);
    assert_true(design_remaining_ns(e, d, 11) == 3500 * NS_PER_MS);
    assert_true(design_remaining_ns(e, d, 12) == 0);
    assert_true(design_load_to_end_ns(e, d, 0) == d->duration_ns - e->design.cooldown_ns);
    assert_true(design_load_to_end_ns(e, d, 11) == design_remaining_ns(e, d, 11) - e->design.gap_ns);
    assert_true(design_load_to_end_ns(e, d, 12) == 0);
    design_free(d);
    experiment_free(e);
}

/* Over n rounds every target takes every slot once, and every round has every target. */
static void test_latin_square(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= 7; n++) {
        struct experiment *e = make(n, 2 * n, "latin-square");
        struct design *d = NULL;
        unsigned seen[7][7] = {{0}};
        assert_int_equal(design_build(e, &d, NULL), ERR_OK);
        for (size_t i = 0; i < d->window_count; i += 3) {
            const struct design_window *w = &d->windows[i];
            uint32_t target = d->cells[w->cell].target;
            assert_int_equal(target, (w->slot + w->round) % n);
            assert_int_equal(target, design_target_at(e, w->round, w->slot));
            for (size_t k = 1; k < 3; k++)
                assert_int_equal(d->windows[i + k].cell, w->cell + k);
            seen[target][w->slot]++;
        }
        for (unsigned t = 0; t < n; t++)
            for (unsigned s = 0; s < n; s++)
                assert_int_equal(seen[t][s], 2);
        design_free(d);
        experiment_free(e);
    }
}

static void test_nothing_to_do_is_refused(void **state)
{
    (void)state;
    struct experiment none = {.design = {.rounds = 1}};
    struct design *d = NULL;
    struct err_detail detail;
    assert_int_equal(design_build(&none, &d, &detail), ERR_INVALID);
    assert_string_equal(detail.text, "0 windows: an experiment has 1 to 100000");
}

/* One short window is enough: every START has the digits that tell it from the next. */
static void test_plan_of_short_windows(void **state)
{
    (void)state;
    struct experiment *e = make(1, 1, "fixed");
    struct design *d = NULL;
    struct buf out;
    buf_init(&out, 1u << 20);
    e->design.cooldown_ns = e->design.gap_ns = 0;
    e->workloads[0].warmup_ns = 0;
    e->workloads[0].duration_ns = 10 * NS_PER_MS;
    assert_int_equal(design_build(e, &d, NULL), ERR_OK);
    assert_int_equal(plan_write_text(e, d, &out), ERR_OK);
    assert_non_null(
        strstr(out.data, "WINDOW  START         ROUND  SLOT  TARGET  WORKLOAD   CONNS  WARM-UP  DURATION\n"
                         "     1  00:00:00.000      1     1  t0      /small        10       0s      10ms\n"
                         "     2  00:00:00.010      1     1  t0      /small       100       0s      10ms\n"
                         "     3  00:00:00.020      1     1  t0      big            1       0s        3s\n"));
    design_free(d);
    d = NULL;
    buf_clear(&out);
    e->workloads[0].duration_ns = NS_PER_S;
    assert_int_equal(design_build(e, &d, NULL), ERR_OK);
    assert_int_equal(plan_write_text(e, d, &out), ERR_OK);
    assert_non_null(strstr(out.data, "     2  00:00:01      1     1  t0 "));
    buf_fini(&out);
    design_free(d);
    experiment_free(e);
}

static void test_plan(void **state)
{
    (void)state;
    struct experiment *e = make(2, 2, "latin-square");
    struct design *d = NULL;
    struct buf out;
    struct json_value *v = NULL;
    const struct json_value *windows = NULL;
    uint64_t n = 0;
    buf_init(&out, 1u << 20);
    assert_int_equal(design_build(e, &d, NULL), ERR_OK);
    assert_int_equal(plan_write_text(e, d, &out), ERR_OK);
    assert_non_null(strstr(out.data, "t: 2 targets, 6 cells x 2 rounds = 12 windows, 112s\n"));
    assert_non_null(strstr(out.data,
                           "WINDOW  START     ROUND  SLOT  TARGET  WORKLOAD   CONNS  WARM-UP  DURATION\n"
                           "     1  00:00:12      1     1  t0      /small        10       2s        5s\n"
                           "     2  00:00:19      1     1  t0      /small       100       2s        5s\n"
                           "     3  00:00:25      1     1  t0      big            1       0s        3s\n"
                           "     4  00:00:40      1     2  t1      /small        10       2s        5s\n"));
    assert_non_null(strstr(out.data, "     7  00:01:08      2     1  t1      /small        10"));
    buf_clear(&out);
    assert_int_equal(plan_write_json(e, d, &out), ERR_OK);
    assert_int_equal(json_parse(out.data, out.len, NULL, &v, NULL), ERR_OK);
    assert_int_equal(json_get_u64(v, "duration_ns", 0, UINT64_MAX, &n, NULL), ERR_OK);
    assert_true(n == d->duration_ns);
    assert_int_equal(json_get_child(v, "windows", JSON_ARRAY, &windows, NULL), ERR_OK);
    assert_int_equal(json_count(windows), 12);
    const struct json_value *last = json_first(windows);
    while (json_next(last) != NULL)
        last = json_next(last);
    assert_int_equal(json_get_u64(last, "start_ns", 0, UINT64_MAX, &n, NULL), ERR_OK);
    assert_true(n == d->windows[11].planned_start_ns);
    json_free(v);
    buf_fini(&out);
    buf_init(&out, 100);
    assert_int_equal(plan_write_text(e, d, &out), ERR_TOO_BIG);
    buf_fini(&out);
    design_free(d);
    experiment_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fixed_order),           cmocka_unit_test(test_times),
        cmocka_unit_test(test_latin_square),          cmocka_unit_test(test_nothing_to_do_is_refused),
        cmocka_unit_test(test_plan_of_short_windows), cmocka_unit_test(test_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
