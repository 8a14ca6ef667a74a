#include "agent/process/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define CHUNK_BYTES 65536u
/* A burst of output does not make the program wait for us; memory is used only as it fills. */
#define PIPE_BYTES (256 * 1024)
/* What a full pipe can still hold when nobody writes any more, with room to spare. */
#define DRAIN_BYTES_MAX 4194304u /* 4 MiB */

static enum err open_pipe(struct capture *c, int stream, struct err_detail *d)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
        return err_set(d, err_from_errno(errno), "cannot make a pipe: %s", strerror(errno));
    c->read_fds[stream] = fds[0];
    c->write_fds[stream] = fds[1];
    (void)fcntl(fds[0], F_SETFL, O_NONBLOCK); /* our end only: the child's stays as programs expect it */
    (void)fcntl(fds[1], F_SETPIPE_SZ, PIPE_BYTES);
    return ERR_OK;
}

enum err capture_init(struct capture *c, const struct capture_options *options, struct err_detail *d)
{
    *c = (struct capture){
        .log.fd = -1,
        .out.fd = -1,
        .read_fds = {-1, -1},
        .write_fds = {-1, -1},
        .lines = options->lines,
        .on_line = options->on_line,
        .arg = options->arg,
    };
    bool apart = options->lines || options->out_bytes_max > 0;
    enum err e = logfile_init(&c->log, options->log_path, LIMIT_LOG_HEAD_BYTES, LIMIT_LOG_TAIL_BYTES, d);
    if (e == ERR_OK && options->out_bytes_max > 0)
        e = logfile_init(&c->out, options->out_path, (size_t)options->out_bytes_max, 0, d);
    if (e == ERR_OK)
        e = open_pipe(c, CAPTURE_ERR, d);
    if (e == ERR_OK && apart)
        e = open_pipe(c, CAPTURE_OUT, d);
    else if (e == ERR_OK)
        c->write_fds[CAPTURE_OUT] = c->write_fds[CAPTURE_ERR]; /* one pipe keeps their order */
    if (e != ERR_OK)
        capture_fini(c);
    return e;
}

static void close_stream(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void capture_started(struct capture *c)
{
    if (c->write_fds[CAPTURE_OUT] == c->write_fds[CAPTURE_ERR])
        c->write_fds[CAPTURE_OUT] = -1;
    close_stream(&c->write_fds[CAPTURE_OUT]);
    close_stream(&c->write_fds[CAPTURE_ERR]);
}

void capture_fini(struct capture *c)
{
    capture_started(c);
    close_stream(&c->read_fds[CAPTURE_OUT]);
    close_stream(&c->read_fds[CAPTURE_ERR]);
    logfile_fini(&c->log);
    logfile_fini(&c->out);
}

static void end_line(struct capture *c)
{
    c->line[c->line_len] = '\0';
    c->on_line(c->arg, c->line);
    c->line_len = 0;
}

static void split_lines(struct capture *c, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (data[i] == '\n') {
            if (!c->skipping)
                end_line(c);
            c->skipping = false;
        } else if (!c->skipping) {
            c->line[c->line_len++] = data[i] != '\0' ? data[i] : '?';
            if (c->line_len == SUPERVISOR_LINE_BYTES_MAX) {
                end_line(c);
                c->skipping = true;
            }
        }
    }
}

/* Bytes read, 0 when there are none now or will never be. */
static size_t read_some(struct capture *c, int stream)
{
    char chunk[CHUNK_BYTES];
    ssize_t n = c->read_fds[stream] >= 0 ? read(c->read_fds[stream], chunk, sizeof chunk) : 0;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0) {
        close_stream(&c->read_fds[stream]);
        if (stream == CAPTURE_ERR && c->line_len > 0)
            end_line(c);
        return 0;
    }
    bool is_out = stream == CAPTURE_OUT && c->out.fd >= 0;
    logfile_append(is_out ? &c->out : &c->log, chunk, (size_t)n);
    if (stream == CAPTURE_ERR && c->lines)
        split_lines(c, chunk, (size_t)n);
    return (size_t)n;
}

void capture_read(struct capture *c, int stream)
{
    (void)read_some(c, stream);
}

void capture_drain(struct capture *c)
{
    for (int stream = 0; stream < CAPTURE_STREAMS; stream++) {
        size_t drained = 0;
        size_t n = 0;
        do {
            n = read_some(c, stream);
            drained += n;
        } while (n > 0 && drained < DRAIN_BYTES_MAX);
        close_stream(&c->read_fds[stream]);
    }
    if (c->line_len > 0)
        end_line(c);
}
