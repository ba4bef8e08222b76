/* checkpoint.c -- see checkpoint.h. */
#include "store/checkpoint.h"

#include "util/diag.h"
#include "util/xalloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse(const char *path, const char *problem)
{
    diag_error("cannot resume '%s': it %s", path, problem);
    return -1;
}

/* True if both lists of directories begin with the same ones. */
static bool have_same_directories(const struct checkpoint_record *a,
                                  const struct checkpoint_record *b)
{
    size_t n = a->n_directories < b->n_directories ? a->n_directories : b->n_directories;
    for (size_t i = 0; i < n; i++)
        if (strcmp(a->directories[i], b->directories[i]) != 0) return false;
    return true;
}

/* Makes room for the directories of a longer list. */
static void extend_dirs(struct checkpoint *checkpoint, size_t n)
{
    checkpoint->dirs = xrealloc(checkpoint->dirs, n * sizeof *checkpoint->dirs);
    for (size_t i = checkpoint->n_dirs; i < n; i++)
        checkpoint->dirs[i] = (struct checkpoint_dir){NULL, -1, -1, false};
    checkpoint->n_dirs = n;
}

/* Reads the checkpoint record of directory i and uses it if it is newer: it lists more directories,
   or has a later state. The checkpoint records can differ because a process writes them one after
   the other. */
static int compare_records(struct checkpoint *checkpoint, size_t i)
{
    struct checkpoint_record other, *record = &checkpoint->record;
    const struct checkpoint_dir *dir = &checkpoint->dirs[i];
    const char *problem;
    /* A directory that was full when the sort began has no checkpoint file, and no runs. */
    if (!checkpoint_dir_has_record(dir)) return 0;
    if (checkpoint_dir_read(dir, &other, &problem) < 0) return refuse(dir->path, problem);
    if (strcmp(other.id, record->id) != 0 || other.directory != i ||
        !have_same_directories(&other, record)) {
        checkpoint_record_release(&other);
        return refuse(dir->path, "belongs to another sort; sort the input again");
    }
    bool has_more = other.n_directories > record->n_directories;
    if (has_more || (other.n_directories == record->n_directories && other.state > record->state)) {
        struct checkpoint_record earlier = *record;
        *record = other;
        other = earlier;
    }
    if (has_more) extend_dirs(checkpoint, record->n_directories);
    checkpoint_record_release(&other);
    return 0;
}

static int open_others(struct checkpoint *checkpoint, const char *path)
{
    const char *problem;
    for (size_t i = 0; i < checkpoint->n_dirs; i++) {
        if (checkpoint->dirs[i].path) continue;
        /* A copy, because compare_records may release the checkpoint record that owns the name. */
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
    extend_dirs(checkpoint, record.n_directories);
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

/* ---- how to resume a checkpoint ---- */

bool checkpoint_is_partial(const struct checkpoint_record *record)
{
    return record->state == CHECKPOINT_PARTIAL ||
           (record->state == CHECKPOINT_LOADING && !record->can_read_again);
}

/* True if a shell takes the word as it stands. */
static bool is_plain(const char *word)
{
    for (; *word; word++) {
        unsigned char c = (unsigned char)*word;
        bool plain = c >= 128 || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                     (c >= 'a' && c <= 'z') || strchr("/._-+:,@%=", c);
        if (!plain) return false;
    }
    return true;
}

/* Appends a word as a shell must read it. */
static void put_word(const char *word, char *text, size_t room)
{
    size_t at = strlen(text);
    if (is_plain(word)) {
        (void)snprintf(text + at, room - at, "%s", word);
        return;
    }
    enum { MOST = sizeof "'\\''" };     /* of one character and the end */
    if (at + MOST < room) text[at++] = '\'';
    for (; *word && at + MOST < room; word++) {
        if (*word == '\'') {
            memcpy(text + at, "'\\'", 3);
            at += 3;
        }
        text[at++] = *word;
    }
    text[at++] = '\'';
    text[at] = '\0';
}

const char *checkpoint_command(const char *path, bool partial, bool has_output,
                               char text[CHECKPOINT_COMMAND_BYTES])
{
    const size_t room = CHECKPOINT_COMMAND_BYTES - 32;          /* for what comes after the path */
    (void)snprintf(text, room, "samtools rocksort --resume ");
    put_word(path, text, room);
    (void)snprintf(text + strlen(text), CHECKPOINT_COMMAND_BYTES - strlen(text), "%s%s",
                   partial ? " --partial" : "", has_output ? "" : " -o FILE");
    return text;
}
