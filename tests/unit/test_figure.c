/* The list of figures: how they merge, what becomes of a row, and that docs/report.md tells of each.
 * `test_figure write-docs`, from the top of the tree, brings the tables of docs/report.md up to the list. */
#include "common/figure.h"

#include "common/buf.h"
#include "common/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DOCUMENT  "docs/report.md"
#define BYTES_MAX (256u * 1024u)

static void expect(struct figure f, bool known, uint64_t value)
{
    assert_int_equal(f.known, known);
    if (known)
        assert_true(f.value == value);
}

static void test_merges(void **state)
{
    (void)state;
    struct figure none = {0}, three = figure_known(3), five = figure_known(5),
                  most = figure_known(UINT64_MAX);
    expect(figure_merged(FIGURE_SUM, three, five), true, 8);
    expect(figure_merged(FIGURE_MAX, three, five), true, 5);
    expect(figure_merged(FIGURE_MAX, five, three), true, 5);
    expect(figure_merged(FIGURE_SUM, most, three), true, UINT64_MAX);
    expect(figure_merged(FIGURE_SUM, three, none), false, 0);
    expect(figure_merged(FIGURE_SUM, none, three), false, 0);
    expect(figure_merged(FIGURE_MAX, none, three), false, 0);
    expect(figure_merged(FIGURE_SUM, figure_known(0), figure_known(0)), true, 0);
}

static void test_counters(void **state)
{
    (void)state;
    struct figure none = {0}, three = figure_known(3), five = figure_known(5);
    expect(figure_grown(three, five), true, 2);
    expect(figure_grown(three, three), true, 0);
    expect(figure_grown(five, three), false, 0);
    expect(figure_grown(none, three), false, 0);
    expect(figure_grown(three, none), false, 0);
    assert_true(figure_real(none) == -1);
    assert_true(figure_real(three) == 3);
}

/* ---- the tables of the report's document ------------------------------------------------------------ */

static const char *in_a_cell(enum figure_merge rounds)
{
    return rounds == FIGURE_SUM ? " sum" : rounds == FIGURE_USAGE ? " usage" : "";
}

static void add_row(struct buf *table, const char *name, enum figure_merge rounds, const char *help)
{
    assert_int_equal(buf_printf(table, "| `%s` |%s | %s |\n", name, in_a_cell(rounds), help), ERR_OK);
}

static void add_tables(struct buf *result, struct buf *attempt)
{
    for (int i = 0; i < FIGURE_LOAD_COUNT; i++)
        add_row(result, figure_load_rows[i].name, figure_load_rows[i].rounds, figure_load_rows[i].help);
#define X(name, since, rounds, help) add_row(attempt, #name, FIGURE_##rounds, help);
    FIGURE_WINDOW_LIST(X)
#undef X
    for (int i = 0; i < FIGURE_TREE_COUNT; i++)
        add_row(attempt, figure_tree_rows[i].name, figure_tree_rows[i].rounds, figure_tree_rows[i].help);
}

static char *read_document(void)
{
    FILE *file = fopen(DOCUMENT, "r");
    if (file == NULL)
        fail_msg(DOCUMENT " is not here: run this from the top of the tree");
    char *text = mem_zalloc(1, BYTES_MAX);
    size_t len = fread(text, 1, BYTES_MAX - 1, file);
    assert_true(len > 0 && len < BYTES_MAX - 1);
    fclose(file);
    return text;
}

/* The document with the rows of the first table behind the mark of this name replaced. Owned. */
static char *with_rows(const char *document, const char *name, const char *rows)
{
    char *mark = mem_printf("<!-- %s: by common/figure_list.h -->\n", name);
    const char *at = strstr(document, mark);
    if (at == NULL)
        fail_msg(DOCUMENT " has no mark \"%s\"", mark);
    const char *first = strstr(at, "|---|---|---|\n");
    assert_non_null(first);
    first += strlen("|---|---|---|\n");
    const char *end = first;
    while (*end == '|')
        end = strchr(end, '\n') + 1;
    char *text = mem_printf("%.*s%s%s", (int)(first - document), document, rows, end);
    free(mark);
    return text;
}

/* As the document should be. Owned. */
static char *document_by_list(const char *document)
{
    struct buf result, attempt;
    buf_init(&result, BYTES_MAX);
    buf_init(&attempt, BYTES_MAX);
    add_tables(&result, &attempt);
    char *half = with_rows(document, "result", result.data);
    char *whole = with_rows(half, "attempt", attempt.data);
    free(half);
    buf_fini(&result);
    buf_fini(&attempt);
    return whole;
}

static void test_document_tells_of_each(void **state)
{
    (void)state;
    char *is = read_document();
    char *should = document_by_list(is);
    if (strcmp(is, should) != 0)
        fail_msg(DOCUMENT
                 ": its tables are not those of common/figure_list.h: build/tests/test_figure write-docs");
    free(is);
    free(should);
}

static int write_document(void)
{
    char *is = read_document();
    char *should = document_by_list(is);
    FILE *file = fopen(DOCUMENT, "w");
    bool good = file != NULL && fputs(should, file) >= 0;
    good = file != NULL && fclose(file) == 0 && good;
    free(is);
    free(should);
    return good ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "write-docs") == 0)
        return write_document();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merges),
        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_document_tells_of_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
