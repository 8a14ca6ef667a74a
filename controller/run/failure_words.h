#ifndef CONTROLLER_RUN_FAILURE_WORDS_H
#define CONTROLLER_RUN_FAILURE_WORDS_H
/*
 * What a class of failed requests is in plain words: the generator tells the phase and the cause, each by its
 * name (docs/load.md). Pure; any thread.
 */
#include "common/base.h"

/* Fits behind a count: "3 " and "without an answer in time". NULL for a pair that this version does not know.
 */
const char *failure_words(const char *phase, const char *cause);

#endif
