/* sorted_output.c -- see sorted_output.h. */
#include "sort/sorted_output.h"

#include "order/bam_key_tag.h"
#include "os/interpose.h"
#include "os/memory.h"
#include "util/diag.h"
#include "util/path.h"
#include "util/xalloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Titles are truncated: values of a tag may be long, and many. */
enum { MOST_TITLE_BYTES = GROUP_NAME_BYTES };

struct open_group {
    size_t number;
    char *name, *index_name;    /* of its files; the index may be NULL */
    struct output_path path, index_path;
    struct output_file file;
    sam_hdr_t *header;          /* its own, or NULL */
};

/* The settings shared by all groups. */
static const struct output_settings *like_of(const struct sort_context *sort)
{
    return &sort->output.files[0].settings;
}

/* ---- preparing groups ---- */

/* Checks that the files of a group do not exist, and belong to no other group. */
static int check_files(const struct sort_context *sort, size_t group)
{
    const struct group_list *groups = sort->groups;
    char *file = group_list_file(groups, group), *index = group_list_index(groups, group);
    int r = group_dir_check_name(file);
    if (r == 0 && index) r = group_dir_check_name(index);
    free(file);
    free(index);
    if (r < 0) return -1;
    char *clash = group_list_clash(groups, group);
    if (clash)
        diag_error("'%s' would be both a group and the index of another group: give the groups "
                   "another name with -o", clash);
    r = clash ? -1 : 0;
    free(clash);
    return r;
}

static int check_known(const struct sort_context *sort)
{
    const struct output_settings *like = like_of(sort);
    group_list_set_patterns(sort->groups, like->path->name, like->index_path->name);
    for (size_t i = 0; i < sort->groups->n; i++)
        if (check_files(sort, i) < 0) return -1;
    return 0;
}

/* Checks that indexes, which are written beside the groups, can be renamed to their directory. */
static int check_index_place(const struct sort_context *sort)
{
    const struct output_settings *like = like_of(sort);
    const struct output_path *index = like->index_path;
    if (!index->name) return 0;
    char *groups = path_fixed_parent(like->path->final);
    char *indexes = path_fixed_parent(index->final);
    char *name = xasprintf("%s/%s", indexes, path_name(index->temporary));
    int error = strcmp(groups, indexes) == 0
                    ? 0 : group_dir_try_name(sort->groups_dir.path, name, like->path->lock);
    free(groups);
    free(indexes);
    free(name);
    if (error == EXDEV)
        diag_error("the indexes '%s' would lie on another file system or mount than the groups, "
                   "and cannot be renamed: give another name", index->name);
    else if (error)
        diag_error("cannot create '%s': %s; give the indexes another name", index->name,
                   strerror(error));
    return error ? -1 : 0;
}

/* The memory that an open group may need. A BAI has an entry for each window of the genome; a CSI
   only for windows with reads, which are few in total. */
static size_t open_bytes(const struct sort_context *sort)
{
    enum { GROUP_BYTES = 128 << 10, WINDOW_SHIFT = 14, ENTRY_BYTES = 8 };
    size_t n_bytes = GROUP_BYTES;
    if (!like_of(sort)->index_path->name || !like_of(sort)->index_is_bai) return n_bytes;
    for (int tid = 0; tid < sam_hdr_nref(sort->header); tid++)
        n_bytes += (size_t)((sam_hdr_tid2len(sort->header, tid) >> WINDOW_SHIFT) + 2) * ENTRY_BYTES;
    return n_bytes;
}

/* Checks that enough groups can be open at the same time. */
static int check_open(const struct sort_context *sort)
{
    enum { OTHER_FILES = 64, FILES_OF_GROUP = 3, CRAM_GROUPS = 4 };
    size_t most = sort->split->most_open, needed = most * FILES_OF_GROUP + OTHER_FILES;
    if (most <= 2) return 0;
    size_t n_bytes = most * open_bytes(sort), limit;
    if (!open_files_suffice(needed, &limit))
        diag_error("--split-by: %zu groups must be open at the same time, because their "
                   "intervals alternate: raise 'ulimit -n' from %zu to %zu", most, limit, needed);
    else if (n_bytes > sort->settings->memory_bytes / 4)
        diag_error("--split-by: %zu groups must be open at the same time, because their "
                   "intervals alternate: give %zu MiB of memory or more",
                   most, (4 * n_bytes >> 20) + 1);
    else if (!output_format_has_bytes(&like_of(sort)->format) && most > CRAM_GROUPS)
        diag_error("--split-by: %zu groups must be open at the same time, because their "
                   "intervals alternate, but only %d can be as CRAM: write BAM", most, CRAM_GROUPS);
    else
        return 0;
    return -1;
}

/* ---- opening and closing groups ---- */

/* Removes other read groups from the header of a read group's file. */
static int make_own_header(const struct sort_context *sort, struct open_group *open)
{
    if (sort->split->request.kind != SPLIT_READ_GROUP) return 0;
    open->header = sam_hdr_dup(sort->header);
    const char *keep = open->number < split_plan_none(sort->split)
                           ? sort->groups->all[open->number].title : NULL;
    if (open->header && sam_hdr_remove_except(open->header, "RG", keep ? "ID" : NULL, keep) >= 0)
        return 0;
    diag_error("cannot make the header of '%s': it is damaged, or memory is short", open->name);
    return -1;
}

/* Closes a group and frees it. Returns 0, or -1 after a message, or without one if it is
   incomplete. */
static int close_group(const struct sort_context *sort, struct open_group *open, bool complete)
{
    interpose_put_off_syncs(true);
    if (complete && output_file_end(&open->file) < 0) complete = false;
    int r = output_file_close(&open->file, complete);
    interpose_put_off_syncs(false);
    sort->groups->all[open->number].n_bytes = open->file.n_bytes;
    output_path_release(&open->path);
    output_path_release(&open->index_path);
    sam_hdr_destroy(open->header);
    free(open->name);
    free(open->index_name);
    free(open);
    return r;
}

/* Writes the temporary name of a group's file, which is a number. */
static void put_number(const struct sort_context *sort, size_t group, bool index,
                       char path[PATH_MAX])
{
    (void)snprintf(path, PATH_MAX, "%s/%zu%s", sort->groups_dir.path, group, index ? ".index" : "");
}

static void place_file(const struct sort_context *sort, struct output_path *path, size_t group,
                       const char *name, bool index)
{
    char file[PATH_MAX];
    put_number(sort, group, index, file);
    output_path_place(path, name, file);
    path->lock = like_of(sort)->path->lock;
}

/* The caller closes *made, also after a failure. */
static int open_group(struct sort_context *sort, size_t number, struct open_group **made)
{
    struct open_group *open = *made = xcalloc(1, sizeof *open);
    open->number = number;
    open->name = group_list_file(sort->groups, number);
    open->index_name = group_list_index(sort->groups, number);
    sort->groups->all[number].begun = true;
    place_file(sort, &open->path, number, open->name, false);
    if (open->index_name)
        place_file(sort, &open->index_path, number, open->index_name, true);
    open->file.settings = sort->output.files[0].settings;
    open->file.settings.path = &open->path;
    open->file.settings.index_path = &open->index_path;
    open->file.spool_bytes = OUTPUT_SPOOL_GROUP_BYTES;
    open->file.places = sort->output.files[0].places;
    if (make_own_header(sort, open) < 0) return -1;
    if (!open->header) open->file.settings.shared_header = &sort->output.shared_header;
    sam_hdr_t *header = open->header ? open->header : sort->header;
    if (output_file_create_index(&open->file, header) < 0) return -1;
    return output_file_open(&open->file, header, 0);
}

/* True if no record of the group can follow the current span. */
static bool has_ended(const struct sort_context *sort, size_t group)
{
    return sort->output.span > 0 && split_plan_ends(sort->split, group, sort->output.span - 1);
}

/* Closes open groups: all, or only those that have ended. */
static int close_groups(struct sort_context *sort, bool all, bool complete)
{
    size_t n_left = 0;
    int r = 0;
    for (size_t i = 0; i < sort->output.n_open; i++) {
        struct open_group *open = sort->output.open[i];
        if (!all && !has_ended(sort, open->number))
            sort->output.open[n_left++] = open;
        else if (close_group(sort, open, complete && r == 0) < 0)
            r = -1;
    }
    sort->output.n_open = n_left;
    return r;
}

/* ---- the group of a span ---- */

/* Adds a group for the value of a tag. Returns its number, or -1 after a message. */
static ssize_t add_value(struct sort_context *sort, char *text)
{
    struct group_list *groups = sort->groups;
    if (groups->n == SPLIT_MOST_GROUPS) {
        split_plan_refuse(sort->split->request.kind);
        return -1;
    }
    if (strlen(text) > MOST_TITLE_BYTES) text[MOST_TITLE_BYTES] = '\0';
    size_t number = group_list_add(groups, text);
    return check_files(sort, number) == 0 ? (ssize_t)number : -1;
}

/* The group of a value, perhaps a new one; -1 after a message. */
static ssize_t group_of_value(struct sort_context *sort, const struct output_span *span)
{
    const struct split_plan *plan = sort->split;
    struct group_list *groups = sort->groups;
    char *text = bam_key_tag_text(span->value, span->value_bytes);
    if (!text) return (ssize_t)split_plan_none(plan);
    ssize_t number = group_list_find(groups, text);
    /* Only read groups of the header are known, not the group without a value. A value of another
       type with the same text is another group. */
    if (number < 0 || (size_t)number >= split_plan_none(plan) ||
        groups->all[number].begun)
        number = add_value(sort, text);
    free(text);
    return number;
}

static bool same_value(const struct sort_context *sort, const struct output_span *span)
{
    return sort->output.value && sort->output.value_bytes == span->value_bytes &&
           memcmp(sort->output.value, span->value, span->value_bytes) == 0;
}

/* Finds the group by its value. Values are in order: a new one ends the previous group. */
static ssize_t find_by_value(struct sort_context *sort, const struct output_span *span)
{
    if (same_value(sort, span)) return (ssize_t)sort->output.open[0]->number;
    if (close_groups(sort, true, true) < 0) return -1;
    free(sort->output.value);
    sort->output.value = xmemdup(span->value, span->value_bytes);
    sort->output.value_bytes = span->value_bytes;
    return group_of_value(sort, span);
}

static ssize_t find_by_place(struct sort_context *sort, const struct output_span *span)
{
    bool is_new_span = span->span != sort->output.span;
    sort->output.span = span->span;
    if (is_new_span && close_groups(sort, false, true) < 0) return -1;
    return (ssize_t)span->group;
}

/* Returns NULL if the group is not open. */
static struct open_group *find_open(const struct sort_context *sort, size_t number)
{
    for (size_t i = 0; i < sort->output.n_open; i++)
        if (sort->output.open[i]->number == number) return sort->output.open[i];
    return NULL;
}

/* Returns the open file of the group of a span. */
static struct output_file *file_of_group(struct sort_context *sort, const struct output_span *span)
{
    ssize_t number = span->value ? find_by_value(sort, span)
                                    : find_by_place(sort, span);
    if (number < 0) return NULL;
    struct open_group *open = find_open(sort, (size_t)number);
    if (!open) {
        struct sorted_output *out = &sort->output;
        xgrow(&out->open, &out->open_room, out->n_open + 1, out->n_open + 15, sizeof *out->open);
        int r = open_group(sort, (size_t)number, &open);
        sort->output.open[sort->output.n_open++] = open;
        if (r < 0) return NULL;
    }
    sort->groups->all[number].n_records += span->n_records;
    return &open->file;
}

/* ---- the end of groups ---- */

/* Writes the files of known groups without records. */
static int make_empty(struct sort_context *sort)
{
    struct group_list *groups = sort->groups;
    for (size_t i = 0; i < groups->n; i++) {
        struct open_group *open;
        if (groups->all[i].begun) continue;
        bool opened = open_group(sort, i, &open) == 0;
        if (close_group(sort, open, opened) < 0) return -1;
    }
    return 0;
}

/* Adds old indexes, which readers would take for those of the groups, to the set. */
static void add_stale_indexes(struct sort_context *sort)
{
    const struct group_list *groups = sort->groups;
    for (size_t i = 0; i < groups->n; i++) {
        char *file = group_list_file(groups, i), *index = group_list_index(groups, i);
        const struct output_path path = {.name = file, .final = file};
        output_set_add_stale(&sort->outputs, &path, index, &like_of(sort)->format);
        free(file);
        free(index);
    }
}

/* Looks up file i; of two files of a group, the second is its index. */
static void look_up_file(const void *arg, size_t i, struct output_group *file)
{
    const struct sort_context *sort = arg;
    size_t n_each = like_of(sort)->index_path->name ? 2 : 1, group = i / n_each;
    bool index = i % n_each == 1;
    put_number(sort, group, index, file->path);
    group_list_put_file(sort->groups, group, index, file->name, sizeof file->name);
}

/* True if each group of this pattern has its own directory. */
static bool has_directories(const char *pattern)
{
    return pattern && memchr(pattern, '%', (size_t)(path_name(pattern) - pattern));
}

/* Adds all complete groups to the set. */
static int complete_groups(struct sort_context *sort)
{
    const struct output_groups files = {
        .n = sort->groups->n * (like_of(sort)->index_path->name ? 2 : 1),
        .make_directories = has_directories(like_of(sort)->path->name) ||
                            has_directories(like_of(sort)->index_path->name),
        .look_up = look_up_file, .arg = sort, .dir = sort->groups_dir.path,
        .durable = like_of(sort)->path->durable,
    };
    if (output_set_add_groups(&sort->outputs, &files) < 0) return -1;
    add_stale_indexes(sort);
    output_set_complete(&sort->outputs);
    return 0;
}

/* Sets the starts of ranges, for the report. */
static void note_begins(const struct sort_context *sort)
{
    for (size_t i = 0; i < sort->split->n_groups; i++)
        sort->groups->all[i].begin = split_plan_range_begin(sort->split, i, sort->header);
}

static int close_all_groups(struct sort_context *sort, bool complete)
{
    int r = close_groups(sort, true, complete);
    if (!complete) r = -1;
    if (r == 0) r = make_empty(sort);
    if (r == 0) r = complete_groups(sort);
    if (r == 0) note_begins(sort);
    for (size_t i = 0; r == 0 && i < sort->groups->n; i++)
        sort->output.files[0].n_bytes += sort->groups->all[i].n_bytes;
    return r;
}

/* ---- all outputs ---- */

int sorted_output_prepare(struct sort_context *sort)
{
    if (output_file_create_index(&sort->output.files[0], sort->header) < 0) return -1;
    if (!sort->split) return 0;
    return check_index_place(sort) < 0 || check_known(sort) < 0 || check_open(sort) < 0 ? -1 : 0;
}

int sorted_output_open(struct sort_context *sort, uint64_t raw_bytes)
{
    for (unsigned i = 0; !sort->split && i < sort->output.n_files; i++)
        if (output_file_open(&sort->output.files[i], sort->header, raw_bytes) < 0) return -1;
    return 0;
}

static int write_span(struct output_file *file, const struct chunk_encoder *from,
                      struct output_span *span)
{
    /* A span without records has no bytes, and perhaps no buffer. */
    const uint8_t *bytes = from->bytes ? from->bytes + span->begin : NULL;
    return output_file_write(file, bytes, span->end - span->begin, span->raw_bytes, &span->part,
                             &span->metadata);
}

int sorted_output_write(struct sort_context *sort, struct chunk_encoder from[MOST_OUTPUTS])
{
    for (unsigned i = 0; i < sort->output.n_files; i++)
        for (size_t k = 0; k < from[i].n_spans; k++) {
            struct output_span *span = &from[i].spans[k];
            struct output_file *file =
                sort->split ? file_of_group(sort, span) : &sort->output.files[i];
            if (!file || write_span(file, &from[i], span) < 0) return -1;
        }
    return 0;
}

/* Ends the files with temporary names, or the others. Files that appear at once, such as objects,
   are ended last, and of these the first output last: they cannot be undone. */
static int end_files(struct sort_context *sort, bool is_temporary)
{
    for (unsigned i = sort->output.n_files; i-- > 0;)
        if ((sort->output.files[i].settings.path->temporary != NULL) == is_temporary &&
            output_file_end(&sort->output.files[i]) < 0)
            return -1;
    return 0;
}

/* Syncs both files before one is renamed. */
static int sync_files(const struct sort_context *sort)
{
    for (unsigned i = 0; sort->output.n_files > 1 && i < sort->output.n_files; i++)
        if (output_path_sync(sort->output.files[i].settings.path) < 0) return -1;
    return 0;
}

/* Marks the set complete when all outputs are closed, unless a sync fails. */
static void complete_set(struct sort_context *sort)
{
    for (unsigned i = 0; i < sort->output.n_files; i++) {
        const struct output_path *path = sort->output.files[i].settings.path;
        if (path->temporary && !path->is_complete) return;
    }
    for (unsigned i = 0; i < sort->output.n_files; i++) {
        const struct output_settings *s = &sort->output.files[i].settings;
        if (s->path->temporary)
            output_set_add_stale(&sort->outputs, s->path, s->index_path->final, &s->format);
    }
    output_set_complete(&sort->outputs);
}

int sorted_output_close(struct sort_context *sort, bool complete)
{
    if (sort->split) return close_all_groups(sort, complete);
    complete = complete && end_files(sort, true) == 0 && sync_files(sort) == 0 &&
               end_files(sort, false) == 0;
    int r = complete ? 0 : -1;
    for (unsigned i = sort->output.n_files; i-- > 0;)
        if (output_file_close(&sort->output.files[i], complete) < 0) r = -1;
    if (complete) complete_set(sort);
    return r;
}

void sorted_output_release(struct sorted_output *out)
{
    bam_index_destroy(out->files[0].index);
    free(out->shared_header.bytes);
    free(out->open);
    free(out->value);
}
