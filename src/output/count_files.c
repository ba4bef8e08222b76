/* count_files.c -- see count_files.h. */
#include "output/count_files.h"

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

static void put_counts(FILE *to, const void *arg)
{
    const struct record_observer *counts = arg;
    counts->kind->print(counts, to);
}

int count_files_write(struct count_file *files, bool in_place)
{
    for (int i = 0; files && i < COUNT_N_KINDS; i++) {
        struct count_file *file = &files[i];
        if (!file->is_wanted || (file->path.temporary == NULL) != in_place) continue;
        const char *option = count_kind_option((enum count_kind)i);
        if (output_path_print(&file->path, option, put_counts, file->counts) < 0) return -1;
    }
    return 0;
}
