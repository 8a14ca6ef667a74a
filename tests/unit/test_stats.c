#include "controller/analysis/stats.h"

#include "common/buf.h"
#include "common/mem.h"
#include "controller/analysis/latency.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void near(const char *what, double got, double expected, double tolerance)
{
    if (!(fabs(got - expected) <= tolerance))
        fail_msg("%s: %.9g, expected %.9g +- %.2g", what, got, expected, tolerance);
}

/*
 * "Energy per request" (MacBook Air M5): the 100 published measurements, five rounds of each route, and the
 * published table by route that was derived from them (mean and sample SD, printed with 5 decimals).
 */
struct published_route {
    const char *name;
    double rps[5];
    double mean_rps, sd_rps;
    double mj[5]; /* millijoules a request */
    double mean_mj, sd_mj, cv_mj;
};
static const struct published_route by_route[] = {
    {"elysia ping",
     {199856.4, 199910.7, 198375.7, 197339.6, 201441},
     199384.68,
     1575.44133,
     {0.083, 0.08437, 0.08572, 0.08578, 0.08416},
     0.08461,
     0.00117,
     0.0138},
    {"elysia query",
     {182160, 184161.8, 182400.7, 183160.1, 183583.9},
     183093.3,
     827.28268,
     {0.09765, 0.10059, 0.10144, 0.10126, 0.0999},
     0.10017,
     0.00153,
     0.0153},
    {"elysia body",
     {174660, 171300.4, 172650.7, 171255.8, 171472.4},
     172267.86,
     1454.46736,
     {0.10664, 0.10454, 0.10278, 0.10388, 0.10293},
     0.10415,
     0.00156,
     0.01502},
    {"elysia video",
     {893, 875.5, 878.5, 867.2, 878.1},
     878.46,
     9.3152,
     {18.15365, 17.24745, 17.05174, 17.25639, 17.23556},
     17.38896,
     0.43578,
     0.02506},
    {"hono ping",
     {188398.4, 187936.4, 190253.9, 188755.7, 190287.4},
     189126.36,
     1084.28314,
     {0.09091, 0.09222, 0.09126, 0.09337, 0.09158},
     0.09187,
     0.00097,
     0.01054},
    {"hono query",
     {175185.3, 174963.5, 174138.9, 174799.5, 173520},
     174521.44,
     682.39714,
     {0.10438, 0.1065, 0.10588, 0.1048, 0.10605},
     0.10552,
     0.00089,
     0.00846},
    {"hono body",
     {167821.4, 166832.8, 165339.5, 165530.1, 164978.5},
     166100.46,
     1189.65554,
     {0.10908, 0.10679, 0.10631, 0.1052, 0.10637},
     0.10675,
     0.00143,
     0.01339},
    {"hono video",
     {881.2, 867.8, 868.7, 872.1, 873.2},
     872.6,
     5.31084,
     {17.80427, 17.47848, 17.30822, 17.29469, 17.14092},
     17.40532,
     0.25303,
     0.01454},
    {"bun ping",
     {180623.2, 180966.6, 180720.2, 181482.8, 181570.4},
     181072.64,
     434.00777,
     {0.09829, 0.0973, 0.0988, 0.09728, 0.0988},
     0.09809,
     0.00076,
     0.00778},
    {"bun query",
     {186078.5, 186070.5, 184611.5, 185521, 186638.4},
     185783.98,
     765.30012,
     {0.09786, 0.09778, 0.09885, 0.09856, 0.09798},
     0.09821,
     0.00047,
     0.00481},
    {"bun body",
     {171173.5, 171743.1, 170688.8, 170345.5, 170038.5},
     170797.88,
     675.96881,
     {0.10492, 0.10409, 0.10288, 0.1039, 0.10278},
     0.10371,
     0.00089,
     0.00862},
    {"bun video",
     {864.2, 856.2, 852, 859, 872.6},
     860.8,
     7.94733,
     {17.91961, 17.82863, 17.72115, 17.45397, 17.21391},
     17.62745,
     0.28971,
     0.01644},
    {"effect ping",
     {158044.8, 157501.8, 157896.9, 157313.9, 158289.7},
     157809.42,
     398.08778,
     {0.11144, 0.11372, 0.1133, 0.11348, 0.11328},
     0.11304,
     0.00091,
     0.00808},
    {"effect query",
     {142083.2, 140129.1, 140789, 140314, 141598.3},
     140982.72,
     837.16425,
     {0.12374, 0.12436, 0.12481, 0.12302, 0.12255},
     0.1237,
     0.00093,
     0.00751},
    {"effect body",
     {112619.2, 111784.6, 111137.1, 110938, 109912.8},
     111278.34,
     1006.81233,
     {0.14041, 0.13896, 0.14064, 0.13928, 0.14119},
     0.1401,
     0.00094,
     0.00672},
    {"effect video",
     {847.2, 849.2, 847.8, 825.5, 841.8},
     842.3,
     9.80255,
     {18.3129, 17.99239, 17.82917, 18.51029, 18.07974},
     18.1449,
     0.26876,
     0.01481},
    {"express ping",
     {85820.9, 91702.5, 90143.3, 90546.8, 86659.9},
     88974.68,
     2577.9241,
     {0.16511, 0.15694, 0.15916, 0.15817, 0.16241},
     0.16036,
     0.00334,
     0.02085},
    {"express query",
     {81458.3, 77365.5, 82851, 80923.7, 81459.8},
     80811.66,
     2054.61116,
     {0.17051, 0.17215, 0.16904, 0.17274, 0.1715},
     0.17119,
     0.00146,
     0.00852},
    {"express body",
     {69183.3, 66302.7, 71261.9, 69615.9, 69722.6},
     69217.28,
     1809.05005,
     {0.17992, 0.18668, 0.17957, 0.18311, 0.18043},
     0.18194,
     0.00299,
     0.01645},
    {"express video",
     {347.9, 348.8, 351.4, 346, 345.3},
     347.88,
     2.42012,
     {51.52068, 51.20491, 50.57524, 50.90579, 50.9415},
     51.02962,
     0.35406,
     0.00694},
};

static void test_published_means_and_sds(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(by_route); i++) {
        const struct published_route *r = &by_route[i];
        struct stats_summary s;
        stats_summarise(r->rps, 5, &s);
        assert_int_equal(s.n, 5);
        near(r->name, s.mean, r->mean_rps, 0.5e-5);
        near(r->name, s.sd, r->sd_rps, 0.6e-5);
        near(r->name, s.cv, r->sd_rps / r->mean_rps, 1e-7);
        stats_summarise(r->mj, 5, &s);
        near(r->name, s.mean, r->mean_mj, 0.6e-5);
        near(r->name, s.sd, r->sd_mj, 1.01e-5); /* the inputs are rounded to the same digits */
        near(r->name, s.cv, r->cv_mj, 1.2e-4);
    }
}

/*
 * The same article's headline: mJ a request over the small routes, request-weighted within each of five
 * rounds (copied here to 7 decimals). Two of the printed figures disagree with the article's own data; the
 * data win: bun's SD is 0.00026 (printed 0.0002), effect's mean 0.12405 (printed 0.1241, rounded twice).
 */
static const struct {
    const char *name;
    double mj[5];
    double mean_4, sd_4, cv_pct_1; /* as they round */
} headline[] = {
    {"elysia", {0.0952093, 0.0959673, 0.0962233, 0.0965385, 0.0951349}, 0.0958, 0.0006, 0.6},
    {"bun", {0.1002543, 0.0996279, 0.1001191, 0.0998226, 0.0997725}, 0.0999, 0.0003, 0.3},
    {"hono", {0.1010883, 0.1015245, 0.1007625, 0.1008497, 0.1009391}, 0.1010, 0.0003, 0.3},
    {"effect", {0.1235795, 0.1242522, 0.1246686, 0.1237641, 0.1239661}, 0.1240, 0.0004, 0.3},
    {"express", {0.1713033, 0.1703153, 0.1684656, 0.1702650, 0.1708061}, 0.1702, 0.0011, 0.6},
};

static void test_published_headline(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(headline); i++) {
        struct stats_summary s;
        stats_summarise(headline[i].mj, 5, &s);
        near(headline[i].name, s.mean, headline[i].mean_4, 0.5e-4);
        near(headline[i].name, s.sd, headline[i].sd_4, 0.5e-4);
        near(headline[i].name, 100 * s.cv, headline[i].cv_pct_1, 0.05);
    }
}

/* "Bun HTTP frameworks on MacBook Air M5": mean, SD, CV, min and max of five rounds. The rounds themselves
 * are not published. */
static const struct {
    const char *name;
    double mean, sd, cv_pct, min, max;
} cv_table[] = {
    {"elysia", 137024, 965, 0.7, 136121, 138156}, {"elysia-aot", 136707, 806, 0.6, 135864, 137839},
    {"bun", 132032, 1059, 0.8, 131028, 133689},   {"h3", 131828, 716, 0.5, 130981, 132959},
    {"hono", 130556, 612, 0.5, 129933, 131575},   {"bun-web-standard", 128878, 776, 0.6, 127954, 129699},
    {"effect", 101534, 507, 0.5, 100886, 102236}, {"express", 59273, 645, 1.1, 58219, 59860},
};

/* Five rounds within [min, max] that have the published mean, SD, min and max: the extremes and three that
 * lie on the circle of all triples with the mean and the squares that are left. */
static bool rounds_with(size_t i, double out[5])
{
    double mean = cv_table[i].mean;
    double low = cv_table[i].min;
    double high = cv_table[i].max;
    double middle = (5 * mean - low - high) / 3;
    double squares = 4 * cv_table[i].sd * cv_table[i].sd - (low - mean) * (low - mean) -
                     (high - mean) * (high - mean) - 3 * (middle - mean) * (middle - mean);
    double radius = squares > 0 ? sqrt(squares / 1.5) : 0;
    for (int degree = 0; degree < 120; degree++) {
        bool inside = true;
        for (int k = 0; k < 3; k++) {
            out[k] = middle + radius * cos((degree + 120 * k) * acos(-1) / 180);
            inside = inside && out[k] >= low && out[k] <= high;
        }
        out[3] = high;
        out[4] = low;
        if (inside)
            return true;
    }
    return false;
}

static void test_published_cv_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cv_table); i++) {
        double rounds[5];
        struct stats_summary s;
        assert_true(rounds_with(i, rounds));
        stats_summarise(rounds, 5, &s);
        near(cv_table[i].name, s.mean, cv_table[i].mean, 1e-6);
        near(cv_table[i].name, s.sd, cv_table[i].sd, 0.5);
        near(cv_table[i].name, 100 * s.cv, cv_table[i].cv_pct, 0.05);
        assert_true(s.min == cv_table[i].min && s.max == cv_table[i].max);
    }
}

/* The same article's average column: the plain mean of the four routes. */
static const struct {
    const char *name;
    double routes[4];
    double average;
} averages[] = {
    {"elysia", {200017, 179739, 167496, 844}, 137024},
    {"elysia-aot", {198962, 179868, 167152, 847}, 136707},
    {"bun", {180761, 181294, 165230, 841}, 132032},
    {"h3", {187835, 174552, 164080, 843}, 131828},
    {"hono", {189171, 171382, 160827, 846}, 130556},
    {"bun-web-standard", {180285, 167522, 166862, 843}, 128878},
    {"effect", {157972, 138202, 109140, 823}, 101534},
    {"express", {90901, 76993, 68861, 338}, 59273},
};

static void test_published_averages(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(averages); i++) {
        struct stats_summary s;
        stats_summarise(averages[i].routes, 4, &s);
        near(averages[i].name, s.mean, averages[i].average, 0.5);
    }
}

/* NIST StRD "NumAcc4": 1001 values of 10000000.2 and its neighbours, certified mean and sample SD; a
 * one-pass variance loses every digit here. */
static void test_cancellation(void **state)
{
    (void)state;
    double values[1001];
    values[0] = 10000000.2;
    for (size_t i = 1; i < 1001; i += 2) {
        values[i] = 10000000.1;
        values[i + 1] = 10000000.3;
    }
    struct stats_summary s;
    stats_summarise(values, 1001, &s);
    near("mean", s.mean, 10000000.2, 1e-8);
    near("sd", s.sd, 0.1, 1e-8);
}

static void test_few_values(void **state)
{
    (void)state;
    struct stats_summary s;
    stats_summarise(NULL, 0, &s);
    assert_int_equal(s.n, 0);
    assert_true(isnan(s.mean) && isnan(s.median) && isnan(s.sd) && isnan(s.cv) && isnan(s.min) &&
                isnan(s.max));
    const double one[] = {4};
    stats_summarise(one, 1, &s);
    assert_true(s.mean == 4 && s.median == 4 && s.min == 4 && s.max == 4);
    assert_true(isnan(s.sd) && isnan(s.cv));
    const double two[] = {3, 1};
    stats_summarise(two, 2, &s);
    assert_true(s.mean == 2 && s.median == 2 && s.min == 1 && s.max == 3);
    near("sd", s.sd, sqrt(2), 1e-15);
    assert_true(two[0] == 3); /* the caller's order stays */
    const double zeros[] = {0, 0, 0};
    stats_summarise(zeros, 3, &s);
    assert_true(s.sd == 0 && isnan(s.cv));
    const double four[] = {10, 1, 2, 4};
    stats_summarise(four, 4, &s);
    assert_true(s.median == 3);
}

static void test_overlap(void **state)
{
    (void)state;
    struct stats_summary a, b, none;
    const double low[] = {1, 2};
    const double high[] = {2, 3};
    const double higher[] = {2.5, 3};
    stats_summarise(low, 2, &a);
    stats_summarise(high, 2, &b);
    stats_summarise(NULL, 0, &none);
    assert_true(stats_ranges_overlap(&a, &b) && stats_ranges_overlap(&b, &a)); /* one common point */
    stats_summarise(higher, 2, &b);
    assert_false(stats_ranges_overlap(&a, &b) || stats_ranges_overlap(&b, &a));
    assert_false(stats_ranges_overlap(&a, &none) || stats_ranges_overlap(&none, &a));
    assert_false(stats_ranges_overlap(&none, &none));
}

/* ---- latency -------------------------------------------------------------------------------------- */

static struct msg_bytes encode(struct hist *h)
{
    struct buf text;
    buf_init(&text, HIST_TEXT_BYTES_MAX);
    assert_int_equal(hist_encode(h, &text), ERR_OK);
    size_t len = text.len;
    return (struct msg_bytes){.data = (uint8_t *)buf_take(&text), .len = len};
}

/* A window with 9,990 fast answers and one with 10 slow ones: the p99 of all is fast. An average of the two
 * windows' p99 would be about 5 ms. */
static void test_percentiles_come_from_merged_histograms(void **state)
{
    (void)state;
    struct hist *fast = hist_new();
    struct hist *slow = hist_new();
    struct hist *merged = hist_new();
    for (uint64_t i = 0; i < 9990; i++)
        hist_record(fast, 1000000 + i);
    for (uint64_t i = 0; i < 10; i++)
        hist_record(slow, 10000000);
    struct msg_bytes a = encode(fast);
    struct msg_bytes b = encode(slow);
    struct latency_figures f;
    assert_int_equal(latency_decode(fast, &a, NULL), ERR_OK);
    assert_int_equal(latency_decode(slow, &b, NULL), ERR_OK);
    hist_merge(merged, fast);
    hist_merge(merged, slow);
    latency_read(merged, &f);
    assert_int_equal(f.count, 10000);
    near("p50", (double)f.p50, 1.005e6, 1.1e3);
    near("p99", (double)f.p99, 1.0099e6, 1.1e3);
    near("p99.9", (double)f.p999, 1.00999e6, 1.1e3);
    near("max", (double)f.max, 1e7, 1e4); /* 3 significant digits */
    free(a.data);
    free(b.data);
    hist_free(fast);
    hist_free(slow);
    hist_free(merged);
}

static void test_unreadable_histograms_are_empty(void **state)
{
    (void)state;
    struct hist *out = hist_new();
    struct err_detail d;
    struct msg_bytes none = {0};
    struct msg_bytes garbage = {.data = (uint8_t *)mem_strdup("HISTgarbage"), .len = 11};
    struct latency_figures f;
    assert_int_equal(latency_decode(out, &none, &d), ERR_NOT_FOUND);
    assert_int_equal(latency_decode(out, &garbage, &d), ERR_INVALID);
    latency_read(out, &f);
    assert_int_equal(f.count, 0);
    free(garbage.data);
    hist_free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_means_and_sds),
        cmocka_unit_test(test_published_headline),
        cmocka_unit_test(test_published_cv_table),
        cmocka_unit_test(test_published_averages),
        cmocka_unit_test(test_cancellation),
        cmocka_unit_test(test_few_values),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_percentiles_come_from_merged_histograms),
        cmocka_unit_test(test_unreadable_histograms_are_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
