#include "agent/load/hlog.h"

#include "common/buf.h"
#include "common/clock.h"

#include <errno.h>

enum err hlog_open(struct hlog *l, const char *path, struct err_detail *d)
{
    *l = (struct hlog){.file = fopen(path, "we"), .path = path};
    if (l->file == NULL)
        return err_set(d, ERR_IO, "--hlog: cannot write '%s': %s", path, strerror(errno));
    return ERR_OK;
}

void hlog_start(struct hlog *l, uint64_t start_ns)
{
    char text[CLOCK_TEXT_BYTES];
    uint64_t now_ns = clock_now_ns();
    uint64_t wall_ns = clock_wall_ns() - (now_ns > start_ns ? now_ns - start_ns : 0);
    double wall = (double)wall_ns / 1e9;
    l->start_ns = start_ns;
    fprintf(l->file, "#[splitbench-load " SPLITBENCH_BUILD "; values in ns, Interval_Max in ms]\n");
    fprintf(l->file, "#[Histogram log format version 1.3]\n");
    fprintf(l->file, "#[BaseTime: %.3f (seconds since epoch)]\n", wall);
    fprintf(l->file, "#[StartTime: %.3f (seconds since epoch), %s]\n", wall, clock_wall_text(wall_ns, text));
    fprintf(l->file,
            "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n");
}

void hlog_add(struct hlog *l, uint64_t start_ns, uint64_t end_ns, const struct hist *h)
{
    struct buf text;
    buf_init(&text, HIST_TEXT_BYTES_MAX);
    if (hist_encode(h, &text) == ERR_OK)
        fprintf(l->file, "%.3f,%.3f,%.3f,%s\n", (double)(start_ns - l->start_ns) / 1e9,
                (double)(end_ns - start_ns) / 1e9, (double)h->max / 1e6, text.data);
    else
        l->failed = true;
    buf_fini(&text);
}

enum err hlog_close(struct hlog *l, struct err_detail *d)
{
    if (l->file == NULL)
        return ERR_OK;
    bool failed = l->failed || ferror(l->file) != 0;
    failed |= fclose(l->file) != 0;
    l->file = NULL;
    return failed ? err_set(d, ERR_IO, "--hlog: '%s' could not be written whole", l->path) : ERR_OK;
}
