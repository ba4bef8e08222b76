/* store_error.c -- see store_error.h. */
#include "spill/store_error.h"

#include "os/disk_space.h"
#include "util/diag.h"

#include <errno.h>
#include <rocksdb/c.h>
#include <stdbool.h>
#include <string.h>

const char *store_error_full(const char *error)
{
    if (strstr(error, "Disk quota")) return strerror(EDQUOT);
    bool is_full = strstr(error, "No space left") || strstr(error, "NoSpace");
    return is_full ? strerror(ENOSPC) : NULL;
}

static void cut_out(char *from, const char *to)
{
    memmove(from, to, strlen(to) + 1);
}

/* Removes the parts of RocksDB's text that our message already has: the kind of error, the
   operation, and the directory of each file. Also removes the values of a wrong checksum. */
static const char *shorten(char *error, const char *dir)
{
    size_t n = strlen(dir);
    for (char *at = error; n > 0 && (at = strstr(at, dir)) != NULL;)
        cut_out(at, at + n + (at[n] == '/'));
    char *stored = strstr(error, ": stored = "), *in = stored ? strstr(stored, " in ") : NULL;
    if (in) cut_out(stored, in);
    char *more = strstr(error, stored ? " offset " : " in file ");
    if (more) *more = '\0';
    const char *doing = strstr(error, "While "), *end = strstr(doing ? doing : error, ": ");
    return end ? end + strlen(": ") : error;
}

int store_error_check(const char *dir, const char *doing, char *error)
{
    if (!error) return 0;
    const char *full = store_error_full(error);
    bool is_damaged = strncmp(error, "Corruption", strlen("Corruption")) == 0;
    const char *text = full ? full : shorten(error, dir);
    if (full)
        disk_space_print_full(dir, text, 0);
    else if (is_damaged)
        diag_error_of(DIAG_DAMAGE, "the temporary data in '%s' are damaged: %s; sort again on "
                      "another disk", dir, text);
    else
        diag_error("cannot %s the temporary data in '%s': %s%s", doing, dir, text,
                   strstr(text, "Too many open files")
                       ? "; raise 'ulimit -n', or give more with -m"
                       : "");
    rocksdb_free(error);
    return -1;
}
