#ifndef COMMON_DIRS_H
#define COMMON_DIRS_H
/*
 * Directories that a program finds by itself. The caller frees what is returned. Reads the environment: main
 * thread, before there are others.
 */
#include "common/base.h"

/* Where files lie when it was not told: `system` for root; for others `name` below the directory that the XDG
 * base variable says, else below `below_home` in HOME. NULL: there is no HOME. */
char *dirs_default(const char *system, const char *xdg_variable, const char *below_home, const char *name);

/* The same path from the root on. NULL: it is relative, and the current directory is gone. */
char *dirs_absolute(const char *path);

/* Of the program that runs. NULL, with errno: it cannot be told. */
char *dirs_program(void);

#endif
