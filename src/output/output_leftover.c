/* output_leftover.c -- see output_leftover.h. */
#include "output/output_leftover.h"

#include "machine/file_owner.h"
#include "output/output_path.h"
#include "util/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool output_leftover_is_journal(const char *name)
{
    const char *ending = strrchr(name, '.');
    return ending && strcmp(ending, OUTPUT_JOURNAL_ENDING) == 0;
}

/* Checks the parts of the name from its end: the ending, the nanoseconds, a point, the number of the
   process, ".rocksort.". */
bool output_leftover_is_name(const char *name, size_t *n_output)
{
    static const char word[] = OUTPUT_PATH_WORD;
    const char *ending =
        output_leftover_is_journal(name) ? OUTPUT_JOURNAL_ENDING : OUTPUT_PATH_ENDING;
    const size_t n_word = sizeof word - 1, n_ending = strlen(ending);
    size_t n = strlen(name);
    if (n < n_ending || strcmp(name + n - n_ending, ending) != 0) return false;
    const char *at = name + n - n_ending;
    const char *digits = at;
    while (at > name && is_digit(at[-1])) at--;
    if (digits - at != OUTPUT_PATH_NANOSECOND_DIGITS || at == name || *--at != '.') return false;
    digits = at;
    while (at > name && is_digit(at[-1])) at--;
    size_t n_before = (size_t)(at - name);
    if (digits == at || n_before <= n_word || memcmp(at - n_word, word, n_word) != 0) return false;
    *n_output = n_before - n_word;
    return true;
}

enum output_leftover_state output_leftover_open_of_dead(const char *path,
                                                       struct output_leftover *left)
{
    /* A lock on NFS needs a descriptor that can write. */
    left->fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (left->fd < 0) return OUTPUT_LEFTOVER_FOREIGN;
    enum output_leftover_state state = OUTPUT_LEFTOVER_FOREIGN;
    if (fstat(left->fd, &left->st) == 0 && S_ISREG(left->st.st_mode) &&
        left->st.st_uid == geteuid()) {
        enum file_lock lock = file_lock_patiently(left->fd);
        state = lock == FILE_LOCK_HELD   ? OUTPUT_LEFTOVER_DEAD
                : lock == FILE_LOCK_NONE ? OUTPUT_LEFTOVER_UNKNOWN
                                         : OUTPUT_LEFTOVER_IN_USE;
        /* The process that wrote the file may have renamed it meanwhile. */
        if (!file_lock_has_name(left->fd, AT_FDCWD, path)) state = OUTPUT_LEFTOVER_FOREIGN;
    }
    if (state != OUTPUT_LEFTOVER_DEAD && state != OUTPUT_LEFTOVER_UNKNOWN)
        output_leftover_close(left);
    return state;
}

/* The number of the process that made a file with such a name; 0 for any other name. */
static long process_of(const char *name)
{
    size_t n_output;
    if (!output_leftover_is_name(name, &n_output)) return 0;
    return strtol(name + n_output + strlen(OUTPUT_PATH_WORD), NULL, 10);
}

enum output_leftover_state output_leftover_open(const char *path, struct output_leftover *left)
{
    enum output_leftover_state state = output_leftover_open_of_dead(path, left);
    long process = process_of(path_name(path));
    if (state == OUTPUT_LEFTOVER_DEAD && process &&
        file_owner_writes_output(left->fd, path, process)) {
        output_leftover_close(left);
        return OUTPUT_LEFTOVER_IN_USE;
    }
    return state;
}

int output_leftover_remove(const char *path, const struct output_leftover *left)
{
    if (file_lock_has_name(left->fd, AT_FDCWD, path)) return unlink(path);
    errno = ENOENT;
    return -1;
}

void output_leftover_close(struct output_leftover *left)
{
    int error = errno;
    if (left->fd >= 0) (void)close(left->fd);
    left->fd = -1;
    errno = error;
}

void output_leftover_drop(const char *path)
{
    struct output_leftover left;
    if (!path || !process_of(path_name(path))) return;
    enum output_leftover_state state = output_leftover_open_of_dead(path, &left);
    if (state == OUTPUT_LEFTOVER_DEAD || state == OUTPUT_LEFTOVER_UNKNOWN)
        (void)output_leftover_remove(path, &left);
    output_leftover_close(&left);
}
