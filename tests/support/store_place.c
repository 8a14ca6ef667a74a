#include "tests/support/store_place.h"

#include "common/mem.h"
#include "controller/store/store_read.h"
#include "tests/support/store_sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

int place_set_up(void **state)
{
    struct place *p = mem_zalloc(1, sizeof(*p));
    scratch_init(&p->scratch);
    snprintf(p->path, sizeof(p->path), "%s/lab.db", p->scratch.dir);
    struct err_detail d = {{0}};
    assert_int_equal(store_open(p->path, false, &p->store, &d), ERR_OK);
    *state = p;
    return 0;
}

int place_tear_down(void **state)
{
    struct place *p = *state;
    store_close(p->store);
    assert_int_equal(chmod(p->scratch.dir, 0700), 0); /* a test may have forbidden writing */
    scratch_fini(&p->scratch);
    free(p);
    return 0;
}

void place_reopen(struct place *p)
{
    store_close(p->store);
    p->store = NULL;
    assert_int_equal(store_open(p->path, false, &p->store, NULL), ERR_OK);
}

void place_add_job(struct place *p, const char *id)
{
    struct store_job job = sample_job(id);
    assert_int_equal(store_add_job(p->store, &job, NULL), ERR_OK);
}

size_t place_attempts(struct store *s, const char *job)
{
    size_t count = 0;
    assert_int_equal(store_count_attempts(s, job, 0, &count, NULL), ERR_OK);
    return count;
}
