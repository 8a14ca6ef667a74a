/* Globs of an experiment: what they match, what they must not, and what is said about it. */
#include "controller/experiment/files.h"

#include "common/buf.h"
#include "common/mem.h"
#include "common/sha256.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct scratch scratch;

static const char *at(const char *name)
{
    return scratch_at(&scratch, name);
}

static int make_tree(void **state)
{
    (void)state;
    scratch_init(&scratch);
    scratch_put(&scratch, "in/x.json", "{}");
    scratch_put(&scratch, "in/run.sh", "#!/bin/sh\n");
    scratch_put(&scratch, "in/.env", "secret");
    scratch_put(&scratch, "in/.hidden/h.js", "h");
    scratch_put(&scratch, "in/dist/one.js", "1");
    scratch_put(&scratch, "in/dist/two.css", "2");
    scratch_put(&scratch, "in/dist/a/three.js", "3");
    scratch_put(&scratch, "in/dist/a/b/four.js", "4");
    scratch_put(&scratch, "out/secret", "s");
    return chmod(at("in/run.sh"), 0755) != 0 || chmod(at("in/.env"), 0600) != 0 ||
           mkdir(at("in/dist/empty"), 0755) != 0;
}

static int remove_tree(void **state)
{
    (void)state;
    scratch_fini(&scratch);
    return 0;
}

/* The paths that the globs (separated by blanks) match, separated by blanks; or the error. */
static enum err collect(const char *globs, struct buf *paths, struct err_detail *d)
{
    char in[80];
    char *items[16];
    struct msg_files files = {0};
    struct experiment e = {.files = {.items = items}};
    char *copy = mem_strdup(globs);
    char *save = NULL;
    for (char *word = strtok_r(copy, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save))
        items[e.files.count++] = word;
    snprintf(in, sizeof in, "%s/in", scratch.dir);
    e.base_dir = in;
    enum err err = files_collect(&e, &files, d);
    for (size_t i = 0; i < files.count; i++)
        assert_int_equal(buf_printf(paths, "%s%s", i > 0 ? " " : "", files.items[i].path), ERR_OK);
    msg_files_fini(&files);
    free(copy);
    return err;
}

static void matches(const char *globs, const char *wanted)
{
    struct buf paths;
    struct err_detail d;
    buf_init(&paths, 1u << 16);
    if (collect(globs, &paths, &d) != ERR_OK)
        fail_msg("%s: %s", globs, d.text);
    assert_string_equal(paths.data != NULL ? paths.data : "", wanted);
    buf_fini(&paths);
}

static void refused(const char *globs, enum err wanted, const char *text)
{
    struct buf paths;
    struct err_detail d;
    buf_init(&paths, 1u << 16);
    assert_int_equal(collect(globs, &paths, &d), wanted);
    if (strstr(d.text, text) == NULL)
        fail_msg("%s: got '%s', wanted '%s'", globs, d.text, text);
    assert_int_equal(paths.len, 0);
    buf_fini(&paths);
}

static void test_globs(void **state)
{
    (void)state;
    matches("", "");
    matches("x.json", "x.json");
    matches("*", "run.sh x.json"); /* no directories, nothing hidden */
    matches("*.js*", "x.json");
    matches("dist/*.js", "dist/one.js");
    matches("dist/*/*.js", "dist/a/three.js");
    matches("dist/**/*.js", "dist/a/b/four.js dist/a/three.js dist/one.js");
    matches("**/*.js", "dist/a/b/four.js dist/a/three.js dist/one.js");
    matches("**/b/*", "dist/a/b/four.js");
    matches("dist/**", "dist/a/b/four.js dist/a/three.js dist/one.js dist/two.css");
    matches("dist", "dist/a/b/four.js dist/a/three.js dist/one.js dist/two.css");
    matches("dist/a", "dist/a/b/four.js dist/a/three.js");
    matches("dist/?ne.[jc]s", "dist/one.js");
    matches(".env .hidden/*", ".env .hidden/h.js");
    matches("dist/*.js dist/** dist/one.js", "dist/a/b/four.js dist/a/three.js dist/one.js dist/two.css");
}

static void test_nothing_matched(void **state)
{
    (void)state;
    refused("x.json nothing.js", ERR_NOT_FOUND, "files[1]: \"nothing.js\" matches nothing below ");
    refused("dist/empty", ERR_NOT_FOUND, "matches nothing");
    refused("x.json/y", ERR_NOT_FOUND, "matches nothing");
    refused("nodir/**", ERR_NOT_FOUND, "matches nothing");
}

static void test_contents(void **state)
{
    (void)state;
    char in[80];
    char one[] = "dist/one.js";
    char run[] = "run.sh";
    char *globs[] = {one, run};
    struct experiment e = {.files = {.items = globs, .count = 2}, .base_dir = in};
    struct msg_files files = {0};
    uint8_t hash[SHA256_BYTES];
    snprintf(in, sizeof in, "%s/in", scratch.dir);
    assert_int_equal(files_collect(&e, &files, NULL), ERR_OK);
    assert_int_equal(files.count, 2);
    sha256_of("1", 1, hash);
    assert_memory_equal(files.items[0].hash, hash, sizeof hash);
    assert_int_equal(files.items[0].size_bytes, 1);
    assert_int_equal(files.items[0].mode, 0644);
    assert_int_equal(files.items[1].size_bytes, 10);
    assert_int_equal(files.items[1].mode, 0755);
    char text[2] = "";
    int fd = -1;
    assert_int_equal(files_open(in, files.items[0].path, &fd, NULL), ERR_OK);
    assert_int_equal(read(fd, text, 2), 1);
    assert_int_equal(text[0], '1');
    close(fd);
    msg_files_fini(&files);
}

static void test_links(void **state)
{
    (void)state;
    assert_int_equal(symlink("one.js", at("in/dist/inside.js")), 0);
    assert_int_equal(symlink("../dist", at("in/dist/loop")), 0);
    matches("dist/*.js", "dist/inside.js dist/one.js");
    matches("dist/**/three.js", "dist/a/three.js"); /* not through the loop */
    refused("dist/loop/one.js", ERR_NOT_FOUND, "matches nothing");
    assert_int_equal(symlink("../out/secret", at("in/leak")), 0);
    refused("leak", ERR_DENIED, "leak is a link that leads out of ");
    refused("*", ERR_DENIED, "leak is a link that leads out of ");
    assert_int_equal(unlink(at("in/leak")), 0);
    assert_int_equal(symlink("../out", at("in/leakdir")), 0);
    refused("leakdir/secret", ERR_NOT_FOUND, "matches nothing");
    refused("leakdir", ERR_NOT_FOUND, "matches nothing");
    assert_int_equal(unlink(at("in/leakdir")), 0);
    assert_int_equal(symlink("gone", at("in/dangling")), 0);
    refused("dangling", ERR_NOT_FOUND, "dangling: No such file or directory");
    assert_int_equal(unlink(at("in/dangling")), 0);
    int fd = -1;
    char in[80];
    struct err_detail d;
    snprintf(in, sizeof in, "%s/in", scratch.dir);
    assert_int_equal(files_open(in, "../out/secret", &fd, &d), ERR_DENIED);
    assert_int_equal(files_open(in, "dist", &fd, &d), ERR_INVALID);
    assert_int_equal(mkfifo(at("in/fifo"), 0600), 0);
    matches("*", "run.sh x.json");
    refused("fifo", ERR_NOT_FOUND, "matches nothing");
}

/* At the cap and one over it. */
static void test_too_many(void **state)
{
    (void)state;
    char name[32];
    assert_int_equal(mkdir(at("in/many"), 0755), 0);
    for (unsigned i = 0; i < LIMIT_FILES; i++) {
        snprintf(name, sizeof name, "in/many/%u", i);
        scratch_put(&scratch, name, "");
    }
    struct buf paths;
    buf_init(&paths, 1u << 20);
    assert_int_equal(collect("many/*", &paths, NULL), ERR_OK);
    buf_fini(&paths);
    scratch_put(&scratch, "in/many/x", "");
    refused("many/*", ERR_TOO_BIG, "matches more than 4096 files");
    assert_int_equal(truncate(at("in/x.json"), (off_t)1 << 31), 0); /* sparse: read, but not written */
    refused("x.json", ERR_TOO_BIG, "over 1073741824 bytes in all");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_globs), cmocka_unit_test(test_nothing_matched), cmocka_unit_test(test_contents),
        cmocka_unit_test(test_links), cmocka_unit_test(test_too_many),
    };
    return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
