#ifndef COMMON_PATH_H
#define COMMON_PATH_H
/*
 * The one rule for names and the one for paths, wherever they come from: a message, a file, a person. No
 * state; any thread.
 *
 * A name is 1 to LIMIT_NAME_BYTES letters, digits, '.', '_' and '-', and begins with a letter or a digit, so
 * that it can be a file's name, a word of a command line and a cell of a table.
 * A path is relative, below LIMIT_PATH_BYTES, of parts between single slashes, none of which is "." or "..",
 * longer than a file's name can be, or holds a control character: it never leads out of where it begins.
 */
#include "common/err.h"

#define PATH_NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

/* Why `text` (`len` bytes, no terminator needed) is not a name, or not a path, as the end of a sentence; NULL
 * when it is one. */
const char *path_name_fault(const char *text, size_t len);
const char *path_fault(const char *text, size_t len);

/* The same for a text that ends in NUL: ERR_INVALID and a sentence. `what` says whose name it is ("a job's
 * id"). */
NODISCARD enum err path_check_name(const char *what, const char *name, struct err_detail *d);
NODISCARD enum err path_check(const char *path, struct err_detail *d);

/* Whether one of the parts between the slashes of `path` is `part`. */
bool path_has_part(const char *path, const char *part);

#endif
