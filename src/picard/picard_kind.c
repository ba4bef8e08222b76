/*
 * picard_kind.c -- see picard_kind.h: the observer. A worker counts the records of a part; combine
 * adds the counts.
 */
#include "picard/picard_kind.h"

#include "os/thread_pool.h"
#include "picard/picard_collect.h"
#include "picard/picard_files.h"
#include "picard/picard_gc_bias.h"
#include "picard/picard_options.h"
#include "util/xalloc.h"

#include <stdlib.h>

struct observer {
    struct record_observer base;        /* must be the first member */
    const struct picard_options *options;
    struct picard_limits limits;
    sam_hdr_t *header;
    const char *prefix, *command_line;
    struct threads *threads;
    struct picard_groups *groups;
    struct fasta_reference *reference; /* NULL: none is given */
    bool has_levels;            /* besides all reads */
    size_t n_cells;
    struct picard_counts sum;
    struct picard_gathered levels[N_LEVELS];    /* after finish, as the next line */
    uint64_t gc_windows[PICARD_GC_BINS];
};

struct part {
    struct picard_counts counts;
    struct picard_read read;
    struct fasta_reference *reference; /* of the observer */
    struct fasta_window *window;       /* NULL: not taken */
    char *group;                /* the read group of the last record that has one */
    uint32_t cell;
};

static struct observer *of(const struct record_observer *observer)
{
    return (struct observer *)(uintptr_t)observer;
}

static void *begin(const struct record_observer *observer)
{
    struct part *part = xcalloc(1, sizeof *part);
    picard_counts_init(&part->counts, of(observer)->n_cells);
    part->reference = of(observer)->reference;
    return part;
}

static void give_back(struct part *part)
{
    if (part->window) fasta_window_give_back(part->reference, part->window);
    part->window = NULL;
}

static void discard(void *arg)
{
    struct part *part = arg;
    give_back(part);
    picard_counts_release(&part->counts);
    picard_read_release(&part->read);
    free(part->group);
    free(part);
}

/* Records of a read group often follow each other. */
static uint32_t cell_of(const struct observer *observer, struct part *part)
{
    const struct bam_aux *tag = &part->read.tags[TAG_RG];
    if (observer->n_cells == 1 || !bam_aux_is_text(tag)) return 0;
    const char *id = (const char *)tag->value;
    if (part->group && strcmp(part->group, id) == 0) return part->cell;
    free(part->group);
    part->group = xstrdup(id);
    return part->cell = picard_groups_cell(observer->groups, id);
}

/* Returns the bases of the reference below a record, or NULL without an error. */
static int move_window(struct part *part, const struct fasta_window **window)
{
    const struct picard_read *read = &part->read;
    int32_t tid = bam_record_tid(read->rec);
    *window = NULL;
    if (!part->window || read->flag & BAM_FUNMAP || tid < 0 || read->pos < 0) return 0;
    *window = part->window;
    return fasta_window_move(part->window, tid, read->pos,
                              read->pos + bam_cigar_reference_bases(read->cigar));
}

static int add_record(const struct observer *observer, struct part *part, const uint8_t *rec)
{
    bool counts_gc = observer->options->reference;
    bool is_primary = !(bam_record_flag(rec) & (BAM_FSECONDARY | BAM_FSUPPLEMENTARY));
    if (!is_primary && !counts_gc && !observer->has_levels) return 0;
    struct picard_read *read = &part->read;
    picard_read_set(read, rec);
    if (part->window || read->n_no_calls > 0) picard_read_turn(read);
    uint32_t cell = cell_of(observer, part);
    if (is_primary) {
        const struct fasta_window *window;
        if (move_window(part, &window) < 0) return -1;
        picard_count_alignment(&part->counts, cell, read, &observer->limits, window);
        picard_count_insert_size(&part->counts, cell, read, &observer->limits);
        picard_count_bases(&part->counts, read);
        picard_count_quals(&part->counts, read);
    }
    /* Supplementary records only make the unit of their read group known. */
    if (!is_primary && !(read->flag & BAM_FSECONDARY))
        (void)picard_counts_sums(&part->counts, cell, read->category);
    return counts_gc ? picard_count_gc(&part->counts, cell, read, part->window) : 0;
}

static int add_records(struct record_observer *observer, void *arg,
                       const struct observed_records *observed)
{
    struct part *part = arg;
    struct bam_records records = observed->all;
    const uint8_t *rec;
    int r = 0;
    if (of(observer)->reference && !part->window) {
        part->window = fasta_window_take(of(observer)->reference);
        r = part->window ? 0 : -1;
    }
    while (r == 0 && (rec = bam_records_next(&records))) r = add_record(of(observer), part, rec);
    return r;
}

static void end(struct record_observer *observer, void *part)
{
    (void)observer;
    give_back(part);
}

static int combine(struct record_observer *observer, void *arg)
{
    picard_counts_merge(&of(observer)->sum, &((struct part *)arg)->counts);
    discard(arg);
    return 0;
}

/* ---- windows of the reference by GC ---- */

struct scan {                   /* of a part of the reference, by a worker */
    struct thread_pool_slot slot;       /* must be the first member */
    struct observer *observer;
    const uint64_t *ends;       /* of each reference: the number of the first job after it */
    uint64_t n_windows[PICARD_GC_BINS];
};

enum { SCAN_BASES = 4 << 20 };

/* Finds the part of the reference that a job scans. */
static int scan_part(struct worker *worker, void *item)
{
    struct scan *scan = item;
    const uint64_t number = scan->slot.number;
    int32_t tid = 0, high = sam_hdr_nref(scan->observer->header) - 1;
    (void)worker;
    while (tid < high) {
        int32_t middle = tid + (high - tid) / 2;
        if (scan->ends[middle] <= number) tid = middle + 1;
        else high = middle;
    }
    struct fasta_window *window = fasta_window_take(scan->observer->reference);
    if (!window) return -1;
    int64_t from = (int64_t)(number - (tid > 0 ? scan->ends[tid - 1] : 0)) * SCAN_BASES;
    int r = picard_count_windows(window, tid, from, from + SCAN_BASES, scan->n_windows);
    fasta_window_give_back(scan->observer->reference, window);
    return r;
}

static int scan_reference(struct observer *observer)
{
    enum { MOST_SCANS = 8 };
    const int32_t n_refs = sam_hdr_nref(observer->header);
    uint64_t n_jobs = 0, *ends = xcalloc((size_t)n_refs + 1, sizeof *ends);
    for (int32_t tid = 0; tid < n_refs; tid++)
        ends[tid] = n_jobs += (uint64_t)sam_hdr_tid2len(observer->header, tid) / SCAN_BASES + 1;
    struct scan *scans = xcalloc(MOST_SCANS, sizeof *scans);
    for (int i = 0; i < MOST_SCANS; i++)
        scans[i] = (struct scan){.observer = observer, .ends = ends};
    int r = thread_pool_for_each(observer->threads, (unsigned)n_jobs, scans, MOST_SCANS,
                                 sizeof *scans, scan_part);
    for (int i = 0; i < MOST_SCANS; i++)
        for (int bin = 0; bin < PICARD_GC_BINS; bin++)
            observer->gc_windows[bin] += scans[i].n_windows[bin];
    free(scans);
    free(ends);
    return r;
}

static int finish(struct record_observer *arg)
{
    struct observer *observer = of(arg);
    for (int i = 0; i < N_LEVELS; i++)
        if (observer->options->levels[i])
            picard_gather(observer->groups, (enum picard_level)i, &observer->sum,
                          &observer->levels[i]);
    return observer->options->reference ? scan_reference(observer) : 0;
}

static const struct {
    const char *suffix, *tool;
    void (*print)(const struct picard_report *report, FILE *to);
} files[] = {
    {".alignment_summary_metrics", "CollectAlignmentSummaryMetrics",
     picard_print_alignment},
    {".base_distribution_by_cycle_metrics", "CollectBaseDistributionByCycle",
     picard_print_bases},
    {".insert_size_metrics", "CollectInsertSizeMetrics",
     picard_print_insert_sizes},
    {".quality_by_cycle_metrics", "MeanQualityByCycle",
     picard_print_cycle_quals},
    {".quality_distribution_metrics", "QualityScoreDistribution",
     picard_print_quals},
    {".quality_yield_metrics", "CollectQualityYieldMetrics",
     picard_print_yield},
    {".gc_bias.detail_metrics", "CollectGcBiasMetrics", picard_print_gc_details},
    {".gc_bias.summary_metrics", "CollectGcBiasMetrics", picard_print_gc_summary},
};
enum { N_FILES = sizeof files / sizeof *files, N_WITHOUT_REFERENCE = N_FILES - 2 };

static int print(const struct record_observer *arg, unsigned file, FILE *to)
{
    const struct observer *observer = of(arg);
    const struct picard_report report = {&observer->sum, observer->levels,
                                         observer->options->minimum_share,
                                         observer->options->deviations, observer->gc_windows};
    picard_print_head(files[file].tool, observer->prefix, observer->command_line, to);
    files[file].print(&report, to);
    return 0;
}

static void destroy(struct record_observer *arg)
{
    struct observer *observer = of(arg);
    for (int i = 0; i < N_LEVELS; i++) picard_gathered_release(&observer->levels[i]);
    picard_counts_release(&observer->sum);
    picard_groups_destroy(observer->groups);
    fasta_reference_close(observer->reference);
    free(observer);
}

static struct record_observer *observe(const struct count_setup *setup)
{
    static const struct observer_kind kind = {
        .begin = begin, .add_records = add_records, .end = end, .combine = combine,
        .discard = discard, .finish = finish, .print = print, .destroy = destroy};
    static const struct fasta_use use = {"--picard", seq_nt16_table};
    struct observer *observer = xcalloc(1, sizeof *observer);
    const struct picard_options *options = observer->options = setup->options;
    observer->base.kind = &kind;
    observer->limits = (struct picard_limits){options->most_insert, options->with_duplicates};
    observer->header = setup->header;
    observer->threads = setup->threads;
    observer->prefix = setup->name;
    observer->command_line = setup->command_line;
    observer->groups = picard_groups_create(setup->header);
    for (int i = LEVEL_SAMPLE; i < N_LEVELS; i++) observer->has_levels |= options->levels[i];
    observer->n_cells = observer->has_levels ? picard_groups_n_cells(observer->groups) : 1;
    picard_counts_init(&observer->sum, observer->n_cells);
    const char *reference = options->reference ? options->reference : setup->reference;
    if (!reference) return &observer->base;
    observer->reference = fasta_reference_open(reference, setup->header, &use);
    if (observer->reference) return &observer->base;
    destroy(&observer->base);
    return NULL;
}

static const char *suffix(const void *options, unsigned i)
{
    bool has_reference = ((const struct picard_options *)options)->reference;
    return i < (has_reference ? N_FILES : N_WITHOUT_REFERENCE) ? files[i].suffix : NULL;
}

const struct count_kind picard_kind = {
    .memory_share = 16, .takes_settings = true, .parse = picard_options_parse,
    .free_options = picard_options_free, .list = offsetof(struct picard_options, list),
    .suffix = suffix, .observe = observe};
