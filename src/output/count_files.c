/* count_files.c -- see count_files.h. */
#include "output/count_files.h"

#include "os/disk_space.h"
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

void count_files_observe(struct count_file *files, sam_hdr_t *header,
                         struct record_observers *observers)
{
    for (int i = 0; files && i < COUNT_N_KINDS; i++) {
        if (!files[i].is_wanted) continue;
        files[i].counts = count_kind_observer((enum count_kind)i, header);
        record_observers_add(observers, files[i].counts);
    }
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

static void put_counts(FILE *to, const void *arg)
{
    const struct record_observer *counts = arg;
    counts->kind->print(counts, to);
}

static int write_file(struct count_file *file, enum count_kind kind)
{
    int error = output_path_print(&file->path, put_counts, file->counts);
    return error ? write_error(file, kind, error) : output_path_commit(&file->path);
}

int count_files_write(struct count_file *files, bool in_place)
{
    for (int i = 0; files && i < COUNT_N_KINDS; i++) {
        struct count_file *file = &files[i];
        if (!file->is_wanted || (file->path.temporary == NULL) != in_place) continue;
        if (write_file(file, (enum count_kind)i) == 0) continue;
        output_path_drop(&file->path);
        return -1;
    }
    return 0;
}
