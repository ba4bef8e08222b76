/* output_set.c -- see output_set.h. */
#include "output/output_set.h"

#include "machine/path_sync.h"
#include "output/stale_index.h"
#include "util/diag.h"
#include "util/path.h"
#include "util/xalloc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void output_set_add(struct output_set *set, struct output_path *path, enum output_role role)
{
    if (!path->temporary) return;
    path->in_set = true;
    set->roles[set->n_paths] = role;
    set->paths[set->n_paths++] = path;
}

/* Some errors of a disk show only when it has been written to. */
int output_set_add_pieces(struct output_set *set, const struct output_pieces *pieces)
{
    struct output_piece piece;
    for (size_t i = 0; i < pieces->n; i++) {
        pieces->look_up(pieces->arg, i, &piece);
        if (path_sync_file(piece.path) == 0) continue;
        diag_error("cannot write '%s' to the disk: %s; no piece got its name", piece.name,
                   strerror(errno));
        return -1;
    }
    set->pieces = *pieces;
    return 0;
}

/* ---- old indexes ---- */

static void add_stale(void *arg, const char *name)
{
    struct output_set *set = arg;
    xgrow(&set->stale, &set->stale_room, set->n_stale + 1, set->n_stale + 7, sizeof *set->stale);
    set->stale[set->n_stale++] = (struct stale_file){xstrdup(name), output_path_temporary(name)};
}

void output_set_add_stale(struct output_set *set, const struct output_path *output,
                          const char *index, const struct output_format *format)
{
    stale_index_find(output, index, format, add_stale, set);
}

/* Gives the first n old indexes their names back. */
static void restore_stale(const struct output_set *set, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct stale_file *file = &set->stale[i];
        if (rename(file->aside, file->name) < 0 && errno != ENOENT)
            diag_left("warning: the index '%s' is called '%s' now: %s", file->name, file->aside,
                      strerror(errno));
    }
}

/* Gives all old indexes other names. Some may belong to other users, in a directory where only they
   can: these stay. */
static int set_stale_aside(const struct output_set *set)
{
    for (size_t i = 0; i < set->n_stale; i++) {
        const struct stale_file *file = &set->stale[i];
        if (rename(file->name, file->aside) == 0 || errno == ENOENT) continue;
        if (errno == EPERM || errno == EACCES) {
            diag_warning("the index '%s' is older than '%s', and cannot be removed: %s", file->name,
                         set->output, strerror(errno));
            continue;
        }
        diag_error("cannot remove the old index '%s': %s", file->name, strerror(errno));
        restore_stale(set, i);
        return -1;
    }
    return 0;
}

static void remove_stale(const struct output_set *set)
{
    for (size_t i = 0; i < set->n_stale; i++)
        if (unlink(set->stale[i].aside) < 0 && errno != ENOENT)
            diag_warning("cannot remove the old index, which is called '%s' now: %s",
                         set->stale[i].aside, strerror(errno));
}

/* ---- names ---- */

/* Files while they get their names. First come the pieces, then paths: outputs before the rest. */
struct naming {
    struct output_set *set;
    struct output_path *paths[OUTPUT_SET_MOST]; /* that are complete */
    enum output_role roles[OUTPUT_SET_MOST];
    size_t n_pieces, n;
    bool *made;                 /* of each: its directory was made */
    bool replaced;              /* an older output is gone */
    struct output_piece piece;  /* the last one that was looked up */
};

struct named_file {
    const char *from, *to;      /* the temporary name and the final one */
    enum output_role role;
};

/* Looks up a file. Allocates nothing. */
static struct named_file look_up(struct naming *naming, size_t i)
{
    if (i < naming->n_pieces) {
        naming->set->pieces.look_up(naming->set->pieces.arg, i, &naming->piece);
        return (struct named_file){naming->piece.path, naming->piece.name, OUTPUT_MAIN};
    }
    const struct output_path *path = naming->paths[i - naming->n_pieces];
    return (struct named_file){path->temporary, path->final, naming->roles[i - naming->n_pieces]};
}

/* Gives the first n files their temporary names back, if that is possible. Returns 0, or -1. */
static int take_back(struct naming *naming, size_t n)
{
    int r = naming->replaced ? -1 : 0;
    for (size_t i = n; r == 0 && i > 0; i--) {
        struct named_file file = look_up(naming, i - 1);
        if (rename(file.to, file.from) < 0) r = -1;
        if (r == 0 && naming->made[i - 1]) path_remove_parent(file.to);
    }
    if (r == 0) restore_stale(naming->set, naming->set->n_stale);
    return r;
}

/* An output cannot get its name. */
static int give_up(struct naming *naming, size_t i, int error)
{
    struct output_piece file;           /* taking back looks up others */
    const struct named_file lost = look_up(naming, i);
    (void)snprintf(file.path, sizeof file.path, "%s", lost.from);
    (void)snprintf(file.name, sizeof file.name, "%s", lost.to);
    if (naming->made[i]) path_remove_parent(file.name);
    if (take_back(naming, i) == 0) {
        naming->set->state = OUTPUT_SET_OPEN;
        diag_error("cannot create '%s': %s%s", file.name, strerror(error),
                   naming->n_pieces > 0 ? "; no piece got its name"
                   : naming->n > 1      ? "; no file got its name"
                                        : "");
        return -1;
    }
    diag_error("cannot create '%s': %s; it is complete, and is called '%s'", file.name,
               strerror(error), file.path);
    return -1;
}

/* Returns 0, or -1 after a message. Sets *failed if an index or a report is missing. */
static int name_file(struct naming *naming, size_t i, bool *failed)
{
    struct named_file file = look_up(naming, i);
    struct stat st;
    bool is_piece = i < naming->n_pieces, replaces = !is_piece && lstat(file.to, &st) == 0;
    if (is_piece && naming->set->pieces.make_directories)
        naming->made[i] = path_make_parent(file.to);
    int r = is_piece ? output_path_rename_new(file.from, file.to) : rename(file.from, file.to);
    int error = errno;
    if (r == 0 && file.role == OUTPUT_MAIN && replaces) naming->replaced = true;
    if (r == 0) return 0;
    if (file.role == OUTPUT_MAIN) return give_up(naming, i, error);
    diag_error("cannot rename '%s' to '%s': %s", file.from, file.to, strerror(error));
    output_path_drop(naming->paths[i - naming->n_pieces]);
    *failed = true;
    return 0;
}

/* Waits until the names in the directory of a file are on the disk. */
static int sync_names(const char *name)
{
    char *parent = path_parent(name);
    int r = path_sync_directory(parent);
    if (r < 0)
        diag_error("all pieces in '%s' are complete, but their names may not be on the disk yet: "
                   "%s", parent, strerror(errno));
    free(parent);
    return r;
}

/* Waits until the names of pieces are on the disk. A piece and its index stand for the two
   directories that there may be, unless each piece has its own. */
static int sync_pieces(struct naming *naming)
{
    const struct output_pieces *pieces = &naming->set->pieces;
    for (size_t i = 0; i < pieces->n && (i < 2 || pieces->make_directories); i++) {
        char *name = naming->piece.name;
        (void)look_up(naming, i);
        if (sync_names(name) < 0) return -1;
        if (pieces->make_directories && i < 2 && path_go_up(name) && sync_names(name) < 0)
            return -1;
    }
    return 0;
}

/* All have their names. */
static int settle(struct naming *naming)
{
    int r = 0;
    remove_stale(naming->set);
    if (naming->set->pieces.durable && sync_pieces(naming) < 0) r = -1;
    for (size_t i = 0; i < naming->n - naming->n_pieces; i++)
        if (naming->paths[i]->is_complete && output_path_named(naming->paths[i]) < 0) r = -1;
    naming->set->state = OUTPUT_SET_NAMED;
    return r;
}

static int name_all(struct naming *naming)
{
    bool failed = false;
    if (set_stale_aside(naming->set) < 0) {
        naming->set->state = OUTPUT_SET_OPEN;
        return -1;
    }
    for (size_t i = 0; i < naming->n; i++)
        if (name_file(naming, i, &failed) < 0) return -1;
    return settle(naming) < 0 || failed ? -1 : 0;
}

int output_set_publish(struct output_set *set)
{
    struct naming naming = {.set = set};
    naming.n_pieces = naming.n = set->pieces.n;
    for (unsigned i = 0; i < set->n_paths; i++) {
        if (!set->paths[i]->is_complete) continue;
        naming.roles[naming.n - naming.n_pieces] = set->roles[i];
        naming.paths[naming.n++ - naming.n_pieces] = set->paths[i];
    }
    naming.made = xcalloc(naming.n + 1, sizeof *naming.made);
    set->state = OUTPUT_SET_NAMING;
    int r = name_all(&naming);
    free(naming.made);
    return r;
}

void output_set_drop(struct output_set *set)
{
    for (unsigned i = 0; i < set->n_paths; i++) {
        struct output_path *path = set->paths[i];
        if (set->state != OUTPUT_SET_NAMING && path->is_held) output_path_drop(path);
        path->in_set = false;
    }
    for (size_t i = 0; i < set->n_stale; i++) {
        free(set->stale[i].aside);
        free(set->stale[i].name);
    }
    free(set->stale);
}

void output_set_unlink(const struct output_set *set)
{
    if (set->state == OUTPUT_SET_NAMING) return;
    for (unsigned i = 0; i < set->n_paths; i++) (void)unlink(set->paths[i]->temporary);
}
