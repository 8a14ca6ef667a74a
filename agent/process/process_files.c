#include "agent/process/process_files.h"

#include "agent/process/logfile.h"
#include "common/limits.h"
#include "common/log.h"
#include "common/mem.h"

#include <ctype.h>
#include <unistd.h>

/* Of a label in a file name: the number before it is what makes the name unique. */
#define LABEL_BYTES_MAX 64u

void process_files_init(struct process_files *f, const char *dir, uint32_t number, const char *label,
                        size_t out_bytes_max)
{
    char name[LABEL_BYTES_MAX];
    snprintf(name, sizeof name, "%s", label);
    for (char *c = name; *c != '\0'; c++) {
        if (!isalnum((unsigned char)*c) && *c != '-' && *c != '_')
            *c = '_';
    }
    *f = (struct process_files){.out_bytes_max = out_bytes_max};
    f->log_path = mem_printf("%s/%u-%s.log", dir, number, name);
    if (out_bytes_max > 0)
        f->out_path = mem_printf("%s/%u-%s.out", dir, number, name);
}

void process_files_fini(struct process_files *f)
{
    free(f->log_path);
    free(f->out_path);
    *f = (struct process_files){0};
}

void process_files_remove(struct process_files *f)
{
    (void)unlink(f->log_path);
    if (f->out_path != NULL)
        (void)unlink(f->out_path);
}

static char *read_capped(const char *path, size_t head_max, size_t tail_max, size_t *len, uint64_t *dropped)
{
    char *text = NULL;
    struct err_detail d;
    *len = 0;
    *dropped = 0;
    if (logfile_read(path, head_max, tail_max, &text, len, dropped, &d) != ERR_OK) {
        log_warn("log_unreadable", "why=\"%s\"", d.text);
        return mem_strdup("");
    }
    return text;
}

char *process_files_read_log(const struct process_files *f, size_t *len, uint64_t *dropped_bytes)
{
    char *text = read_capped(f->log_path, LIMIT_LOG_HEAD_BYTES, LIMIT_LOG_TAIL_BYTES, len, dropped_bytes);
    *dropped_bytes += f->log_lost_bytes;
    return text;
}

char *process_files_read_tail(const struct process_files *f, size_t lines_max)
{
    size_t len = 0;
    uint64_t dropped = 0;
    char *text = process_files_read_log(f, &len, &dropped);
    const char *tail = logfile_last_lines(text, len, lines_max);
    size_t tail_len = len - (size_t)(tail - text);
    char *copy = mem_alloc(tail_len + 1);
    for (size_t i = 0; i < tail_len; i++)
        copy[i] = tail[i] != '\0' ? tail[i] : ' '; /* a NUL of the program would cut the text */
    copy[tail_len] = '\0';
    free(text);
    return copy;
}

char *process_files_take_output(struct process_files *f, size_t *len, bool *truncated)
{
    uint64_t dropped = 0;
    if (f->out_path == NULL)
        return NULL;
    char *text = read_capped(f->out_path, f->out_bytes_max, 0, len, &dropped);
    *truncated = dropped > 0 || f->out_lost_bytes > 0;
    (void)unlink(f->out_path);
    free(f->out_path);
    f->out_path = NULL;
    return text;
}
