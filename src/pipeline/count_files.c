/* count_files.c -- see count_files.h. */
#include "pipeline/count_files.h"

#include "machine/disk_space.h"
#include "util/diag.h"

#include <errno.h>
#include <string.h>

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

/* A kind of counts, to be printed. */
struct count_print {
    const struct record_counts *counts;
    enum count_kind kind;
};

static void put_counts(FILE *to, const void *arg)
{
    const struct count_print *print = arg;
    record_counts_print(print->counts, print->kind, to);
}

static int write_file(struct count_file *file, enum count_kind kind,
                      const struct record_counts *counts)
{
    const struct count_print print = {counts, kind};
    int error = output_path_print(&file->path, put_counts, &print);
    return error ? write_error(file, kind, error) : output_path_commit(&file->path);
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
