#ifndef COMMON_BANNED_H
#define COMMON_BANNED_H
/*
 * Functions that have no safe use here: unbounded copies, silent parse errors, wall time where
 * monotonic time is meant. A use is a compile error. Included through common/base.h by every file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok atoi atol atof gets localtime       \
    gmtime ctime gettimeofday

#endif
