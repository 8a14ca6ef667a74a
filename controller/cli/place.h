#ifndef CONTROLLER_CLI_PLACE_H
#define CONTROLLER_CLI_PLACE_H
/*
 * Where a controller listens and where files lie: as told, or by default below the system's directories for
 * root and the XDG base directories for others. The caller frees what is returned. Main thread only.
 */
#include "common/err.h"

struct place { /* as told; NULL: the default */
    const char *controller;
    const char *identity;
    const char *state;
};

char *place_state_dir(const struct place *place);    /* from the root on */
char *place_local_dir(const struct place *place);    /* STATE/local: results of runs on this machine */
char *place_local_store(const struct place *place);  /* its results file */
char *place_identity_dir(const struct place *place); /* of an operator */
/* Where the controller listens; ERR_INVALID when what was given is no address. */
NODISCARD enum err place_address(const struct place *place, char **out, struct err_detail *d);

#endif
