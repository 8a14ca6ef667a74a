#include "tests/support/scratch.h"

#include "common/file.h"
#include "common/mem.h"

#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

void scratch_init(struct scratch *s)
{
    int len = snprintf(s->dir, sizeof s->dir, "/tmp/splitbench-%s-XXXXXX", program_invocation_short_name);
    assert_true(len > 0 && (size_t)len < sizeof s->dir);
    assert_non_null(mkdtemp(s->dir));
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)at;
    return type == FTW_DP ? rmdir(path) : unlink(path);
}

void scratch_fini(struct scratch *s)
{
    assert_int_equal(nftw(s->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

const char *scratch_at(struct scratch *s, const char *name)
{
    int len = snprintf(s->path, sizeof s->path, "%s/%s", s->dir, name);
    assert_true(len > 0 && (size_t)len < sizeof s->path);
    return s->path;
}

void scratch_put(struct scratch *s, const char *name, const char *text)
{
    char *dir = mem_strdup(scratch_at(s, name));
    struct err_detail d = {""};
    *strrchr(dir, '/') = '\0';
    if (file_make_dirs(dir, &d) != ERR_OK)
        fail_msg("%s", d.text);
    free(dir);
    FILE *f = fopen(s->path, "we"); /* nothing has to survive a crash: no file_write */
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

int scratch_set_up(void **state)
{
    struct scratch *s = mem_zalloc(1, sizeof *s);
    scratch_init(s);
    *state = s;
    return 0;
}

int scratch_tear_down(void **state)
{
    scratch_fini(*state);
    free(*state);
    return 0;
}
