/* count_files.c -- see count_files.h. */
#include "pipeline/count_files.h"

#include "util/diag.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void count_files_guard(struct count_file *files, pthread_mutex_t *lock, bool durable)
{
    for (int i = 0; files && i < COUNT_N_KINDS; i++) {
        files[i].path.lock = lock;
        files[i].path.durable = durable;
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
    diag_error("cannot write --%s to '%s': %s%s", count_kind_name(kind),
               file->path.name ? file->path.name : "standard output", strerror(error),
               diag_advice(error));
    return -1;
}

/* Opens the file, or standard output. NULL with errno set. */
static FILE *open_stream(struct output_path *path)
{
    int fd = path->name ? output_path_create(path) : dup(STDOUT_FILENO);
    FILE *stream = fd >= 0 ? fdopen(fd, "w") : NULL;
    int error = errno;
    if (fd >= 0 && !stream) (void)close(fd);
    errno = error;
    return stream;
}

static int write_file(struct count_file *file, enum count_kind kind,
                      const struct record_counts *counts)
{
    FILE *to = open_stream(&file->path);
    if (!to) return write_error(file, kind, errno);
    errno = 0;
    record_counts_print(counts, kind, to);
    bool failed = fflush(to) != 0 || ferror(to);
    int error = errno ? errno : EIO;
    if (fclose(to) != 0 && !failed) {
        failed = true;
        error = errno;
    }
    return failed ? write_error(file, kind, error) : output_path_commit(&file->path, NULL);
}

int count_files_write(struct count_file *files, struct record_counts *counts)
{
    record_counts_finish(counts);
    for (int i = 0; i < COUNT_N_KINDS; i++) {
        if (!files[i].is_wanted || write_file(&files[i], (enum count_kind)i, counts) == 0)
            continue;
        output_path_drop(&files[i].path);
        return -1;
    }
    return 0;
}

void count_files_unlink(const struct count_file *files)
{
    for (int i = 0; files && i < COUNT_N_KINDS; i++)
        if (files[i].path.temporary) (void)unlink(files[i].path.temporary);
}
