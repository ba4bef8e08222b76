/* output_set.c -- see output_set.h. */
#include "output/output_set.h"

#include "output/index_names.h"
#include "util/diag.h"
#include "util/path.h"
#include "util/words.h"
#include "util/xalloc.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void output_set_add(struct output_set *set, struct output_path *path, enum output_role role)
{
    if (!path->temporary) return;
    assert(set->n_paths < OUTPUT_SET_MOST);
    path->in_set = true;
    set->roles[set->n_paths] = role;
    set->paths[set->n_paths++] = path;
}

/* Syncs first, because some disk errors appear only then. */
int output_set_add_groups(struct output_set *set, const struct output_groups *groups)
{
    struct output_group group;
    for (size_t i = 0; i < groups->n; i++) {
        groups->look_up(groups->arg, i, &group);
        if (path_sync_file(group.path) == 0) continue;
        diag_error("cannot write '%s' to the disk: %s; no output group got its name",
                   group.name, strerror(errno));
        return -1;
    }
    set->groups = *groups;
    return 0;
}

/* ---- old indexes ---- */

static void add_stale(void *arg, const char *name)
{
    struct output_set *set = arg;
    xgrow(&set->stale, &set->stale_room, set->n_stale + 1, set->n_stale + 7, sizeof *set->stale);
    set->stale[set->n_stale++] = (struct output_line){
        .role = OUTPUT_STALE, .from = output_path_temporary(name), .to = xstrdup(name),
        .is = output_mark_of(name), .was = {-1, 0}};
}

void output_set_add_stale(struct output_set *set, const struct output_path *output,
                          const char *index, const struct output_format *format)
{
    index_names_find_stale(output, index, format, add_stale, set);
}

/* Renames the first n old indexes back. */
static void restore_stale(const struct output_set *set, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct output_line *file = &set->stale[i];
        if (rename(file->from, file->to) < 0 && errno != ENOENT)
            diag_left("warning: the index '%s' is called '%s' now: %s", file->to, file->from,
                      strerror(errno));
    }
}

/* Renames all old indexes to temporary names, except those of other users in a sticky directory. */
static int set_stale_aside(const struct output_set *set)
{
    for (size_t i = 0; i < set->n_stale; i++) {
        const struct output_line *file = &set->stale[i];
        if (rename(file->to, file->from) == 0 || errno == ENOENT) continue;
        if (errno == EPERM || errno == EACCES) {
            diag_warning("the index '%s' is older than '%s', and cannot be removed: %s", file->to,
                         set->output, strerror(errno));
            continue;
        }
        diag_error("cannot remove the old index '%s': %s", file->to, strerror(errno));
        restore_stale(set, i);
        return -1;
    }
    return 0;
}

static void remove_stale(const struct output_set *set)
{
    for (size_t i = 0; i < set->n_stale; i++)
        if (unlink(set->stale[i].from) < 0 && errno != ENOENT)
            diag_warning("cannot remove the old index, which is called '%s' now: %s",
                         set->stale[i].from, strerror(errno));
}

/* ---- the journal ---- */

struct journal {
    char *place, *path;         /* its directory, and its name; path NULL: not written */
    int fd;                     /* keeps it locked; -1: none */
};

/* The files that are being renamed: first groups, then paths, outputs before the rest. */
struct naming {
    struct output_set *set;
    struct output_path *paths[OUTPUT_SET_MOST]; /* the complete ones */
    enum output_role roles[OUTPUT_SET_MOST];
    size_t n_groups, n;
    bool *made;                 /* for each file: its directory was made */
    bool replaced;              /* an older output was overwritten */
    struct journal journals[OUTPUT_SET_MOST + 1];       /* copies, one in each directory */
    unsigned n_journals;
    struct output_group group;  /* the last one looked up */
};

/* Looks up file i. Does not allocate. */
static struct output_line look_up(struct naming *naming, size_t i)
{
    struct output_line line = {.role = OUTPUT_MAIN, .from = naming->group.path,
                               .to = naming->group.name, .was = {-1, 0}};
    if (i < naming->n_groups) {
        naming->set->groups.look_up(naming->set->groups.arg, i, &naming->group);
        return line;
    }
    const struct output_path *path = naming->paths[i - naming->n_groups];
    line.role = naming->roles[i - naming->n_groups];
    line.from = path->temporary;
    line.to = path->final;
    line.was = output_mark_of(line.to);
    return line;
}

/* Writes the journal beside the file, or into the directory, with this temporary name, unless that
   directory has it. A failure is only a warning: files can be renamed without a journal. */
static void write_journal(struct naming *naming, const char *temporary)
{
    struct output_set *set = naming->set;
    struct output_journal_writer writer;
    char *place = path_parent(temporary);
    bool is_there = false;
    for (unsigned k = 0; k < naming->n_journals; k++)
        is_there |= strcmp(naming->journals[k].place, place) == 0;
    if (is_there) {
        free(place);
        return;
    }
    struct journal *journal = &naming->journals[naming->n_journals++];
    *journal = (struct journal){.place = place, .path = output_journal_path(temporary)};
    output_journal_create(&writer, journal->path, set->output);
    for (size_t i = 0; i < set->n_stale; i++) output_journal_add(&writer, &set->stale[i]);
    for (size_t i = 0; i < naming->n; i++) {
        struct output_line line = look_up(naming, i);
        line.is = output_mark_of(line.from);
        output_journal_add(&writer, &line);
    }
    int r = output_journal_end(&writer, journal->path);
    journal->fd = writer.fd;
    if (r == 0) return;
    diag_warning("cannot write '%s': %s; if the sort is killed now, some of its files have no "
                 "names", journal->path, strerror(errno));
    free(journal->path);
    journal->path = NULL;
}

/* Writes the journal where other processes look for it: with the groups, or beside the last output,
   which is that of -o; and in every other directory with a file of the set, so that --clean there
   does not take the file for a leftover. */
static void write_journals(struct naming *naming)
{
    size_t n = naming->n - naming->n_groups, n_main = 0;
    if (naming->n_groups > 0) write_journal(naming, naming->set->groups.dir);
    while (n_main < n && naming->roles[n_main] == OUTPUT_MAIN) n_main++;
    for (size_t i = n_main; i > 0; i--) write_journal(naming, naming->paths[i - 1]->temporary);
    for (size_t i = n_main; i < n; i++) write_journal(naming, naming->paths[i]->temporary);
}

/* Removes all journals except the first n; the first one last, because --resume looks for it. */
static void remove_journals(struct naming *naming, unsigned n)
{
    for (unsigned i = naming->n_journals; i > n; i--) {
        struct journal *journal = &naming->journals[i - 1];
        if (journal->path && unlink(journal->path) < 0)
            diag_left("warning: cannot remove '%s': %s", journal->path, strerror(errno));
        free(journal->path);
        journal->path = NULL;
    }
}

/* ---- renaming ---- */

/* Renames the first n files back to their temporary names, if possible. Returns 0, or -1. */
static int take_back(struct naming *naming, size_t n)
{
    int r = naming->replaced ? -1 : 0;
    for (size_t i = n; r == 0 && i > 0; i--) {
        struct output_line line = look_up(naming, i - 1);
        if (rename(line.to, line.from) < 0) r = -1;
        if (r == 0 && naming->made[i - 1]) path_remove_parent(line.to);
    }
    if (r == 0) restore_stale(naming->set, naming->set->n_stale);
    return r;
}

/* Handles an output that cannot be renamed. */
static int give_up(struct naming *naming, size_t i, const struct output_line *line, int error)
{
    char command[PATH_MAX + 64] = "", name[PATH_MAX];
    const char *journal = naming->journals[0].path;
    (void)snprintf(name, sizeof name, "%s", line->to);  /* take_back overwrites naming->group */
    if (naming->made[i]) path_remove_parent(name);
    if (take_back(naming, i) == 0) {
        naming->set->state = OUTPUT_SET_OPEN;
        remove_journals(naming, 0);
        diag_error("cannot create '%s': %s%s", name, strerror(error),
                   naming->n_groups > 0 ? "; no output group got its name"
                   : naming->n > 1      ? "; no file got its name"
                                        : "");
        return -1;
    }
    if (journal)
        words_quote(naming->n_groups > 0 ? naming->set->groups.dir : journal, command,
                    sizeof command);
    diag_error("cannot create '%s': %s; other files have their names%s%s", name,
               strerror(error), *command ? "; to finish: samtools rocksort --clean --yes " : "",
               command);
    return -1;
}

static int name_group(struct naming *naming, size_t i, const struct output_line *line)
{
    if (naming->set->groups.make_directories) naming->made[i] = path_make_parent(line->to);
    return output_path_rename_new(line->from, line->to);
}

/* Returns 0, or -1 after a message. Sets *failed if an index or a report is missing. */
static int name_file(struct naming *naming, size_t i, bool *failed)
{
    struct output_line line = look_up(naming, i);
    int r = i < naming->n_groups ? name_group(naming, i, &line) : rename(line.from, line.to);
    int error = errno;
    if (r == 0 && line.role == OUTPUT_MAIN && line.was.n_bytes >= 0) naming->replaced = true;
    if (r == 0) return 0;
    if (line.role == OUTPUT_MAIN) return give_up(naming, i, &line, error);
    diag_error("cannot rename '%s' to '%s': %s", line.from, line.to, strerror(error));
    output_path_drop(naming->paths[i - naming->n_groups]);
    *failed = true;
    return 0;
}

/* Syncs the directory of a file. */
static int sync_names(const char *name)
{
    char *parent = path_parent(name);
    int r = path_sync_directory(parent);
    if (r < 0)
        diag_error("all output groups in '%s' are complete, but their names may not be on the disk "
                   "yet: %s", parent, strerror(errno));
    free(parent);
    return r;
}

/* Syncs the directories of groups: those of one group and its index, unless each group has its
   own. */
static int sync_groups(struct naming *naming)
{
    const struct output_groups *groups = &naming->set->groups;
    for (size_t i = 0; i < groups->n && (i < 2 || groups->make_directories); i++) {
        char *name = naming->group.name;
        (void)look_up(naming, i);
        if (sync_names(name) < 0) return -1;
        if (groups->make_directories && i < 2 && path_go_up(name) && sync_names(name) < 0)
            return -1;
    }
    return 0;
}

/* Finishes when all files are renamed. */
static int settle(struct naming *naming)
{
    int r = 0;
    remove_stale(naming->set);
    if (naming->set->groups.durable && sync_groups(naming) < 0) r = -1;
    for (size_t i = 0; i < naming->n - naming->n_groups; i++)
        if (naming->paths[i]->is_complete && output_path_named(naming->paths[i]) < 0) r = -1;
    /* The journal of groups must outlive the checkpoint, because groups cannot be written again: it
       is removed with their directory. */
    remove_journals(naming, naming->n_groups > 0);
    naming->set->state = OUTPUT_SET_NAMED;
    return r;
}

static int name_all(struct naming *naming)
{
    bool failed = false;
    if (set_stale_aside(naming->set) < 0) {
        naming->set->state = OUTPUT_SET_OPEN;
        remove_journals(naming, 0);
        return -1;
    }
    for (size_t i = 0; i < naming->n; i++)
        if (name_file(naming, i, &failed) < 0) return -1;
    return settle(naming) < 0 || failed ? -1 : 0;
}

void output_set_complete(struct output_set *set)
{
    set->state = OUTPUT_SET_COMPLETE;
}

int output_set_publish(struct output_set *set)
{
    struct naming naming = {.set = set};
    naming.n_groups = naming.n = set->groups.n;
    for (unsigned i = 0; i < set->n_paths; i++) {
        if (!set->paths[i]->is_complete) continue;
        naming.roles[naming.n - naming.n_groups] = set->roles[i];
        naming.paths[naming.n++ - naming.n_groups] = set->paths[i];
    }
    naming.made = xcalloc(naming.n + 1, sizeof *naming.made);
    set->state = OUTPUT_SET_NAMING;
    /* Also if there is one file with stale indexes: a killed sort must not leave the old output
       without them. */
    if (naming.n + set->n_stale > 1) write_journals(&naming);
    int r = name_all(&naming);
    for (unsigned i = 0; i < naming.n_journals; i++) {
        struct journal *journal = &naming.journals[i];
        if (journal->fd >= 0) (void)close(journal->fd);
        free(journal->path);
        free(journal->place);
    }
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
        free((char *)set->stale[i].from);
        free((char *)set->stale[i].to);
    }
    free(set->stale);
}

void output_set_unlink(const struct output_set *set)
{
    if (set->state == OUTPUT_SET_NAMING) return;
    for (unsigned i = 0; i < set->n_paths; i++) (void)unlink(set->paths[i]->temporary);
}
