/*
 * samtools_stats.c -- --stats: counts the records of the output and prints what `samtools stats`
 * 1.24 does (stats_kinds.h).
 *
 * What does not depend on the order of records goes to counters. A part has one while its worker
 * adds records, so there are about as many as workers; they are added up at the end. Long reads
 * share one counter with a lock, because their tables are large. What depends on the order is kept
 * in the part for combine (stats_depth.h, stats_barcodes.h).
 *
 * samtools compares reads with the reference (-r), uses targets (-t) and removes overlaps (-p) only
 * as long as records are sorted. So these options need the order coordinate.
 *
 * Memory: a counter has at most 8 MiB, three times as much with -r; the shared one 112 bytes for
 * each base of the longest read and 256 more where many reads are as long, and 2 KiB more with -r.
 * A part has 24 bytes for each record and 8 for each stretch of its CIGAR between deletions.
 */
#include "stats/stats_kinds.h"

#include "bam/read_groups.h"
#include "stats/stats_counts.h"
#include "stats/stats_depth.h"
#include "stats/stats_options.h"
#include "stats/stats_print.h"
#include "util/diag.h"
#include "util/xalloc.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_BASES = 8192,          /* of a read that is counted without a lock */
    MOST_READS = 1 << 30        /* of a counter, whose tables have numbers of 32 bits */
};

struct counter {
    struct stats_counts counts;
    struct fasta_window *reference;     /* NULL: none yet */
    struct counter *next;       /* of the free ones */
};

struct samtools_stats {
    struct record_observer base;        /* must be the first member */
    const struct count_setup *setup;
    const struct stats_options *options;
    struct stats_targets targets;
    struct read_groups *groups;         /* NULL: all records are counted */
    bool *is_wanted;                    /* by number of the group */
    pthread_mutex_t lock;
    /* Under the lock. */
    struct counter **counters, *free_counters;
    size_t n_counters, counters_room;
    uint64_t n_parts;
    uint32_t ring_bases, ring_size;     /* of the ring of the output, as far as it is known */
    /* Of long reads, under its own lock. */
    pthread_mutex_t long_lock;
    struct counter *long_reads;
    /* Of combine. */
    struct fasta_reference *reference;  /* NULL: none; any thread takes windows */
    struct stats_depth depth;
    struct barcode_layout layout;
};

struct part {
    struct samtools_stats *stats;
    struct counter *counter;            /* NULL after the end */
    struct stats_places places;
    struct barcode_order order;
    struct depth_part depth;
};

static struct samtools_stats *of(const struct record_observer *observer)
{
    return (struct samtools_stats *)(uintptr_t)observer;
}

/* ---- parts ---- */

static struct counter *new_counter(struct samtools_stats *stats)
{
    struct counter *counter = xcalloc(1, sizeof *counter);
    xgrow(&stats->counters, &stats->counters_room, stats->n_counters + 1, 16,
          sizeof *stats->counters);
    stats->counters[stats->n_counters++] = counter;
    return counter;
}

/* With the lock held, returns a counter that no part has. */
static struct counter *take_counter(struct samtools_stats *stats)
{
    struct counter *counter = stats->free_counters;
    if (!counter) return new_counter(stats);
    stats->free_counters = counter->next;
    return counter->counts.numbers[STATS_READS_FIRST] < MOST_READS &&
                   counter->counts.numbers[STATS_READS_LAST] < MOST_READS
               ? counter
               : new_counter(stats);
}

static void *begin(const struct record_observer *observer)
{
    struct samtools_stats *stats = of(observer);
    struct part *part = xcalloc(1, sizeof *part);
    part->stats = stats;
    (void)pthread_mutex_lock(&stats->lock);
    part->counter = take_counter(stats);
    part->order.part = ++stats->n_parts;
    const uint32_t bases = stats->ring_bases, size = stats->ring_size;
    (void)pthread_mutex_unlock(&stats->lock);
    stats_part_start(&part->depth, bases, size);
    return part;
}

static void discard(void *arg)
{
    struct part *part = arg;
    stats_part_release(&part->depth);
    stats_places_release(&part->places);
    free(part->order.at);
    free(part);
}

static void end(struct record_observer *observer, void *arg)
{
    struct samtools_stats *stats = of(observer);
    struct part *part = arg;
    stats_part_count(&part->depth, &part->places, stats->options);
    (void)pthread_mutex_lock(&stats->lock);
    part->counter->next = stats->free_counters;
    stats->free_counters = part->counter;
    part->counter = NULL;
    (void)pthread_mutex_unlock(&stats->lock);
}

/* ---- places ---- */

static bool is_aligned(uint32_t op)
{
    return op == BAM_CMATCH || op == BAM_CEQUAL || op == BAM_CDIFF;
}

/* Adds the spans of a record; joins those with only insertions between them, unless overlaps are to
   be removed. */
static void add_spans(struct stats_places *places, struct bam_cigar cigar, bool joins)
{
    int64_t gap = 0;
    uint32_t n = 0;
    for (size_t i = 0; i < cigar.n_ops; i++) {
        const uint32_t op = get_u32(cigar.ops + 4 * i), length = bam_cigar_oplen(op);
        if (is_aligned(bam_cigar_op(op))) {
            if (joins && n > 0) {
                n += length;
                continue;
            }
            if (n > 0) stats_places_span(places, gap, n);
            if (n > 0) gap = 0;
            n = length;
        } else if (bam_cigar_type(bam_cigar_op(op)) & 2) {
            if (n > 0) stats_places_span(places, gap, n);
            if (n > 0) gap = 0;
            n = 0;
            gap += length;
        }
    }
    if (n > 0) stats_places_span(places, gap, n);
}

/* Adds the spans of a record that are on targets, from the first one that it overlaps. Goes through
   targets and operations as samtools does. */
static void add_target_spans(const struct samtools_stats *stats, struct stats_places *places,
                             const struct stats_read *read, int64_t end_pos)
{
    const struct stats_target *target = read->target;
    const struct stats_target *last = stats->targets.at + stats->targets.n;
    const int64_t first_pos = bam_record_true_pos(read->rec);
    int64_t pos = first_pos, done = first_pos;
    for (size_t i = 0; i < read->cigar.n_ops;) {
        if (target == last || target->tid != read->target->tid || target->first > end_pos) break;
        const uint32_t op = get_u32(read->cigar.ops + 4 * i), length = bam_cigar_oplen(op);
        const int64_t from = target->first > first_pos + 1 ? target->first - 1 : first_pos;
        const int64_t to = target->last < end_pos ? target->last : end_pos;
        if (is_aligned(bam_cigar_op(op))) {
            const int64_t begin_at = pos > from ? pos : from;
            const int64_t end_at = pos + length < to ? pos + length : to;
            if (end_at > begin_at) {
                stats_places_span(places, begin_at - done, (uint32_t)(end_at - begin_at));
                done = end_at;
            }
        }
        const int64_t next = pos + (bam_cigar_type(bam_cigar_op(op)) & 2 ? length : 0);
        if (next >= to) {
            target++;
        } else {
            i++;
            pos = next;
        }
    }
}

static struct stats_mate mate_of(const struct stats_read *read)
{
    const uint32_t number = read->flag & (BAM_FREAD1 | BAM_FREAD2);
    const int64_t length = bam_record_true_template_length(read->rec);
    struct stats_mate mate = {.number = number == BAM_FREAD1 ? 1 : 2};
    const bool may_overlap = (number == BAM_FREAD1 || number == BAM_FREAD2) &&
                             (read->flag & (BAM_FPAIRED | BAM_FMUNMAP)) == BAM_FPAIRED &&
                             llabs(length) < 2 * (int64_t)read->n_bases;
    if (!may_overlap) return (struct stats_mate){.number = 0};
    mate.name = XXH3_64bits(bam_record_name(read->rec), bam_record_name_bytes(read->rec));
    return mate;
}

static void add_place(struct part *part, const struct stats_read *read, int64_t end_pos)
{
    const struct samtools_stats *stats = part->stats;
    struct stats_places *places = &part->places;
    const struct stats_place *last = places->n > 0 ? &places->at[places->n - 1] : NULL;
    struct stats_place place = {.pos = bam_record_true_pos(read->rec),
                                .tid = bam_record_tid(read->rec)};
    if (last && last->tid == place.tid && place.pos < last->pos) part->depth.is_unsorted = true;
    if (part->depth.is_unsorted) return;
    place.n_bases = read->n_bases + (uint32_t)read->n_deleted;
    if (!stats->reference) place.gc = (float)read->n_gc / (float)read->n_bases;
    stats_places_add(places, &place);
    if (stats->options->removes_overlaps) {
        xgrow(&places->mates, &places->mates_room, places->n, places->n / 2 + 64,
              sizeof *places->mates);
        places->mates[places->n - 1] = mate_of(read);
    }
    if (read->target)
        add_target_spans(stats, places, read, end_pos);
    else
        add_spans(places, read->cigar, !stats->options->removes_overlaps);
}

/* ---- records ---- */

/* The end of a record as samtools sees it: it covers at least one position. */
static int64_t end_of(const struct stats_read *read)
{
    int64_t n = read->flag & BAM_FUNMAP ? 0 : bam_cigar_reference_bases(read->cigar);
    return bam_record_true_pos(read->rec) + (n > 0 ? n : 1);
}

/* Returns true if the record is to be counted. */
static bool is_counted(const struct samtools_stats *stats, struct stats_counts *counts,
                       const uint8_t *rec)
{
    const struct stats_options *options = stats->options;
    const int flag = (int)bam_record_flag(rec);
    if (stats->groups && !stats->is_wanted[read_groups_of(stats->groups, rec)]) return false;
    if ((flag & options->required_flags) != options->required_flags ||
        flag & options->excluded_flags) {
        counts->numbers[STATS_FILTERED]++;
        return false;
    }
    return options->n_bases < 0 || options->n_bases == bam_record_n_bases(rec);
}

/* Adds a record that is to be counted; with the lock of the counter, if it has one. */
static int count_record(struct part *part, struct counter *counter, struct stats_read *read)
{
    struct samtools_stats *stats = part->stats;
    stats_counts_add(&counter->counts, stats->options, &part->order, read);
    if (!stats->reference || !read->has_place) return 0;
    if (!counter->reference) counter->reference = fasta_window_take(stats->reference);
    if (!counter->reference) return -1;
    return stats_counts_mismatches(&counter->counts, counter->reference, read);
}

static int add_record(struct part *part, const uint8_t *rec)
{
    struct samtools_stats *stats = part->stats;
    struct stats_read read = {.target = NULL};
    int64_t end_pos = 0;
    int r;
    if (stats->targets.n > 0) {
        stats_read_parse(&read, rec);
        end_pos = end_of(&read);
        read.target = stats_targets_find(&stats->targets, bam_record_tid(rec),
                                         bam_record_true_pos(rec), end_pos);
        if (!read.target) return 0;
    }
    if (!is_counted(stats, &part->counter->counts, rec)) return 0;
    if (stats->targets.n == 0) stats_read_parse(&read, rec);
    if (read.length > MOST_BASES) {
        (void)pthread_mutex_lock(&stats->long_lock);
        r = count_record(part, stats->long_reads, &read);
        (void)pthread_mutex_unlock(&stats->long_lock);
    } else {
        r = count_record(part, part->counter, &read);
    }
    if (!(read.flag & BAM_FSECONDARY) && read.n_bases > 0)
        stats_places_length(&part->places, read.length);
    if (read.has_place) add_place(part, &read, end_pos);
    return r;
}

static int add_records(struct record_observer *observer, void *part,
                       const struct observed_records *observed)
{
    struct bam_records records = observed->all;
    int r = 0;
    (void)observer;
    for (const uint8_t *rec; r == 0 && (rec = bam_records_next(&records));)
        r = add_record(part, rec);
    return r;
}

static int combine(struct record_observer *observer, void *arg)
{
    struct samtools_stats *stats = of(observer);
    struct part *part = arg;
    stats_barcodes_combine(&stats->layout, &part->order);
    int r = stats_depth_combine(&stats->depth, &part->depth, &part->places);
    (void)pthread_mutex_lock(&stats->lock);
    stats->ring_bases = stats->depth.ring.n_bases;
    stats->ring_size = stats->depth.ring.size;
    (void)pthread_mutex_unlock(&stats->lock);
    discard(arg);
    return r;
}

/* ---- the report ---- */

static int finish(struct record_observer *observer)
{
    stats_depth_end(&of(observer)->depth);
    return 0;
}

static int print(const struct record_observer *observer, unsigned file, FILE *to)
{
    struct samtools_stats *stats = of(observer);
    const struct stats_counts **counts = xcalloc(stats->n_counters + 1, sizeof *counts);
    (void)file;
    for (size_t i = 0; i < stats->n_counters; i++) counts[i] = &stats->counters[i]->counts;
    const struct stats_report report = {.options = stats->options,
                                        .command_line = stats->setup->command_line,
                                        .counts = counts, .n_counts = stats->n_counters,
                                        .depth = &stats->depth, .layout = &stats->layout,
                                        .n_target_positions = stats->targets.n_positions};
    stats_print(&report, to);
    free(counts);
    return 0;
}

static void give_back(struct samtools_stats *stats, struct fasta_window *window)
{
    if (window) fasta_window_give_back(stats->reference, window);
}

static void destroy(struct record_observer *observer)
{
    struct samtools_stats *stats = of(observer);
    for (size_t i = 0; i < stats->n_counters; i++) {
        stats_counts_release(&stats->counters[i]->counts);
        give_back(stats, stats->counters[i]->reference);
        free(stats->counters[i]);
    }
    free(stats->counters);
    stats_depth_release(&stats->depth);
    give_back(stats, stats->depth.reference);
    fasta_reference_close(stats->reference);
    stats_targets_release(&stats->targets);
    read_groups_destroy(stats->groups);
    free(stats->is_wanted);
    (void)pthread_mutex_destroy(&stats->lock);
    (void)pthread_mutex_destroy(&stats->long_lock);
    free(stats);
}

/* ---- the start ---- */

/* Finds the read groups with this ID or sample. */
static int find_groups(struct samtools_stats *stats, const char *id)
{
    sam_hdr_t *header = stats->setup->header;
    kstring_t sample = KS_INITIALIZE;
    bool is_found = false;
    stats->groups = read_groups_create(header);
    stats->is_wanted = xcalloc(stats->groups->ids.n + 1, sizeof *stats->is_wanted);
    for (size_t i = 0; i < stats->groups->ids.n; i++) {
        const char *name = stats->groups->ids.names[i];
        bool is_wanted = strcmp(name, id) == 0;
        if (!is_wanted && sam_hdr_find_tag_id(header, "RG", "ID", name, "SM", &sample) == 0)
            is_wanted = strcmp(ks_c_str(&sample), id) == 0;
        stats->is_wanted[i + 1] = is_wanted;
        is_found |= is_wanted;
    }
    ks_free(&sample);
    if (!is_found) diag_error("--stats: the header has no read group or sample '%s'", id);
    return is_found ? 0 : -1;
}

static int prepare(struct samtools_stats *stats)
{
    static const unsigned char codes[256] = {
        ['A'] = 1, ['a'] = 1, ['C'] = 2, ['c'] = 2, ['G'] = 4, ['g'] = 4, ['T'] = 8, ['t'] = 8};
    static const struct fasta_use use = {"--stats", codes};
    const struct stats_options *options = stats->options;
    sam_hdr_t *header = stats->setup->header;
    const char *needs_order = options->reference          ? "-r"
                              : options->targets          ? "-t"
                              : options->removes_overlaps ? "-p" : NULL;
    if (needs_order && !stats->setup->is_in_coordinate_order) {
        diag_error("--stats: %s needs output in coordinate order", needs_order);
        return -1;
    }
    if (options->group && find_groups(stats, options->group) < 0) return -1;
    if (options->targets && stats_targets_read(&stats->targets, options->targets, header) < 0)
        return -1;
    if (!options->reference) return 0;
    stats->reference = fasta_reference_open(options->reference, header, &use);
    return stats->reference ? 0 : -1;
}

static struct record_observer *observe(const struct count_setup *setup)
{
    static const struct observer_kind kind = {
        .begin = begin, .add_records = add_records, .end = end, .combine = combine,
        .discard = discard, .finish = finish, .print = print, .destroy = destroy};
    struct samtools_stats *stats = xcalloc(1, sizeof *stats);
    stats->base.kind = &kind;
    stats->setup = setup;
    stats->options = setup->options;
    (void)pthread_mutex_init(&stats->lock, NULL);
    (void)pthread_mutex_init(&stats->long_lock, NULL);
    stats->long_reads = new_counter(stats);
    int r = prepare(stats);
    struct fasta_window *window = stats->reference ? fasta_window_take(stats->reference) : NULL;
    stats_depth_start(&stats->depth, stats->options, window);
    stats->ring_bases = stats->depth.ring.n_bases;
    stats->ring_size = stats->depth.ring.size;
    if (r == 0) return &stats->base;
    destroy(&stats->base);
    return NULL;
}

const struct count_kind stats_kind = {
    .memory_share = 16,
    .parse = stats_options_parse,
    .free_options = stats_options_free,
    .list = offsetof(struct stats_options, list),
    .observe = observe,
};
