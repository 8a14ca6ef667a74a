#include "common/dirs.h"

#include "common/mem.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *dirs_default(const char *system, const char *xdg_variable, const char *below_home, const char *name)
{
    if (geteuid() == 0)
        return mem_strdup(system);
    const char *xdg = getenv(xdg_variable);
    if (xdg != NULL && xdg[0] == '/')
        return mem_printf("%s/%s", xdg, name);
    const char *home = getenv("HOME");
    return home != NULL && home[0] == '/' ? mem_printf("%s/%s/%s", home, below_home, name) : NULL;
}

char *dirs_absolute(const char *path)
{
    char cwd[PATH_MAX];
    if (path[0] == '/')
        return mem_strdup(path);
    return getcwd(cwd, sizeof cwd) != NULL ? mem_printf("%s/%s", cwd, path) : NULL;
}

char *dirs_program(void)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0)
        return NULL;
    path[n] = '\0';
    *strrchr(path, '/') = '\0'; /* it is a path from the root on */
    return mem_strdup(path);
}
