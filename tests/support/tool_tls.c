/*
 * TLS servers that are right, or wrong in exactly one respect, for tests of the load generator; each has a
 * port of its own on 127.0.0.1 and, where there is IPv6, on ::1. tool_tls --list               the modes,
 * with a line on each tool_tls DIR [MODE]...        serves these, or all It makes its own certificates, new
 * ones each time, and writes to DIR: ca.pem, which is to be trusted; MODE.pem, each server's own; and with
 * their keys in NAME.key three certificates for clients: client.pem, which servers that want one trust,
 * old-client.pem, which has expired, and foreign-client.pem, of another
 * CA. Prints "MODE PORT" for each, "control
 * PORT", and "ready". Over plain HTTP on the control port, GET /MODE        has all connections of this mode
 * end, and answers with what their clients did since it was last asked, as JSON Ends by itself after a
 * quarter of an hour.
 */
#include "common/json_write.h"
#include "common/mem.h"
#include "tests/support/tls_modes.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define LIFE_S         900u
#define VISITS_MAX     512u /* at the same time; further connections wait */
#define PORT_TRIES     100u
#define BOOK_BYTES_MAX 4096u
#define PATH_BYTES     512u

struct port {
    int fds[2]; /* of IPv4, and of IPv6 or -1 */
    uint16_t number;
};

struct server {
    struct tls_service service;
    struct port port;
};

static struct server *servers;
static size_t server_count;
static sem_t free_visits;

/* ---- sockets ------------------------------------------------------------------------------------------- */

/* Listens on this port, 0 for any; -1 with errno. */
static int listen_on(int family, uint16_t port)
{
    struct sockaddr_in v4 = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    v6.sin6_addr = in6addr_loopback;
    const struct sockaddr *at =
        family == AF_INET ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (bind(fd, at, family == AF_INET ? sizeof v4 : sizeof v6) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* The same port of both families. */
static void open_port(struct port *p)
{
    for (unsigned tries = 0; tries < PORT_TRIES; tries++) {
        struct sockaddr_in bound = {0};
        socklen_t len = sizeof bound;
        p->fds[0] = listen_on(AF_INET, 0);
        must(p->fds[0] >= 0 && getsockname(p->fds[0], (struct sockaddr *)&bound, &len) == 0);
        p->number = ntohs(bound.sin_port);
        p->fds[1] = listen_on(AF_INET6, p->number);
        if (p->fds[1] >= 0 || errno != EADDRINUSE)
            return; /* without IPv6 as well */
        close(p->fds[0]);
    }
    must_never("no port is free in both families");
}

/* ---- connections --------------------------------------------------------------------------------------- */

struct arrival {
    struct tls_service *service;
    int fd;
};

static void *run_visit(void *arg)
{
    struct arrival a = *(struct arrival *)arg;
    struct visit v;
    free(arg);
    visit_init(&v, a.service, a.fd);
    tls_mode_run(&v);
    visit_fini(&v);
    pthread_mutex_lock(&a.service->lock);
    a.service->open--;
    pthread_cond_broadcast(&a.service->idle);
    pthread_mutex_unlock(&a.service->lock);
    sem_post(&free_visits);
    return NULL;
}

static void take_visit(struct server *s, int listener)
{
    while (sem_wait(&free_visits) != 0)
        ;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) { /* the client has gone already */
        sem_post(&free_visits);
        return;
    }
    struct arrival *a = mem_alloc(sizeof *a);
    *a = (struct arrival){.service = &s->service, .fd = fd};
    pthread_mutex_lock(&s->service.lock);
    s->service.open++;
    pthread_mutex_unlock(&s->service.lock);
    pthread_t thread;
    must(pthread_create(&thread, NULL, run_visit, a) == 0 && pthread_detach(thread) == 0);
}

NORETURN static void serve(void)
{
    struct pollfd *polls = mem_zalloc(server_count * 2, sizeof *polls);
    for (size_t i = 0; i < server_count * 2; i++)
        polls[i] = (struct pollfd){.fd = servers[i / 2].port.fds[i % 2], .events = POLLIN};
    for (;;) {
        must(poll(polls, server_count * 2, -1) >= 0 || errno == EINTR);
        for (size_t i = 0; i < server_count * 2; i++)
            if (polls[i].revents != 0)
                take_visit(&servers[i / 2], polls[i].fd);
    }
}

/* ---- the books ----------------------------------------------------------------------------------------- */

static void write_counts(struct buf *out, const struct tls_counts *n)
{
    struct json_writer j;
    json_write_init(&j, out, 0);
    json_write_object(&j, NULL);
    json_write_u64(&j, "accepted", n->accepted);
    json_write_u64(&j, "full", n->full);
    json_write_u64(&j, "resumed", n->resumed);
    json_write_u64(&j, "renegotiated", n->renegotiated);
    json_write_u64(&j, "requests", n->requests);
    json_write_u64(&j, "body_bytes", n->body_bytes);
    json_write_u64(&j, "wire_in", n->wire_in);
    json_write_u64(&j, "arrived", n->arrived);
    json_write_string(&j, "name", n->name);
    json_write_string(&j, "offered", n->offered);
    json_write_string(&j, "version", n->version);
    json_write_string(&j, "cipher", n->cipher);
    json_write_string(&j, "group", n->group);
    json_write_string(&j, "certificate", n->certificate);
    json_write_string(&j, "alert", n->alert);
    json_write_close(&j);
    must(json_write_end(&j) == ERR_OK);
}

/* Has the visits end and takes their counts. */
static struct tls_counts close_books(struct tls_service *s)
{
    uint64_t one = 1;
    must(write(s->release_fd, &one, sizeof one) == sizeof one);
    pthread_mutex_lock(&s->lock);
    while (s->open != 0)
        pthread_cond_wait(&s->idle, &s->lock);
    must(read(s->release_fd, &one, sizeof one) == sizeof one);
    struct tls_counts counts = s->counts;
    s->counts = (struct tls_counts){0};
    pthread_mutex_unlock(&s->lock);
    return counts;
}

static void answer_control(int fd)
{
    char request[256];
    char path[128] = "";
    char text[BOOK_BYTES_MAX];
    struct buf body;
    buf_init(&body, sizeof text - 128);
    must(buf_append(&body, "", 0) == ERR_OK);
    ssize_t n = recv(fd, request, sizeof request - 1, 0);
    request[n > 0 ? n : 0] = '\0';
    (void)!sscanf(request, "GET /%127s", path);
    const char *status = "404 Not Found";
    for (size_t i = 0; i < server_count; i++) {
        struct tls_service *s = &servers[i].service;
        if (strcmp(path, s->mode->name) != 0)
            continue;
        struct tls_counts counts = close_books(s);
        write_counts(&body, &counts);
        status = "200 OK";
    }
    int len = snprintf(text, sizeof text, "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                       status, body.len, body.data);
    (void)!send(fd, text, (size_t)len, MSG_NOSIGNAL);
    buf_fini(&body);
}

static void *run_control(void *arg)
{
    int listener = ((const struct port *)arg)->fds[0];
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        answer_control(fd);
        close(fd);
    }
    return NULL;
}

/* ---- the beginning ------------------------------------------------------------------------------------- */

static void write_pair(const struct cert_pair *pair, const char *dir, const char *name, bool with_key)
{
    char cert[PATH_BYTES];
    char key[PATH_BYTES];
    snprintf(cert, sizeof cert, "%s/%s.pem", dir, name);
    snprintf(key, sizeof key, "%s/%s.key", dir, name);
    if (cert_pair_write(pair, cert, with_key ? key : NULL))
        return;
    fprintf(stderr, "tool_tls: cannot write %s: %s\n", cert, strerror(errno));
    exit(2);
}

static void write_clients(const struct cert_lab *lab, const char *dir)
{
    static const struct {
        const char *name;
        struct cert_wish wish;
    } clients[] = {
        {"client", {.subject = "a client of the tests", .usage = "clientAuth", .names = ""}},
        {"old-client", {.usage = "clientAuth", .names = "", .from_days = -30, .to_days = -2}},
        {"foreign-client", {.usage = "clientAuth", .names = "", .signer = CERT_BY_STRANGER}},
    };
    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        struct cert_pair pair;
        cert_make(lab, &pair, &clients[i].wish);
        write_pair(&pair, dir, clients[i].name, true);
        cert_pair_fini(&pair);
    }
}

static void start_server(const struct tls_mode *m, const struct cert_lab *lab, const char *dir)
{
    struct server *s = &servers[server_count++];
    struct cert_pair own;
    cert_make(lab, &own, &m->cert);
    write_pair(&own, dir, m->name, false);
    s->service.mode = m;
    s->service.ctx = tls_mode_context(m, lab, &own);
    s->service.release_fd = eventfd(0, EFD_CLOEXEC);
    must(s->service.release_fd >= 0);
    must(pthread_mutex_init(&s->service.lock, NULL) == 0 && pthread_cond_init(&s->service.idle, NULL) == 0);
    cert_pair_fini(&own);
    open_port(&s->port);
    printf("%s %u\n", m->name, s->port.number);
}

static void start_servers(const struct cert_lab *lab, const char *dir, char **names, size_t name_count)
{
    servers = mem_zalloc(tls_mode_count > name_count ? tls_mode_count : name_count, sizeof *servers);
    for (size_t i = 0; i < name_count; i++) {
        const struct tls_mode *m = tls_mode_find(names[i]);
        if (m == NULL) {
            fprintf(stderr, "tool_tls: there is no mode '%s'; see --list\n", names[i]);
            exit(2);
        }
        start_server(m, lab, dir);
    }
    for (size_t i = 0; name_count == 0 && i < tls_mode_count; i++)
        start_server(&tls_modes[i], lab, dir);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < tls_mode_count; i++)
            printf("%-28s %s\n", tls_modes[i].name, tls_modes[i].what);
        return 0;
    }
    if (argc < 2) {
        fputs("usage: tool_tls DIR [MODE]... | --list\n", stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    alarm(LIFE_S);
    struct cert_lab lab;
    cert_lab_init(&lab);
    write_pair(&lab.signers[CERT_BY_CA], argv[1], "ca", false);
    write_clients(&lab, argv[1]);
    must(sem_init(&free_visits, 0, VISITS_MAX) == 0);
    start_servers(&lab, argv[1], argv + 2, (size_t)argc - 2);
    static struct port control;
    pthread_t thread;
    open_port(&control);
    must(pthread_create(&thread, NULL, run_control, &control) == 0);
    printf("control %u\nready\n", control.number);
    fflush(stdout);
    serve();
}
