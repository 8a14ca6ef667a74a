#include "common/args.h"

#include "common/parse.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define HELP_COLUMN   26
#define HELP_WIDTH    80
#define FIRST_LONG_ID 256 /* what getopt calls a long option: this and its row */
#define NAME_BYTES    64u

struct getopt_tables {
    struct option longs[ARGS_OPTIONS_MAX + 1];
    char shorts[2 * ARGS_OPTIONS_MAX + 2];
};

static void make_tables(const struct args_table *t, struct getopt_tables *out)
{
    must(t->option_count <= ARGS_OPTIONS_MAX);
    *out = (struct getopt_tables){.shorts = ":"}; /* a missing value is told apart from an unknown option */
    size_t n = 1;
    for (size_t i = 0; i < t->option_count; i++) {
        const struct args_option *o = &t->options[i];
        out->longs[i] = (struct option){.name = o->name,
                                        .has_arg = o->value != NULL ? required_argument : no_argument,
                                        .val = FIRST_LONG_ID + (int)i};
        if (o->letter[0] == '\0')
            continue;
        out->shorts[n++] = o->letter[0];
        if (o->value != NULL)
            out->shorts[n++] = ':';
    }
}

/* The row of what getopt returned for an option that it knows. */
static const struct args_option *row_of(const struct args_table *t, int id)
{
    size_t i = id >= FIRST_LONG_ID ? (size_t)(id - FIRST_LONG_ID) : 0;
    while (id < FIRST_LONG_ID && t->options[i].letter[0] != id)
        i++;
    return &t->options[i];
}

/* ---- what is refused ---- */

/* As it is typed: "-c", "--connections". */
static const char *typed(const struct args_table *t, int id, char out[NAME_BYTES])
{
    if (id >= FIRST_LONG_ID)
        snprintf(out, NAME_BYTES, "--%s", t->options[id - FIRST_LONG_ID].name);
    else
        snprintf(out, NAME_BYTES, "-%c", id);
    return out;
}

static void refuse_unknown(const struct args_table *t, const char *word, struct err_detail *d)
{
    char name[NAME_BYTES];
    const char *names[ARGS_OPTIONS_MAX];
    for (size_t i = 0; i < t->option_count; i++)
        names[i] = t->options[i].name;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    const char *close = parse_closest(name, names, t->option_count);
    if (close != NULL)
        err_set(d, ERR_INVALID, "unknown option --%s; did you mean --%s?", name, close);
    else
        err_set(d, ERR_INVALID, "unknown option --%s; see --help", name);
}

/* What getopt returned '?' or ':' for. It leaves in optopt the option that it knows, or an unknown letter. */
static enum args_result refuse(const struct args_table *t, int id, const char *word, struct err_detail *d)
{
    char name[NAME_BYTES];
    if (optopt == 0)
        refuse_unknown(t, word, d);
    else if (id == ':')
        err_set(d, ERR_INVALID, "option %s needs a value; see --help", typed(t, optopt, name));
    else if (optopt >= FIRST_LONG_ID)
        err_set(d, ERR_INVALID, "option %s takes no value", typed(t, optopt, name));
    else
        err_set(d, ERR_INVALID, "unknown option %s; see --help", typed(t, optopt, name));
    return ARGS_BAD;
}

static enum err check_operands(const struct args_table *t, char **operands, int count, struct err_detail *d)
{
    const char *command = t->command != NULL ? t->command : "";
    const char *colon = t->command != NULL ? ": " : "";
    if (count < t->operands_min)
        return err_set(d, ERR_INVALID, "%s%sname %s", command, colon, t->operands);
    if (count > t->operands_max)
        return err_set(d, ERR_INVALID, "%s%s'%s' is too much; see --help", command, colon,
                       operands[t->operands_max]);
    return ERR_OK;
}

/* ---- values ---- */

static enum err take_text(const struct args_option *o, const char *value, const char **out, const char *what,
                          struct err_detail *d)
{
    size_t len = strlen(value);
    if (len < o->min || (o->max != 0 && len > o->max))
        return err_set(d, ERR_INVALID, "%s: has %zu bytes, must have %llu to %llu", what, len,
                       (unsigned long long)o->min, (unsigned long long)o->max);
    *out = value;
    return ERR_OK;
}

static enum err add_text(const struct args_option *o, const char *value, struct args_texts *out,
                         const char *what, struct err_detail *d)
{
    must(o->max != 0 && o->max <= ARGS_TEXTS_MAX);
    if (out->count == o->max)
        return err_set(d, ERR_TOO_BIG, "%s: at most %zu of them", what, out->count);
    out->items[out->count++] = value;
    return ERR_OK;
}

static enum err take_time(const struct args_option *o, const char *value, uint64_t *out, const char *what,
                          struct err_detail *d)
{
    char low[32];
    char high[32];
    enum err e = parse_duration(value, out, what, d);
    if (e != ERR_OK || (*out >= o->min && (o->max == 0 || *out <= o->max)))
        return e;
    if (o->max == 0)
        return err_set(d, ERR_INVALID, "%s: '%s' is too short", what, value);
    return err_set(d, ERR_INVALID, "%s: '%s' is not from %s to %s", what, value,
                   parse_duration_text(o->min, low, sizeof low),
                   parse_duration_text(o->max, high, sizeof high));
}

/* "auto, io_uring or libuv" */
static const char *words_text(const struct args_option *o, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < ARGS_WORDS_MAX && o->words[i] != NULL && n < size; i++) {
        bool last = i + 1 == ARGS_WORDS_MAX || o->words[i + 1] == NULL;
        n += (size_t)snprintf(out + n, size - n, "%s%s", i == 0 ? "" : last ? " or " : ", ", o->words[i]);
    }
    return out;
}

static enum err take_word(const struct args_option *o, const char *value, unsigned *out, const char *what,
                          struct err_detail *d)
{
    char words[HELP_WIDTH];
    for (unsigned i = 0; i < ARGS_WORDS_MAX && o->words[i] != NULL; i++) {
        if (strcmp(value, o->words[i]) != 0)
            continue;
        *out = i;
        return ERR_OK;
    }
    return err_set(d, ERR_INVALID, "%s: '%s' is not %s", what, value, words_text(o, words, sizeof words));
}

static enum err take_value(const struct args_option *o, const char *value, void *into, struct err_detail *d)
{
    char what[NAME_BYTES];
    void *field = (char *)into + o->at;
    uint64_t number = 0;
    uint64_t max = o->max != 0 ? o->max : UINT64_MAX;
    enum err e = ERR_OK;
    snprintf(what, sizeof what, "--%s", o->name);
    switch (o->kind) {
    case ARGS_SWITCH:
        *(bool *)field = true;
        return ERR_OK;
    case ARGS_TEXT:
        return take_text(o, value, field, what, d);
    case ARGS_TEXTS:
        return add_text(o, value, field, what, d);
    case ARGS_TIME:
        return take_time(o, value, field, what, d);
    case ARGS_NUMBER:
        return parse_u64(value, o->min, max, field, what, d);
    case ARGS_NUMBER32:
        e = parse_u64(value, o->min, max < UINT32_MAX ? max : UINT32_MAX, &number, what, d);
        *(uint32_t *)field = (uint32_t)number;
        return e;
    case ARGS_WORD:
        return take_word(o, value, field, what, d); /* an enum of ours is an unsigned int */
    case ARGS_OTHER:
        return o->take(into, value, what, d);
    case ARGS_HELP:
    case ARGS_PRINT:
        break; /* they end the parsing before they come here */
    }
    return ERR_OK;
}

/* ---- the help ---- */

/* Words between HELP_COLUMN and the edge, from `column` on. Returns where they end. */
static int print_words(int column, const char *text)
{
    for (;;) {
        text += strspn(text, " ");
        int n = (int)strcspn(text, " ");
        if (n == 0)
            return column;
        if (column + 1 + n > HELP_WIDTH) {
            printf("\n  %*s", HELP_COLUMN, "");
            column = HELP_COLUMN + 2;
        }
        printf(" %.*s", n, text);
        column += 1 + n;
        text += n;
    }
}

static void print_option(const struct args_option *o)
{
    char left[NAME_BYTES];
    char more[HELP_WIDTH];
    bool has_letter = o->letter[0] != '\0';
    snprintf(left, sizeof left, "%s%s%s--%s%s%s", has_letter ? "-" : "  ", o->letter,
             has_letter ? ", " : "  ", o->name, o->value != NULL ? " " : "",
             o->value != NULL ? o->value : "");
    printf("  %-*s", HELP_COLUMN, left);
    if (strlen(left) > HELP_COLUMN)
        printf("\n  %*s", HELP_COLUMN, "");
    int column = print_words(HELP_COLUMN + 2, o->help);
    if (o->kind == ARGS_WORD)
        column = print_words(column, words_text(o, more, sizeof more));
    snprintf(more, sizeof more, "(default %s)", o->otherwise);
    if (o->otherwise != NULL)
        print_words(column, more);
    putchar('\n');
}

static void print_help(const struct args_table *t)
{
    fputs(t->usage, stdout);
    for (size_t i = 0; i < t->option_count; i++)
        print_option(&t->options[i]);
    if (t->more != NULL)
        fputs(t->more, stdout);
}

/* ---- all of it ---- */

static void set_defaults(const struct args_table *t, void *into)
{
    for (size_t i = 0; i < t->option_count; i++)
        if (t->options[i].otherwise != NULL)
            must(into != NULL && take_value(&t->options[i], t->options[i].otherwise, into, NULL) == ERR_OK);
}

static enum args_result take_option(const struct args_table *t, const struct args_option *o, void *into,
                                    struct err_detail *d)
{
    if (o->kind == ARGS_HELP) {
        print_help(t);
        return ARGS_DONE;
    }
    if (o->kind == ARGS_PRINT) {
        o->print();
        return ARGS_DONE;
    }
    must(into != NULL); /* for args_pick, rows only print */
    if (o->given != 0)
        *((bool *)into + o->given) = true;
    return take_value(o, optarg, into, d) == ERR_OK ? ARGS_GO : ARGS_BAD;
}

enum args_result args_parse(const struct args_table *t, int argc, char **argv, void *into, char ***operands,
                            int *count, struct err_detail *d)
{
    struct getopt_tables tables;
    make_tables(t, &tables);
    set_defaults(t, into);
    optind = 0; /* makes glibc start afresh */
    opterr = 0;
    enum args_result result = ARGS_GO;
    int id;
    while (result == ARGS_GO && (id = getopt_long(argc, argv, tables.shorts, tables.longs, NULL)) != -1) {
        if (id == '?' || id == ':')
            return refuse(t, id, argv[optind - 1], d);
        result = take_option(t, row_of(t, id), into, d);
    }
    *operands = argv + optind;
    *count = argc - optind;
    if (result == ARGS_GO && check_operands(t, *operands, *count, d) != ERR_OK)
        return ARGS_BAD;
    return result;
}

enum args_result args_pick(const struct args_table *top, const char *const *commands, size_t command_count,
                           int *argc, char ***argv, size_t *out, struct err_detail *d)
{
    static char help[] = "--help";
    char **words = *argv;
    if (*argc > 1 && strcmp(words[1], "help") == 0) {
        bool of_command = *argc > 2;
        words[1] = of_command ? words[2] : help;
        words[2] = of_command ? help : NULL;
        *argc = of_command ? 3 : 2;
    }
    if (*argc > 1 && words[1][0] != '-') {
        ++*argv;
        --*argc;
    } else {
        enum args_result result = args_parse(top, *argc, words, NULL, argv, argc, d);
        if (result != ARGS_GO)
            return result;
    }
    const char *name = (*argv)[0];
    for (size_t i = 0; i < command_count; i++) {
        if (strcmp(name, commands[i]) != 0)
            continue;
        *out = i;
        return ARGS_GO;
    }
    const char *close = parse_closest(name, commands, command_count);
    if (close != NULL)
        err_set(d, ERR_INVALID, "unknown command '%s'; did you mean '%s'?", name, close);
    else
        err_set(d, ERR_INVALID, "unknown command '%s'; see --help", name);
    return ARGS_BAD;
}
