/* markdup.c -- see markdup.h. */
#include "markdup/markdup.h"

#include "markdup/duplicate_tags.h"
#include "markdup/markdup_partition.h"
#include "markdup/read_ends_store.h"
#include "markdup/read_names.h"
#include "spill/bam_block.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHARE = 8,       /* 1/8 of all memory is for --markdup */
    MARKS_SHARE = 4, /* 1/4 of that is for marks: 192 MiB of 6 GiB, for 1.6 G records */
    MIN_BYTES = 2 << 20,
    COORDS_FIRST = 1024,   /* -d: the first names of a run are checked for coordinates, */
    COORDS_EVERY = 64,     /* then every 64th, because matching a pattern takes microseconds */
    MARKED_RECORDS = 1024, /* of a block whose notes are in memory at a time: 300 KB */
};

/* A part of the observer: the read ends of consecutive records of a run. */
struct read_ends_part {
    struct read_ends_part *next;
    uint32_t run, end; /* index after the last record */
    uint64_t attempt;  /* of the run */
    struct read_ends_gather gather;
    struct group_counts counts; /* of the records */
};

struct markdup {
    struct record_observer base; /* must be the first member */
    struct resolve_settings search;
    size_t memory_bytes;
    uint64_t read_ends_bytes, file_bytes; /* set when all is resolved */
    pthread_mutex_t lock;                 /* guards appending read ends, and what follows */
    struct read_ends_part *unused;
};

size_t markdup_memory(size_t total_bytes)
{
    size_t n_bytes = total_bytes / SHARE, most = total_bytes / 4;
    if (n_bytes < MIN_BYTES) n_bytes = MIN_BYTES;
    return n_bytes < most ? n_bytes : most;
}

/* How the memory for streams is divided. */
struct stream_shares {
    size_t read_ends, names, notes; /* notes: also for `sent` */
};

static struct stream_shares share_streams(const struct markdup_rules *rules, size_t memory_bytes)
{
    size_t all = memory_bytes / 2;
    struct stream_shares shares = {
        .names = rules->marks_others ? all / 4 : 0,
        .notes = markdup_rules_need_sets(rules) ? all / 4 : 0,
    };
    shares.read_ends = all - shares.names - shares.notes;
    return shares;
}

size_t markdup_read_ends_memory(const struct markdup_rules *rules, size_t total_bytes)
{
    return share_streams(rules, markdup_memory(total_bytes)).read_ends;
}

void markdup_prepare(struct markdup *d)
{
    const struct markdup_rules *rules = d->search.rules;
    size_t n = 1;
    if (rules->groups)
        n += rules->use_read_groups ? rules->groups->ids.n
                                    : rules->groups->libraries.n;
    d->search.counts = group_totals_create(n);
}

/* ---- read ends ---- */

static void count(const struct markdup_rules *rules, const uint8_t *rec, enum examined_as as,
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

/* Counts the barcodes and coordinates that an examined read lacks. */
static void count_lacking(const struct markdup_rules *rules, const uint8_t *rec, uint64_t index,
                          const struct record_read_ends *made, struct duplicate_counts *counts)
{
    if (made->as == EXAMINED_NOT) return;
    counts->without_barcode += made->ends[0].barcode == 0;
    counts->unreadable_barcode += made->lacks_barcode;
    if (rules->optical_distance == 0 || (index >= COORDS_FIRST && index % COORDS_EVERY > 0)) return;
    struct read_coords coords = read_coords_of(rules, (const char *)bam_record_name(rec));
    counts->names++;
    counts->names_without_coords += !coords.known;
}

/* Identifies an attempt at a run: if a run is written again, earlier attempts are ignored. */
static uint64_t label_of(uint32_t run, uint64_t attempt)
{
    return attempt << 32 | run;
}

static int end_gather(struct markdup *d, struct read_ends_part *ends_part)
{
    return read_ends_gather_end(&ends_part->gather, label_of(ends_part->run, ends_part->attempt),
                                d->search.ends_tapes, &d->lock);
}

static int add_ends(struct markdup *d, struct read_ends_part *ends_part, const uint8_t *rec,
                    uint64_t index, uint64_t ordinal)
{
    struct record_read_ends made;
    const struct markdup_rules *rules = d->search.rules;
    const char *problem = read_ends_make(rules, rec, &made);
    if (problem) {
        diag_error_of(DIAG_HOPELESS, "read '%s' %s", (const char *)bam_record_name(rec), problem);
        return -1;
    }
    if (index >= UINT32_MAX) { /* a run would take hundreds of gigabytes of memory */
        diag_error("--markdup takes at most 4 billion records in a run: give less memory with -m");
        return -1;
    }
    struct duplicate_counts *counts =
        group_counts_of(&ends_part->counts, d->search.counts, made.group);
    count(rules, rec, made.as, counts);
    count_lacking(rules, rec, index, &made, counts);
    for (unsigned i = 0; i < made.n; i++) {
        made.ends[i].index = (uint32_t)index;
        made.ends[i].ordinal = ordinal & DUPLICATE_ORDINAL_MASK;
        read_ends_gather_add(&ends_part->gather, &made.ends[i]);
    }
    ends_part->end = (uint32_t)index + 1;
    return ends_part->gather.n < READ_ENDS_GATHER_ENOUGH ? 0 : end_gather(d, ends_part);
}

/* ---- the observer ---- */

static struct markdup *of(const struct record_observer *observer)
{
    return (struct markdup *)(uintptr_t)observer;
}

static void *begin(const struct record_observer *observer)
{
    struct markdup *d = of(observer);
    (void)pthread_mutex_lock(&d->lock);
    struct read_ends_part *ends_part = d->unused;
    if (ends_part)
        d->unused = ends_part->next;
    else
        ends_part = xcalloc(1, sizeof *ends_part);
    ends_part->attempt = d->search.undone.n;
    (void)pthread_mutex_unlock(&d->lock);
    return ends_part;
}

static int add_records(struct record_observer *observer, void *part,
                       const struct observed_records *observed)
{
    struct read_ends_part *ends_part = part;
    struct bam_records records = observed->all;
    uint64_t index = observed->first_record;
    const uint8_t *rec;
    ends_part->run = observed->run;
    for (uint32_t i = 0; (rec = bam_records_next(&records)); i++, index++) {
        uint64_t ordinal = observed->ordinals ? bam_block_ordinal(observed->ordinals, i) : index;
        if (add_ends(of(observer), ends_part, rec, index, ordinal) < 0) return -1;
    }
    return 0;
}

static void discard(void *part)
{
    struct read_ends_part *ends_part = part;
    read_ends_gather_release(&ends_part->gather);
    free(ends_part);
}

static int combine(struct record_observer *observer, void *part)
{
    struct markdup *d = of(observer);
    struct read_ends_part *ends_part = part;
    int r = end_gather(d, ends_part);
    (void)pthread_mutex_lock(&d->lock);
    group_counts_end(&ends_part->counts, d->search.counts);
    if (ends_part->end > 0)
        duplicate_marks_add_run(d->search.marks, ends_part->run, ends_part->end);
    ends_part->end = 0;
    ends_part->next = d->unused;
    d->unused = ends_part;
    (void)pthread_mutex_unlock(&d->lock);
    return r;
}

static void begin_run(struct record_observer *observer)
{
    group_totals_mark(of(observer)->search.counts);
}

static void undo_run(struct record_observer *observer, uint32_t run)
{
    struct markdup *d = of(observer);
    struct undone_runs *undone = &d->search.undone;
    group_totals_undo(d->search.counts);
    xgrow(&undone->labels, &undone->room, undone->n + 1, 0, sizeof *undone->labels);
    undone->labels[undone->n] = label_of(run, undone->n);
    undone->n++;
}

static void destroy_ends(struct markdup *d)
{
    tape_set_destroy(d->search.ends_tapes);
    tape_set_destroy(d->search.names);
    tape_set_destroy(d->search.sent);
    d->search.ends_tapes = d->search.names = d->search.sent = NULL;
    for (struct read_ends_part *ends_part = d->unused, *next; ends_part; ends_part = next) {
        next = ends_part->next;
        discard(ends_part);
    }
    d->unused = NULL;
}

static void destroy(struct record_observer *observer)
{
    struct markdup *d = of(observer);
    destroy_ends(d);
    duplicate_marks_destroy(d->search.marks);
    group_totals_destroy(d->search.counts);
    free(d->search.undone.labels);
    (void)pthread_mutex_destroy(&d->lock);
    free(d);
}

struct markdup *markdup_create(struct threads *threads, unsigned n_threads,
                               const struct markdup_rules *rules, size_t memory_bytes,
                               const struct temp_places *places)
{
    static const struct observer_kind kind = {
        .begin = begin, .add_records = add_records, .combine = combine, .discard = discard,
        .begin_run = begin_run, .undo_run = undo_run, .destroy = destroy};
    struct markdup *d = xcalloc(1, sizeof *d);
    const struct stream_shares shares = share_streams(rules, memory_bytes);
    bool has_tags = markdup_rules_set_tags(rules);
    const struct duplicate_marks_settings marks = {
        .threads = threads, .n_threads = n_threads, .bits_bytes = memory_bytes / MARKS_SHARE,
        .tags_bytes = has_tags ? shares.notes / 4 * 3 : 0, .places = *places};
    d->base.kind = &kind;
    d->memory_bytes = memory_bytes;
    d->search = (struct resolve_settings){.threads = threads, .n_threads = n_threads,
                                          .rules = rules, .places = *places};
    d->search.ends_tapes = tape_set_create(READ_ENDS_N_STREAMS, shares.read_ends, places);
    if (shares.names > 0)
        d->search.names = tape_set_create(READ_ENDS_N_PARTITIONS, shares.names, places);
    if (shares.notes > 0)
        d->search.sent = tape_set_create(READ_ENDS_N_PARTITIONS, shares.notes / 4, places);
    d->search.marks = duplicate_marks_create(&marks);
    (void)pthread_mutex_init(&d->lock, NULL);
    return d;
}

struct record_observer *markdup_observer(struct markdup *d)
{
    return d ? &d->base : NULL;
}

/* ---- memory ---- */

static bool rewrite_records(const struct markdup *d)
{
    return d && markdup_rules_rewrite(d->search.rules);
}

bool markdup_need_runs(const struct markdup *d)
{
    /* Joining barcodes needs the memory of the sort buffers. */
    return rewrite_records(d) || (d && d->search.rules->barcode_mismatches > 0);
}

/* Maximum size of the tags of a record, without the names of originals. */
static size_t growth_without_names(const struct markdup_rules *rules)
{
    return (rules->optical_distance > 0 ? (size_t)DUPLICATE_TYPE_BYTES : 0) +
           (rules->counts ? (size_t)DUPLICATE_COUNT_BYTES : 0) +
           (rules->moves_umi ? (size_t)READ_BARCODE_MOVED_BYTES : 0);
}

size_t markdup_growth(const struct markdup *d)
{
    if (!rewrite_records(d)) return 0;
    const struct markdup_rules *rules = d->search.rules;
    return growth_without_names(rules) + (rules->names_original ? DUPLICATE_ORIGINAL_BYTES : 0);
}

size_t markdup_usual_growth(const struct markdup *d)
{
    if (!rewrite_records(d)) return 0;
    size_t most = markdup_growth(d), usual = growth_without_names(d->search.rules) +
                                             duplicate_marks_average_bytes(d->search.marks);
    return usual < most ? usual : most;
}

/* ---- resolving ---- */

/* Warns, even with --quiet, if most reads lack a barcode: nearly all of them are marked as
   duplicates then, and lost with -r. */
static bool warn_of_most(const struct markdup_rules *rules, const struct duplicate_counts *n)
{
    bool is_tag = rules->barcode_source == BARCODE_TAG;
    if (rules->barcode_source == BARCODE_NONE || n->without_barcode <= n->examined / 2)
        return false;
    diag_left("warning: %s%.2s finds no barcode in %" PRIu64 " of %" PRIu64 " reads: these are "
              "compared without one; give %s",
              is_tag                   ? "--barcode-tag "
              : rules->barcode_pattern ? "--barcode-rgx"
                                       : "--barcode-name",
              is_tag ? rules->barcode_tag : "", n->without_barcode, n->examined,
              is_tag                   ? "the right tag, or --barcode-name"
              : rules->barcode_pattern ? "a pattern that fits the names"
                                       : "--barcode-rgx or --barcode-tag");
    return true;
}

static void warn(const struct markdup_rules *rules, const struct duplicate_counts *n)
{
    bool is_tag = rules->barcode_source == BARCODE_TAG;
    bool are_most = warn_of_most(rules, n);
    if (n->unreadable_barcode > 0 && is_tag)
        diag_warning("%" PRIu64 " reads have a number in the tag of --barcode-tag: they are taken "
                     "for reads without it",
                     n->unreadable_barcode);
    else if (n->unreadable_barcode > 0 && !are_most)
        diag_warning("%" PRIu64 " reads have no barcode where --markdup looks for it: they are "
                     "compared with each other only",
                     n->unreadable_barcode);
    if (n->names_without_coords <= n->names / 2) return;
    uint64_t percent = n->names_without_coords * 100 / n->names;
    if (rules->coords)
        diag_warning("--read-coords does not fit %" PRIu64 " %% of the read names: these reads are "
                     "no optical duplicates; give a pattern that fits",
                     percent);
    else
        diag_warning("%" PRIu64 " %% of the read names have no coordinates for -d: these reads are "
                     "no optical duplicates; give --read-coords",
                     percent);
}

int markdup_resolve(struct markdup *d, size_t spare_bytes)
{
    size_t most_bytes = d->memory_bytes / 2 + spare_bytes / 4 * 3;
    size_t marks_bytes = duplicate_marks_begin(d->search.marks);
    d->search.memory_bytes = most_bytes > marks_bytes ? most_bytes - marks_bytes : 0;
    if (resolve_duplicates(&d->search, &d->file_bytes) < 0 ||
        duplicate_marks_end(d->search.marks, d->search.memory_bytes) < 0)
        return -1;
    size_t n_groups;
    const struct duplicate_counts *counts = group_totals_counts(d->search.counts, &n_groups);
    const struct duplicate_counts sum = duplicate_counts_sum(counts, n_groups);
    warn(d->search.rules, &sum);
    d->read_ends_bytes = tape_set_all_bytes(d->search.ends_tapes);
    d->file_bytes += duplicate_marks_file_bytes(d->search.marks);
    d->file_bytes += tape_set_file_bytes(d->search.ends_tapes);
    if (d->search.names) d->file_bytes += tape_set_file_bytes(d->search.names);
    if (d->search.sent) d->file_bytes += tape_set_file_bytes(d->search.sent);
    destroy_ends(d);
    return 0;
}

const struct duplicate_counts *markdup_counts(const struct markdup *d, size_t *n,
                                              uint64_t *read_ends, uint64_t *files)
{
    *read_ends = d->read_ends_bytes;
    *files = d->file_bytes;
    return group_totals_counts(d->search.counts, n);
}

/* ---- marking ---- */

int markdup_find(const struct markdup *d, uint32_t run, uint64_t first, uint64_t n,
                 struct found_marks *found)
{
    return duplicate_marks_find(d->search.marks, run, first, n, found);
}

/* Output buffer for records that change. */
struct rewritten {
    uint8_t *bytes;
    size_t n_bytes, room;
    uint8_t *moved; /* scratch: a record whose barcode was moved */
    size_t moved_room;
};

/* Writes a record with its tags. note NULL: no tags. */
static void rewrite_record(const struct markdup_rules *rules, const uint8_t *rec,
                           const struct duplicate_note *note, struct rewritten *out)
{
    size_t most = bam_record_bytes(rec) + DUPLICATE_TAGS_GROWTH_BYTES;
    xgrow(&out->bytes, &out->room, out->n_bytes + most + READ_BARCODE_MOVED_BYTES, out->room / 2,
          1);
    uint8_t *to = out->bytes + out->n_bytes;
    size_t n_bytes = duplicate_tags_write(rules, rec, note, to);
    if (rules->moves_umi) {
        xgrow(&out->moved, &out->moved_room, n_bytes + READ_BARCODE_MOVED_BYTES, n_bytes, 1);
        size_t moved_bytes = read_barcode_move(rules, to, out->moved);
        if (moved_bytes > 0) memcpy(to, out->moved, n_bytes = moved_bytes);
    }
    out->n_bytes += n_bytes;
}

/* Sets the flag of the duplicate, and writes its tags if `out` is not NULL. */
static void mark_record(const struct markdup *d, uint8_t *rec, bool is_marked,
                        const struct duplicate_note *note, struct rewritten *out)
{
    if (is_marked) (void)put_u16(rec + BAM_FLAG_AT, bam_record_flag(rec) | BAM_FDUP);
    if (out) rewrite_record(d->search.rules, rec, note, out);
}

int markdup_mark(const struct markdup *d, uint32_t run, uint64_t first,
                 struct marked_records *records)
{
    struct found_marks found = {0};
    struct rewritten out = {0};
    bool rewrites = rewrite_records(d);
    uint8_t *rec = records->bytes;
    int r = 0;
    if (rewrites)
        xgrow(&out.bytes, &out.room, records->n_bytes + records->n_bytes / 16, 0, 1);
    for (size_t i = 0, n; i < records->n && r == 0; i += n, first += n) {
        n = records->n - i < MARKED_RECORDS ? records->n - i : MARKED_RECORDS;
        r = duplicate_marks_find(d->search.marks, run, first, n, &found);
        for (size_t k = 0, next = 0; k < n && r == 0; k++, rec += bam_record_bytes(rec)) {
            bool has_note = next < found.n_notes && found.notes[next].index == first + k;
            mark_record(d, rec, found_marks_have(&found, k),
                        has_note ? &found.notes[next] : NULL, rewrites ? &out : NULL);
            next += has_note;
        }
    }
    found_marks_release(&found);
    free(out.moved);
    if (r < 0) free(out.bytes);
    if (r < 0 || !rewrites) return r;
    /* Frees unused memory, because the block stays open, perhaps until all others are. */
    records->bytes = xrealloc(out.bytes, out.n_bytes);
    records->n_bytes = out.n_bytes;
    return 0;
}
