/* Standings of a group at the edges: nobody, one alone, equal means, ranges that touch, one round, a best of
 * 0. */
#include "controller/analysis/standings.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define GROUP_MAX 5

struct member {
    double values[3];
    size_t n;
    enum standing_kind kind;
    double against_best; /* NAN: unknown */
    size_t place;        /* who stands here in the order */
};

static void expect(const char *what, const struct member *members, size_t count)
{
    struct stats_summary group[GROUP_MAX] = {0};
    struct standing got[GROUP_MAX];
    size_t order[GROUP_MAX];
    for (size_t i = 0; i < count; i++)
        stats_summarise(members[i].values, members[i].n, &group[i]);
    memset(got, 0xff, sizeof got); /* all of it is written */
    standings_judge(group, count, got);
    standings_order(group, count, order);
    for (size_t i = 0; i < count; i++) {
        const struct member *m = &members[i];
        if (got[i].kind != m->kind)
            fail_msg("%s: %zu is '%s', not '%s'", what, i, standing_name(got[i].kind),
                     standing_name(m->kind));
        if (isnan(m->against_best) ? !isnan(got[i].against_best)
                                   : fabs(got[i].against_best - m->against_best) > 1e-12)
            fail_msg("%s: %zu is %g against the best, not %g", what, i, got[i].against_best, m->against_best);
        if (order[i] != m->place)
            fail_msg("%s: place %zu is %zu's, not %zu's", what, i, order[i], m->place);
    }
}

#define EXPECT(what, ...)                                                                                    \
    expect(what, (const struct member[]){__VA_ARGS__}, ARRAY_LEN(((const struct member[]){__VA_ARGS__})))

static void test_nobody_and_one_alone(void **state)
{
    (void)state;
    expect("nobody", NULL, 0);
    EXPECT("no numbers", {{0}, 0, STANDING_NONE, NAN, 0}, {{0}, 0, STANDING_NONE, NAN, 1});
    EXPECT("a group of one", {{7, 8}, 2, STANDING_ALONE, 0, 0});
    EXPECT("one with a number", {{0}, 0, STANDING_NONE, NAN, 1}, {{7}, 1, STANDING_ALONE, 0, 0},
           {{0}, 0, STANDING_NONE, NAN, 2});
}

static void test_ties_and_differences(void **state)
{
    (void)state;
    EXPECT("ranges that share one point", {{8, 10}, 2, STANDING_TIE, 9.0 / 11 - 1, 1},
           {{10, 12}, 2, STANDING_BEST, 0, 0});
    EXPECT("ranges that do not", {{8, 9.999}, 2, STANDING_BEHIND, 8.9995 / 11 - 1, 1},
           {{10, 12}, 2, STANDING_BEST, 0, 0});
    EXPECT("a range within another", {{1, 100, 100}, 3, STANDING_BEST, 0, 0},
           {{50, 51}, 2, STANDING_TIE, 50.5 / 67 - 1, 1});
    EXPECT("equal means: the first", {{5, 7}, 2, STANDING_BEST, 0, 0}, {{6, 6}, 2, STANDING_TIE, 0, 1});
    EXPECT("each is held against the best, not the next", {{1, 2}, 2, STANDING_BEHIND, 1.5 / 9.5 - 1, 2},
           {{2, 3}, 2, STANDING_BEHIND, 2.5 / 9.5 - 1, 3}, {{9, 10}, 2, STANDING_BEST, 0, 1},
           {{8, 9}, 2, STANDING_TIE, 8.5 / 9.5 - 1, 0}, {{0}, 0, STANDING_NONE, NAN, 4});
}

static void test_one_round_judges_nothing(void **state)
{
    (void)state;
    EXPECT("one round here", {{10, 12}, 2, STANDING_BEST, 0, 0}, {{1}, 1, STANDING_UNKNOWN, 1.0 / 11 - 1, 1});
    EXPECT("one round at the best", {{11}, 1, STANDING_BEST, 0, 0},
           {{1, 1}, 2, STANDING_UNKNOWN, 1.0 / 11 - 1, 1});
}

static void test_a_best_of_zero(void **state)
{
    (void)state;
    EXPECT("all zero", {{0, 0}, 2, STANDING_BEST, 0, 0}, {{0, 0}, 2, STANDING_TIE, NAN, 1});
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(standing_name(STANDING_NONE), "none");
    assert_string_equal(standing_name(STANDING_UNKNOWN), "unknown");
    assert_string_equal(standing_name(STANDING_COUNT), "unknown");
}

/* The figures of docs/statistics.md. */
static void test_chance(void **state)
{
    (void)state;
    assert_true(standings_chance(1) == 1);
    assert_true(fabs(standings_chance(2) - 1.0 / 3) < 1e-15);
    assert_true(fabs(standings_chance(3) - 0.1) < 1e-15);
    assert_true(fabs(standings_chance(5) - 2.0 / 252) < 1e-15);
    assert_true(standings_chance(1000) < 1e-100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_and_one_alone),
        cmocka_unit_test(test_ties_and_differences),
        cmocka_unit_test(test_one_round_judges_nothing),
        cmocka_unit_test(test_a_best_of_zero),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
