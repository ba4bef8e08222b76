/* duplicates.c -- see duplicates.h. */
#include "pipeline/duplicates.h"

#include "duplicates/duplicate_tags.h"
#include "duplicates/read_barcode.h"
#include "pipeline/duplicate_marks.h"
#include "pipeline/record_ordinals.h"
#include "pipeline/resolve_duplicates.h"
#include "pipeline/view_chunks.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHARE = 8,       /* of all memory, for the search */
    MARKS_SHARE = 4, /* of that, for marks: 196 MiB of 6 GiB, for 1.6 G records */
    MIN_BYTES = 2 << 20,
    RANGE_RECORDS = 16384, /* of a batch, for one job: some milliseconds */
    COORDS_FIRST = 1024,   /* -d: the first names of a run are checked for coordinates, */
    COORDS_EVERY = 64,     /* then every 64th: matching a pattern takes microseconds */
    NOTED_RECORDS = 1024,  /* of a block, whose notes are in memory at a time: 300 KB */
};

struct duplicates {
    struct duplicates_settings settings;
    struct temp_streams *views, *names, *sent; /* names: for -S; sent: for sets */
    struct duplicate_notes *notes;             /* only for tags */
    struct duplicate_marks *marks;
    struct group_totals *counts; /* marked before the run that is being written */
    struct barcode_counts barcodes, barcodes_before;
    uint64_t view_bytes, file_bytes; /* set when all is decided */
    pthread_mutex_t lock;            /* for taking views, and nothing else */
};

size_t duplicates_memory(size_t total_bytes)
{
    size_t n_bytes = total_bytes / SHARE, most = total_bytes / 4;
    if (n_bytes < MIN_BYTES) n_bytes = MIN_BYTES;
    return n_bytes < most ? n_bytes : most;
}

/* How the memory for streams is divided. */
struct stream_shares {
    size_t views, names, notes; /* notes: and what is sent */
};

static struct stream_shares share_streams(const struct duplicate_rules *rules, size_t memory_bytes)
{
    size_t all = memory_bytes / 2;
    struct stream_shares shares = {
        .names = rules->marks_others ? all / 4 : 0,
        .notes = duplicate_rules_need_sets(rules) ? all / 4 : 0,
    };
    shares.views = all - shares.names - shares.notes;
    return shares;
}

size_t duplicates_view_memory(const struct duplicate_rules *rules, size_t total_bytes)
{
    return share_streams(rules, duplicates_memory(total_bytes)).views;
}

struct duplicates *duplicates_create(const struct duplicates_settings *settings)
{
    struct duplicates *d = xcalloc(1, sizeof *d);
    d->settings = *settings;
    const struct stream_shares shares = share_streams(settings->rules, settings->memory_bytes);
    const struct temp_places *places = &settings->places;
    d->views = temp_streams_create(VIEW_N_STREAMS, shares.views, places);
    if (shares.names > 0) d->names = temp_streams_create(VIEW_N_PARTITIONS, shares.names, places);
    if (shares.notes > 0)
        d->sent = temp_streams_create(VIEW_N_PARTITIONS, shares.notes / 4, places);
    d->marks = duplicate_marks_create(settings->memory_bytes / MARKS_SHARE, places);
    (void)pthread_mutex_init(&d->lock, NULL);
    if (duplicate_rules_set_tags(settings->rules))
        d->notes = duplicate_notes_create(settings->crew, settings->n_threads, d->marks,
                                          shares.notes / 4 * 3, places);
    return d;
}

void duplicates_prepare(struct duplicates *d)
{
    const struct duplicate_rules *rules = d->settings.rules;
    size_t n = 1;
    if (rules->groups)
        n += rules->use_read_groups ? read_groups_count(rules->groups)
                                    : read_groups_count_libraries(rules->groups);
    d->counts = group_totals_create(n);
}

void duplicates_destroy(struct duplicates *d)
{
    if (!d) return;
    temp_streams_destroy(d->views);
    temp_streams_destroy(d->names);
    temp_streams_destroy(d->sent);
    duplicate_notes_destroy(d->notes);
    duplicate_marks_destroy(d->marks);
    group_totals_destroy(d->counts);
    (void)pthread_mutex_destroy(&d->lock);
    free(d);
}

/* ---- views ---- */

static void count(const struct duplicate_rules *rules, const uint8_t *rec, enum examined_as as,
                  struct duplicate_counts *counts)
{
    uint32_t flag = bam_record_flag(rec);
    counts->read++;
    counts->written += !rules->removes || !(flag & BAM_FDUP);
    counts->excluded += as == EXAMINED_NOT;
    counts->examined += as != EXAMINED_NOT;
    counts->paired += as == EXAMINED_AS_PAIR;
    counts->single += as == EXAMINED_AS_SINGLE;
    if (flag & BAM_FUNMAP)
        counts->unmapped++;
    else if (flag & (BAM_FSECONDARY | BAM_FSUPPLEMENTARY))
        counts->other_alignments++;
}

/* Counts the barcodes and coordinates that examined reads lack. */
static void count_lacking(const struct duplicate_rules *rules, const uint8_t *rec, uint64_t index,
                          const struct record_views *views, struct duplicate_looks *looks)
{
    if (views->as == EXAMINED_NOT) return;
    looks->barcodes.n_examined++;
    looks->barcodes.n_lacking += views->view[0].barcode == 0;
    looks->barcodes.n_unreadable += views->lacks_barcode;
    if (rules->optical_distance == 0 || (index >= COORDS_FIRST && index % COORDS_EVERY > 0)) return;
    struct read_coords coords = read_coords_of(rules, (const char *)bam_record_name(rec));
    looks->barcodes.n_names++;
    looks->barcodes.n_without_coords += !coords.known;
}

static void release_gather(void *gather)
{
    view_gather_release(gather);
}

struct view_gather *worker_view_gather(struct worker *worker)
{
    static const struct scratch_kind kind = {sizeof(struct view_gather), release_gather};
    return worker_scratch(worker, &kind);
}

int duplicate_looks_add(const struct duplicates *d, struct view_gather *gather,
                        struct duplicate_looks *looks, const uint8_t *rec,
                        const struct record_place *place)
{
    struct record_views views;
    const struct duplicate_rules *rules = d->settings.rules;
    const char *problem = duplicate_views_make(rules, rec, &views);
    if (problem) {
        diag_error("read '%s' %s", (const char *)bam_record_name(rec), problem);
        return -1;
    }
    if (place->index > UINT32_MAX) { /* needs some hundred gigabytes of memory for one run */
        diag_error("--markdup takes at most 4 billion records in a run: give less memory with -m");
        return -1;
    }
    count(rules, rec, views.as, group_counts_of(&looks->counts, d->counts, views.group));
    for (unsigned i = 0; i < views.n; i++) {
        views.view[i].index = (uint32_t)place->index;
        views.view[i].ordinal = place->ordinal & DUPLICATE_ORDINAL_MASK;
        view_gather_add(gather, &views.view[i]);
    }
    count_lacking(rules, rec, place->index, &views, looks);
    if (gather->n >= VIEW_GATHER_ENOUGH) duplicate_looks_end(gather, looks, place->run);
    return 0;
}

void duplicate_looks_end(struct view_gather *gather, struct duplicate_looks *looks, uint32_t run)
{
    view_gather_end(gather, run, &looks->bytes, &looks->n_bytes, &looks->room);
}

void duplicate_looks_release(struct duplicate_looks *looks)
{
    free(looks->bytes);
    group_counts_release(&looks->counts);
    *looks = (struct duplicate_looks){0};
}

/* ---- runs ---- */

void duplicates_begin_run(struct duplicates *d)
{
    temp_streams_mark(d->views);
    group_totals_mark(d->counts);
    d->barcodes_before = d->barcodes;
}

static void join_barcode_counts(struct barcode_counts *sum, const struct barcode_counts *other)
{
    sum->n_examined += other->n_examined;
    sum->n_lacking += other->n_lacking;
    sum->n_unreadable += other->n_unreadable;
    sum->n_names += other->n_names;
    sum->n_without_coords += other->n_without_coords;
}

static void take_counts(struct duplicates *d, struct duplicate_looks *looks)
{
    join_barcode_counts(&d->barcodes, &looks->barcodes);
    looks->barcodes = (struct barcode_counts){0};
    group_counts_end(&looks->counts, d->counts);
}

static int take(struct duplicates *d, struct duplicate_looks *looks)
{
    if (view_chunks_append(d->views, looks->bytes, looks->n_bytes) < 0) return -1;
    looks->n_bytes = 0;
    take_counts(d, looks);
    return 0;
}

int duplicates_take(struct duplicates *d, struct duplicate_looks *looks)
{
    (void)pthread_mutex_lock(&d->lock);
    int r = take(d, looks);
    (void)pthread_mutex_unlock(&d->lock);
    return r;
}

void duplicates_end_run(struct duplicates *d, uint32_t run, uint64_t n_records)
{
    duplicate_marks_add_run(d->marks, run, (uint32_t)n_records);
}

int duplicates_undo_run(struct duplicates *d)
{
    group_totals_undo(d->counts);
    d->barcodes = d->barcodes_before;
    return temp_streams_undo(d->views);
}

/* ---- batches in memory ---- */

/* Records of a batch that one job looks at, or marks. */
struct range {
    struct crew_slot slot;
    struct duplicates *d;
    const struct batch *batch;
    uint32_t run;
    size_t from, to;
    struct duplicate_looks looks;
};

static const uint8_t *record_at(const struct batch *batch, size_t i)
{
    return sort_entry_record(batch->rules->order, &batch->entries[i]);
}

static int look_at_range(struct worker *worker, void *item)
{
    struct range *range = item;
    struct view_gather *gather = worker_view_gather(worker);
    bool has_ordinals = record_ordinals_are_needed(range->batch->rules);
    for (size_t i = range->from; i < range->to; i++) {
        if (i + 8 < range->to) __builtin_prefetch(record_at(range->batch, i + 8));
        const uint8_t *rec = record_at(range->batch, i);
        const struct record_place place = {
            range->run, i, has_ordinals ? record_ordinal_in_batch(range->batch, rec) : i};
        if (duplicate_looks_add(range->d, gather, &range->looks, rec, &place) < 0) return -1;
    }
    duplicate_looks_end(gather, &range->looks, range->run);
    return duplicates_take(range->d, &range->looks);
}

/* The entries of a batch point into memory that belongs to it, and nobody reads the records now. */
static int mark_range(struct worker *worker, void *item)
{
    (void)worker;
    struct range *range = item;
    size_t n = range->to - range->from;
    struct found_marks found = {0};
    int r = duplicate_marks_find(range->d->marks, range->run, range->from, n, &found);
    for (size_t i = 0; i < n && r == 0; i++)
        if (found_marks_have(&found, i)) {
            uint8_t *rec = (uint8_t *)(uintptr_t)record_at(range->batch, range->from + i);
            (void)put_u16(rec + BAM_FLAG_AT, bam_record_flag(rec) | BAM_FDUP);
        }
    found_marks_release(&found);
    return r;
}

struct ranges {
    struct range *all;
    unsigned n;
};

/* Has jobs go through all records of a batch. Returns 0, or -1 after a message. */
static int go_through(struct duplicates *d, const struct batch *batch, uint32_t run,
                      int (*work)(struct worker *, void *), const struct ranges *ranges)
{
    for (size_t from = 0; from < batch->n_records; from += RANGE_RECORDS) {
        size_t left = batch->n_records - from;
        struct range *range =
            crew_take_slot(d->settings.crew, ranges->all, ranges->n, sizeof *range);
        if (!range) return -1;
        range->d = d;
        range->batch = batch;
        range->run = run;
        range->from = from;
        range->to = from + (left < RANGE_RECORDS ? left : RANGE_RECORDS);
        if (crew_submit_slot(d->settings.crew, &range->slot, work) < 0) return -1;
    }
    return 0;
}

static int for_all_batches(struct duplicates *d, struct batch *const *batches, size_t n,
                           uint32_t first_run, int (*work)(struct worker *, void *))
{
    struct ranges ranges = {.n = 2 * d->settings.n_threads};
    ranges.all = xcalloc(ranges.n, sizeof *ranges.all);
    for (size_t i = 0; i < n; i++)
        if (go_through(d, batches[i], first_run + (uint32_t)i, work, &ranges) < 0) break;
    int r = crew_finish_jobs(d->settings.crew);
    for (unsigned i = 0; i < ranges.n; i++)
        duplicate_looks_release(&ranges.all[i].looks);
    free(ranges.all);
    return r;
}

bool duplicates_need_runs(const struct duplicates *d)
{
    /* Barcodes with errors take the memory that batches would keep. */
    return duplicates_rewrite_records(d) || (d && d->settings.rules->barcode_mismatches > 0);
}

bool duplicates_rewrite_records(const struct duplicates *d)
{
    return d && duplicate_rules_rewrite(d->settings.rules);
}

/* The same without the names of originals. */
static size_t growth_without_names(const struct duplicate_rules *rules)
{
    return (rules->optical_distance > 0 ? (size_t)DUPLICATE_TYPE_BYTES : 0) +
           (rules->counts ? (size_t)DUPLICATE_COUNT_BYTES : 0) +
           (rules->moves_umi ? (size_t)READ_BARCODE_MOVED_BYTES : 0);
}

size_t duplicates_growth(const struct duplicates *d)
{
    if (!duplicates_rewrite_records(d)) return 0;
    const struct duplicate_rules *rules = d->settings.rules;
    return growth_without_names(rules) + (rules->names_original ? DUPLICATE_ORIGINAL_BYTES : 0);
}

size_t duplicates_usual_growth(const struct duplicates *d)
{
    if (!duplicates_rewrite_records(d)) return 0;
    uint64_t n_bytes = d->notes ? duplicate_notes_bytes(d->notes) : 0;
    size_t average = (size_t)(n_bytes / (duplicate_marks_count(d->marks) + 1)),
           most = duplicates_growth(d), usual = growth_without_names(d->settings.rules) + average;
    return usual < most ? usual : most;
}

/* Warns if most reads lack a barcode, also when quiet: nearly all of them are marked then, and with
   -r they are gone. */
static bool warn_of_most(const struct duplicates *d)
{
    const struct duplicate_rules *rules = d->settings.rules;
    const struct barcode_counts *n = &d->barcodes;
    bool is_tag = rules->barcode_source == BARCODE_TAG;
    if (rules->barcode_source == BARCODE_NONE || n->n_lacking <= n->n_examined / 2) return false;
    diag_left("warning: %s%.2s finds no barcode in %" PRIu64 " of %" PRIu64 " reads: these are "
              "compared without one; give %s",
              is_tag                   ? "--barcode-tag "
              : rules->barcode_pattern ? "--barcode-rgx"
                                       : "--barcode-name",
              is_tag ? rules->barcode_tag : "", n->n_lacking, n->n_examined,
              is_tag                   ? "the right tag, or --barcode-name"
              : rules->barcode_pattern ? "a pattern that fits the names"
                                       : "--barcode-rgx or --barcode-tag");
    return true;
}

static void warn_of_barcodes(const struct duplicates *d)
{
    uint64_t n = d->barcodes.n_unreadable;
    bool is_tag = d->settings.rules->barcode_source == BARCODE_TAG;
    if (!warn_of_most(d) && n > 0 && !is_tag)
        diag_warning("%" PRIu64 " reads have no barcode where --markdup looks for it: they are "
                     "compared with each other only",
                     n);
    if (n > 0 && is_tag)
        diag_warning("%" PRIu64 " reads have a number in the tag of --barcode-tag: they are taken "
                     "for reads without it",
                     n);
}

static void warn_of_coords(const struct duplicates *d)
{
    const struct barcode_counts *n = &d->barcodes;
    if (n->n_without_coords <= n->n_names / 2) return;
    uint64_t percent = n->n_without_coords * 100 / n->n_names;
    if (d->settings.rules->coords)
        diag_warning("--read-coords does not fit %" PRIu64 " %% of the read names: these reads are "
                     "no optical duplicates; give a pattern that fits",
                     percent);
    else
        diag_warning("%" PRIu64 " %% of the read names have no coordinates for -d: these reads are "
                     "no optical duplicates; give --read-coords",
                     percent);
}

int duplicates_decide(struct duplicates *d, struct batch *const *batches, size_t n,
                      uint32_t first_run, size_t spare_bytes)
{
    for (size_t i = 0; i < n; i++)
        duplicates_end_run(d, first_run + (uint32_t)i, batches[i]->n_records);
    if (for_all_batches(d, batches, n, first_run, look_at_range) < 0) return -1;
    size_t most_bytes = d->settings.memory_bytes / 2 + spare_bytes / 4 * 3;
    size_t marks_bytes = duplicate_marks_begin(d->marks);
    if (d->notes) duplicate_notes_begin(d->notes);
    const struct resolve_settings resolve = {
        .crew = d->settings.crew,
        .rules = d->settings.rules,
        .n_threads = d->settings.n_threads,
        .memory_bytes = most_bytes > marks_bytes ? most_bytes - marks_bytes : 0,
        .places = d->settings.places,
        .file_bytes = &d->file_bytes,
        .views = d->views,
        .names = d->names,
        .sent = d->sent,
        .notes = d->notes,
        .marks = d->marks,
        .counts = d->counts,
    };
    if (resolve_duplicates(&resolve) < 0) return -1;
    if (d->notes && duplicate_notes_sort(d->notes, resolve.memory_bytes) < 0) return -1;
    if (duplicate_marks_end(d->marks, resolve.memory_bytes) < 0) {
        crew_fail(d->settings.crew);
        return -1;
    }
    warn_of_barcodes(d);
    warn_of_coords(d);
    d->view_bytes = temp_streams_all_bytes(d->views);
    d->file_bytes += temp_streams_file_bytes(d->views);
    if (d->names) d->file_bytes += temp_streams_file_bytes(d->names);
    if (d->sent) d->file_bytes += temp_streams_file_bytes(d->sent);
    if (d->notes) d->file_bytes += duplicate_notes_file_bytes(d->notes);
    d->file_bytes += duplicate_marks_file_bytes(d->marks);
    temp_streams_destroy(d->views);
    temp_streams_destroy(d->names);
    temp_streams_destroy(d->sent);
    d->views = d->names = d->sent = NULL;
    return for_all_batches(d, batches, n, first_run, mark_range);
}

void duplicates_bytes(const struct duplicates *d, uint64_t *views, uint64_t *files)
{
    *views = d->view_bytes;
    *files = d->file_bytes;
}

const struct duplicate_counts *duplicates_counts(const struct duplicates *d, size_t *n)
{
    return group_totals_counts(d->counts, n);
}

int duplicates_mark(const struct duplicates *d, uint32_t run, uint64_t first_index, uint8_t *raw,
                    size_t n)
{
    struct found_marks found = {0};
    int r = duplicate_marks_find(d->marks, run, first_index, n, &found);
    for (size_t i = 0; i < n && r == 0; i++, raw += bam_record_bytes(raw))
        if (found_marks_have(&found, i))
            (void)put_u16(raw + BAM_FLAG_AT, bam_record_flag(raw) | BAM_FDUP);
    found_marks_release(&found);
    return r;
}

/* ---- tags ---- */

/* Where records are written that grow. */
struct rewritten {
    uint8_t *bytes;
    size_t n_bytes, room;
    uint8_t *moved; /* one record whose barcode was moved */
    size_t moved_room;
};

/* Writes a record with its tags. note: NULL: it has none. */
static void rewrite_record(const struct duplicate_rules *rules, const uint8_t *rec,
                           const struct duplicate_note *note, struct rewritten *out)
{
    bool is_duplicate = (bam_record_flag(rec) & BAM_FDUP) != 0;
    struct duplicate_tags tags = {0};
    if (rules->counts && !is_duplicate) tags.count = note ? note->count : 1;
    if (note && note->count == 0) { /* not the best read of a key, marked in the input */
        tags.is_duplicate = true;
        tags.original = note->original;
        tags.original_bytes = note->original_bytes;
        if (rules->optical_distance > 0)
            tags.type = note->is_optical ? DUPLICATE_OPTICAL : DUPLICATE_LIBRARY;
    }
    tags.drops_count = rules->counts && rules->marks_others && is_duplicate;
    size_t most = bam_record_bytes(rec) + DUPLICATE_TAGS_GROWTH_BYTES;
    xgrow(&out->bytes, &out->room, out->n_bytes + most + READ_BARCODE_MOVED_BYTES, out->room / 2,
          1);
    uint8_t *to = out->bytes + out->n_bytes;
    size_t n_bytes = duplicate_tags_write(rec, &tags, to);
    if (rules->moves_umi) {
        xgrow(&out->moved, &out->moved_room, n_bytes + READ_BARCODE_MOVED_BYTES, n_bytes, 1);
        size_t moved_bytes = read_barcode_move(rules, to, out->moved);
        if (moved_bytes > 0) memcpy(to, out->moved, n_bytes = moved_bytes);
    }
    out->n_bytes += n_bytes;
}

uint8_t *duplicates_rewrite(const struct duplicates *d, uint32_t run, uint64_t first_index,
                            const uint8_t *raw, size_t n, size_t *raw_bytes, size_t tail_bytes)
{
    struct found_notes found = {0};
    struct rewritten out = {0};
    xgrow(&out.bytes, &out.room, *raw_bytes + *raw_bytes / 16 + tail_bytes, 0, 1);
    for (size_t i = 0, next = 0, end = 0; i < n; i++, raw += bam_record_bytes(raw)) {
        if (d->notes && i == end) {
            next = 0;
            end = n - i < NOTED_RECORDS ? n : i + NOTED_RECORDS;
            if (duplicate_notes_find(d->notes, run, first_index + i, first_index + end, &found) < 0)
                goto err;
        }
        bool has_note = next < found.n && found.notes[next].index == first_index + i;
        rewrite_record(d->settings.rules, raw, has_note ? &found.notes[next] : NULL, &out);
        next += has_note;
    }
    /* The block stays open, perhaps until all others are. */
    out.bytes = xrealloc(out.bytes, out.n_bytes + tail_bytes);
    free(out.moved);
    found_notes_release(&found);
    *raw_bytes = out.n_bytes;
    return out.bytes;
err:
    free(out.bytes);
    free(out.moved);
    found_notes_release(&found);
    return NULL;
}
