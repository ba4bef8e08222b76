/* split_output.c -- see split_output.h. */
#include "pipeline/split_output.h"

#include "bam/header_text.h"
#include "machine/interpose.h"
#include "machine/open_files.h"
#include "order/bam_key_tag.h"
#include "output/stale_index.h"
#include "split/piece_names.h"
#include "util/diag.h"
#include "util/path.h"
#include "util/xalloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct piece {
    char *title;                /* what it is: "chr1"; a long value is cut */
    char *name, *index_name;    /* of its files; the index may be NULL */
    char *file, *index_file;    /* where they are until all pieces are complete */
    bool begun;
    uint64_t n_records, n_bytes;
    struct open_piece *open;    /* NULL: it is not begun, or closed */
};

/* Values of a tag may be long, and there may be many. */
enum { MOST_TITLE_BYTES = PIECE_NAME_BYTES };

struct open_piece {
    struct output_path path, index_path;
    struct output_file file;
    sam_hdr_t *header;          /* its own, or NULL */
};

struct split_output {
    struct split_output_settings settings;
    struct piece *pieces;
    size_t n_pieces, pieces_room;
    struct piece_names *names;
    struct text_map files;              /* names of all pieces and indexes; borrows its keys */
    struct text_map read_groups;        /* by their titles, with the numbers of their pieces */
    struct bam_writer_header header;    /* that pieces share */
    size_t *open;               /* numbers of the pieces that are open */
    size_t n_open, open_room;
    size_t span;                /* by place: of the last stretch */
    uint8_t *value;             /* by tag: of the last stretch; owned */
    size_t value_bytes;
};

/* ---- creating ---- */

/* Takes the name of a file, which must not exist, nor be that of another piece or index. */
static int take_file(struct split_output *split, const char *name)
{
    if (piece_dir_check_name(name) < 0) return -1;
    if (!text_map_find(&split->files, text_of(name))) {
        (void)text_map_put(&split->files, text_of(name), 0);
        return 0;
    }
    diag_error("'%s' would be both a piece and an index of another one: give the pieces another "
               "name with -o", name);
    return -1;
}

static int add_piece(struct split_output *split, const char *title)
{
    const struct split_output_settings *s = &split->settings;
    xgrow(&split->pieces, &split->pieces_room, split->n_pieces + 1, split->n_pieces / 2 + 16,
          sizeof *split->pieces);
    struct piece *piece = &split->pieces[split->n_pieces];
    char *safe = piece_names_take(split->names, title);
    *piece = (struct piece){
        .title = xstrdup(title),
        .name = piece_names_expand(s->pattern, safe),
        .file = xasprintf("%s/%zu", s->dir, split->n_pieces),
    };
    if (s->index_pattern) {
        piece->index_name = piece_names_expand(s->index_pattern, safe);
        piece->index_file = xasprintf("%s.index", piece->file);
    }
    free(safe);
    split->n_pieces++;
    if (take_file(split, piece->name) < 0) return -1;
    return piece->index_name ? take_file(split, piece->index_name) : 0;
}

static int add_known(struct split_output *split)
{
    const struct split_plan *plan = split->settings.plan;
    for (size_t i = 0; i < split_plan_n_pieces(plan); i++)
        if (add_piece(split, split_plan_name(plan, i)) < 0) return -1;
    return 0;
}

static void know_read_groups(struct split_output *split)
{
    if (split_plan_kind(split->settings.plan) != SPLIT_READ_GROUP) return;
    for (size_t i = 0; i < split_plan_none(split->settings.plan); i++)
        (void)text_map_put(&split->read_groups, text_of(split->pieces[i].title), i);
}

/* Checks that indexes, which are written beside the pieces, can get their names. */
static int check_index_place(const struct split_output *split)
{
    const struct output_settings *like = split->settings.like;
    const struct output_path *index = like->index_path;
    if (!index->name) return 0;
    char *pieces = path_parent(like->path->final), *indexes = path_parent(index->final);
    int error = strcmp(pieces, indexes) == 0 ? 0
                : piece_dir_try_name(split->settings.dir, index->temporary, split->settings.lock);
    free(pieces);
    free(indexes);
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
    if (!s->index_pattern || !s->like->index_is_bai) return n_bytes;
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
    split->names = piece_names_create();
    if (check_index_place(split) < 0 || add_known(split) < 0 || check_open(split) < 0) {
        split_output_destroy(split);
        return NULL;
    }
    know_read_groups(split);
    return split;
}

void split_output_destroy(struct split_output *split)
{
    if (!split) return;
    for (size_t i = 0; i < split->n_pieces; i++) {
        struct piece *piece = &split->pieces[i];
        free(piece->title);
        free(piece->name);
        free(piece->index_name);
        free(piece->file);
        free(piece->index_file);
    }
    free(split->pieces);
    piece_names_destroy(split->names);
    text_map_release(&split->files);
    text_map_release(&split->read_groups);
    free(split->header.bytes);
    free(split->open);
    free(split->value);
    free(split);
}

/* ---- opening and closing ---- */

/* The header of a read group's piece has no other read groups. */
static int make_own_header(const struct split_output *split, const struct piece *piece,
                           struct open_piece *open)
{
    const struct split_output_settings *s = &split->settings;
    size_t number = (size_t)(piece - split->pieces), none = split_plan_none(s->plan);
    if (split_plan_kind(s->plan) != SPLIT_READ_GROUP) return 0;
    open->header = sam_hdr_dup(s->header);
    const char *keep = number < none ? piece->title : NULL;
    if (open->header && sam_hdr_remove_except(open->header, "RG", keep ? "ID" : NULL, keep) >= 0)
        return 0;
    diag_error("cannot make the header of '%s': it is damaged, or memory is short", piece->name);
    return -1;
}

static void release_open(struct piece *piece)
{
    struct open_piece *open = piece->open;
    piece->open = NULL;
    output_path_release(&open->path);
    output_path_release(&open->index_path);
    sam_hdr_destroy(open->header);
    free(open);
}

/* Closes a piece. Returns 0, or -1 after a message, or if it is not complete. */
static int close_piece(struct piece *piece, bool complete)
{
    struct output_result result;
    interpose_put_off_syncs(true);
    int r = output_file_close(&piece->open->file, complete, &result);
    interpose_put_off_syncs(false);
    piece->n_bytes = result.n_bytes;
    release_open(piece);
    return r;
}

static int open_piece(struct split_output *split, struct piece *piece)
{
    const struct split_output_settings *s = &split->settings;
    struct open_piece *open = piece->open = xcalloc(1, sizeof *open);
    piece->begun = true;
    output_path_place(&open->path, piece->name, piece->file);
    if (piece->index_name)
        output_path_place(&open->index_path, piece->index_name, piece->index_file);
    open->path.lock = open->index_path.lock = s->lock;
    open->file.settings = *s->like;
    open->file.settings.path = &open->path;
    open->file.settings.index_path = &open->index_path;
    if (make_own_header(split, piece, open) < 0) return -1;
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
        size_t number = split->open[i];
        if (!all && !has_ended(split, number))
            split->open[n_left++] = number;
        else if (close_piece(&split->pieces[number], complete && r == 0) < 0)
            r = -1;
    }
    split->n_open = n_left;
    return r;
}

/* ---- the piece of a stretch ---- */

/* The number of the piece of a value, which may be new; -1 after a message. */
static ssize_t piece_of_value(struct split_output *split, const struct segment_stretch *stretch)
{
    char *text = bam_key_tag_text(stretch->value, stretch->value_bytes);
    if (!text) return (ssize_t)split_plan_none(split->settings.plan);
    const size_t *known = text_map_find(&split->read_groups, text_of(text));
    ssize_t number = known ? (ssize_t)*known : -1;
    /* The value of another type with the same text is another piece. */
    if (number < 0 || split->pieces[number].begun) {
        number = (ssize_t)split->n_pieces;
        if (split->n_pieces == SPLIT_MOST_PIECES) {
            diag_error("--split-by would write more than %d files: the tag has too many values",
                       SPLIT_MOST_PIECES);
            number = -1;
        } else {
            if (strlen(text) > MOST_TITLE_BYTES) text[MOST_TITLE_BYTES] = '\0';
            if (add_piece(split, text) < 0) number = -1;
        }
    }
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
    if (same_value(split, stretch)) return (ssize_t)split->open[0];
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

struct output_file *split_output_file(struct split_output *split,
                                      const struct segment_stretch *stretch)
{
    ssize_t number = stretch->value ? find_by_value(split, stretch)
                                    : find_by_place(split, stretch);
    if (number < 0) return NULL;
    struct piece *piece = &split->pieces[number];
    if (!piece->open) {
        xgrow(&split->open, &split->open_room, split->n_open + 1, split->n_open + 15,
              sizeof *split->open);
        split->open[split->n_open++] = (size_t)number;
        if (open_piece(split, piece) < 0) return NULL;
    }
    piece->n_records += stretch->n_records;
    return &piece->open->file;
}

/* ---- the end ---- */

/* Makes the pieces that have no records. */
static int make_empty(struct split_output *split)
{
    for (size_t i = 0; i < split->n_pieces; i++) {
        struct piece *piece = &split->pieces[i];
        if (piece->begun) continue;
        bool opened = open_piece(split, piece) == 0;
        if (close_piece(piece, opened) < 0) return -1;
    }
    return 0;
}

/* Warns of older indexes that readers would take for those of the pieces. */
static void tell_of_stale_indexes(const struct split_output *split)
{
    for (size_t i = 0; i < split->n_pieces; i++) {
        const struct piece *piece = &split->pieces[i];
        const struct output_path path = {.name = piece->name}, index = {.name = piece->index_name};
        stale_index_tell(&path, &index, &split->settings.like->format);
    }
}

/* Gives all pieces their names. */
static int publish(const struct split_output *split)
{
    const struct split_output_settings *s = &split->settings;
    struct piece_name *names = xcalloc(2 * split->n_pieces, sizeof *names);
    size_t n = 0;
    for (size_t i = 0; i < split->n_pieces; i++) {
        const struct piece *piece = &split->pieces[i];
        names[n++] = (struct piece_name){piece->file, piece->name};
        if (piece->index_name)
            names[n++] = (struct piece_name){piece->index_file, piece->index_name};
    }
    int r = piece_dir_publish(names, n, s->durable, s->lock);
    free(names);
    return r;
}

int split_output_close(struct split_output *split, bool complete,
                       struct output_result *result)
{
    int r = close_pieces(split, true, complete);
    if (!complete) r = -1;
    if (r == 0) r = make_empty(split);
    if (r == 0) r = publish(split);
    if (r == 0) tell_of_stale_indexes(split);
    *result = (struct output_result){0};
    for (size_t i = 0; r == 0 && i < split->n_pieces; i++)
        result->n_bytes += split->pieces[i].n_bytes;
    return r;
}

struct sort_piece *split_output_pieces(const struct split_output *split, size_t *n)
{
    struct sort_piece *pieces = xcalloc(split->n_pieces, sizeof *pieces);
    *n = split->n_pieces;
    for (size_t i = 0; i < split->n_pieces; i++) {
        const struct piece *piece = &split->pieces[i];
        pieces[i] = (struct sort_piece){
            .title = xstrdup(piece->title),
            .begin = split_plan_range_begin(split->settings.plan, i, split->settings.header),
            .file = xstrdup(piece->name),
            .index = piece->index_name ? xstrdup(piece->index_name) : NULL,
            .n_records = piece->n_records,
            .n_bytes = piece->n_bytes,
        };
    }
    return pieces;
}
