#include "controller/cli/place.h"

#include "common/address.h"
#include "common/dirs.h"
#include "common/mem.h"
#include "controller/daemon/daemon.h"

#include <stdlib.h>

/* A person without a HOME has places too. */
static char *default_dir(const char *system, const char *xdg_variable, const char *below_home)
{
    char *dir = dirs_default(system, xdg_variable, below_home, "splitbench");
    return dir != NULL ? dir : mem_printf("/tmp/%s/splitbench", below_home);
}

char *place_state_dir(const struct place *place)
{
    if (place->state == NULL)
        return default_dir("/var/lib/splitbench", "XDG_STATE_HOME", ".local/state");
    char *whole = dirs_absolute(place->state); /* a socket's address needs all of it */
    return whole != NULL ? whole : mem_strdup(place->state);
}

char *place_local_dir(const struct place *place)
{
    char *state = place_state_dir(place);
    char *dir = mem_printf("%s/local", state);
    free(state);
    return dir;
}

char *place_local_store(const struct place *place)
{
    char *dir = place_local_dir(place);
    char *path = daemon_store_path(dir);
    free(dir);
    return path;
}

char *place_identity_dir(const struct place *place)
{
    if (place->identity != NULL)
        return mem_strdup(place->identity);
    char *config = default_dir("/etc/splitbench", "XDG_CONFIG_HOME", ".config");
    char *dir = mem_printf("%s/operator", config);
    free(config);
    return dir;
}

enum err place_address(const struct place *place, char **out, struct err_detail *d)
{
    const char *set = getenv("SPLITBENCH_CONTROLLER");
    if (place->controller != NULL)
        return address_parse(place->controller, out, d);
    if (set != NULL && set[0] != '\0')
        return err_prefix(d, address_parse(set, out, d), "$SPLITBENCH_CONTROLLER");
    char *state = place_state_dir(place);
    *out = mem_printf("ipc://%s/controller.sock", state);
    free(state);
    return ERR_OK;
}
