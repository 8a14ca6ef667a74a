#ifndef COMMON_ARGS_H
#define COMMON_ARGS_H
/*
 * Command lines by table: a row says what an option is called, what it takes, where its value goes and what
 * the help says of it. All programs read their words, refuse them and print their help by it. A thin layer
 * over getopt_long, whose state is global: main thread only.
 */
#include "common/err.h"

#define ARGS_OPTIONS_MAX 64u
#define ARGS_WORDS_MAX   4u
#define ARGS_TEXTS_MAX   256u

enum args_kind {
    ARGS_SWITCH,   /* bool: true when given */
    ARGS_TEXT,     /* const char *, argv's own, of `min` to `max` bytes */
    ARGS_TEXTS,    /* struct args_texts: may be repeated, `max` times at most */
    ARGS_TIME,     /* uint64_t, ns, from `min` to `max` */
    ARGS_NUMBER,   /* uint64_t, from `min` to `max` */
    ARGS_NUMBER32, /* uint32_t, from `min` to `max` */
    ARGS_WORD,     /* an enum of ours, by its place among `words` */
    ARGS_OTHER,    /* what `take` makes of it */
    ARGS_HELP,     /* the help is printed, and nothing else is done */
    ARGS_PRINT,    /* `print` is called, and nothing else is done */
};

/* What an ARGS_TEXTS has gathered, in the order of the command line; argv's own. */
struct args_texts {
    const char *items[ARGS_TEXTS_MAX];
    size_t count;
};

struct args_option {
    const char *letter;  /* "": it has no short form */
    const char *name;    /* without dashes */
    const char *value;   /* placeholder of its value ("N", "FILE"); NULL: it takes none */
    const char *help;    /* the words and the default are added to it */
    enum args_kind kind; /* and by kind, all optional: */
    size_t at;           /* of its field in the structure that is filled */
    size_t given;        /* of a bool that is set when the option is there; 0: of none */
    uint64_t min;
    uint64_t max;          /* 0: as much as there can be */
    const char *otherwise; /* the default, written as a person would */
    const char *words[ARGS_WORDS_MAX];
    /* `into`: the structure that is filled; `what`: the option's name with its dashes, for the error. */
    enum err (*take)(void *into, const char *value, const char *what, struct err_detail *d);
    void (*print)(void);
};

/* What stands in the row that every table has. */
#define ARGS_HELP_ROW "h", "help", NULL, "this text", .kind = ARGS_HELP

#define ARGS_ROWS(rows) .options = (rows), .option_count = ARRAY_LEN(rows)

struct args_table {
    const struct args_option *options; /* these two by ARGS_ROWS */
    size_t option_count;
    const char *command; /* the subcommand, for errors about operands; NULL: there is none */
    const char *usage;   /* the help before the options */
    const char *more;    /* and after them; NULL: nothing */
    int operands_min;
    int operands_max;
    const char *operands; /* what they are: "one file, like ..." */
};

enum args_result {
    ARGS_GO,   /* read and right */
    ARGS_DONE, /* what was asked for has been printed: the help, the version */
    ARGS_BAD   /* the detail says which word is wrong */
};

/* Reads the words after argv[0] into the structure `into`, whose defaults are set first; all other fields
 * stay. Options may stand after operands; "--" ends them. `operands`: the first of `*count` in argv, which is
 * permuted. */
enum args_result args_parse(const struct args_table *t, int argc, char **argv, void *into, char ***operands,
                            int *count, struct err_detail *d);

/* Which of `commands` the words call for: `out` is its place among them, and argv then begins at its name.
 * Options before it are those of `top`, whose table
 * takes an operand and only prints; "help run" is read as "run --help". */
enum args_result args_pick(const struct args_table *top, const char *const *commands, size_t command_count,
                           int *argc, char ***argv, size_t *out, struct err_detail *d);

#endif
