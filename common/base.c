#include "common/base.h"

#include <stdio.h>
#include <stdlib.h>

void must_failed(const char *cond, const char *file, int line)
{
    fprintf(stderr, "%s:%d: internal error: %s does not hold\n", file, line, cond);
    abort();
}
