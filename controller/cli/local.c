#include "controller/cli/local.h"

#include "common/clock.h"
#include "common/dirs.h"
#include "common/file.h"
#include "common/json.h"
#include "common/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN_MAX   (1u + LIMIT_HOSTS_PER_ROLE * 2u)
#define START_LIMIT_NS (15 * NS_PER_S)
#define STOP_LIMIT_NS  (20 * NS_PER_S) /* agents end their trees first */
#define LOG_TAIL_BYTES 2000

extern char **environ;

struct child {
    pid_t pid;
    char *log;
};

struct local {
    char *dir;
    char *bin_dir;
    char *address;
    int lock_fd;
    int leash_fd; /* write end; the children hold the read end as their standard input */
    int leash_read_fd;
    struct child children[CHILDREN_MAX];
    size_t child_count;
};

static enum err find_programs(struct local *l, struct err_detail *d)
{
    l->bin_dir = dirs_program();
    if (l->bin_dir == NULL)
        return err_set(d, ERR_IO, "cannot tell where splitbench lies: %s", strerror(errno));
    static const char *const names[] = {"splitbench-agent", "splitbench-load"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char *program = mem_printf("%s/%s", l->bin_dir, names[i]);
        bool there = access(program, X_OK) == 0;
        if (!there)
            err_set(d, ERR_UNSUPPORTED,
                    "%s is missing: a local run needs the three programs in one directory", program);
        free(program);
        if (!there)
            return ERR_UNSUPPORTED;
    }
    return ERR_OK;
}

static enum err take_lock(struct local *l, struct err_detail *d)
{
    char *path = mem_printf("%s/lock", l->dir);
    enum err e = file_lock(path, &l->lock_fd, d);
    if (e == ERR_BUSY)
        err_set(d, e, "another local run is under way (it holds %s): two would disturb each other", path);
    free(path);
    return e;
}

/* Starts one child with the leash as its standard input and a log file as its output. */
static enum err spawn(struct local *l, const char *name, const char *const *argv, struct err_detail *d)
{
    must(l->child_count < CHILDREN_MAX);
    struct child *c = &l->children[l->child_count];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    c->log = mem_printf("%s/%s.log", l->dir, name);
    /* Not by the child: an open that fails there, or never ends, could not be told from the program's. */
    int log_fd = open(c->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0600);
    if (log_fd < 0) {
        enum err e = err_set(d, err_from_errno(errno), "cannot open %s: %s", c->log, strerror(errno));
        free(c->log);
        return e;
    }
    must(posix_spawn_file_actions_init(&actions) == 0 && posix_spawnattr_init(&attributes) == 0);
    posix_spawn_file_actions_adddup2(&actions, l->leash_read_fd, 0);
    posix_spawn_file_actions_adddup2(&actions, log_fd, 1);
    posix_spawn_file_actions_adddup2(&actions, log_fd, 2);
    /* Its own group: a ^C in the terminal is ours to answer. */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    int failed = posix_spawn(&c->pid, argv[0], &actions, &attributes, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(log_fd);
    if (failed != 0) {
        free(c->log);
        return err_set(d, ERR_IO, "cannot run %s: %s", argv[0], strerror(failed));
    }
    l->child_count++;
    return ERR_OK;
}

static enum err spawn_controller(struct local *l, struct err_detail *d)
{
    char *program = mem_printf("%s/splitbench", l->bin_dir);
    const char *argv[] = {program, "controller", "--state", l->dir, "--leash", NULL};
    enum err e = spawn(l, "controller", argv, d);
    free(program);
    return e;
}

/* An agent carries the labels that its role asks for, so that the experiment finds its hosts here. */
static enum err spawn_agent(struct local *l, const struct experiment_role *role, uint32_t ordinal,
                            struct err_detail *d)
{
    size_t fixed = 9;
    char *name = role->count > 1 ? mem_printf("%s%u", role->name, ordinal + 1) : mem_strdup(role->name);
    char *program = mem_printf("%s/splitbench-agent", l->bin_dir);
    char *state = mem_printf("%s/agent-%s", l->dir, name);
    const char **argv = mem_zalloc(fixed + 2 * role->label_count + 1, sizeof *argv);
    char **labels = mem_zalloc(role->label_count, sizeof *labels);
    size_t n = 0;
    argv[n++] = program;
    argv[n++] = "run";
    argv[n++] = "--controller";
    argv[n++] = l->address;
    argv[n++] = "--name";
    argv[n++] = name;
    argv[n++] = "--state";
    argv[n++] = state;
    argv[n++] = "--leash";
    must(n == fixed);
    for (size_t i = 0; i < role->label_count; i++) {
        labels[i] = mem_printf("%s=%s", role->labels[i].key, role->labels[i].value);
        argv[n++] = "--label";
        argv[n++] = labels[i];
    }
    enum err e = spawn(l, name, argv, d);
    size_t count = role->label_count;
    mem_free_strings(&labels, &count);
    free(argv);
    free(state);
    free(program);
    free(name);
    return e;
}

/* The last lines of a child's log, for the error that names it. */
static void read_log_tail(const struct child *c, char *out, size_t size)
{
    out[0] = '\0';
    FILE *f = fopen(c->log, "re");
    if (f == NULL)
        return;
    if (fseek(f, -LOG_TAIL_BYTES, SEEK_END) != 0)
        rewind(f);
    size_t n = fread(out, 1, size - 1, f);
    out[n] = '\0';
    fclose(f);
}

static enum err check_child(struct local *l, size_t i, struct err_detail *d)
{
    struct child *c = &l->children[i];
    if (c->pid != 0 && waitpid(c->pid, NULL, WNOHANG) == c->pid)
        c->pid = 0;
    if (c->pid != 0)
        return ERR_OK;
    char tail[700];
    read_log_tail(c, tail, sizeof tail);
    return err_set(d, ERR_FAILED, "the %s of this run has ended; its log %s ends: %s",
                   i == 0 ? "controller" : "agent", c->log, tail);
}

static enum err check_controller(void *local, struct err_detail *d)
{
    return check_child(local, 0, d);
}

enum err local_check(void *local, bool queued, struct err_detail *d)
{
    struct local *l = local;
    enum err e = check_child(l, 0, d);
    /* While a job runs the controller itself sees an agent go, and says more about it. */
    for (size_t i = 1; i < l->child_count && queued && e == ERR_OK; i++)
        e = check_child(l, i, d);
    return e;
}

static size_t count_connected(const char *hosts_json, size_t len)
{
    struct json_value *tree = NULL;
    size_t n = 0;
    if (json_parse(hosts_json, len, NULL, &tree, NULL) != ERR_OK)
        return 0;
    const struct json_value *hosts = json_member(tree, "hosts");
    for (const struct json_value *h = json_first(hosts); h != NULL; h = json_next(h))
        n += json_is_true(json_member(h, "connected"));
    json_free(tree);
    return n;
}

enum err local_open_client(struct local *l, struct client **out, struct err_detail *d)
{
    enum err e = client_open(&(struct place){.controller = l->address}, out, d);
    if (e == ERR_OK)
        client_set_check(*out, check_controller, l);
    return e;
}

static enum err wait_for_agents(struct local *l, size_t wanted, struct err_detail *d)
{
    uint64_t deadline_ns = clock_now_ns() + START_LIMIT_NS;
    char *socket = l->address + strlen("ipc://");
    struct client *client = NULL;
    enum err e = ERR_OK;
    while (access(socket, F_OK) != 0 && e == ERR_OK) {
        e = local_check(l, true, d);
        if (e == ERR_OK && clock_now_ns() > deadline_ns)
            e = err_set(d, ERR_TIMEOUT, "the local controller did not come up; its log is %s",
                        l->children[0].log);
        poll(NULL, 0, 5);
    }
    if (e == ERR_OK)
        e = local_open_client(l, &client, d);
    while (e == ERR_OK) {
        struct buf hosts;
        e = client_ask(client, &(struct client_ask){.kind = MSG_ASK_HOSTS}, &hosts, d);
        if (e != ERR_OK)
            break;
        size_t have = count_connected(hosts.data, hosts.len);
        buf_fini(&hosts);
        if (have >= wanted)
            break;
        e = local_check(l, true, d);
        if (e == ERR_OK && clock_now_ns() > deadline_ns)
            e = err_set(d, ERR_TIMEOUT, "only %zu of %zu local agents came up; their logs are in %s", have,
                        wanted, l->dir);
        poll(NULL, 0, 10);
    }
    client_close(&client);
    return e;
}

static enum err make_leash(struct local *l, struct err_detail *d)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
        return err_set(d, ERR_IO, "cannot make a pipe: %s", strerror(errno));
    l->leash_read_fd = fds[0];
    l->leash_fd = fds[1];
    return ERR_OK;
}

enum err local_start(const struct place *place, const struct experiment *experiment, struct local **out,
                     struct err_detail *d)
{
    struct local *l = mem_zalloc(1, sizeof *l);
    size_t agents = 0;
    l->lock_fd = l->leash_fd = l->leash_read_fd = -1;
    l->dir = place_local_dir(place);
    l->address = mem_printf("ipc://%s/controller.sock", l->dir);
    enum err e = file_make_dirs(l->dir, d);
    if (e == ERR_OK)
        e = find_programs(l, d);
    if (e == ERR_OK)
        e = take_lock(l, d);
    if (e == ERR_OK)
        e = make_leash(l, d);
    if (e != ERR_OK)
        goto out;
    unlink(l->address + strlen("ipc://")); /* left by a run that was killed; the lock says nobody uses it */
    e = spawn_controller(l, d);
    for (size_t i = 0; e == ERR_OK && i < experiment->role_count; i++)
        for (uint32_t k = 0; e == ERR_OK && k < experiment->roles[i].count; k++, agents++)
            e = spawn_agent(l, &experiment->roles[i], k, d);
    if (e == ERR_OK)
        e = wait_for_agents(l, agents, d);
out:
    if (e != ERR_OK)
        local_stop(&l);
    *out = l;
    return e;
}

static void reap(struct local *l)
{
    uint64_t deadline_ns = clock_now_ns() + STOP_LIMIT_NS;
    for (size_t i = 0; i < l->child_count; i++) {
        struct child *c = &l->children[i];
        while (c->pid != 0 && waitpid(c->pid, NULL, WNOHANG) == 0) {
            if (clock_now_ns() > deadline_ns)
                kill(c->pid, SIGKILL); /* its supervisor clears what it had started */
            poll(NULL, 0, 5);
        }
        free(c->log);
    }
}

void local_stop(struct local **local)
{
    struct local *l = *local;
    *local = NULL;
    if (l == NULL)
        return;
    if (l->leash_fd >= 0)
        close(l->leash_fd);
    if (l->leash_read_fd >= 0)
        close(l->leash_read_fd);
    reap(l);
    if (l->lock_fd >= 0)
        close(l->lock_fd);
    free(l->address);
    free(l->bin_dir);
    free(l->dir);
    free(l);
}
