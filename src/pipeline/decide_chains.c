/* decide_chains.c -- see decide_chains.h. */
#include "pipeline/decide_chains.h"

#include "duplicates/duplicate_chains.h"
#include "duplicates/view_streams.h"
#include "pipeline/large_chains.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

/* All views that agree in ref and here, of which there are so many that they are decided after all
   others, one place at a time, with all memory. */
struct large_place {
    unsigned partition;
    int32_t ref;
    int64_t here;
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
    bool has[VIEW_OTHER];       /* kinds of views that were gathered or lack room */
    bool lacks_room;            /* for all members of one place */
};

/* What one job works with, besides its decider. */
struct chain_work {
    struct chain_gather gather;
    size_t gather_bytes;        /* that it may take */
    struct large_place *large;  /* that were found */
    size_t n_large, large_room;
    part_pass large_pass;       /* over one of them */
    const struct large_place *only;     /* the one that is passed over; NULL: a part of the keys */
    struct large_chains *large_chains;  /* of one that does not fit in memory */
};

/* ---- gathering ---- */

/* Of each member: its place in an array that has grown, and what duplicate_chains_decide takes; its
   texts are counted besides. */
enum {
    MEMBER_BYTES = sizeof(struct chain_member) / 8 * 9 + 140,
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
    const struct chain_work *work = decider->chains;
    if (work->only) return home->ref == work->only->ref && home->here == work->only->here;
    if (duplicate_view_place_part(home, keys.n_parts) != keys.part) return false;
    /* Those of this partition were found last. */
    for (size_t i = work->n_large; i > 0; i--) {
        const struct large_place *large = &work->large[i - 1];
        if (large->partition != decider->partition) break;
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

/* Adds a view that is decided at the place of `home`. Returns false if there is no room; of one
   place, all views are looked at also then. */
static bool add_member(struct decider *decider, const struct duplicate_view *view, uint32_t run,
                       const struct duplicate_view *home)
{
    struct chain_gather *gather = &decider->chains->gather;
    size_t n = gather->n + 1, texts_bytes = view->name_bytes + view->barcode_bytes;
    gather->has[view->kind] = true;
    if (n * MEMBER_BYTES + gather->texts_bytes + texts_bytes > decider->chains->gather_bytes) {
        gather->lacks_room = true;
        return decider->chains->only != NULL;
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
    return add_member(decider, view, run, view) ? TABLE_NO_DUPLICATE : TABLE_FULL;
}

/* When both are read, the worse of them becomes a duplicate. */
static const struct chain_member *last_in_file(const struct chain_member *a,
                                               const struct chain_member *b)
{
    int64_t x = duplicate_view_place(&a->view), y = duplicate_view_place(&b->view);
    if (x != y) return x > y ? a : b;
    if (a->run != b->run) return a->run > b->run ? a : b;
    return a->view.ordinal > b->view.ordinal ? a : b;
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
    if (rules->only_optical && !member->is_optical) {
        count_duplicate(decider, view->group, is_pair);
        return 0;
    }
    int marked = mark_duplicate(decider, &record, is_pair);
    if (marked <= 0) return marked;
    if (member->is_optical && is_pair) decider_counts(decider, view->group)->paired_optical++;
    if (member->is_optical && !is_pair) decider_counts(decider, view->group)->single_optical++;
    struct duplicate_note note = {.run = member->run, .index = view->index,
                                  .is_optical = member->is_optical};
    const struct chain_member *last = last_in_file(member, member->found_by);
    struct duplicate_name name = {
        .place = duplicate_view_place(&last->view), .run = last->run,
        .ordinal = last->view.ordinal, .group = view->group,
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
    struct chain_gather *gather = &decider->chains->gather;
    gather->n = gather->texts_bytes = 0;
    gather->lead = 0;
    gather->lacks_room = false;
    memset(gather->has, 0, sizeof gather->has);
    int r = visit_stream(decider, VIEW_STREAM_SINGLES + decider->partition, visit_member, keys);
    if (r == 0)
        r = visit_stream(decider, VIEW_STREAM_PAIRS + decider->partition, visit_member, keys);
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

static int send_guest(struct decider *decider, const struct duplicate_view *single, uint32_t run,
                      const struct duplicate_view *end)
{
    struct decision *decision = decider->decision;
    struct temp_streams *guests = decision->settings->guests;
    struct guest_entry entry;
    memset(&entry, 0, sizeof entry);    /* all of it is written */
    entry.view = *single;
    entry.run = run;
    entry.home = end->other_place;
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
    struct chain_gather *gather = &decider->chains->gather;
    xgrow(&gather->ends, &gather->ends_room, gather->n, gather->n / 8, sizeof *gather->ends);
    size_t kept = 0;
    int r = 0;
    (void)duplicate_chains_route(rules_of(decider), gather->members, gather->n, gather->ends);
    for (size_t i = 0; i < gather->n && sends && r == 0; i++) {
        const struct chain_member *single = &gather->members[i];
        if (gather->ends[i])
            r = send_guest(decider, &single->view, single->run, &gather->ends[i]->view);
    }
    for (size_t i = 0; i < gather->n; i++)
        if (!gather->ends[i] && gather->members[i].view.kind != VIEW_END)
            gather->members[kept++] = gather->members[i];
    gather->n = kept;
    return r;
}

/* What is done with a single read that was sent here; home: where it is decided. Returns as
   visit_stream. */
typedef int (*guest_visitor)(struct decider *decider, const struct duplicate_view *view,
                             uint32_t run, const struct duplicate_view *home);

/* Reads the single reads that were sent here. Returns as visit_stream. */
static int visit_guests(struct decider *decider, guest_visitor visit, struct key_part keys)
{
    struct temp_streams *guests = decider->decision->settings->guests;
    struct temp_stream_reader *reader = &decider->reader;
    int r = 0;
    temp_stream_reader_begin(reader, guests, decider->partition);
    while (!temp_stream_is_at_end(reader) && r == 0) {
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
        r = visit(decider, view, entry.run, &home);
    }
    return r;
}

static int gather_guest(struct decider *decider, const struct duplicate_view *view, uint32_t run,
                        const struct duplicate_view *home)
{
    return add_member(decider, view, run, home) ? 0 : 1;
}

/* ---- places that do not fit in memory ---- */

static void release_gather(struct chain_gather *gather)
{
    free(gather->members);
    free(gather->texts);
    free(gather->ends);
    *gather = (struct chain_gather){0};
}

static enum table_result visit_large(struct decider *decider, const struct duplicate_view *view,
                                     uint32_t run, struct key_part keys)
{
    if (!is_in_part(decider, view, keys)) return TABLE_NO_DUPLICATE;
    int r = large_chains_add(decider->chains->large_chains, view, run);
    return r < 0 ? TABLE_FAILED : TABLE_NO_DUPLICATE;
}

static int visit_large_guest(struct decider *decider, const struct duplicate_view *view,
                             uint32_t run, const struct duplicate_view *home)
{
    (void)home;
    return large_chains_add_guest(decider->chains->large_chains, view, run);
}

static int take_from_large(void *arg, const struct chain_member *member)
{
    return take_member(arg, member);
}

static int send_from_large(void *arg, const struct duplicate_view *single, uint32_t run,
                           const struct duplicate_view *end)
{
    return send_guest(arg, single, run, end);
}

/* Decides a place of which the views were looked at but not gathered, or, if `sends`, sends its
   guests. Returns 0, or -1 after a message. */
static int pass_over_large(struct decider *decider, struct key_part keys, bool sends)
{
    struct chain_work *work = decider->chains;
    const struct decide_settings *s = decider->decision->settings;
    const struct large_chains_settings settings = {
        .rules = s->rules, .memory_bytes = work->gather_bytes, .places = s->places,
        .file_bytes = s->file_bytes,
        .has_singles = work->gather.has[VIEW_SINGLE] ||
                       temp_streams_bytes(s->guests, decider->partition) > 0,
        .has_pairs = work->gather.has[VIEW_PAIR], .has_ends = work->gather.has[VIEW_END],
        .taker = {take_from_large, decider},
    };
    if (sends && (!settings.has_singles || !settings.has_ends)) return 0;
    release_gather(&work->gather);
    work->large_chains = large_chains_create(&settings);
    int r = visit_stream(decider, VIEW_STREAM_SINGLES + decider->partition, visit_large, keys);
    if (r == 0)
        r = visit_stream(decider, VIEW_STREAM_PAIRS + decider->partition, visit_large, keys);
    if (r == 0 && !sends) r = visit_guests(decider, visit_large_guest, keys);
    if (r == 0)
        r = sends ? large_chains_route(work->large_chains, send_from_large, decider)
                  : large_chains_decide(work->large_chains);
    large_chains_destroy(work->large_chains);
    work->large_chains = NULL;
    return r;
}

/* ---- passes ---- */

/* Sends single reads to the pairs that they belong to. */
static int pass_for_guests(struct decider *decider, struct key_part keys)
{
    int r = gather_members(decider, keys);
    if (r != 0) return r;
    if (decider->chains->gather.lacks_room) return pass_over_large(decider, keys, true);
    return route_singles(decider, true);
}

static int pass_over_chains(struct decider *decider, struct key_part keys)
{
    struct chain_gather *gather = &decider->chains->gather;
    int r = gather_members(decider, keys);
    if (r == 0 && !gather->lacks_room) {
        if (route_singles(decider, false) < 0) return -1;
        relist_texts(gather);
        r = visit_guests(decider, gather_guest, keys);
        fix_texts(gather);
    }
    if (r != 0) return r;
    if (gather->lacks_room) return pass_over_large(decider, keys, false);
    const struct chain_member *without_score =
        duplicate_chains_decide(rules_of(decider), gather->members, gather->n);
    if (without_score) {
        report_lack_of_score(without_score->view.name, without_score->view.name_bytes);
        return -1;
    }
    for (size_t i = 0; i < gather->n && r == 0; i++) r = take_member(decider, &gather->members[i]);
    return r;
}

/* ---- parts of a partition ---- */

/* If many of the members that were gathered are of one place, no other part would help: has that
   place decided later. Returns false if not. */
static bool set_apart(struct decider *decider)
{
    struct chain_work *work = decider->chains;
    struct chain_gather *gather = &work->gather;
    if (gather->lead == 0 || gather->lead < gather->n / 4) return false;
    xgrow(&work->large, &work->large_room, work->n_large + 1, work->n_large,
          sizeof *work->large);
    work->large[work->n_large++] = (struct large_place){
        .partition = decider->partition, .ref = gather->often_ref, .here = gather->often_here,
    };
    gather->lead = 0;
    return true;
}

/* Makes a pass, again if that helps. Returns as visit_stream. */
static int try_pass(struct decider *decider, struct key_part keys, part_pass pass)
{
    int r;
    do
        r = pass(decider, keys);
    while (r == 1 && set_apart(decider));
    return r;
}

static int guests_of_part(struct decider *decider, struct key_part keys)
{
    return try_pass(decider, keys, pass_for_guests);
}

static int send_guests(struct decider *decider)
{
    return decide_in_parts(decider, guests_of_part) < 0 ? -1 : 0;
}

static int chains_of_part(struct decider *decider, struct key_part keys)
{
    return try_pass(decider, keys, pass_over_chains);
}

static int decide_partition(struct decider *decider)
{
    return decide_in_parts(decider, chains_of_part) < 0 ? -1 : 0;
}

/* ---- large places ---- */

/* Decides the places that the others have set apart, one after another. */
static int decide_large_places(struct worker *worker, void *item)
{
    (void)worker;
    struct decider *decider = item;
    struct decision *decision = decider->decision;
    int r = 0;
    for (unsigned i = 0; i < decision->settings->n_threads; i++) {
        struct chain_work *found_by = decision->deciders[i].chains;
        for (size_t k = 0; k < found_by->n_large && r == 0; k++) {
            const struct key_part all = {0, 1};
            decider->chains->only = &found_by->large[k];
            decider->partition = found_by->large[k].partition;
            r = decider->chains->large_pass(decider, all);
        }
        found_by->n_large = 0;
    }
    decider->chains->only = NULL;
    return r;
}

/* Has them decided, with the memory of all jobs. Returns 0, or -1 if the crew has failed. */
static int decide_set_apart(struct decision *decision)
{
    const struct decide_settings *s = decision->settings;
    size_t n = 0;
    for (unsigned i = 0; i < s->n_threads; i++) n += decision->deciders[i].chains->n_large;
    if (n == 0) return 0;
    for (unsigned i = 0; i < s->n_threads; i++)
        release_gather(&decision->deciders[i].chains->gather);
    struct decider *decider =
        crew_take_slot(s->crew, decision->deciders, s->n_threads, sizeof *decider);
    if (!decider) return -1;
    decider->chains->gather_bytes = s->memory_bytes;
    int r = crew_submit_slot(s->crew, &decider->slot, decide_large_places);
    if (crew_finish_jobs(s->crew) < 0) r = -1;
    decider->chains->gather_bytes = s->memory_bytes / s->n_threads;
    release_gather(&decider->chains->gather);
    return r;
}

/* Has a pass made over all places of all partitions. */
static int pass_over_all(struct decision *decision, part_pass large_pass,
                         int (*decide)(struct decider *))
{
    for (unsigned i = 0; i < decision->settings->n_threads; i++)
        decision->deciders[i].chains->large_pass = large_pass;
    int r = decide_partitions(decision, decide);
    return r == 0 ? decide_set_apart(decision) : r;
}

int decide_chains(struct decision *decision)
{
    const struct decide_settings *s = decision->settings;
    struct chain_work *works = xcalloc(s->n_threads, sizeof *works);
    int r = 0;
    for (unsigned i = 0; i < s->n_threads; i++) {
        works[i].gather_bytes = s->memory_bytes / s->n_threads;
        decision->deciders[i].chains = &works[i];
    }
    if (!s->rules->by_sequence || s->rules->ignores_strand)
        r = pass_over_all(decision, pass_for_guests, send_guests);
    if (r == 0) r = pass_over_all(decision, pass_over_chains, decide_partition);
    for (unsigned i = 0; i < s->n_threads; i++) {
        decision->deciders[i].chains = NULL;
        release_gather(&works[i].gather);
        free(works[i].large);
    }
    free(works);
    return r;
}
