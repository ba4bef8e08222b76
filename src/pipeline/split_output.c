/* split_output.c -- see split_output.h. */
#include "pipeline/split_output.h"

#include "machine/interpose.h"
#include "machine/memory.h"
#include "order/bam_key_tag.h"
#include "util/diag.h"
#include "util/path.h"
#include "util/xalloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Values of a tag may be long, and there may be many: titles of pieces are cut. */
enum { MOST_TITLE_BYTES = PIECE_NAME_BYTES };

struct open_piece {
    size_t number;
    char *name, *index_name;    /* of its files; the index may be NULL */
    struct output_path path, index_path;
    struct output_file file;
    sam_hdr_t *header;          /* its own, or NULL */
};

struct split_output {
    struct split_output_settings settings;
    struct bam_writer_header header;    /* that pieces share */
    struct open_piece **open;   /* one, or those whose intervals lie apart */
    size_t n_open, open_room;
    size_t span;                /* by place: of the last stretch */
    uint8_t *value;             /* by tag: of the last stretch; owned */
    size_t value_bytes;
};

/* ---- creating ---- */

/* Checks that the files of a piece do not exist, and are not those of another one. */
static int check_files(const struct split_output *split, size_t piece)
{
    const struct piece_list *pieces = split->settings.pieces;
    char *file = piece_list_file(pieces, piece), *index = piece_list_index(pieces, piece);
    int r = piece_dir_check_name(file);
    if (r == 0 && index) r = piece_dir_check_name(index);
    free(file);
    free(index);
    if (r < 0) return -1;
    char *clash = piece_list_clash(pieces, piece);
    if (clash)
        diag_error("'%s' would be both a piece and an index of another one: give the pieces "
                   "another name with -o", clash);
    r = clash ? -1 : 0;
    free(clash);
    return r;
}

static int check_known(const struct split_output *split)
{
    const struct split_output_settings *s = &split->settings;
    piece_list_set_patterns(s->pieces, s->like->path->name, s->like->index_path->name);
    for (size_t i = 0; i < piece_list_count(s->pieces); i++)
        if (check_files(split, i) < 0) return -1;
    return 0;
}

/* Checks that indexes, which are written beside the pieces, can get their names. */
static int check_index_place(const struct split_output *split)
{
    const struct output_settings *like = split->settings.like;
    const struct output_path *index = like->index_path;
    if (!index->name) return 0;
    char *pieces = path_fixed_parent(like->path->final);
    char *indexes = path_fixed_parent(index->final);
    char *name = xasprintf("%s/%s", indexes, path_name(index->temporary));
    int error = strcmp(pieces, indexes) == 0
                    ? 0 : piece_dir_try_name(split->settings.dir, name, like->path->lock);
    free(pieces);
    free(indexes);
    free(name);
    if (error == EXDEV)
        diag_error("the indexes '%s' would lie on another file system or mount than the pieces, "
                   "and cannot be renamed: give another name", index->name);
    else if (error)
        diag_error("cannot create '%s': %s; give the indexes another name", index->name,
                   strerror(error));
    return error ? -1 : 0;
}

/* The memory that an open piece may need. A BAI has an entry for each window of the genome. A CSI
   has only those of windows with reads, which are few in all pieces together. */
static size_t open_bytes(const struct split_output *split)
{
    enum { PIECE_BYTES = 128 << 10, WINDOW_SHIFT = 14, ENTRY_BYTES = 8 };
    const struct split_output_settings *s = &split->settings;
    size_t n_bytes = PIECE_BYTES;
    if (!s->like->index_path->name || !s->like->index_is_bai) return n_bytes;
    for (int tid = 0; tid < sam_hdr_nref(s->header); tid++)
        n_bytes += (size_t)((sam_hdr_tid2len(s->header, tid) >> WINDOW_SHIFT) + 2) * ENTRY_BYTES;
    return n_bytes;
}

/* Checks that as many pieces can be open as must be. */
static int check_open(const struct split_output *split)
{
    enum { OTHER_FILES = 64, FILES_OF_PIECE = 3, CRAM_PIECES = 4 };
    const struct split_output_settings *s = &split->settings;
    size_t most = split_plan_most_open(s->plan), needed = most * FILES_OF_PIECE + OTHER_FILES;
    if (most <= 2) return 0;
    size_t n_bytes = most * open_bytes(split), limit;
    if (!open_files_suffice(needed, &limit))
        diag_error("--split-by: %zu pieces must be open at the same time, as they go on after "
                   "others: raise 'ulimit -n' from %zu to %zu", most, limit, needed);
    else if (n_bytes > s->memory_bytes / 4)
        diag_error("--split-by: %zu pieces must be open at the same time, as they go on after "
                   "others: give %zu MiB of memory or more", most,
                   (4 * n_bytes >> 20) + 1);
    else if (!output_format_has_bytes(&s->like->format) && most > CRAM_PIECES)
        diag_error("--split-by: %zu pieces must be open at the same time, as they go on after "
                   "others, and of CRAM %d can be: write BAM", most, CRAM_PIECES);
    else
        return 0;
    return -1;
}

struct split_output *split_output_create(const struct split_output_settings *settings)
{
    struct split_output *split = xcalloc(1, sizeof *split);
    split->settings = *settings;
    if (check_index_place(split) == 0 && check_known(split) == 0 && check_open(split) == 0)
        return split;
    split_output_destroy(split);
    return NULL;
}

void split_output_destroy(struct split_output *split)
{
    if (!split) return;
    free(split->header.bytes);
    free(split->open);
    free(split->value);
    free(split);
}

/* ---- opening and closing ---- */

/* The header of a read group's piece has no other read groups. */
static int make_own_header(const struct split_output *split, struct open_piece *open)
{
    const struct split_output_settings *s = &split->settings;
    if (split_plan_kind(s->plan) != SPLIT_READ_GROUP) return 0;
    open->header = sam_hdr_dup(s->header);
    const char *keep = open->number < split_plan_none(s->plan)
                           ? piece_list_title(s->pieces, open->number) : NULL;
    if (open->header && sam_hdr_remove_except(open->header, "RG", keep ? "ID" : NULL, keep) >= 0)
        return 0;
    diag_error("cannot make the header of '%s': it is damaged, or memory is short", open->name);
    return -1;
}

/* Closes a piece and frees it. Returns 0, or -1 after a message, or if it is not complete. */
static int close_piece(const struct split_output *split, struct open_piece *open, bool complete)
{
    struct output_result result;
    interpose_put_off_syncs(true);
    if (complete && output_file_end(&open->file) < 0) complete = false;
    int r = output_file_close(&open->file, complete, &result);
    interpose_put_off_syncs(false);
    piece_list_counts(split->settings.pieces, open->number)->n_bytes = result.n_bytes;
    output_path_release(&open->path);
    output_path_release(&open->index_path);
    sam_hdr_destroy(open->header);
    free(open->name);
    free(open->index_name);
    free(open);
    return r;
}

/* Files have numbers until all pieces are complete. */
static void put_number(const struct split_output *split, size_t piece, bool index,
                       char path[PATH_MAX])
{
    (void)snprintf(path, PATH_MAX, "%s/%zu%s", split->settings.dir, piece,
                   index ? ".index" : "");
}

static void place_file(const struct split_output *split, struct output_path *path, size_t piece,
                       const char *name, bool index)
{
    char file[PATH_MAX];
    put_number(split, piece, index, file);
    output_path_place(path, name, file);
    path->lock = split->settings.like->path->lock;
}

/* *made is to be closed, also after a failure. */
static int open_piece(struct split_output *split, size_t number, struct open_piece **made)
{
    const struct split_output_settings *s = &split->settings;
    struct open_piece *open = *made = xcalloc(1, sizeof *open);
    open->number = number;
    open->name = piece_list_file(s->pieces, number);
    open->index_name = piece_list_index(s->pieces, number);
    piece_list_counts(s->pieces, number)->begun = true;
    place_file(split, &open->path, number, open->name, false);
    if (open->index_name)
        place_file(split, &open->index_path, number, open->index_name, true);
    open->file.settings = *s->like;
    open->file.settings.path = &open->path;
    open->file.settings.index_path = &open->index_path;
    open->file.notes_bytes = OUTPUT_NOTES_PIECE_BYTES;
    open->file.places = s->places;
    if (make_own_header(split, open) < 0) return -1;
    if (!open->header) open->file.settings.shared_header = &split->header;
    sam_hdr_t *header = open->header ? open->header : s->header;
    if (output_file_create_index(&open->file, header) < 0) return -1;
    return output_file_open(&open->file, header, 0);
}

/* True if no record of the piece will come after the span of the last stretch. */
static bool has_ended(const struct split_output *split, size_t piece)
{
    return split->span > 0 && split_plan_ends(split->settings.plan, piece, split->span - 1);
}

/* Closes the open pieces: all, or those that have ended. */
static int close_pieces(struct split_output *split, bool all, bool complete)
{
    size_t n_left = 0;
    int r = 0;
    for (size_t i = 0; i < split->n_open; i++) {
        struct open_piece *open = split->open[i];
        if (!all && !has_ended(split, open->number))
            split->open[n_left++] = open;
        else if (close_piece(split, open, complete && r == 0) < 0)
            r = -1;
    }
    split->n_open = n_left;
    return r;
}

/* ---- the piece of a stretch ---- */

/* Adds a piece for the value of a tag. Returns its number, or -1 after a message. */
static ssize_t add_value(struct split_output *split, char *text)
{
    struct piece_list *pieces = split->settings.pieces;
    if (piece_list_count(pieces) == SPLIT_MOST_PIECES) {
        split_plan_refuse(split_plan_kind(split->settings.plan));
        return -1;
    }
    if (strlen(text) > MOST_TITLE_BYTES) text[MOST_TITLE_BYTES] = '\0';
    size_t number = piece_list_add(pieces, text);
    return check_files(split, number) == 0 ? (ssize_t)number : -1;
}

/* The number of the piece of a value, which may be new; -1 after a message. */
static ssize_t piece_of_value(struct split_output *split, const struct segment_stretch *stretch)
{
    const struct split_plan *plan = split->settings.plan;
    struct piece_list *pieces = split->settings.pieces;
    char *text = bam_key_tag_text(stretch->value, stretch->value_bytes);
    if (!text) return (ssize_t)split_plan_none(plan);
    ssize_t number = piece_list_find(pieces, text);
    /* Only read groups of the header are known, not the piece of those that have none. The value of
       another type with the same text is another piece. */
    if (number < 0 || (size_t)number >= split_plan_none(plan) ||
        piece_list_counts(pieces, (size_t)number)->begun)
        number = add_value(split, text);
    free(text);
    return number;
}

static bool same_value(const struct split_output *split, const struct segment_stretch *stretch)
{
    return split->value && split->value_bytes == stretch->value_bytes &&
           memcmp(split->value, stretch->value, stretch->value_bytes) == 0;
}

/* Finds the piece by its value. Values come in order: another one ends the piece before. */
static ssize_t find_by_value(struct split_output *split, const struct segment_stretch *stretch)
{
    if (same_value(split, stretch)) return (ssize_t)split->open[0]->number;
    if (close_pieces(split, true, true) < 0) return -1;
    free(split->value);
    split->value = xmemdup(stretch->value, stretch->value_bytes);
    split->value_bytes = stretch->value_bytes;
    return piece_of_value(split, stretch);
}

static ssize_t find_by_place(struct split_output *split, const struct segment_stretch *stretch)
{
    bool is_new_span = stretch->span != split->span;
    split->span = stretch->span;
    if (is_new_span && close_pieces(split, false, true) < 0) return -1;
    return (ssize_t)stretch->piece;
}

/* NULL if the piece is not open. */
static struct open_piece *find_open(const struct split_output *split, size_t number)
{
    for (size_t i = 0; i < split->n_open; i++)
        if (split->open[i]->number == number) return split->open[i];
    return NULL;
}

struct output_file *split_output_file(struct split_output *split,
                                      const struct segment_stretch *stretch)
{
    ssize_t number = stretch->value ? find_by_value(split, stretch)
                                    : find_by_place(split, stretch);
    if (number < 0) return NULL;
    struct open_piece *open = find_open(split, (size_t)number);
    if (!open) {
        xgrow(&split->open, &split->open_room, split->n_open + 1, split->n_open + 15,
              sizeof *split->open);
        int r = open_piece(split, (size_t)number, &open);
        split->open[split->n_open++] = open;
        if (r < 0) return NULL;
    }
    piece_list_counts(split->settings.pieces, (size_t)number)->n_records += stretch->n_records;
    return &open->file;
}

/* ---- the end ---- */

/* Makes the pieces that have no records. */
static int make_empty(struct split_output *split)
{
    struct piece_list *pieces = split->settings.pieces;
    for (size_t i = 0; i < piece_list_count(pieces); i++) {
        struct open_piece *open;
        if (piece_list_counts(pieces, i)->begun) continue;
        bool opened = open_piece(split, i, &open) == 0;
        if (close_piece(split, open, opened) < 0) return -1;
    }
    return 0;
}

/* Notes older indexes that readers would take for those of the pieces. */
static void add_stale_indexes(const struct split_output *split)
{
    const struct piece_list *pieces = split->settings.pieces;
    for (size_t i = 0; i < piece_list_count(pieces); i++) {
        char *file = piece_list_file(pieces, i), *index = piece_list_index(pieces, i);
        const struct output_path path = {.name = file, .final = file};
        output_set_add_stale(split->settings.set, &path, index, &split->settings.like->format);
        free(file);
        free(index);
    }
}

/* Of two files of a piece, the second one is its index. */
static void look_up_file(const void *arg, size_t i, struct output_piece *file)
{
    const struct split_output *split = arg;
    const struct split_output_settings *s = &split->settings;
    size_t n_each = s->like->index_path->name ? 2 : 1, piece = i / n_each;
    bool index = i % n_each == 1;
    put_number(split, piece, index, file->path);
    piece_list_put_file(s->pieces, piece, index, file->name, sizeof file->name);
}

/* True if pieces of this pattern have a directory each. */
static bool has_directories(const char *pattern)
{
    return pattern && memchr(pattern, '%', (size_t)(path_name(pattern) - pattern));
}

/* All pieces wait for their names now. */
static int complete_set(const struct split_output *split)
{
    const struct split_output_settings *s = &split->settings;
    const struct output_pieces files = {
        .n = piece_list_count(s->pieces) * (s->like->index_path->name ? 2 : 1),
        .make_directories = has_directories(s->like->path->name) ||
                            has_directories(s->like->index_path->name),
        .look_up = look_up_file, .arg = split, .dir = s->dir, .durable = s->like->path->durable,
    };
    if (output_set_add_pieces(s->set, &files) < 0) return -1;
    add_stale_indexes(split);
    s->set->state = OUTPUT_SET_COMPLETE;
    return 0;
}

/* For the report. */
static void note_begins(const struct split_output *split)
{
    const struct split_output_settings *s = &split->settings;
    for (size_t i = 0; i < split_plan_n_pieces(s->plan); i++) {
        char *begin = split_plan_range_begin(s->plan, i, s->header);
        piece_list_set_begin(s->pieces, i, begin);
        free(begin);
    }
}

int split_output_close(struct split_output *split, bool complete,
                       struct output_result *result)
{
    struct piece_list *pieces = split->settings.pieces;
    int r = close_pieces(split, true, complete);
    if (!complete) r = -1;
    if (r == 0) r = make_empty(split);
    if (r == 0) r = complete_set(split);
    if (r == 0) note_begins(split);
    *result = (struct output_result){0};
    for (size_t i = 0; r == 0 && i < piece_list_count(pieces); i++)
        result->n_bytes += piece_list_counts(pieces, i)->n_bytes;
    return r;
}
