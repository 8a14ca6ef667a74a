/* The JSON reader and writer: what is accepted, what is refused and where, what comes back. */
#include "common/json.h"
#include "common/json_write.h"
#include "common/mem.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct json_value *parse(const char *text)
{
    static const struct json_options comments = {.comments = true};
    struct err_detail d;
    struct json_value *v = NULL;
    if (json_parse(text, strlen(text), &comments, &v, &d) != ERR_OK)
        fail_msg("%s: %s", text, d.text);
    return v;
}

static void refused(const char *text, bool comments, const char *message)
{
    struct json_options o = {.comments = comments};
    struct err_detail d;
    struct json_value *v = NULL;
    if (json_parse(text, strlen(text), &o, &v, &d) == ERR_OK)
        fail_msg("accepted: %s", text);
    assert_null(v);
    if (strncmp(d.text, message, strlen(message)) != 0)
        fail_msg("%s: got '%s', wanted '%s'", text, d.text, message);
}

static struct json_value *at(const struct json_value *list, size_t n)
{
    struct json_value *v = json_first(list);
    while (n-- > 0)
        v = json_next(v);
    return v;
}

static void test_values_and_places(void **state)
{
    (void)state;
    struct json_value *v = parse("// head\n{ \"a\": [1, true, null,\n  \"x\\u00e9\\ud83d\\ude00\\n\"],\n"
                                 "  /* \xc3\xa9 */ \"\xc3\xa9\": -1.5e3, \"b\": {} }\n");
    assert_int_equal(json_kind(v), JSON_OBJECT);
    assert_int_equal(json_count(v), 3);
    assert_int_equal(v->line, 2);
    assert_int_equal(v->column, 1);
    const struct json_value *a = json_member(v, "a");
    assert_int_equal(a->key_column, 3);
    assert_int_equal(a->column, 8);
    assert_int_equal(json_first(a)->line, 2);
    assert_int_equal(json_first(a)->column, 9);
    assert_int_equal(json_kind(at(a, 1)), JSON_BOOL);
    assert_string_equal(json_text(at(a, 1)), "true");
    assert_int_equal(json_kind(at(a, 2)), JSON_NULL);
    assert_string_equal(json_text(at(a, 3)), "x\xc3\xa9\xf0\x9f\x98\x80\n");
    assert_int_equal(at(a, 3)->line, 3);
    assert_int_equal(at(a, 3)->column, 3);
    const struct json_value *e = json_member(v, "\xc3\xa9");
    assert_int_equal(e->key_line, 4);
    assert_int_equal(e->key_column, 11); /* characters, not bytes */
    assert_string_equal(json_text(e), "-1.5e3");
    assert_null(json_member(v, "c"));
    assert_null(json_member(a, "c"));
    char path[JSON_PATH_BYTES];
    assert_string_equal(json_path(at(a, 3), path, sizeof path), "a[3]");
    assert_string_equal(json_path(e, path, sizeof path), "[\"\xc3\xa9\"]");
    assert_string_equal(json_path(v, path, sizeof path), "");
    json_free(v);
}

static void test_scalars_alone(void **state)
{
    (void)state;
    struct json_value *v = parse(" 18446744073709551615 ");
    uint64_t n = 0;
    assert_int_equal(json_to_u64(v, 0, UINT64_MAX, &n, NULL), ERR_OK);
    assert_true(n == UINT64_MAX);
    json_free(v);
    v = parse("\"\"");
    assert_string_equal(json_text(v), "");
    json_free(v);
    v = parse("1e+5");
    assert_string_equal(json_text(v), "1e+5");
    json_free(v);
    v = parse("-0.5E-12");
    assert_string_equal(json_text(v), "-0.5E-12");
    json_free(v);
}

/* Every escape there is, and characters of each length at their limits. */
static void test_strings_are_decoded(void **state)
{
    (void)state;
    struct json_value *v =
        parse("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\", \"\\u0001\\u007F\\u0080\\u07ff\\u0800\\uffff\","
              " \"\\ud800\\udc00\\uDBFF\\uDFFF!\", {\"\\u0061\\n\": \"\"}]");
    assert_string_equal(json_text(at(v, 0)), "\"\\/\b\f\n\r\t");
    assert_string_equal(json_text(at(v, 1)), "\x01\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf");
    assert_string_equal(json_text(at(v, 2)), "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf!");
    assert_string_equal(json_key(json_first(at(v, 3))), "a\n");
    json_free(v);
}

static void test_syntax_errors(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"", "1:1: the text is empty"},
        {" \n", "2:1: the text is empty"},
        {"\xef\xbb\xbf{}", "1:1: the text starts with a byte order mark"},
        {"{} x", "1:4: nothing may follow the value: found 'x'"},
        {"[1 2]", "1:4: ',' or ']' is missing: found '2'"},
        {"[1,]", "1:3: no ',' after the last element"},
        {"{\"a\":1,\n}", "1:7: no ',' after the last member"},
        {"[,1]", "1:2: a value is missing: found ','"},
        {"[1", "1:1: '[' is not closed"},
        {"[1,", "1:1: '[' is not closed"},
        {"{", "1:1: '{' is not closed"},
        {"{a: 1}", "1:2: a key in double quotes is missing: found 'a'"},
        {"{\"a\" 1}", "1:6: ':' is missing after the key: found '1'"},
        {"{\"a\":}", "1:6: a value is missing: found '}'"},
        {"'a'", "1:1: strings stand in double quotes"},
        {"\"a", "1:1: string is not closed on its line"},
        {"\"a\nb\"", "1:1: string is not closed on its line"},
        {"\"a\tb\"", "1:3: control character 0x09"},
        {"\"\x01\"", "1:2: control character 0x01"},
        {"\"\\x\"", "1:2: unknown escape"},
        {"\"\\", "1:2: unknown escape"},
        {"\"\\u12g4\"", "1:2: \\u needs four hex digits"},
        {"\"\\u004", "1:2: \\u needs four hex digits"},
        {"\"\\u0041", "1:1: string is not closed on its line"},
        {"\"\\u0000\"", "1:2: \\u0000 is not accepted"},
        {"\"\\ud800\"", "1:2: \\ud800 is half of a surrogate pair"},
        {"\"\\ud800\\u0041\"", "1:2: \\ud800 is half of a surrogate pair"},
        {"\"\\udc00\"", "1:2: \\udc00 is half of a surrogate pair"},
        {"\"\xff\"", "1:2: byte 0xff is not UTF-8"},
        {"\"\xc0\xaf\"", "1:2: byte 0xc0 is not UTF-8"},
        {"\"\xed\xa0\x80\"", "1:2: byte 0xed is not UTF-8"},
        {"\"\xf5\x80\x80\x80\"", "1:2: byte 0xf5 is not UTF-8"},
        {"\"\xe2\x82", "1:2: byte 0xe2 is not UTF-8"},
        {"[\xe2\x82\xac]", "1:2: a value is missing: found '\xe2\x82\xac'"},
        {"[\xff]", "1:2: a value is missing: found byte 0xff"},
        {"01", "1:1: a number does not start with 0"},
        {"-", "1:1: a number has a digit after its sign"},
        {"1.", "1:1: a number has a digit after its point"},
        {"1e", "1:1: an exponent has a digit"},
        {"[10s]", "1:2: not a number: put durations and other texts in double quotes"},
        {"0x10", "1:1: not a number"},
        {"+1", "1:1: a value is missing: found '+'"},
        {"NaN", "1:1: 'NaN' is no value"},
        {"True", "1:1: 'True' is no value"},
        {"nulll", "1:1: 'nulll' is no value"},
        {"/* a", "1:1: comment is not closed"},
        {"/", "1:1: a comment starts with"},
        {"# a", "1:1: a value is missing: found '#'"},
        {"// \xff\n1", "1:4: byte 0xff is not UTF-8"},
        {"// \x01\n1", "1:4: byte 0x01 is not UTF-8"},
        {"1111111111222222222233333333334444444444555555555566666666667", "1:1: number of 61 characters"},
        {"{\"a\":1,\"b\":2,\"a\":3}", "1:14: key \"a\" is there twice"},
        {"{\"a\":1,\"\\u0061\":3}", "1:8: key \"a\" is there twice"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        refused(cases[i].text, true, cases[i].message);
    refused("[1 // one\n]", false, "1:4: comments are not allowed here");
    refused("/**/1", false, "1:1: comments are not allowed here");
    struct json_value *v = parse("/*\t\r\n*/ [ // \t\r\n 1 /* , */ ] //");
    assert_int_equal(json_count(v), 1);
    json_free(v);
    struct err_detail d;
    assert_int_equal(json_parse("\"a\0b\"", 5, NULL, &v, &d), ERR_INVALID);
    assert_string_equal(d.text, "1:3: control character 0x00 in a string: write it as \\u0000");
    assert_int_equal(json_parse("1\0", 2, NULL, &v, &d), ERR_INVALID);
}

static void test_limits(void **state)
{
    (void)state;
    char deep[2 * LIMIT_JSON_DEPTH + 4];
    memset(deep, '[', LIMIT_JSON_DEPTH);
    memset(deep + LIMIT_JSON_DEPTH, ']', LIMIT_JSON_DEPTH);
    deep[2 * LIMIT_JSON_DEPTH] = '\0';
    struct json_value *v = parse(deep);
    struct buf b;
    struct json_writer w;
    buf_init(&b, 1024);
    json_write_init(&w, &b, 0);
    json_write_value(&w, NULL, v);
    assert_int_equal(json_write_end(&w), ERR_OK);
    assert_string_equal(b.data, deep);
    buf_fini(&b);
    json_free(v);
    memset(deep, '[', LIMIT_JSON_DEPTH + 1);
    memset(deep + LIMIT_JSON_DEPTH + 1, ']', LIMIT_JSON_DEPTH + 1);
    deep[2 * LIMIT_JSON_DEPTH + 2] = '\0';
    refused(deep, false, "1:65: more than 64 levels of nesting");
    size_t n = LIMIT_JSON_VALUES; /* with the list itself: one too many */
    char *wide = mem_alloc(2 * n + 2);
    for (size_t i = 0; i < n; i++)
        memcpy(wide + 2 * i, i == 0 ? "[0" : ",0", 2);
    memcpy(wide + 2 * n, "]", 2);
    struct err_detail d;
    assert_int_equal(json_parse(wide, 2 * n + 1, NULL, &v, &d), ERR_TOO_BIG);
    assert_non_null(strstr(d.text, "more than 262144 values and keys"));
    memcpy(wide + 2 * (n - 1), "]", 2);
    assert_int_equal(json_parse(wide, 2 * n - 1, NULL, &v, &d), ERR_OK);
    assert_int_equal(json_count(v), n - 1);
    json_free(v);
    free(wide);
}

static void note_duplicate(void *arg, const struct json_value *extra, const struct json_value *first)
{
    char path[JSON_PATH_BYTES];
    assert_int_equal(buf_printf(arg, "%u:%u %s %u:%u;", extra->key_line, extra->key_column,
                                json_path(extra, path, sizeof path), first->key_line, first->key_column),
                     ERR_OK);
}

static void test_every_duplicate_reported(void **state)
{
    (void)state;
    struct buf seen;
    buf_init(&seen, 1000);
    struct json_options o = {.on_duplicate = note_duplicate, .arg = &seen};
    static const char text[] = "{\"b\":1,\"a\":{\"x\":1,\"x\":2},\"b\":2,\"c\":3,\"b\":4}";
    struct json_value *v = NULL;
    assert_int_equal(json_parse(text, strlen(text), &o, &v, NULL), ERR_OK);
    assert_string_equal(seen.data, "1:26 b 1:2;1:38 b 1:2;1:19 a.x 1:13;");
    assert_int_equal(json_count(v), 3);
    assert_string_equal(json_text(json_member(v, "b")), "1");
    assert_string_equal(json_key(at(v, 2)), "c");
    assert_int_equal(at(v, 2)->index, 2);
    json_free(v);
    buf_fini(&seen);
}

static void test_getters(void **state)
{
    (void)state;
    struct json_value *v =
        parse("{\"n\":7,\"big\":\"9007199254740993\",\"neg\":-3,\"f\":1.5,\"s\":\"x\","
              "\"t\":true,\"o\":{\"l\":[]},\"e\":1e3,\"z\":-0,\"huge\":18446744073709551616}");
    struct err_detail d;
    uint64_t u = 0;
    double f = 0;
    bool t = false;
    const char *s = NULL;
    const struct json_value *o = NULL;
    const struct json_value *l = NULL;
    assert_int_equal(json_get_u64(v, "n", 7, 7, &u, &d), ERR_OK);
    assert_int_equal(u, 7);
    assert_int_equal(json_get_u64(v, "n", 0, 6, &u, &d), ERR_INVALID);
    assert_string_equal(d.text, "1:6: n: is 7, must be a whole number from 0 to 6");
    assert_int_equal(json_get_u64(v, "big", 0, UINT64_MAX, &u, &d), ERR_OK);
    assert_true(u == 9007199254740993ull);
    assert_int_equal(json_to_u64(json_member(v, "big"), 0, UINT64_MAX, &u, &d), ERR_INVALID);
    assert_int_equal(json_get_u64(v, "neg", 0, 10, &u, &d), ERR_INVALID);
    assert_int_equal(json_get_u64(v, "e", 0, 1000, &u, &d), ERR_INVALID);
    assert_int_equal(json_get_u64(v, "f", 0, 10, &u, &d), ERR_INVALID);
    assert_int_equal(json_get_u64(v, "z", 0, 10, &u, &d), ERR_INVALID);
    assert_int_equal(json_get_u64(v, "huge", 0, UINT64_MAX, &u, &d), ERR_INVALID);
    assert_int_equal(json_get_u64(v, "t", 0, 10, &u, &d), ERR_INVALID);
    assert_int_equal(json_get_u64(v, "missing", 0, 10, &u, &d), ERR_INVALID);
    assert_string_equal(d.text, "1:1: missing: is missing");
    assert_int_equal(json_to_double(json_member(v, "f"), 0, 2, &f, &d), ERR_OK);
    assert_true(f == 1.5);
    assert_int_equal(json_to_double(json_member(v, "f"), 0, 1, &f, &d), ERR_INVALID);
    assert_int_equal(json_get_bool(v, "t", &t, &d), ERR_OK);
    assert_true(t);
    assert_int_equal(json_get_bool(v, "n", &t, &d), ERR_INVALID);
    assert_int_equal(json_get_string(v, "s", &s, &d), ERR_OK);
    assert_string_equal(s, "x");
    assert_int_equal(json_get_string(v, "o", &s, &d), ERR_INVALID);
    assert_string_equal(strchr(d.text, 'o'), "o: is an object, must be a string");
    assert_int_equal(json_get_child(v, "o", JSON_OBJECT, &o, &d), ERR_OK);
    assert_int_equal(json_get_child(o, "l", JSON_ARRAY, &l, &d), ERR_OK);
    assert_int_equal(json_get_child(o, "l", JSON_OBJECT, &l, &d), ERR_INVALID);
    assert_non_null(strstr(d.text, "o.l: is a list, must be an object"));
    assert_int_equal(json_get_u64(l, "x", 0, 1, &u, &d), ERR_INVALID);
    assert_int_equal(json_to_string(NULL, &s, &d), ERR_NOT_FOUND);
    json_free(v);
}

static void test_changing_a_tree(void **state)
{
    (void)state;
    struct json_value *v = parse("{\"a\":[1,2],\"b\":3}");
    struct json_value *list = json_first(v);
    json_replace(at(list, 1), json_new(JSON_STRING, "two"));
    json_append(list, NULL, json_new(JSON_BOOL, "true"));
    json_replace(at(v, 1), json_new(JSON_ARRAY, NULL));
    json_append(v, "c", json_new(JSON_NULL, NULL));
    struct buf b;
    struct json_writer w;
    buf_init(&b, 1000);
    json_write_init(&w, &b, 0);
    json_write_value(&w, NULL, v);
    assert_int_equal(json_write_end(&w), ERR_OK);
    assert_string_equal(b.data, "{\"a\":[1,\"two\",true],\"b\":[],\"c\":null}");
    assert_string_equal(json_text(at(list, 2)), "true");
    assert_int_equal(at(list, 2)->index, 2);
    buf_fini(&b);
    json_free(v);
}

static void write_sample(struct json_writer *w)
{
    json_write_object(w, NULL);
    json_write_u64(w, "small", (1ull << 52) - 1);
    json_write_u64(w, "large", UINT64_MAX);
    json_write_i64(w, "low", INT64_MIN);
    json_write_double(w, "tenth", 0.1);
    json_write_double(w, "third", 1.0 / 3.0);
    json_write_double(w, "nan", NAN);
    json_write_string(w, "text", "a\"\\\n\t\x01\x7f\xc3\xa9\xff");
    json_write_string(w, "none", NULL);
    json_write_array(w, "list");
    json_write_bool(w, NULL, true);
    json_write_object(w, NULL);
    json_write_close(w);
    json_write_close(w);
    json_write_close(w);
}

static void test_writer(void **state)
{
    (void)state;
    struct buf b;
    struct json_writer w;
    buf_init(&b, 4096);
    json_write_init(&w, &b, 0);
    write_sample(&w);
    assert_int_equal(json_write_end(&w), ERR_OK);
    assert_string_equal(b.data, "{\"small\":4503599627370495,\"large\":\"18446744073709551615\","
                                "\"low\":\"-9223372036854775808\",\"tenth\":0.1,\"third\":0.3333333333333333,"
                                "\"nan\":null,\"text\":\"a\\\"\\\\\\n\\t\\u0001\x7f\xc3\xa9\xef\xbf\xbd\","
                                "\"none\":null,\"list\":[true,{}]}");
    struct json_value *v = parse(b.data);
    uint64_t u = 0;
    assert_int_equal(json_get_u64(v, "large", 0, UINT64_MAX, &u, NULL), ERR_OK);
    assert_true(u == UINT64_MAX);
    json_free(v);
    buf_clear(&b);
    json_write_init(&w, &b, 2);
    write_sample(&w);
    assert_int_equal(json_write_end(&w), ERR_OK);
    assert_non_null(strstr(b.data, "\n  \"list\": [\n    true,\n    {}\n  ]\n}"));
    buf_fini(&b);
}

static void test_writer_keeps_its_first_failure(void **state)
{
    (void)state;
    struct buf b;
    struct json_writer w;
    buf_init(&b, 100);
    json_write_init(&w, &b, 0);
    write_sample(&w);
    assert_int_equal(json_write_end(&w), ERR_TOO_BIG);
    assert_true(b.len <= 100);
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_and_places),
        cmocka_unit_test(test_scalars_alone),
        cmocka_unit_test(test_strings_are_decoded),
        cmocka_unit_test(test_syntax_errors),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_every_duplicate_reported),
        cmocka_unit_test(test_getters),
        cmocka_unit_test(test_changing_a_tree),
        cmocka_unit_test(test_writer),
        cmocka_unit_test(test_writer_keeps_its_first_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
