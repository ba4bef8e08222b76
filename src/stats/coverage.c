/*
 * coverage.c -- computes the coverage of each reference, and prints it as `samtools coverage` 1.24
 * does without options: coverage_kind (stats_kinds.h).
 *
 * As in samtools, counts records with a reference that are not unmapped, secondary, QC-failed or
 * duplicates. A base covers its position if its CIGAR operation is M, = or X, and the position is
 * on the reference. All numbers are sums over records, except the number of covered positions: the
 * length of the union of all covered intervals.
 *
 * A worker computes a part for each output chunk: the union of the intervals of its records. In
 * coordinate order nearly every interval touches the last one or comes after it. After a record
 * with a deletion or an intron, intervals may begin before the last one. These go to a second list,
 * which is mostly in order, and is merged into the first one when it has grown. Records may reach
 * into later output chunks. So combine, which gets the parts in order, merges the intervals that
 * begin before earlier records end, and keeps those that later records may touch. For all others it
 * only needs the total length, which the worker has computed, because combine runs in one thread.
 *
 * Memory: 56 bytes for each reference that has records; 16 bytes for each interval. A part has at
 * most as many intervals as its CIGARs have operations; combine keeps those that end after the last
 * record begins.
 */
#include "stats/stats_kinds.h"

#include "bam/bam_long.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>

struct interval {               /* positions from begin (included) to end (not included) */
    int64_t begin, end;
};

struct intervals {              /* starts as {0} */
    struct interval *at;
    size_t n, room;
};

struct ref_sums {
    uint64_t n_records;
    uint64_t mapq;              /* sum over records */
    uint64_t n_bases;           /* on the reference: the sum of all depths */
    uint64_t n_quals, quals;    /* bases of records with a sequence; sum of their qualities */
    uint64_t n_covered;         /* positions */
    bool is_crossed;            /* by some CIGAR: printed before all others */
};

struct coverage {
    struct record_observer base;        /* must be the first member */
    const sam_hdr_t *header;
    int32_t n_refs;
    struct ref_sums *refs;      /* pages are only touched for references with records */
    /* The last reference so far: intervals that later parts may extend, not yet in n_covered. */
    int32_t tid;                /* -1: none */
    struct intervals open;
};

struct part_ref {
    int32_t tid;
    struct ref_sums sums;       /* n_covered: without intervals in the lists of the part */
};

struct coverage_part {
    const sam_hdr_t *header;
    struct part_ref *refs;
    size_t n_refs, refs_room;
    int64_t ref_bases;          /* length of the last reference */
    int64_t last_pos;           /* of the last record */
    /* Intervals of the first and the last reference, which may overlap those of other parts. If
       both are the same reference, `first` is empty. */
    struct intervals first, last;
    uint64_t n_first, n_last;   /* positions in these lists; n_last: set at the end */
    struct intervals late;      /* of the last one: they begin before those in `last` */
};

static struct coverage *of(struct record_observer *observer)
{
    return (struct coverage *)observer;
}

static void destroy(struct record_observer *observer)
{
    struct coverage *sum = of(observer);
    free(sum->refs);
    free(sum->open.at);
    free(sum);
}

/* ---- intervals ---- */

/* Adds an interval that does not begin before the last one. Extends that if they touch. */
static inline void append(struct intervals *list, int64_t begin, int64_t end)
{
    struct interval *last = list->n > 0 ? &list->at[list->n - 1] : NULL;
    if (last && begin <= last->end) {
        if (end > last->end) last->end = end;
        return;
    }
    xgrow(&list->at, &list->room, list->n + 1, list->n / 2 + 16, sizeof *list->at);
    list->at[list->n++] = (struct interval){begin, end};
}

/* The number of positions in n intervals, which do not touch each other. */
static uint64_t count_positions(const struct interval *at, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += (uint64_t)(at[i].end - at[i].begin);
    return sum;
}

/* Merges n other intervals, which are sorted, into a list. */
static void merge(struct intervals *list, const struct interval *others, size_t n)
{
    if (n == 0) return;
    struct intervals both = {0};
    const struct interval *a = list->at, *end_a = a + list->n, *b = others, *end_b = b + n;
    both.at = xmalloc((both.room = list->n + n) * sizeof *both.at);
    while (a < end_a || b < end_b) {
        const struct interval *next =
            b == end_b || (a < end_a && a->begin <= b->begin) ? a++ : b++;
        append(&both, next->begin, next->end);
    }
    free(list->at);
    *list = both;
}

static int compare_begin(const void *a, const void *b)
{
    const struct interval *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* ---- parts ---- */

static void *begin(const struct record_observer *observer)
{
    struct coverage_part *part = xcalloc(1, sizeof *part);
    part->header = ((const struct coverage *)observer)->header;
    return part;
}

static void discard(void *arg)
{
    struct coverage_part *part = arg;
    free(part->first.at);
    free(part->last.at);
    free(part->late.at);
    free(part->refs);
    free(part);
}

/* Merges the late intervals. */
static void settle(struct coverage_part *part)
{
    if (part->late.n == 0) return;
    qsort(part->late.at, part->late.n, sizeof *part->late.at, compare_begin);
    merge(&part->last, part->late.at, part->late.n);
    part->late.n = 0;
}

/* Ends a reference that is not the last one of the part. */
static void end_ref(struct coverage_part *part)
{
    settle(part);
    uint64_t n_covered = count_positions(part->last.at, part->last.n);
    if (part->n_refs > 1) {
        part->refs[part->n_refs - 1].sums.n_covered = n_covered;
        part->last.n = 0;
        return;
    }
    part->first = part->last;
    part->n_first = n_covered;
    part->last = (struct intervals){0};
}

static void begin_ref(struct coverage_part *part, int32_t tid)
{
    if (part->n_refs > 0) end_ref(part);
    xgrow(&part->refs, &part->refs_room, part->n_refs + 1, part->n_refs, sizeof *part->refs);
    part->refs[part->n_refs++] = (struct part_ref){.tid = tid};
    part->ref_bases = (int64_t)sam_hdr_tid2len(part->header, tid);
}

/* The sum of n bytes. Adds eight at a time: each of the four lanes of 16 bits takes two. */
static uint64_t sum_bytes(const uint8_t *bytes, size_t n)
{
    enum { MOST_STEPS = UINT16_MAX / (2 * UINT8_MAX) };     /* before a lane overflows */
    const uint64_t even = UINT64_C(0x00ff00ff00ff00ff);
    uint64_t sum = 0;
    while (n >= 8) {
        size_t n_steps = n / 8 < MOST_STEPS ? n / 8 : MOST_STEPS;
        uint64_t lanes = 0, eight;
        for (size_t i = 0; i < n_steps; i++) {
            memcpy(&eight, bytes + 8 * i, sizeof eight);
            lanes += (eight & even) + (eight >> 8 & even);
        }
        lanes = (lanes & UINT64_C(0xffff0000ffff)) + (lanes >> 16 & UINT64_C(0xffff0000ffff));
        sum += (lanes & UINT32_MAX) + (lanes >> 32);
        bytes += 8 * n_steps;
        n -= 8 * n_steps;
    }
    while (n-- > 0) sum += *bytes++;
    return sum;
}

enum { CONSUMES_READ = 1, CONSUMES_REFERENCE = 2, ON_BOTH = 3 };        /* see bam_cigar_type */

/* Adds an interval that bases of a record cover, on the last reference. Returns how many of its
   positions are on the reference. */
static uint64_t add_span(struct coverage_part *part, int64_t begin, int64_t end)
{
    enum { LEAST_LATE = 256 };
    if (begin < 0) begin = 0;
    if (end > part->ref_bases) end = part->ref_bases;
    if (begin >= end) return 0;
    uint64_t n = (uint64_t)(end - begin);
    if (part->last.n == 0 || begin >= part->last.at[part->last.n - 1].begin) {
        append(&part->last, begin, end);
        return n;
    }
    /* Merging walks through all intervals. */
    if (part->late.n >= LEAST_LATE && part->late.n >= part->last.n / 4) settle(part);
    struct intervals *late = &part->late;
    if (late->n > 0 && begin < late->at[late->n - 1].begin) {
        xgrow(&late->at, &late->room, late->n + 1, late->n, sizeof *late->at);
        late->at[late->n++] = (struct interval){begin, end};
    } else {
        append(late, begin, end);
    }
    return n;
}

/* Sums the qualities of a record's bases that are on the last reference, if not all of them are. */
static uint64_t sum_cut_quals(const struct coverage_part *part, struct bam_cigar cigar, int64_t pos,
                              const uint8_t *quals)
{
    uint64_t sum = 0;
    struct bam_cigar_walk step = bam_cigar_walk(cigar, pos);
    while (bam_cigar_next(&step)) {
        int64_t begin = step.pos < 0 ? 0 : step.pos, end = step.pos + step.n;
        if (end > part->ref_bases) end = part->ref_bases;
        if (step.type == ON_BOTH && begin < end)
            sum += sum_bytes(quals + step.at + (begin - step.pos), (size_t)(end - begin));
    }
    return sum;
}

/* Adds the bases of a record. quals NULL: no sequence. Long reads have thousands of short
   operations, so little is done for each: intervals end only at deletions, and all qualities are
   summed at once, minus those of insertions and clips. */
static void add_bases(struct coverage_part *part, struct bam_cigar cigar, int64_t pos,
                      const uint8_t *quals)
{
    struct ref_sums *sums = &part->refs[part->n_refs - 1].sums;
    int64_t x = pos, y = 0, begin = pos;
    uint64_t n_aligned = 0, n_on_ref = 0, left_out = 0;
    for (const uint8_t *at = cigar.ops; at < cigar.ops + 4 * cigar.n_ops; at += 4) {
        int64_t n = bam_cigar_oplen(get_u32(at));
        int type = bam_cigar_type(bam_cigar_op(get_u32(at)));
        if (type == ON_BOTH) {
            n_aligned += (uint64_t)n;
        } else if (type == CONSUMES_READ && quals) {
            left_out += sum_bytes(quals + y, (size_t)n);
        } else if (type == CONSUMES_REFERENCE) {
            n_on_ref += add_span(part, begin, x);
            begin = x + n;
        }
        if (type & CONSUMES_READ) y += n;
        if (type & CONSUMES_REFERENCE) x += n;
    }
    n_on_ref += add_span(part, begin, x);
    sums->is_crossed |= x > pos;
    sums->n_bases += n_on_ref;
    if (!quals) return;
    sums->n_quals += n_on_ref;
    sums->quals += n_on_ref == n_aligned ? sum_bytes(quals, (size_t)y) - left_out
                                         : sum_cut_quals(part, cigar, pos, quals);
}

static void add_record(struct coverage_part *part, const uint8_t *rec)
{
    const uint32_t left_out = BAM_FUNMAP | BAM_FSECONDARY | BAM_FQCFAIL | BAM_FDUP;
    int32_t tid = bam_record_tid(rec);
    if (tid < 0 || bam_record_flag(rec) & left_out) return;
    if (part->n_refs == 0 || part->refs[part->n_refs - 1].tid != tid) begin_ref(part, tid);
    struct ref_sums *sums = &part->refs[part->n_refs - 1].sums;
    sums->n_records++;
    sums->mapq += rec[BAM_MAPQ_AT];
    part->last_pos = bam_record_true_pos(rec);
    struct bam_aux cg;
    add_bases(part, bam_record_find_cigar(rec, &cg), part->last_pos,
              bam_record_n_bases(rec) > 0 ? bam_record_quals(rec) : NULL);
}

static int add_records(struct record_observer *observer, void *part,
                       const struct observed_records *observed)
{
    struct bam_records records = observed->all;
    (void)observer;
    for (const uint8_t *rec; (rec = bam_records_next(&records));) add_record(part, rec);
    return 0;
}

static void end(struct record_observer *observer, void *arg)
{
    struct coverage_part *part = arg;
    (void)observer;
    settle(part);
    part->n_last = count_positions(part->last.at, part->last.n);
}

/* ---- the sum ---- */

static void add_sums(struct ref_sums *to, const struct ref_sums *sums)
{
    to->n_records += sums->n_records;
    to->mapq += sums->mapq;
    to->n_bases += sums->n_bases;
    to->n_quals += sums->n_quals;
    to->quals += sums->quals;
    to->n_covered += sums->n_covered;
    to->is_crossed |= sums->is_crossed;
}

/* Counts the first open intervals, those that end at or before `pos`, and removes them. */
static void close_intervals(struct coverage *sum, int64_t pos)
{
    struct intervals *open = &sum->open;
    size_t n = open->n;
    while (n > 0 && open->at[n - 1].end > pos) n--;
    if (n == 0) return;
    sum->refs[sum->tid].n_covered += count_positions(open->at, n);
    open->n -= n;
    memmove(open->at, open->at + n, open->n * sizeof *open->at);
}

/* Joins the intervals of a part on a reference, which have n_positions positions. Records of later
   parts begin at or after last_pos. */
static void join(struct coverage *sum, int32_t tid, const struct intervals *list,
                 uint64_t n_positions, int64_t last_pos)
{
    if (sum->tid != tid) close_intervals(sum, INT64_MAX);
    sum->tid = tid;
    struct intervals *open = &sum->open;
    size_t n_touched = 0, n_closed = list->n;   /* earlier records may touch the first n_touched */
    if (open->n > 0) {
        int64_t reach = open->at[open->n - 1].end;
        while (n_touched < list->n && list->at[n_touched].begin <= reach) n_touched++;
        merge(open, list->at, n_touched);
        close_intervals(sum, last_pos);
    }
    while (n_closed > n_touched && list->at[n_closed - 1].end > last_pos) n_closed--;
    sum->refs[tid].n_covered += n_positions - count_positions(list->at, n_touched) -
                                count_positions(list->at + n_closed, list->n - n_closed);
    for (size_t i = n_closed; i < list->n; i++) append(open, list->at[i].begin, list->at[i].end);
}

static int combine(struct record_observer *observer, void *arg)
{
    struct coverage *sum = of(observer);
    const struct coverage_part *part = arg;
    for (size_t i = 0; i < part->n_refs; i++)
        add_sums(&sum->refs[part->refs[i].tid], &part->refs[i].sums);
    if (part->n_refs > 1) join(sum, part->refs[0].tid, &part->first, part->n_first, INT64_MAX);
    if (part->n_refs > 0)
        join(sum, part->refs[part->n_refs - 1].tid, &part->last, part->n_last, part->last_pos);
    discard(arg);
    return 0;
}

static double mean(uint64_t total, uint64_t n)
{
    return n > 0 ? (double)total / (double)n : 0;
}

static void print_ref(const struct coverage *sum, int32_t tid, FILE *to)
{
    const struct ref_sums *sums = &sum->refs[tid];
    int64_t n_bases = (int64_t)sam_hdr_tid2len(sum->header, tid);
    (void)fprintf(to, "%s\t1\t%" PRId64 "\t%" PRIu64 "\t%" PRIu64 "\t%g\t%g\t%.3g\t%.3g\n",
                  sam_hdr_tid2name(sum->header, tid), n_bases, sums->n_records, sums->n_covered,
                  100.0 * (double)sums->n_covered / (double)n_bases,
                  (double)sums->n_bases / (double)n_bases, mean(sums->quals, sums->n_quals),
                  mean(sums->mapq, sums->n_records));
}

static int print(const struct record_observer *observer, unsigned file, FILE *to)
{
    (void)file;
    struct coverage *sum = of((struct record_observer *)observer);
    close_intervals(sum, INT64_MAX);    /* the last ones end here */
    if (sum->n_refs > 0)
        (void)fputs("#rname\tstartpos\tendpos\tnumreads\tcovbases\tcoverage\tmeandepth\tmeanbaseq\t"
                    "meanmapq\n", to);
    /* samtools prints the references that its pileup reached, and then all others. */
    for (int32_t tid = 0; tid < sum->n_refs; tid++)
        if (sum->refs[tid].is_crossed) print_ref(sum, tid, to);
    for (int32_t tid = 0; tid < sum->n_refs; tid++)
        if (!sum->refs[tid].is_crossed) print_ref(sum, tid, to);
    return 0;
}

static struct record_observer *observe(const struct count_setup *setup)
{
    static const struct observer_kind kind = {
        .begin = begin, .add_records = add_records, .end = end, .combine = combine,
        .discard = discard, .print = print, .destroy = destroy};
    struct coverage *sum = xcalloc(1, sizeof *sum);
    sum->base.kind = &kind;
    sum->header = setup->header;
    sum->n_refs = sam_hdr_nref(setup->header);
    sum->refs = xcalloc((size_t)sum->n_refs + 1, sizeof *sum->refs);
    sum->tid = -1;
    return &sum->base;
}

const struct count_kind coverage_kind = {.in_coordinate_order = true, .observe = observe};
