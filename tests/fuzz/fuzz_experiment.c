/*
 * The experiment file: any bytes are refused with a place or become an experiment that resolves to itself.
 * Input: the file, and after a NUL, if there is one, a --set option.
 */
#include "controller/experiment/design.h"
#include "controller/experiment/experiment.h"
#include "controller/experiment/plan.h"

#include "common/mem.h"

#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was accepted reads back to the same text, and has a schedule. */
static void check_accepted(const struct experiment *e)
{
    struct experiment *again = NULL;
    struct experiment_problems p;
    struct design *d = NULL;
    struct buf plan;
    must(experiment_parse(e->resolved_json, strlen(e->resolved_json), NULL, &again, &p) == ERR_OK);
    must(strcmp(again->resolved_json, e->resolved_json) == 0);
    must(memcmp(again->hash, e->hash, sizeof e->hash) == 0);
    must(design_build(e, &d, NULL) == ERR_OK);
    must(design_remaining_ns(e, d, 0) == d->duration_ns);
    buf_init(&plan, 1u << 20);
    if (d->window_count < 1000) {
        must(plan_write_text(e, d, &plan) == ERR_OK);
        buf_clear(&plan);
        must(plan_write_json(e, d, &plan) == ERR_OK);
    }
    buf_fini(&plan);
    design_free(d);
    experiment_free(again);
}

static void check_refused(const struct experiment_problems *p)
{
    must(p->count > 0);
    for (size_t i = 0; i < p->count; i++) {
        must(p->items[i].text[0] != '\0');
        must(i == 0 || p->items[i].line == 0 || p->items[i].line >= p->items[i - 1].line);
    }
}

static void read_file(int fd, const struct experiment_set *set)
{
    char name[64];
    struct experiment *e = NULL;
    struct experiment_problems p = {0};
    struct err_detail d;
    struct experiment_options o = {.file = name, .sets = set, .set_count = set->path != NULL ? 1 : 0};
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    enum err err = experiment_read(&o, &e, &p, &d);
    if (err == ERR_OK)
        check_accepted(e);
    else if (err == ERR_INVALID)
        check_refused(&p);
    else
        must(err == ERR_TOO_BIG);
    experiment_free(e);
    experiment_problems_fini(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nul = size > 0 ? memchr(data, 0, size) : NULL;
    size_t len = nul != NULL ? (size_t)(nul - data) : size;
    char *option = nul != NULL ? mem_strndup((const char *)nul + 1, size - len - 1) : NULL;
    struct experiment_set set = {0};
    struct experiment *e = NULL;
    struct experiment_problems p = {0};
    if (option != NULL && experiment_split_set(option, &set, NULL) != ERR_OK)
        set.path = NULL;
    if (experiment_parse((const char *)data, len, NULL, &e, &p) == ERR_OK)
        check_accepted(e);
    else
        check_refused(&p);
    experiment_free(e);
    experiment_problems_fini(&p);
    int fd = memfd_create("experiment", MFD_CLOEXEC);
    must(fd >= 0);
    must(write(fd, data, len) == (ssize_t)len);
    read_file(fd, &set);
    close(fd);
    free(option);
    return 0;
}
