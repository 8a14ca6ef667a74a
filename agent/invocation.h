#ifndef AGENT_INVOCATION_H
#define AGENT_INVOCATION_H
/*
 * The agent's command line, checked and completed with defaults. Owned by main(); one thread.
 *
 * Directories: as root /etc/splitbench/agent (identity) and /var/lib/splitbench/agent (state); as a user
 * $XDG_CONFIG_HOME/splitbench/agent (~/.config) and $XDG_STATE_HOME/splitbench/agent (~/.local/state).
 */
#include "common/err.h"

enum invocation_command {
    INVOCATION_HELP,    /* the text has been printed */
    INVOCATION_VERSION, /* the same */
    INVOCATION_RUN,
    INVOCATION_ENROLL,
};

struct invocation {
    enum invocation_command command;
    char *controller; /* an address the link takes, or NULL: the one kept at enrollment */
    char *token;      /* enroll */
    char *identity_dir;
    bool identity_given; /* not the default */
    char *state_dir;
    char *name; /* NULL: the certificate's, or over ipc the host's name */
    char *address;
    char *load_program; /* splitbench-load: beside this program unless told */
    char **labels;
    size_t label_count;
    bool leash;
    bool verbose;
};

/* ERR_INVALID says which word is wrong. The caller frees with invocation_fini, also after a failure. */
NODISCARD enum err invocation_parse(int argc, char **argv, struct invocation *out, struct err_detail *d);
void invocation_fini(struct invocation *o);

#endif
