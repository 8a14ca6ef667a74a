/* The outbox: numbers, order, batches, what survives a restart, and what happens when nothing has room. */
#include "agent/uplink/outbox.h"
#include "agent/uplink/spool.h"
#include "common/log.h"
#include "common/mem.h"
#include "proto/msg/codec.h"
#include "tests/support/scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

static struct outbox *open_box(struct scratch *scratch, uint64_t incarnation, uint64_t spool_bytes_max)
{
    struct outbox *box = NULL;
    struct err_detail d = {""};
    enum err e = outbox_new(&(struct outbox_options){.spool_dir = scratch_at(scratch, "spool"),
                                                     .spool_bytes_max = spool_bytes_max,
                                                     .incarnation = incarnation},
                            &box, &d);
    if (e != ERR_OK)
        fail_msg("%s", d.text);
    return box;
}

static char job_name[] = "job-1";

static void add_done(struct outbox *box, uint64_t answers)
{
    struct msg_event e = {.answers = answers, .job = job_name, .kind = MSG_EVENT_DONE};
    outbox_add(box, &e);
}

static void add_progress(struct outbox *box, enum msg_progress_kind kind, uint64_t at_ns)
{
    struct msg_event e = {.answers = 1, .job = job_name, .kind = MSG_EVENT_PROGRESS};
    e.u.progress = (struct msg_progress){.kind = kind, .at_ns = at_ns};
    outbox_add(box, &e);
}

static void add_exited(struct outbox *box, uint64_t answers, size_t log_bytes)
{
    struct msg_event e = {.answers = answers, .job = job_name, .kind = MSG_EVENT_EXITED};
    e.u.exited.proc = 1;
    e.u.exited.log = (struct msg_bytes){.data = mem_zalloc(log_bytes + 1, 1), .len = log_bytes};
    outbox_add(box, &e);
    free(e.u.exited.log.data);
}

static void test_numbers_and_order(void **state)
{
    struct outbox *box = open_box(*state, 7, LIMIT_SPOOL_BYTES);
    struct msg_push push;
    assert_true(outbox_is_empty(box));
    assert_false(outbox_next(box, &push));
    add_done(box, 11);      /* memory */
    add_exited(box, 12, 5); /* disk */
    add_done(box, 13);
    add_exited(box, 0, 0);
    for (int again = 0; again < 2; again++) {
        assert_true(outbox_next(box, &push));
        assert_true(push.incarnation == 7);
        assert_int_equal(push.count, 4);
        for (size_t i = 0; i < 4; i++) {
            assert_true(push.items[i].number == i + 1);
            assert_string_equal(push.items[i].job, "job-1");
            assert_int_equal(push.items[i].kind, i % 2 == 0 ? MSG_EVENT_DONE : MSG_EVENT_EXITED);
        }
        assert_true(push.items[1].answers == 12);
        assert_int_equal(push.items[1].u.exited.log.len, 5);
        outbox_push_fini(&push);
    }
    outbox_ack(box, 8, 4); /* another one's */
    outbox_ack(box, 7, 2);
    assert_true(outbox_next(box, &push));
    assert_int_equal(push.count, 2);
    assert_true(push.items[0].number == 3);
    outbox_push_fini(&push);
    outbox_ack(box, 7, 4);
    assert_true(outbox_is_empty(box));
    add_done(box, 14);
    assert_true(outbox_next(box, &push));
    assert_true(push.items[0].number == 5);
    outbox_push_fini(&push);
    outbox_free(box);
}

static void test_batches_fit(void **state)
{
    struct outbox *box = open_box(*state, 7, LIMIT_SPOOL_BYTES);
    struct msg_push push;
    for (uint64_t i = 0; i <= MSG_EVENTS_MAX; i++)
        add_done(box, i + 1);
    assert_true(outbox_next(box, &push));
    assert_int_equal(push.count, MSG_EVENTS_MAX);
    outbox_push_fini(&push);
    outbox_ack(box, 7, MSG_EVENTS_MAX + 1);
    for (uint64_t i = 0; i < 5; i++)
        add_exited(box, i + 1, LIMIT_LOG_HEAD_BYTES);
    size_t seen = 0;
    while (outbox_next(box, &push)) {
        assert_true(push.count >= 1 && push.count <= 2); /* half a MiB each, one MiB a batch */
        seen += push.count;
        outbox_ack(box, 7, push.items[push.count - 1].number);
        outbox_push_fini(&push);
    }
    assert_int_equal(seen, 5);
    outbox_free(box);
}

static void test_ticks_are_dropped_oldest_first(void **state)
{
    struct outbox *box = open_box(*state, 7, LIMIT_SPOOL_BYTES);
    add_progress(box, MSG_PROGRESS_WINDOW_START, 1);
    for (uint64_t i = 0; i < OUTBOX_TICKS_MAX + 3; i++)
        add_progress(box, MSG_PROGRESS_TICK, 2 + i);
    add_progress(box, MSG_PROGRESS_WINDOW_END, 1000);
    struct msg_push push;
    assert_true(outbox_next(box, &push));
    assert_int_equal(push.count, OUTBOX_TICKS_MAX + 2);
    assert_int_equal(push.items[0].u.progress.kind, MSG_PROGRESS_WINDOW_START);
    assert_true(push.items[1].u.progress.at_ns == 2 + 3);
    assert_true(push.items[1].number == 1 + 3 + 1);
    assert_int_equal(push.items[push.count - 1].u.progress.kind, MSG_PROGRESS_WINDOW_END);
    outbox_push_fini(&push);
    outbox_free(box);
}

static void test_earlier_results_come_late(void **state)
{
    struct outbox *box = open_box(*state, 7, LIMIT_SPOOL_BYTES);
    add_done(box, 1);
    add_exited(box, 2, 3);
    outbox_free(box);
    box = open_box(*state, 8, LIMIT_SPOOL_BYTES);
    add_exited(box, 1, 4);
    outbox_free(box);
    box = open_box(*state, 9, LIMIT_SPOOL_BYTES);
    add_done(box, 1);
    static const struct {
        uint64_t incarnation, number;
    } expected[] = {{9, 1}, {7, 2}, {8, 1}};
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        struct msg_push push;
        assert_true(outbox_next(box, &push));
        assert_true(push.incarnation == expected[i].incarnation);
        assert_int_equal(push.count, 1);
        assert_true(push.items[0].number == expected[i].number);
        outbox_push_fini(&push);
        outbox_ack(box, expected[i].incarnation, expected[i].number);
    }
    assert_true(outbox_is_empty(box));
    outbox_free(box);
}

/* First the disk is full, then memory: each question still gets its answer. */
static void test_nothing_has_room(void **state)
{
    const size_t log_bytes = LIMIT_LOG_HEAD_BYTES;
    struct outbox *box = open_box(*state, 7, log_bytes + 1000);
    uint64_t fit = 1 + OUTBOX_MEMORY_BYTES / (log_bytes + 100);
    for (uint64_t i = 1; i <= fit + 2; i++)
        add_exited(box, i, log_bytes);
    struct msg_push push;
    uint64_t answered = 0;
    while (outbox_next(box, &push)) {
        for (size_t i = 0; i < push.count; i++) {
            const struct msg_event *e = &push.items[i];
            assert_true(e->answers == ++answered);
            if (answered <= fit) {
                assert_int_equal(e->kind, MSG_EVENT_EXITED);
                assert_int_equal(e->u.exited.log.len, log_bytes);
            } else {
                assert_int_equal(e->kind, MSG_EVENT_DONE);
                assert_int_equal(e->code, ERR_FULL);
                assert_non_null(strstr(e->text, "neither disk nor memory"));
            }
        }
        outbox_ack(box, 7, push.items[push.count - 1].number);
        outbox_push_fini(&push);
    }
    assert_true(answered == fit + 2);
    add_exited(box, 99, 10); /* and the disk is used again */
    outbox_free(box);
    box = open_box(*state, 8, LIMIT_SPOOL_BYTES);
    assert_true(outbox_next(box, &push));
    assert_true(push.items[0].answers == 99);
    outbox_push_fini(&push);
    outbox_free(box);
}

static void test_an_event_that_cannot_be_sent_is_replaced(void **state)
{
    struct outbox *box = open_box(*state, 7, LIMIT_SPOOL_BYTES);
    add_exited(box, 5, LIMIT_FRAME_BYTES);
    struct msg_push push;
    assert_true(outbox_next(box, &push));
    assert_int_equal(push.count, 1);
    assert_int_equal(push.items[0].kind, MSG_EVENT_DONE);
    assert_true(push.items[0].answers == 5);
    assert_int_not_equal(push.items[0].code, ERR_OK);
    outbox_push_fini(&push);
    outbox_free(box);
}

static void test_a_result_the_disk_lost_does_not_block(void **state)
{
    struct scratch *scratch = *state;
    struct outbox *box = open_box(scratch, 7, LIMIT_SPOOL_BYTES);
    add_exited(box, 1, 100);
    DIR *dir = opendir(scratch_at(scratch, "spool"));
    const struct dirent *ent;
    while ((ent = readdir(dir)) != NULL) {
        if (ent->d_name[0] == '.')
            continue;
        int fd = openat(dirfd(dir), ent->d_name, O_WRONLY);
        assert_int_equal(pwrite(fd, "\xff\xff\xff\xff", 4, 60), 4);
        close(fd);
    }
    closedir(dir);
    struct msg_push push;
    assert_false(outbox_next(box, &push));
    assert_true(outbox_is_empty(box));
    add_exited(box, 2, 100);
    assert_true(outbox_next(box, &push));
    assert_true(push.items[0].answers == 2);
    outbox_push_fini(&push);
    outbox_free(box);
}

/* A record of the spool that is a message, but not a push of one event: as a damaged one, it is passed over.
 */
static void test_a_record_that_is_no_event_does_not_block(void **state)
{
    struct msg_event two[] = {{.number = 1, .answers = 1, .job = job_name, .kind = MSG_EVENT_DONE},
                              {.number = 2, .answers = 2, .job = job_name, .kind = MSG_EVENT_DONE}};
    const struct {
        enum msg_kind kind;
        size_t events;
    } records[] = {{MSG_PUSH, 0}, {MSG_PUSH, 2}, {MSG_CA_ASK, 0}};
    struct spool *spool = NULL;
    assert_int_equal(
        spool_new(&(struct spool_options){.dir = scratch_at(*state, "spool"), .bytes_max = LIMIT_SPOOL_BYTES},
                  &spool, NULL),
        ERR_OK);
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++) {
        struct msg m;
        struct buf bytes;
        struct err_detail d = {""};
        msg_init(&m, records[i].kind);
        if (m.kind == MSG_PUSH) {
            m.u.push.items = two;
            m.u.push.count = records[i].events;
        }
        buf_init(&bytes, LIMIT_FRAME_BYTES);
        if (codec_encode(&m, &bytes, &d) != ERR_OK)
            fail_msg("record %zu: %s", i, d.text);
        assert_int_equal(spool_append(spool, 6, i + 1, bytes.data, bytes.len, NULL), ERR_OK);
        buf_fini(&bytes);
    }
    spool_free(spool);
    struct outbox *box = open_box(*state, 7, LIMIT_SPOOL_BYTES);
    add_exited(box, 9, 100);
    struct msg_push push;
    assert_true(outbox_next(box, &push));
    assert_int_equal(push.count, 1);
    assert_true(push.items[0].answers == 9);
    outbox_push_fini(&push);
    outbox_free(box);
}

int main(void)
{
    log_set_level(LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_numbers_and_order, scratch_set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_batches_fit, scratch_set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_ticks_are_dropped_oldest_first, scratch_set_up,
                                        scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_earlier_results_come_late, scratch_set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_nothing_has_room, scratch_set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_an_event_that_cannot_be_sent_is_replaced, scratch_set_up,
                                        scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_a_result_the_disk_lost_does_not_block, scratch_set_up,
                                        scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_a_record_that_is_no_event_does_not_block, scratch_set_up,
                                        scratch_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
