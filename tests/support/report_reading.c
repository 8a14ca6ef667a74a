#include "tests/support/report_reading.h"

#include "common/buf.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

const struct report_cell *reading_cell(const struct report *r, uint32_t target, uint32_t connections)
{
    for (size_t i = 0; i < r->design->cell_count; i++)
        if (r->cells[i].design->target == target && r->cells[i].design->connections == connections)
            return &r->cells[i];
    fail_msg("no cell");
    return NULL;
}

char *reading_text(const struct report *r, unsigned width)
{
    struct buf out;
    buf_init(&out, READING_BYTES_MAX);
    assert_int_equal(report_write_text(r, width, &out), ERR_OK);
    return buf_take(&out);
}

static enum err add_piece(void *arg, const char *data, size_t len, struct err_detail *d)
{
    (void)d;
    return buf_append(arg, data, len);
}

char *reading_json(const struct report *r)
{
    struct buf out;
    struct err_detail d = {{0}};
    buf_init(&out, READING_BYTES_MAX);
    if (report_write_json(r, &(struct report_sink){.write = add_piece, .arg = &out}, &d) != ERR_OK)
        fail_msg("%s", d.text);
    return buf_take(&out);
}

bool reading_warns(const struct report *r, const char *what)
{
    for (size_t i = 0; i < r->warnings.count; i++)
        if (strstr(r->warnings.items[i], what) != NULL)
            return true;
    return false;
}

void assert_says(const char *text, const char *what)
{
    if (strstr(text, what) == NULL)
        fail_msg("\"%s\" is missing in:\n%s", what, text);
}

void assert_near(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.12g, expected %.12g", got, expected);
}
