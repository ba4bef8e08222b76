/* decide.c -- see decide.h. */
#include "pipeline/decide.h"

#include "duplicates/duplicate_chains.h"
#include "duplicates/duplicate_table.h"
#include "pipeline/view_chunks.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    VIEW_BYTES_USUAL = 24,      /* to estimate how many views a stream has */
    MAX_DIVISIONS = 8,
    MAX_PARTS = 1 << 2 * MAX_DIVISIONS, /* of the keys of a partition */
};

struct decider;

/* All views that agree in ref and here, of which there are so many that they are decided after all
   others, one place at a time, with all memory. */
struct large_place {
    unsigned partition;
    int32_t ref;
    int64_t here;
};

/* A part of the keys: those of which duplicate_key_part is `part`. */
struct key_part {
    unsigned part, n_parts;
    const struct large_place *only;     /* not NULL: one place instead */
};

/* The work of all jobs. */
struct decision {
    const struct decide_settings *settings;
    struct decider *deciders;   /* one for each job that may run at a time */
    int (*decide)(struct decider *decider);     /* a partition; returns 0, or -1 after a message */
    int (*large_pass)(struct decider *decider, struct key_part keys);   /* over one place */
    pthread_mutex_t names_lock; /* for appending names, and nothing else */
};

/* All views of a part, and the names that they point to. */
struct chain_gather {
    struct chain_member *members;
    size_t n, room;
    uint8_t *texts;             /* names and barcodes */
    size_t texts_bytes, texts_room;
    const struct chain_member **ends;   /* of single reads that belong elsewhere */
    size_t ends_room;
    int32_t often_ref;          /* the place of at least a quarter of the members, if its */
    int64_t often_here;         /* lead is a quarter of their number */
    size_t lead;
    size_t n_lacking, lacking_bytes;    /* of one place: members for which there was no room */
};

/* What one job works with. */
struct decider {
    struct crew_slot slot;
    struct decision *decision;
    struct duplicate_table *singles, *pairs;
    struct chain_gather chains;
    size_t chain_bytes;         /* that the gatherer may take */
    struct large_place *large;  /* that were found */
    size_t n_large, large_room;
    struct temp_stream_reader reader;
    struct duplicate_counts *counts;
    unsigned partition;
    uint64_t n_views;           /* that were visited since the pass began */
    uint64_t n_done;            /* of these, that a pass has seen before it was given up */
    bool is_again;              /* the view that is visited is one of them */
};

/* What a pass over a stream does with each view. TABLE_FULL and TABLE_FAILED end the pass. */
typedef enum table_result (*view_visitor)(struct decider *decider,
                                          const struct duplicate_view *view, uint32_t run,
                                          struct key_part keys);

static const struct duplicate_rules *rules_of(const struct decider *decider)
{
    return decider->decision->settings->rules;
}

/* ---- what was found ---- */

/* What is remembered of a duplicate that has other records, which will be marked, too. The name of
   its original follows. */
struct name_entry {
    struct duplicate_key key;   /* of its name */
    struct duplicate_name name; /* its pointer means nothing */
};

/* Returns 0, or -1 after a message. */
static int remember_name(struct decider *decider, const uint8_t *name, size_t name_bytes,
                         const struct duplicate_name *duplicate)
{
    struct decision *decision = decider->decision;
    struct temp_streams *names = decision->settings->names;
    struct name_entry entry;
    memset(&entry, 0, sizeof entry);    /* all of it is written */
    entry.key = duplicate_key_of_name(name, name_bytes);
    entry.name = *duplicate;
    entry.name.original = NULL;
    unsigned stream = view_name_partition(view_name_hash(name, name_bytes));
    (void)pthread_mutex_lock(&decision->names_lock);
    int r = temp_streams_append(names, stream, &entry, sizeof entry);
    if (r == 0)
        r = temp_streams_append(names, stream, duplicate->original, duplicate->original_bytes);
    (void)pthread_mutex_unlock(&decision->names_lock);
    return r;
}

/* Marks a duplicate and counts it, once. Returns 0 if that was done already, or -1 after a
   message. */
static int mark(struct decider *decider, const struct duplicate_record *record, bool is_pair)
{
    struct duplicate_counts *counts = &decider->counts[record->group];
    if (decider->is_again) return 0;
    int r = duplicate_marks_set(decider->decision->settings->marks, record->run, record->index);
    if (r <= 0) return r;
    if (is_pair)
        counts->paired_duplicates++;
    else
        counts->single_duplicates++;
    if (rules_of(decider)->removes && !record->was_marked) counts->written--;
    return 1;
}

static enum table_result found(struct decider *decider, const struct duplicate_record *record,
                               bool is_pair)
{
    const struct duplicate_name name = {.place = record->place, .run = record->run,
                                        .index = record->index, .group = record->group};
    int marked = mark(decider, record, is_pair);
    if (marked < 0) return TABLE_FAILED;
    if (marked == 0 || !record->has_others) return TABLE_DUPLICATE;
    return remember_name(decider, record->name, record->name_bytes, &name) < 0 ? TABLE_FAILED
                                                                               : TABLE_DUPLICATE;
}

static enum table_result lacks_score(const struct duplicate_record *record)
{
    diag_error("read '%.*s' has no tag ms, by which pairs are compared: add --fixmate, or run "
               "samtools fixmate -m first", (int)record->name_bytes, (const char *)record->name);
    return TABLE_FAILED;
}

/* ---- reading streams ---- */

/* Reads a whole stream of views. Returns 0, 1 if a table was full, or -1 after a message. */
static int visit_stream(struct decider *decider, unsigned stream, view_visitor visit,
                        struct key_part keys)
{
    struct temp_stream_reader *reader = &decider->reader;
    temp_stream_reader_begin(reader, decider->decision->settings->views, stream);
    struct view_chunk chunk;
    struct duplicate_view view;
    int got;
    while ((got = view_chunks_next(reader, &chunk)) > 0)
        while (view_chunk_next(&chunk, &view)) {
            decider->is_again = decider->n_views++ < decider->n_done;
            enum table_result r = visit(decider, &view, chunk.run, keys);
            if (r == TABLE_FULL) return 1;
            if (r == TABLE_FAILED) return -1;
        }
    return got;
}

/* ---- examined reads ---- */

static enum table_result add(struct decider *decider, struct duplicate_table *table,
                             struct duplicate_key key, const struct duplicate_view *view,
                             uint32_t run)
{
    struct duplicate_record record;
    enum table_result r = duplicate_table_add(table, key, view, run, &record);
    if (r == TABLE_LACKS_SCORE) return lacks_score(&record);
    return r == TABLE_DUPLICATE ? found(decider, &record, view->kind == VIEW_PAIR) : r;
}

static enum table_result visit_single(struct decider *decider, const struct duplicate_view *view,
                                      uint32_t run, struct key_part keys)
{
    struct duplicate_key key = duplicate_key_of_single(rules_of(decider), view);
    if (duplicate_key_part(key, keys.n_parts) != keys.part) return TABLE_NO_DUPLICATE;
    return add(decider, decider->singles, key, view, run);
}

/* Single reads at the 5' end of a member of a pair are duplicates. */
static enum table_result visit_end(struct decider *decider, const struct duplicate_view *view,
                                   uint32_t run, struct key_part keys)
{
    (void)run;
    (void)keys;
    struct duplicate_record record;
    const struct duplicate_rules *rules = rules_of(decider);
    if (view->kind == VIEW_PAIR && view->other_place != view->here) return TABLE_NO_DUPLICATE;
    struct duplicate_key key = duplicate_key_of_single(rules, view);
    enum table_result r = duplicate_table_meet_pair(decider->singles, key, &record);
    return r == TABLE_DUPLICATE ? found(decider, &record, false) : r;
}

static enum table_result visit_pair(struct decider *decider, const struct duplicate_view *view,
                                    uint32_t run, struct key_part keys)
{
    if (keys.part == 0 && !duplicate_table_is_empty(decider->singles) &&
        visit_end(decider, view, run, keys) == TABLE_FAILED)
        return TABLE_FAILED;
    if (view->kind == VIEW_END) return TABLE_NO_DUPLICATE;
    struct duplicate_key key = duplicate_key_of_pair(rules_of(decider), view);
    if (duplicate_key_part(key, keys.n_parts) != keys.part) return TABLE_NO_DUPLICATE;
    return add(decider, decider->pairs, key, view, run);
}

/* If many of the members that were gathered are of one place, no other part would help: has that
   place decided later. Returns false if not. */
static bool set_apart(struct decider *decider)
{
    struct chain_gather *gather = &decider->chains;
    if (gather->lead == 0 || gather->lead < gather->n / 4) return false;
    xgrow(&decider->large, &decider->large_room, decider->n_large + 1, decider->n_large,
          sizeof *decider->large);
    decider->large[decider->n_large++] = (struct large_place){
        .partition = decider->partition, .ref = gather->often_ref, .here = gather->often_here,
    };
    gather->lead = 0;
    return true;
}

/* A pass over all keys of a part. Returns as visit_stream. */
typedef int (*part_pass)(struct decider *decider, struct key_part keys);

/* Makes passes over all keys at once, or, if they do not fit into a table, over so many parts of
   them that they do. Parts that are done stay done: the one that did not fit is divided, and what
   was found in it before the table was full is right, and will be found again. Returns the number
   of parts, or -1 after a message.
   All parts are of one size, so each size is given up once at most: given_up[i] is the part of 4^i
   that was, and n_done[i] says before which view. Parts of it mark nothing before that view. */
static int decide_in_parts(struct decider *decider, part_pass pass)
{
    struct key_part keys = {.n_parts = 1};
    unsigned given_up[MAX_DIVISIONS] = {0}, n_divisions = 0;
    uint64_t n_done[MAX_DIVISIONS] = {0};
    while (keys.part < keys.n_parts) {
        decider->n_views = decider->n_done = 0;
        for (unsigned i = 0; i < n_divisions; i++)
            if (keys.part >> 2 * (n_divisions - i) == given_up[i]) decider->n_done = n_done[i];
        int r = pass(decider, keys);
        decider->is_again = false;
        if (r < 0) return -1;
        if (r == 0) {
            keys.part++;
            continue;
        }
        if (set_apart(decider)) continue;
        if (keys.n_parts >= MAX_PARTS) {
            diag_error("--markdup needs more memory than it may use here: give more with -m");
            return -1;
        }
        given_up[n_divisions] = keys.part;
        n_done[n_divisions++] = decider->n_views > 0 ? decider->n_views - 1 : 0;
        keys.part *= 4;
        keys.n_parts *= 4;
    }
    return (int)keys.n_parts;
}

static uint64_t n_views(const struct decider *decider, unsigned stream)
{
    return temp_streams_bytes(decider->decision->settings->views, stream) / VIEW_BYTES_USUAL;
}

/* If all keys fit, the table is left for the pass over pairs. Else pairs are read for each part. */
static int pass_over_singles(struct decider *decider, struct key_part keys)
{
    unsigned stream = VIEW_STREAM_SINGLES + decider->partition;
    duplicate_table_reset(decider->singles, n_views(decider, stream));
    int r = visit_stream(decider, stream, visit_single, keys);
    if (r != 0 || keys.n_parts == 1) return r;
    return visit_stream(decider, VIEW_STREAM_PAIRS + decider->partition, visit_end, keys);
}

static int pass_over_pairs(struct decider *decider, struct key_part keys)
{
    unsigned stream = VIEW_STREAM_PAIRS + decider->partition;
    duplicate_table_reset(decider->pairs, n_views(decider, stream));
    return visit_stream(decider, stream, visit_pair, keys);
}

static int decide_reads(struct decider *decider)
{
    int n_parts = decide_in_parts(decider, pass_over_singles);
    if (n_parts < 0) return -1;
    if (n_parts > 1) duplicate_table_reset(decider->singles, 0);
    return decide_in_parts(decider, pass_over_pairs) < 0 ? -1 : 0;
}

/* ---- chains ---- */

/* Of each member: its place in an array that has grown, and what duplicate_chains_decide takes; its
   texts are counted besides. */
enum {
    MEMBER_BYTES = sizeof(struct chain_member) / 8 * 9 + 140,
    LARGE_PLACE_BYTES = 16 << 20,       /* at least, for a place that is decided by itself */
};

/* Keeps a copy of a text and returns its offset as a pointer, which fix_texts makes one of. Offsets
   count from 1: NULL is no text. */
static const uint8_t *keep_text(struct chain_gather *gather, const uint8_t *text, size_t n_bytes)
{
    size_t at = gather->texts_bytes, end = at + n_bytes;
    if (!text) return NULL;
    xgrow(&gather->texts, &gather->texts_room, end, end / 8 + 1, 1);
    memcpy(gather->texts + at, text, n_bytes);
    gather->texts_bytes = end;
    return (const uint8_t *)(uintptr_t)(at + 1);
}

/* Turns the offsets of texts into pointers. */
static void fix_texts(struct chain_gather *gather)
{
    for (size_t i = 0; i < gather->n; i++) {
        struct duplicate_view *view = &gather->members[i].view;
        if (view->name) view->name = gather->texts + (uintptr_t)view->name - 1;
        if (view->barcode_text)
            view->barcode_text = gather->texts + (uintptr_t)view->barcode_text - 1;
    }
}

/* The reverse: the texts may be moved again. */
static void relist_texts(struct chain_gather *gather)
{
    for (size_t i = 0; i < gather->n; i++) {
        struct duplicate_view *view = &gather->members[i].view;
        if (view->name)
            view->name = (const uint8_t *)(uintptr_t)(view->name - gather->texts + 1);
        if (view->barcode_text)
            view->barcode_text =
                (const uint8_t *)(uintptr_t)(view->barcode_text - gather->texts + 1);
    }
}

/* True if a view belongs to a part; home: where it is decided. */
static bool is_in_part(const struct decider *decider, const struct duplicate_view *home,
                       struct key_part keys)
{
    if (keys.only) return home->ref == keys.only->ref && home->here == keys.only->here;
    if (duplicate_view_place_part(home, keys.n_parts) != keys.part) return false;
    for (size_t i = 0; i < decider->n_large; i++) {
        const struct large_place *large = &decider->large[i];
        if (large->here == home->here && large->ref == home->ref) return false;
    }
    return true;
}

/* The vote of Boyer and Moore. */
static void count_place(struct chain_gather *gather, const struct duplicate_view *home)
{
    if (gather->lead == 0) {
        gather->often_ref = home->ref;
        gather->often_here = home->here;
    }
    if (gather->often_here == home->here && gather->often_ref == home->ref)
        gather->lead++;
    else
        gather->lead--;
}

/* Adds a view that is decided at the place of `home`. Returns false if there is no room. Those of
   one place are counted then. */
static bool add_member(struct decider *decider, const struct duplicate_view *view, uint32_t run,
                       const struct duplicate_view *home, struct key_part keys)
{
    struct chain_gather *gather = &decider->chains;
    size_t n = gather->n + 1, texts_bytes = view->name_bytes + view->barcode_bytes;
    if (n * MEMBER_BYTES + gather->texts_bytes + texts_bytes > decider->chain_bytes) {
        gather->n_lacking++;
        gather->lacking_bytes += MEMBER_BYTES + texts_bytes;
        return keys.only != NULL;
    }
    count_place(gather, home);
    xgrow(&gather->members, &gather->room, n, n / 8, sizeof *gather->members);
    struct chain_member *added = &gather->members[gather->n];
    *added = (struct chain_member){.view = *view, .run = run};
    added->view.name = keep_text(gather, view->name, view->name_bytes);
    added->view.barcode_text = keep_text(gather, view->barcode_text, view->barcode_bytes);
    gather->n = n;
    return true;
}

static enum table_result visit_member(struct decider *decider, const struct duplicate_view *view,
                                      uint32_t run, struct key_part keys)
{
    if (!is_in_part(decider, view, keys)) return TABLE_NO_DUPLICATE;
    return add_member(decider, view, run, view, keys) ? TABLE_NO_DUPLICATE : TABLE_FULL;
}

/* Returns 0 if there was room for all members of one place, or -1 after a message. */
static int check_room(const struct chain_gather *gather, struct key_part keys)
{
    enum { MIB = 1 << 20 };
    if (!keys.only || gather->n_lacking == 0) return 0;
    /* The search has at least two thirds of all memory. */
    size_t n_bytes = gather->n * MEMBER_BYTES + gather->texts_bytes + gather->lacking_bytes;
    diag_error("%zu reads begin at position %" PRId64 " of reference %" PRId32 ": for tags and "
               "mismatches --markdup needs --max-memory %zuM",
               gather->n + gather->n_lacking, keys.only->here, keys.only->ref + 1,
               n_bytes / MIB * 3 / 2 + 32);
    return -1;
}

/* When both are read, the worse of them becomes a duplicate. */
static const struct chain_member *last_in_file(const struct chain_member *a,
                                               const struct chain_member *b)
{
    int64_t x = duplicate_view_place(&a->view), y = duplicate_view_place(&b->view);
    if (x != y) return x > y ? a : b;
    if (a->run != b->run) return a->run > b->run ? a : b;
    return a->view.index > b->view.index ? a : b;
}

/* Marks a duplicate and writes down its tags. Returns 0, or -1 after a message. */
static int take_duplicate(struct decider *decider, const struct chain_member *member)
{
    const struct decide_settings *s = decider->decision->settings;
    const struct duplicate_rules *rules = rules_of(decider);
    const struct duplicate_view *view = &member->view;
    const struct duplicate_record record = {
        .run = member->run, .index = view->index, .was_marked = view->was_marked,
        .group = view->group,
    };
    bool is_pair = view->kind == VIEW_PAIR;
    int marked = mark(decider, &record, is_pair);
    if (marked <= 0) return marked;
    if (member->is_optical && is_pair) decider->counts[view->group].paired_optical++;
    if (member->is_optical && !is_pair) decider->counts[view->group].single_optical++;
    struct duplicate_note note = {.run = member->run, .index = view->index,
                                  .is_optical = member->is_optical};
    const struct chain_member *last = last_in_file(member, member->found_by);
    struct duplicate_name name = {
        .place = duplicate_view_place(&last->view), .run = last->run, .index = last->view.index,
        .group = view->group,
        .was_optical = member->was_optical,
        .turned_optical = member->is_optical && !member->was_optical,
    };
    if (rules->names_original) {
        note.original = member->original->view.name;
        note.original_bytes = member->original->view.name_bytes;
        name.original = member->found_by->view.name;
        name.original_bytes = member->found_by->view.name_bytes;
    }
    if (s->notes && !rules->removes && duplicate_notes_put(s->notes, &note) < 0) return -1;
    return view->has_others ? remember_name(decider, view->name, view->name_bytes, &name) : 0;
}

static int take_member(struct decider *decider, const struct chain_member *member)
{
    const struct duplicate_view *view = &member->view;
    if (member->is_duplicate) return take_duplicate(decider, member);
    if (!rules_of(decider)->counts || member->count <= 1) return 0;
    const struct duplicate_note note = {.run = member->run, .index = view->index,
                                        .count = member->count};
    return duplicate_notes_put(decider->decision->settings->notes, &note);
}

/* Gathers the views of single reads and of pairs of a part. Returns as visit_stream. */
static int gather_members(struct decider *decider, struct key_part keys)
{
    struct chain_gather *gather = &decider->chains;
    gather->n = gather->texts_bytes = 0;
    gather->lead = gather->n_lacking = gather->lacking_bytes = 0;
    int r = visit_stream(decider, VIEW_STREAM_SINGLES + decider->partition, visit_member, keys);
    if (r == 0)
        r = visit_stream(decider, VIEW_STREAM_PAIRS + decider->partition, visit_member, keys);
    if (r == 0) r = check_room(gather, keys);
    if (r == 0) fix_texts(gather);
    return r;
}

/*
 * A single read that belongs to the chain of a pair in another partition (duplicate_chains_route).
 * Its name and barcode follow.
 */
struct guest_entry {
    struct duplicate_view view; /* its pointers mean nothing, but for NULL */
    uint32_t run;
    int64_t home;               /* `here` of the pair */
};

static struct duplicate_view home_of_guest(const struct guest_entry *guest)
{
    return (struct duplicate_view){.ref = guest->view.ref, .here = guest->home};
}

static int send_guest(struct decider *decider, const struct chain_member *single,
                      const struct chain_member *end)
{
    struct decision *decision = decider->decision;
    struct temp_streams *guests = decision->settings->guests;
    struct guest_entry entry;
    memset(&entry, 0, sizeof entry);    /* all of it is written */
    entry.view = single->view;
    entry.run = single->run;
    entry.home = end->view.other_place;
    const struct duplicate_view home = home_of_guest(&entry);
    unsigned stream = duplicate_view_partition(&home);
    (void)pthread_mutex_lock(&decision->names_lock);
    int r = temp_streams_append(guests, stream, &entry, sizeof entry);
    if (r == 0 && entry.view.name)
        r = temp_streams_append(guests, stream, entry.view.name, entry.view.name_bytes);
    if (r == 0 && entry.view.barcode_text)
        r = temp_streams_append(guests, stream, entry.view.barcode_text, entry.view.barcode_bytes);
    (void)pthread_mutex_unlock(&decision->names_lock);
    return r;
}

/* Finds which of the single reads that were gathered belong elsewhere, sends them there if `sends`,
   and leaves only what is decided here. Returns 0, or -1 after a message. */
static int route_singles(struct decider *decider, bool sends)
{
    struct chain_gather *gather = &decider->chains;
    xgrow(&gather->ends, &gather->ends_room, gather->n, gather->n / 8, sizeof *gather->ends);
    size_t kept = 0;
    int r = 0;
    (void)duplicate_chains_route(rules_of(decider), gather->members, gather->n, gather->ends);
    for (size_t i = 0; i < gather->n && sends && r == 0; i++)
        if (gather->ends[i]) r = send_guest(decider, &gather->members[i], gather->ends[i]);
    for (size_t i = 0; i < gather->n; i++)
        if (!gather->ends[i] && gather->members[i].view.kind != VIEW_END)
            gather->members[kept++] = gather->members[i];
    gather->n = kept;
    return r;
}

/* Sends single reads to the pairs that they belong to. */
static int pass_for_guests(struct decider *decider, struct key_part keys)
{
    int r = gather_members(decider, keys);
    return r == 0 ? route_singles(decider, true) : r;
}

static int send_guests(struct decider *decider)
{
    return decide_in_parts(decider, pass_for_guests) < 0 ? -1 : 0;
}

/* Adds the single reads that were sent here. Returns as visit_stream. */
static int gather_guests(struct decider *decider, struct key_part keys)
{
    struct temp_streams *guests = decider->decision->settings->guests;
    struct temp_stream_reader *reader = &decider->reader;
    temp_stream_reader_begin(reader, guests, decider->partition);
    while (!temp_stream_is_at_end(reader)) {
        struct guest_entry entry;
        const uint8_t *bytes = temp_stream_read(reader, sizeof entry);
        if (!bytes) return -1;
        memcpy(&entry, bytes, sizeof entry);
        struct duplicate_view *view = &entry.view;
        size_t name_bytes = view->name ? view->name_bytes : 0;
        bytes = temp_stream_read(reader, name_bytes + view->barcode_bytes);
        if (!bytes) return -1;
        const struct duplicate_view home = home_of_guest(&entry);
        if (!is_in_part(decider, &home, keys)) continue;
        if (view->name) view->name = bytes;
        if (view->barcode_text) view->barcode_text = bytes + name_bytes;
        if (!add_member(decider, view, entry.run, &home, keys)) return 1;
    }
    return check_room(&decider->chains, keys);
}

static int pass_over_chains(struct decider *decider, struct key_part keys)
{
    struct chain_gather *gather = &decider->chains;
    int r = gather_members(decider, keys);
    if (r == 0) r = route_singles(decider, false);
    if (r != 0) return r;
    relist_texts(gather);
    if ((r = gather_guests(decider, keys)) != 0) return r;
    fix_texts(gather);
    const struct chain_member *without_score =
        duplicate_chains_decide(rules_of(decider), gather->members, gather->n);
    if (without_score) {
        const struct duplicate_record record = {.name = without_score->view.name,
                                                .name_bytes = without_score->view.name_bytes};
        (void)lacks_score(&record);
        return -1;
    }
    for (size_t i = 0; i < gather->n && r == 0; i++) r = take_member(decider, &gather->members[i]);
    return r;
}

static int decide_chains(struct decider *decider)
{
    return decide_in_parts(decider, pass_over_chains) < 0 ? -1 : 0;
}

/* ---- other records of duplicates ---- */

/* Reads the names of duplicates into the table. Returns as visit_stream. */
static int read_names(struct decider *decider, struct key_part keys)
{
    struct temp_streams *names = decider->decision->settings->names;
    struct temp_stream_reader *reader = &decider->reader;
    struct name_entry entry;
    duplicate_table_reset(decider->pairs,
                          temp_streams_bytes(names, decider->partition) / sizeof entry);
    temp_stream_reader_begin(reader, names, decider->partition);
    while (!temp_stream_is_at_end(reader)) {
        const uint8_t *bytes = temp_stream_read(reader, sizeof entry);
        if (!bytes) return -1;
        memcpy(&entry, bytes, sizeof entry);
        if (entry.name.original_bytes > 0) {
            entry.name.original = temp_stream_read(reader, entry.name.original_bytes);
            if (!entry.name.original) return -1;
        }
        if (duplicate_key_part(entry.key, keys.n_parts) == keys.part &&
            duplicate_table_add_name(decider->pairs, entry.key, &entry.name) == TABLE_FULL)
            return 1;
    }
    return 0;
}

static enum table_result visit_other(struct decider *decider, const struct duplicate_view *view,
                                     uint32_t run, struct key_part keys)
{
    const struct decide_settings *s = decider->decision->settings;
    const struct duplicate_rules *rules = rules_of(decider);
    struct duplicate_name name;
    struct duplicate_key key = duplicate_key_of_name(view->name, view->name_bytes);
    if (duplicate_key_part(key, keys.n_parts) != keys.part ||
        !duplicate_table_find_name(decider->pairs, key, &name))
        return TABLE_NO_DUPLICATE;
    int marked = duplicate_marks_set(s->marks, run, view->index);
    if (marked <= 0) return marked < 0 ? TABLE_FAILED : TABLE_NO_DUPLICATE;
    /* As in samtools, records with earlier marks are removed before others are looked for. */
    bool is_counted = !rules->removes || !view->was_marked;
    const struct duplicate_note note = {
        .run = run, .index = view->index, .is_optical = name.was_optical || name.turned_optical,
        .original = name.original, .original_bytes = name.original_bytes,
    };
    if (is_counted) decider->counts[name.group].other_duplicates++;
    if (is_counted && note.is_optical) decider->counts[name.group].other_optical++;
    if (s->notes && !rules->removes && duplicate_notes_put(s->notes, &note) < 0)
        return TABLE_FAILED;
    return TABLE_NO_DUPLICATE;
}

static int pass_over_others(struct decider *decider, struct key_part keys)
{
    int r = read_names(decider, keys);
    if (r != 0 || duplicate_table_is_empty(decider->pairs)) return r;
    return visit_stream(decider, VIEW_STREAM_OTHERS + decider->partition, visit_other, keys);
}

static int decide_others(struct decider *decider)
{
    return decide_in_parts(decider, pass_over_others) < 0 ? -1 : 0;
}

/* ---- jobs ---- */

static void decide_job(struct worker *worker, void *arg)
{
    (void)worker;
    struct decider *decider = arg;
    struct decision *decision = decider->decision;
    struct crew *crew = decision->settings->crew;
    if (!crew_failed(crew) && decision->decide(decider) < 0) crew_fail(crew);
    crew_free_slot(crew, &decider->slot);
}

/* Has the streams of a partition read ahead, so that jobs need not wait for a disk. */
static void advise(const struct decide_settings *s, unsigned partition)
{
    if (partition >= VIEW_N_PARTITIONS) return;
    temp_streams_advise(s->views, VIEW_STREAM_SINGLES + partition);
    temp_streams_advise(s->views, VIEW_STREAM_PAIRS + partition);
}

static void release_gather(struct chain_gather *gather)
{
    free(gather->members);
    free(gather->texts);
    free(gather->ends);
    *gather = (struct chain_gather){0};
}

/* Decides the places that the others have set apart, one after another. */
static int decide_large_places(struct decider *decider)
{
    struct decision *decision = decider->decision;
    int r = 0;
    for (unsigned i = 0; i < decision->settings->n_threads; i++) {
        struct decider *found_by = &decision->deciders[i];
        for (size_t k = 0; k < found_by->n_large && r == 0; k++) {
            const struct key_part keys = {.n_parts = 1, .only = &found_by->large[k]};
            decider->partition = found_by->large[k].partition;
            r = decision->large_pass(decider, keys);
        }
        found_by->n_large = 0;
    }
    return r;
}

/* Has them decided, with the memory of all jobs. Returns 0, or -1 if the crew has failed. */
static int decide_set_apart(struct decision *decision)
{
    const struct decide_settings *s = decision->settings;
    size_t n = 0;
    for (unsigned i = 0; i < s->n_threads; i++) n += decision->deciders[i].n_large;
    if (n == 0) return 0;
    for (unsigned i = 0; i < s->n_threads; i++) release_gather(&decision->deciders[i].chains);
    decision->decide = decide_large_places;
    struct decider *decider =
        crew_take_slot(s->crew, decision->deciders, s->n_threads, sizeof *decider);
    if (!decider) return -1;
    /* In little memory the allowance is used, too: no other job runs. */
    decider->chain_bytes =
        s->memory_bytes > LARGE_PLACE_BYTES ? s->memory_bytes : LARGE_PLACE_BYTES;
    int r = crew_submit(s->crew, decide_job, decider);
    if (crew_finish_jobs(s->crew) < 0) r = -1;
    decider->chain_bytes = s->memory_bytes / s->n_threads;
    release_gather(&decider->chains);
    return r;
}

/* Has all partitions decided. Returns 0, or -1 if the crew has failed. */
static int decide_partitions(struct decision *decision, int (*decide)(struct decider *))
{
    const struct decide_settings *s = decision->settings;
    decision->decide = decide;
    for (unsigned p = 0; p < VIEW_N_PARTITIONS; p++) {
        struct decider *decider =
            crew_take_slot(s->crew, decision->deciders, s->n_threads, sizeof *decider);
        if (!decider) break;
        advise(s, p + s->n_threads);
        decider->partition = p;
        if (crew_submit(s->crew, decide_job, decider) < 0) break;
    }
    return crew_finish_jobs(s->crew);
}

/* The same for chains. */
static int decide_chain_partitions(struct decision *decision, part_pass pass,
                                   int (*decide)(struct decider *))
{
    decision->large_pass = pass;
    int r = decide_partitions(decision, decide);
    return r == 0 ? decide_set_apart(decision) : r;
}

static void prepare_decision(struct decision *decision, const struct decide_settings *s)
{
    size_t each_bytes = s->memory_bytes / s->n_threads;
    *decision = (struct decision){.settings = s};
    (void)pthread_mutex_init(&decision->names_lock, NULL);
    decision->deciders = xcalloc(s->n_threads, sizeof *decision->deciders);
    for (unsigned i = 0; i < s->n_threads; i++) {
        struct decider *decider = &decision->deciders[i];
        decider->decision = decision;
        decider->singles = duplicate_table_create(each_bytes / 4);
        decider->pairs = duplicate_table_create(each_bytes / 4 * 3);
        decider->chain_bytes = each_bytes;
        decider->counts = xcalloc(s->n_counts, sizeof *decider->counts);
    }
}

static void release_decision(struct decision *decision)
{
    const struct decide_settings *s = decision->settings;
    for (unsigned i = 0; i < s->n_threads; i++) {
        struct decider *decider = &decision->deciders[i];
        for (size_t k = 0; k < s->n_counts; k++)
            duplicate_counts_join(&s->counts[k], &decider->counts[k]);
        duplicate_table_destroy(decider->singles);
        duplicate_table_destroy(decider->pairs);
        temp_stream_reader_release(&decider->reader);
        release_gather(&decider->chains);
        free(decider->large);
        free(decider->counts);
    }
    free(decision->deciders);
    (void)pthread_mutex_destroy(&decision->names_lock);
}

int decide_duplicates(const struct decide_settings *settings)
{
    struct decision decision;
    prepare_decision(&decision, settings);
    int r = 0;
    if (!duplicate_rules_need_chains(settings->rules)) {
        r = decide_partitions(&decision, decide_reads);
    } else {
        if (!settings->rules->by_sequence)
            r = decide_chain_partitions(&decision, pass_for_guests, send_guests);
        if (r == 0) r = decide_chain_partitions(&decision, pass_over_chains, decide_chains);
    }
    if (r == 0 && settings->names) r = decide_partitions(&decision, decide_others);
    release_decision(&decision);
    return r;
}
