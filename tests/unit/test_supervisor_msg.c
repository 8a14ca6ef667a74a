/* The packets between agent and supervisor: there and back, at the limits, and cut anywhere. */
#include "agent/process/supervisor_msg.h"
#include "common/mem.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void encode(const struct supervisor_msg *m, struct buf *b)
{
    buf_init(b, SUPERVISOR_MSG_BYTES_MAX);
    assert_int_equal(supervisor_msg_encode(m, b), ERR_OK);
}

static void test_start(void **state)
{
    (void)state;
    char program[] = "server";
    char empty[] = "";
    char variable[] = "A=b c";
    char *argv[] = {program, empty, NULL};
    char *env[] = {variable, NULL};
    const struct supervisor_msg in = {
        .type = SUPERVISOR_START,
        .lease_until_ns = 1,
        .grace_ns = UINT64_MAX,
        .out_bytes_max = 3,
        .lines = true,
        .dir = "/d",
        .cpus = "0-1",
        .leaf = "",
        .log_path = "/l",
        .out_path = NULL,
        .argv = argv,
        .env = env,
    };
    struct supervisor_msg out;
    struct buf b;
    encode(&in, &b);
    assert_int_equal(supervisor_msg_decode(b.data, b.len, &out), ERR_OK);
    assert_int_equal(out.type, SUPERVISOR_START);
    assert_int_equal(out.lease_until_ns, 1);
    assert_true(out.grace_ns == UINT64_MAX);
    assert_int_equal(out.out_bytes_max, 3);
    assert_true(out.lines);
    assert_string_equal(out.dir, "/d");
    assert_string_equal(out.cpus, "0-1");
    assert_string_equal(out.leaf, "");
    assert_string_equal(out.log_path, "/l");
    assert_string_equal(out.out_path, "");
    assert_string_equal(out.argv[0], "server");
    assert_string_equal(out.argv[1], "");
    assert_null(out.argv[2]);
    assert_string_equal(out.env[0], "A=b c");
    assert_null(out.env[1]);
    supervisor_msg_fini(&out);
    /* Every packet that is cut short is refused, and one with a byte more. */
    for (size_t len = 0; len < b.len; len++) {
        char *cut = len > 0 ? mem_dup(b.data, len) : mem_alloc(1);
        assert_int_equal(supervisor_msg_decode(cut, len, &out), ERR_INVALID);
        free(cut);
    }
    assert_int_equal(buf_append(&b, "x", 1), ERR_OK);
    assert_int_equal(supervisor_msg_decode(b.data, b.len, &out), ERR_INVALID);
    buf_fini(&b);
}

static void test_any_byte_changed(void **state)
{
    (void)state;
    char word[] = "word";
    char *vector[] = {word, word, NULL};
    const struct supervisor_msg in = {.type = SUPERVISOR_START, .dir = "/", .argv = vector, .env = vector};
    struct buf b;
    encode(&in, &b);
    for (size_t at = 0; at < b.len; at++) {
        for (int bit = 0; bit < 8; bit++) {
            struct supervisor_msg out;
            b.data[at] = (char)(b.data[at] ^ (1 << bit));
            if (supervisor_msg_decode(b.data, b.len, &out) == ERR_OK)
                supervisor_msg_fini(&out); /* a number or a letter: another good message */
            b.data[at] = (char)(b.data[at] ^ (1 << bit));
        }
    }
    buf_fini(&b);
}

static void test_replies(void **state)
{
    (void)state;
    const struct supervisor_msg in = {
        .type = SUPERVISOR_EXITED,
        .status = -1,
        .signal = 9,
        .asked = true,
        .lapsed = true,
        .cpu_ns = 123,
        .own_cpu_ns = 45,
    };
    struct supervisor_msg out;
    struct buf b;
    encode(&in, &b);
    assert_int_equal(supervisor_msg_decode(b.data, b.len, &out), ERR_OK);
    assert_int_equal(out.status, -1);
    assert_int_equal(out.signal, 9);
    assert_true(out.asked && out.lapsed && !out.in_leaf && !out.lines);
    assert_int_equal(out.cpu_ns, 123);
    assert_int_equal(out.own_cpu_ns, 45);
    assert_string_equal(out.text, "");
    buf_fini(&b);
    encode(&(struct supervisor_msg){.type = SUPERVISOR_REFUSED, .error = ERR_DENIED, .text = "no"}, &b);
    assert_int_equal(supervisor_msg_decode(b.data, b.len, &out), ERR_OK);
    assert_int_equal(out.error, ERR_DENIED);
    assert_string_equal(out.text, "no");
    buf_fini(&b);
}

static void test_longest_line(void **state)
{
    (void)state;
    char line[SUPERVISOR_LINE_BYTES_MAX + 1];
    struct buf b;
    memset(line, 'x', sizeof line);
    line[SUPERVISOR_LINE_BYTES_MAX] = '\0';
    buf_init(&b, SUPERVISOR_REPLY_BYTES_MAX);
    assert_int_equal(
        supervisor_msg_encode(&(struct supervisor_msg){.type = SUPERVISOR_LINE, .text = line}, &b), ERR_OK);
    buf_fini(&b);
}

static void test_largest_start(void **state)
{
    (void)state;
    char *words[LIMIT_ARGV_COUNT + 2];
    char *word = mem_zalloc(1, LIMIT_COMMAND_BYTES + 1);
    struct supervisor_msg out;
    struct buf b;
    /* As many words as may be, filling the bytes there may be. */
    memset(word, 'w', LIMIT_COMMAND_BYTES / LIMIT_ARGV_COUNT - 1);
    for (size_t i = 0; i <= LIMIT_ARGV_COUNT; i++)
        words[i] = word;
    words[LIMIT_ARGV_COUNT] = NULL;
    struct supervisor_msg in = {.type = SUPERVISOR_START, .argv = words, .env = words};
    encode(&in, &b);
    assert_int_equal(supervisor_msg_decode(b.data, b.len, &out), ERR_OK);
    assert_string_equal(out.env[LIMIT_ENV_COUNT - 1], word);
    supervisor_msg_fini(&out);
    buf_fini(&b);
    /* One word more, then one byte more. */
    words[LIMIT_ARGV_COUNT] = word;
    words[LIMIT_ARGV_COUNT + 1] = NULL;
    buf_init(&b, SUPERVISOR_MSG_BYTES_MAX);
    assert_int_equal(supervisor_msg_encode(&in, &b), ERR_TOO_BIG);
    buf_fini(&b);
    words[LIMIT_ARGV_COUNT] = NULL;
    char *longer = mem_printf("%sx", word);
    words[0] = longer;
    buf_init(&b, SUPERVISOR_MSG_BYTES_MAX);
    assert_int_equal(supervisor_msg_encode(&in, &b), ERR_TOO_BIG);
    buf_fini(&b);
    free(longer);
    free(word);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start),         cmocka_unit_test(test_any_byte_changed),
        cmocka_unit_test(test_replies),       cmocka_unit_test(test_longest_line),
        cmocka_unit_test(test_largest_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
