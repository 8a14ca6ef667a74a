#ifndef AGENT_LOAD_REQUEST_FILE_H
#define AGENT_LOAD_REQUEST_FILE_H
/*
 * Several weighted requests from a JSON file, each with what to expect. Main's thread, before the run.
 */
#include "agent/load/request.h"

NODISCARD enum err request_file_read(struct request_set *s, const char *path, const struct target *t,
                                     const struct options *o, struct err_detail *d);

#endif
