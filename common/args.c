#include "common/args.h"

#include "common/mem.h"
#include "common/parse.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELP_COLUMN 26
#define HELP_WIDTH  80

struct built {
    struct option *longs;
    char *shorts;
};

void args_init(struct args *a, const struct args_option *options, size_t count, int argc, char **argv)
{
    struct built *b = mem_zalloc(1, sizeof *b);
    b->longs = mem_zalloc(count + 1, sizeof *b->longs);
    b->shorts = mem_zalloc(2 * count + 2, 1);
    size_t n = 0;
    b->shorts[n++] = ':'; /* a missing value is told apart from an unknown option */
    for (size_t i = 0; i < count; i++) {
        const struct args_option *o = &options[i];
        b->longs[i] = (struct option){
            .name = o->name, .has_arg = o->value != NULL ? required_argument : no_argument, .val = o->id};
        if (o->id >= 256)
            continue;
        b->shorts[n++] = (char)o->id;
        if (o->value != NULL)
            b->shorts[n++] = ':';
    }
    *a = (struct args){.argc = argc, .argv = argv, .options = options, .option_count = count, .built = b};
    optind = 0; /* makes glibc start afresh */
    opterr = 0;
}

void args_fini(struct args *a)
{
    struct built *b = a->built;
    if (b == NULL)
        return;
    free(b->longs);
    free(b->shorts);
    free(b);
    a->built = NULL;
}

static int refuse_unknown(const struct args *a, struct err_detail *d)
{
    const char *word = a->argv[optind - 1];
    if (strncmp(word, "--", 2) != 0) {
        err_set(d, ERR_INVALID, "unknown option -%c; see --help", optopt);
        return ARGS_BAD;
    }
    const char **names = mem_zalloc(a->option_count, sizeof *names);
    for (size_t i = 0; i < a->option_count; i++)
        names[i] = a->options[i].name;
    char *name = mem_strndup(word + 2, strcspn(word + 2, "="));
    const char *close = parse_closest(name, names, a->option_count);
    if (optopt != 0 && close != NULL && strcmp(close, name) == 0)
        err_set(d, ERR_INVALID, "option --%s takes no value", name);
    else if (close != NULL)
        err_set(d, ERR_INVALID, "unknown option --%s; did you mean --%s?", name, close);
    else
        err_set(d, ERR_INVALID, "unknown option --%s; see --help", name);
    free(name);
    free(names);
    return ARGS_BAD;
}

int args_next(struct args *a, struct err_detail *d)
{
    struct built *b = a->built;
    int id = getopt_long(a->argc, a->argv, b->shorts, b->longs, NULL);
    a->value = optarg;
    if (id == -1)
        return ARGS_END;
    if (id == '?')
        return refuse_unknown(a, d);
    if (id == ':') {
        err_set(d, ERR_INVALID, "option %s needs a value; see --help", a->argv[optind - 1]);
        return ARGS_BAD;
    }
    return id;
}

int args_operands(const struct args *a, char ***out)
{
    *out = a->argv + optind;
    return a->argc - optind;
}

/* The words of a help text between HELP_COLUMN and the edge; the first line has its left part already. */
static void print_words(const char *text)
{
    int column = HELP_COLUMN + 2;
    for (;;) {
        text += strspn(text, " \n");
        int n = (int)strcspn(text, " \n");
        if (n == 0)
            break;
        if (column + 1 + n > HELP_WIDTH) {
            printf("\n  %*s", HELP_COLUMN, "");
            column = HELP_COLUMN + 2;
        }
        printf(" %.*s", n, text);
        column += 1 + n;
        text += n;
    }
    putchar('\n');
}

void args_print_help(const struct args_option *options, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct args_option *o = &options[i];
        char left[64];
        char letter[8] = "    ";
        if (o->id < 256)
            snprintf(letter, sizeof letter, "-%c, ", o->id);
        snprintf(left, sizeof left, "%s--%s%s%s", letter, o->name, o->value != NULL ? " " : "",
                 o->value != NULL ? o->value : "");
        printf("  %-*s", HELP_COLUMN, left);
        if (strlen(left) > HELP_COLUMN)
            printf("\n  %*s", HELP_COLUMN, "");
        print_words(o->help);
    }
}
