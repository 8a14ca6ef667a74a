#include "agent/load/expect.h"

#include "common/mem.h"
#include "common/parse.h"

static void add_status(struct expect *e, unsigned status)
{
    e->statuses[status / 64] |= UINT64_C(1) << (status % 64);
}

static void add_class(struct expect *e, unsigned hundreds)
{
    for (unsigned s = hundreds * 100; s < hundreds * 100 + 100; s++)
        add_status(e, s);
}

void expect_init(struct expect *e)
{
    *e = (struct expect){0};
    add_class(e, 2);
}

enum err expect_parse_status(struct expect *e, const char *text, const char *what, struct err_detail *d)
{
    memset(e->statuses, 0, sizeof e->statuses);
    char *copy = mem_strdup(text);
    char *rest = copy;
    char *word;
    enum err result = ERR_OK;
    while (result == ERR_OK && (word = strsep(&rest, ",")) != NULL) {
        uint64_t status = 0;
        if (strlen(word) == 3 && word[0] >= '1' && word[0] <= '9' && strcmp(word + 1, "xx") == 0)
            add_class(e, (unsigned)(word[0] - '0'));
        else if (parse_u64(word, 100, EXPECT_STATUS_MAX - 1, &status, what, NULL) == ERR_OK)
            add_status(e, (unsigned)status);
        else
            result =
                err_set(d, ERR_INVALID, "%s: '%s' is not a list of statuses like 200,204 or 2xx", what, text);
    }
    free(copy);
    return result;
}

enum err expect_parse_hash(struct expect *e, const char *text, const char *what, struct err_detail *d)
{
    if (strlen(text) != SHA256_TEXT_BYTES - 1 || !sha256_parse(text, e->hash))
        return err_set(d, ERR_INVALID, "%s: '%s' is not a SHA-256 of 64 hexadecimal digits", what, text);
    e->has_hash = true;
    return sha256_check(d);
}
