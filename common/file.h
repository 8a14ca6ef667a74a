#ifndef COMMON_FILE_H
#define COMMON_FILE_H
/*
 * What everybody does with files, once: read one whole, replace one, make a directory, hold a lock. No state;
 * any thread.
 *
 * A failure is a sentence that names the file. ERR_FULL: no room on the disk or in the quota; the sentence
 * says to make some. ERR_TOO_BIG: over the caller's limit or the process's own (RLIMIT_FSIZE).
 */
#include "common/err.h"

#include <sys/types.h>

/* ---- reading ------------------------------------------------------------------------------------------- */

enum file_kind {
    FILE_ANY,     /* also a pipe or a terminal: waits for who writes there */
    FILE_REGULAR, /* anything else is refused, and not waited for */
    FILE_SECRET,  /* the same, and others may not read it: ERR_DENIED */
};

/* The whole of a file of at most `max` bytes. The caller frees `*out`, which has a NUL behind its `*len`
 * bytes. */
NODISCARD enum err file_read(const char *path, enum file_kind kind, size_t max, char **out, size_t *len,
                             struct err_detail *d);

/* The first line of a file of the kernel, without its end and cut to `size`; false and "" when there is none.
 */
bool file_read_line(const char *path, char *out, size_t size);

/* ---- writing ------------------------------------------------------------------------------------------- */

/* Replaces the file: whoever opens `path` finds the old contents or all of the new ones, after a crash, too.
 */
NODISCARD enum err file_write(const char *path, mode_t mode, const void *data, size_t len,
                              struct err_detail *d);

/* The same in two steps, for files that belong together: all are written beside their places (PATH.new, on
 * disk when this returns), and then put in place. What was written beside and is not wanted is dropped. */
NODISCARD enum err file_write_beside(const char *path, mode_t mode, const void *data, size_t len,
                                     struct err_detail *d);
NODISCARD enum err file_put_in_place(const char *path, struct err_detail *d);
void file_drop_beside(const char *path);

/* ---- directories and locks ----------------------------------------------------------------------------- */

/* One directory, or it and its parents (these 0700). One that exists is left as it is; ERR_INVALID when
 * something else has the name. */
NODISCARD enum err file_make_dir(const char *path, mode_t mode, struct err_detail *d);
NODISCARD enum err file_make_dirs(const char *path, struct err_detail *d);

/* Makes one directory and opens it. The last part of `path` is no link. The caller closes `*fd`. */
NODISCARD enum err file_open_dir(const char *path, mode_t mode, int *fd, struct err_detail *d);

/* Holds the lock file `path` (made 0600) until `*fd` is closed or the process ends. ERR_BUSY: another has it;
 * the caller knows better than this what to say then. */
NODISCARD enum err file_lock(const char *path, int *fd, struct err_detail *d);

/* ---- open files: no sentence, since only the caller knows the name; errno is left ---------------------- */

/* From where it stands to its end; as file_read. */
NODISCARD enum err file_read_fd(int fd, size_t max, char **out, size_t *len);

/* `*got` is below `len` only at the end of the file. */
NODISCARD enum err file_read_at(int fd, void *out, size_t len, uint64_t offset, size_t *got);

/* All of it, or an error; the part that was written before stays. */
NODISCARD enum err file_write_at(int fd, const void *data, size_t len, uint64_t offset);

#endif
