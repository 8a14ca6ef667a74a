#include "tests/support/experiment_text.h"

#include "common/buf.h"
#include "common/file.h"
#include "common/mem.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct scratch scratch;
const char *const experiment_text_dir = scratch.dir;
static char file[96];

int experiment_text_begin(void **state)
{
    (void)state;
    scratch_init(&scratch);
    snprintf(file, sizeof file, "%s/x.json", scratch.dir);
    scratch_put(&scratch, "dist/a.css", ""); /* for the patterns of `files` */
    scratch_put(&scratch, "a.js", "");
    return 0;
}

void experiment_text_write(const char *name, const void *data, size_t len)
{
    assert_int_equal(file_write(scratch_at(&scratch, name), 0644, data, len, NULL), ERR_OK);
}

int experiment_text_end(void **state)
{
    (void)state;
    scratch_fini(&scratch);
    return 0;
}

const char experiment_text_small[] =
    "{ \"name\": \"demo\",\n"
    "  \"targets\": [ { \"name\": \"a\", \"start\": [\"srv\", \"-p\"], \"port\": 8080 } ],\n"
    "  \"workloads\": [ { \"name\": \"w\", \"request\": { \"path\": \"/\" }, \"connections\": 10,\n"
    "                   \"duration\": \"1s\" } ] }\n";

#define SETS_MAX 8

struct experiment_text experiment_text_read(const char *text, enum experiment_use use,
                                            const char *const *options)
{
    struct experiment_set sets[SETS_MAX];
    char *copies[SETS_MAX];
    size_t n = 0;
    struct experiment_text r = {0};
    for (; options != NULL && options[n] != NULL; n++) {
        copies[n] = mem_strdup(options[n]);
        assert_int_equal(experiment_split_set(copies[n], &sets[n], NULL), ERR_OK);
    }
    experiment_text_write("x.json", text, strlen(text));
    struct experiment_options o = {.file = file, .sets = sets, .set_count = n, .use = use};
    r.err = experiment_read(&o, &r.e, &r.problems, &r.d);
    for (size_t i = 0; i < n; i++)
        free(copies[i]);
    return r;
}

void experiment_text_fini(struct experiment_text *r)
{
    experiment_free(r->e);
    experiment_problems_fini(&r->problems);
}

struct experiment *experiment_text_good(const char *text, const char *const *options)
{
    struct experiment_text r = experiment_text_read(text, EXPERIMENT_USE_ANY, options);
    if (r.err != ERR_OK)
        fail_msg("%s: %s", text, r.problems.count > 0 ? r.problems.items[0].text : r.d.text);
    return r.e;
}

/* "..." stands for the rest of a clause. */
static bool begins_with(const char *got, const char *wanted)
{
    while (*wanted != '\0') {
        if (strncmp(wanted, "...", 3) == 0) {
            wanted += 3;
            got += strcspn(got, ";\n");
        } else if (*got++ != *wanted++) {
            return false;
        }
    }
    return true;
}

void experiment_text_bad(const char *text, const char *const *options, const char *wanted)
{
    struct buf all;
    buf_init(&all, 1u << 20);
    struct experiment_text r = experiment_text_read(text, EXPERIMENT_USE_ANY, options);
    assert_int_equal(r.err, ERR_INVALID);
    assert_null(r.e);
    for (size_t i = 0; i < r.problems.count; i++)
        assert_int_equal(buf_printf(&all, "%u:%u: %s\n", r.problems.items[i].line, r.problems.items[i].column,
                                    r.problems.items[i].text),
                         ERR_OK);
    if (!begins_with(all.data, wanted)) {
        fprintf(stderr, "%s\n--- got:\n%s\n--- wanted:\n%s\n", text, all.data,
                wanted); /* cmocka cuts at 1 KB */
        fail();
    }
    buf_fini(&all);
    experiment_text_fini(&r);
}
