/* checkpoint.c -- see checkpoint.h. */
#include "store/checkpoint.h"

#include "util/diag.h"

#include <stdlib.h>
#include <string.h>

static int refuse(const char *path, const char *problem)
{
    diag_error("cannot resume '%s': it %s", path, problem);
    return -1;
}

/* Takes the record of another directory of the store if it says more: the states are written one
   directory after the other. */
static int compare_records(struct checkpoint *store, size_t i)
{
    struct checkpoint_record other, *record = &store->record;
    const char *problem;
    /* One that was full when the sort began has none, and no runs. */
    if (!checkpoint_dir_has_record(&store->dirs[i])) return 0;
    if (checkpoint_dir_read(&store->dirs[i], &other, &problem) < 0)
        return refuse(store->dirs[i].path, problem);
    if (strcmp(other.id, record->id) != 0 || other.directory != i ||
        other.n_directories != record->n_directories) {
        checkpoint_record_release(&other);
        return refuse(store->dirs[i].path, "belongs to another sort; sort the input again");
    }
    if (other.state > record->state) {
        struct checkpoint_record less = *record;
        *record = other;
        other = less;
    }
    checkpoint_record_release(&other);
    return 0;
}

static int open_others(struct checkpoint *store, const char *path)
{
    const char *problem;
    size_t first = store->record.directory;
    for (size_t i = 0; i < store->n_dirs; i++) {
        if (i == first) continue;
        /* The name may go with a record that is exchanged for another one. */
        char *name = strdup(store->record.directories[i]);
        if (!name) {
            diag_no_memory();
            return -1;
        }
        int r = checkpoint_dir_open_patiently(name, &store->dirs[i], &problem);
        if (r < 0)
            diag_error("cannot resume '%s': its part '%s' %s", path, name, problem);
        free(name);
        if (r < 0 || compare_records(store, i) < 0) return -1;
    }
    return 0;
}

struct checkpoint *checkpoint_open(const char *path)
{
    const char *problem;
    struct checkpoint_dir dir;
    if (checkpoint_dir_open_patiently(path, &dir, &problem) < 0) {
        (void)refuse(path, problem);
        return NULL;
    }
    struct checkpoint *store = calloc(1, sizeof *store);
    int r = store ? checkpoint_dir_read(&dir, &store->record, &problem) : -1;
    if (store && r < 0) (void)refuse(path, problem);
    if (r == 0) store->dirs = calloc(store->record.n_directories, sizeof *store->dirs);
    if (!store || (r == 0 && !store->dirs)) diag_no_memory();
    if (r < 0 || !store->dirs) {
        if (r == 0) checkpoint_record_release(&store->record);
        free(store);
        checkpoint_dir_close(&dir);
        return NULL;
    }
    store->n_dirs = store->record.n_directories;
    for (size_t i = 0; i < store->n_dirs; i++)
        store->dirs[i] = (struct checkpoint_dir){NULL, -1, -1, false};
    store->dirs[store->record.directory] = dir;
    if (open_others(store, path) == 0) return store;
    checkpoint_close(store);
    return NULL;
}

void checkpoint_close(struct checkpoint *store)
{
    if (!store) return;
    for (size_t i = 0; i < store->n_dirs; i++) checkpoint_dir_close(&store->dirs[i]);
    free(store->dirs);
    checkpoint_record_release(&store->record);
    free(store);
}
