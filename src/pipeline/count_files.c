/* count_files.c -- see count_files.h. */
#define _GNU_SOURCE             /* fopencookie */
#include "pipeline/count_files.h"

#include "machine/disk_space.h"
#include "util/diag.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void count_files_guard(struct count_file *files, pthread_mutex_t *lock, bool durable,
                       struct output_set *set)
{
    for (int i = 0; files && i < COUNT_N_KINDS; i++) {
        files[i].path.lock = lock;
        files[i].path.durable = durable;
        if (files[i].is_wanted) output_set_add(set, &files[i].path, OUTPUT_EXTRA);
    }
}

struct record_counts *count_files_create_counts(const struct count_file *files, sam_hdr_t *header)
{
    bool wanted[COUNT_N_KINDS];
    for (int i = 0; i < COUNT_N_KINDS; i++) wanted[i] = files && files[i].is_wanted;
    return record_counts_create(wanted, header);
}

static int write_error(const struct count_file *file, enum count_kind kind, int error)
{
    const char *option = count_kind_name(kind), *name = file->path.name;
    if (file->path.temporary && disk_space_is_short(error))
        diag_full_disk(file->path.final, "cannot write --%s to '%s': %s; free space, or give --%s "
                       "another file", option, name, strerror(error), option);
    else
        diag_error("cannot write --%s to '%s': %s%s", option, name ? name : "standard output",
                   strerror(error), diag_advice(error));
    return -1;
}

/* For fopencookie: writes all n bytes, or returns less. */
static ssize_t write_bytes(void *fd, const char *bytes, size_t n)
{
    size_t n_written = 0;
    while (n_written < n) {
        ssize_t r = write(*(const int *)fd, bytes + n_written, n - n_written);
        if (r < 0 && errno != EINTR) break;
        if (r > 0) n_written += (size_t)r;
    }
    return (ssize_t)n_written;
}

/* Prints to a descriptor. Returns 0, or an errno. A stream of the C library's own would write with
   functions that tests cannot make fail. */
static int print_to(int fd, enum count_kind kind, const struct record_counts *counts)
{
    const cookie_io_functions_t functions = {.write = write_bytes};
    FILE *to = fopencookie(&fd, "w", functions);
    if (!to) return errno;
    errno = 0;
    record_counts_print(counts, kind, to);
    bool failed = fflush(to) != 0 || ferror(to);
    int error = errno ? errno : EIO;
    (void)fclose(to);           /* nothing is left to be written */
    return failed ? error : 0;
}

static int write_file(struct count_file *file, enum count_kind kind,
                      const struct record_counts *counts)
{
    struct output_path *path = &file->path;
    int fd = path->name ? output_path_create(path) : STDOUT_FILENO;
    int error = fd < 0 ? errno : print_to(fd, kind, counts);
    if (path->name && fd >= 0 && close(fd) < 0 && !error) error = errno;
    return error ? write_error(file, kind, error) : output_path_commit(path);
}

int count_files_write(struct count_file *files, struct record_counts *counts, bool in_place)
{
    if (!in_place) record_counts_finish(counts);
    for (int i = 0; i < COUNT_N_KINDS; i++) {
        if (!files[i].is_wanted || (files[i].path.temporary == NULL) != in_place ||
            write_file(&files[i], (enum count_kind)i, counts) == 0)
            continue;
        output_path_drop(&files[i].path);
        return -1;
    }
    return 0;
}
