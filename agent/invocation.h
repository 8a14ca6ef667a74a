#ifndef AGENT_INVOCATION_H
#define AGENT_INVOCATION_H
/*
 * The agent's command line, checked and completed with defaults. Owned by main(); one thread.
 *
 * Directories: as root /etc/splitbench/agent (identity) and /var/lib/splitbench/agent (state); as a user
 * $XDG_CONFIG_HOME/splitbench/agent (~/.config) and $XDG_STATE_HOME/splitbench/agent (~/.local/state).
 */
#include "common/args.h"

enum invocation_command {
    INVOCATION_DONE, /* help or version have been printed */
    INVOCATION_RUN,
    INVOCATION_ENROLL,
};

struct invocation { /* `const` texts are argv's own; NULL: not told */
    enum invocation_command command;
    char *controller;  /* an address the link takes, or NULL: the one kept at enrollment */
    const char *token; /* enroll */
    const char *identity;
    const char *state;
    const char *load;
    const char *name; /* NULL: the certificate's, or over ipc the host's name */
    const char *address;
    struct args_texts labels;
    bool leash;
    bool verbose;
    /* What was told, or the default. */
    char *identity_dir;
    char *state_dir;
    char *load_program; /* splitbench-load: beside this program unless told */
};

/* ERR_INVALID says which word is wrong. The caller frees with invocation_fini, also after a failure. */
NODISCARD enum err invocation_parse(int argc, char **argv, struct invocation *out, struct err_detail *d);
void invocation_fini(struct invocation *o);

#endif
