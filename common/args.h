#ifndef COMMON_ARGS_H
#define COMMON_ARGS_H
/*
 * Command-line options from one table, which also prints the help. A thin layer over getopt_long that
 * words its own errors. Owned by main(); one thread, one instance at a time (getopt's state is global).
 */
#include "common/err.h"

struct args_option {
    int id;            /* returned by args_next; a letter when there is a short form, else from 256 up */
    const char *name;  /* long name without dashes */
    const char *value; /* placeholder of its value ("N", "FILE"), or NULL for a plain switch */
    const char *help;  /* words; the help wraps them at 80 columns */
};

struct args {
    int argc;
    char **argv;
    const struct args_option *options; /* borrowed */
    size_t option_count;
    const char *value; /* of the option just returned, or NULL */
    void *built;       /* getopt's own tables */
};

enum { ARGS_END = -1, ARGS_BAD = -2 };

/* `argv[0]` is skipped. Options may stand after operands; "--" ends them. */
void args_init(struct args *a, const struct args_option *options, size_t count, int argc, char **argv);
void args_fini(struct args *a);

/* The next option's id, ARGS_END after the last, ARGS_BAD with `d` filled for an unknown or incomplete one.
 */
int args_next(struct args *a, struct err_detail *d);

/* After ARGS_END: the operands. */
int args_operands(const struct args *a, char ***out);

/* The table as the lines of a --help text. */
void args_print_help(const struct args_option *options, size_t count);

#endif
