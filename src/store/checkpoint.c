/* checkpoint.c -- see checkpoint.h. */
#include "store/checkpoint.h"

#include "util/diag.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

static int refuse(const char *path, const char *problem)
{
    diag_error("cannot resume '%s': it %s", path, problem);
    return -1;
}

/* Takes the checkpoint record of another directory if its state is a later one: a process writes
   its directories one after the other. */
static int compare_records(struct checkpoint *checkpoint, size_t i)
{
    struct checkpoint_record other, *record = &checkpoint->record;
    const struct checkpoint_dir *dir = &checkpoint->dirs[i];
    const char *problem;
    /* A directory that was full when the sort began has no checkpoint file, and no runs. */
    if (!checkpoint_dir_has_record(dir)) return 0;
    if (checkpoint_dir_read(dir, &other, &problem) < 0) return refuse(dir->path, problem);
    if (strcmp(other.id, record->id) != 0 || other.directory != i ||
        other.n_directories != record->n_directories) {
        checkpoint_record_release(&other);
        return refuse(dir->path, "belongs to another sort; sort the input again");
    }
    if (other.state > record->state) {
        struct checkpoint_record earlier = *record;
        *record = other;
        other = earlier;
    }
    checkpoint_record_release(&other);
    return 0;
}

static int open_others(struct checkpoint *checkpoint, const char *path)
{
    const char *problem;
    size_t first = checkpoint->record.directory;
    for (size_t i = 0; i < checkpoint->n_dirs; i++) {
        if (i == first) continue;
        /* A copy, because compare_records may release the record that has the name. */
        char *name = xstrdup(checkpoint->record.directories[i]);
        int r = checkpoint_dir_open_patiently(name, &checkpoint->dirs[i], &problem);
        if (r < 0)
            diag_error("cannot resume '%s': its part '%s' %s", path, name, problem);
        free(name);
        if (r < 0 || compare_records(checkpoint, i) < 0) return -1;
    }
    return 0;
}

struct checkpoint *checkpoint_open(const char *path)
{
    const char *problem;
    struct checkpoint_dir dir;
    struct checkpoint_record record;
    if (checkpoint_dir_open_patiently(path, &dir, &problem) < 0) {
        (void)refuse(path, problem);
        return NULL;
    }
    if (checkpoint_dir_read(&dir, &record, &problem) < 0) {
        (void)refuse(path, problem);
        checkpoint_dir_close(&dir);
        return NULL;
    }
    struct checkpoint *checkpoint = xcalloc(1, sizeof *checkpoint);
    checkpoint->record = record;
    checkpoint->n_dirs = record.n_directories;
    checkpoint->dirs = xcalloc(checkpoint->n_dirs, sizeof *checkpoint->dirs);
    for (size_t i = 0; i < checkpoint->n_dirs; i++)
        checkpoint->dirs[i] = (struct checkpoint_dir){NULL, -1, -1, false};
    checkpoint->dirs[record.directory] = dir;
    if (open_others(checkpoint, path) == 0) return checkpoint;
    checkpoint_close(checkpoint);
    return NULL;
}

void checkpoint_close(struct checkpoint *checkpoint)
{
    if (!checkpoint) return;
    for (size_t i = 0; i < checkpoint->n_dirs; i++) checkpoint_dir_close(&checkpoint->dirs[i]);
    free(checkpoint->dirs);
    checkpoint_record_release(&checkpoint->record);
    free(checkpoint);
}
