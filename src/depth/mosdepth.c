/*
 * mosdepth.c -- writes what mosdepth 0.3.3 writes: the depth of the output, by position, region and
 * range of depth (mosdepth_kind).
 *
 * Workers compute the depth of the records of a part, and compress the lines of per-base.bed.gz
 * (mosdepth_part.h). combine merges the depth of parts (depth_runs.h). It visits each run of equal
 * depth once, which takes some 20 ns, and writes lines: those of regions and ranges, and of
 * per-base.bed.gz where records of several parts meet. Compressed lines are used where no record of
 * earlier parts reaches.
 *
 * A reference is written when the first record of a later one comes. Memory: the counts of depths
 * of the reference and of all (depth_summary.h); the regions of the BED file, with 1 byte for each
 * reference; and what depth_runs.h, mate_overlaps.h, depth_regions.h and csi_writer.h say.
 */
#include "depth/mosdepth.h"

#include "depth/bed_output.h"
#include "depth/depth_regions.h"
#include "depth/depth_summary.h"
#include "depth/mosdepth_options.h"
#include "depth/mosdepth_part.h"
#include "util/diag.h"

#include <stdlib.h>
#include <string.h>

struct text_output {            /* a file of plain text */
    struct count_sink *sink;    /* NULL: the file is not wanted */
    struct byte_buffer text;
};

struct mosdepth {
    struct record_observer base;        /* must be the first member */
    const struct mosdepth_options *options;
    const sam_hdr_t *header;
    struct mosdepth_rules rules;
    int32_t n_refs;
    struct bed_intervals bed;
    bool *is_skipped;           /* of each reference; NULL: none is */
    struct text_output summary, global_dist, region_dist;
    struct bed_output per_base, by, quantized, thresholds;
    bool failed;                /* a file cannot be written */
    /* the current reference */
    int32_t tid;                /* -1: none yet */
    bool has_records;
    const char *name;
    int64_t n_bases;
    struct depth_join join;
    struct mate_table mates;
    struct depth_regions regions;
    struct depth_counts counts, region_counts;
    struct depth_run range;     /* of equal quantized depth; `depth` is the number, -1: none */
    /* of the current piece */
    struct per_base_text *text, *end_text;      /* those that can be used */
    int64_t text_end;           /* of the one that was used last */
    /* all references */
    struct depth_counts all, all_regions;
};

static struct mosdepth *of(const struct record_observer *observer)
{
    return (struct mosdepth *)(uintptr_t)observer;
}

/* ---- files ---- */

static void put_text(struct mosdepth *m, struct text_output *out)
{
    if (out->sink && out->text.n_bytes > 0)
        m->failed |= out->sink->write(out->sink, out->text.bytes, out->text.n_bytes) < 0;
    out->text.n_bytes = 0;
}

static void end_line(struct mosdepth *m, struct bed_output *out, int64_t begin, int64_t end)
{
    bed_text_end_line(&out->loose, m->tid, begin, end);
    m->failed |= bed_output_flush(out, false) < 0;
}

static void put_word(struct bed_output *out, const char *word)
{
    *byte_buffer_append(&out->loose.raw, 1) = '\t';
    byte_buffer_copy(&out->loose.raw, word, strlen(word));
}

/* ---- runs ---- */

static void put_per_base(struct mosdepth *m, const struct depth_run *run)
{
    if (run->begin < m->text_end) return;
    while (m->text < m->end_text && m->text->begin < run->begin) m->text++;
    if (m->text < m->end_text && m->text->begin == run->begin) {
        m->failed |= bed_output_text(&m->per_base, &m->text->text) < 0;
        m->text_end = m->text->end;
        return;
    }
    per_base_line(&m->per_base.loose, m->name, m->tid, run);
    m->failed |= bed_output_flush(&m->per_base, false) < 0;
}

/* The number of the range of a depth, or -1. */
static int64_t quantize(const struct mosdepth_options *options, int64_t depth)
{
    const int64_t *limits = options->quantize;
    int64_t n = (int64_t)options->n_quantize, i = 0;
    while (i < n && limits[i] < depth) i++;
    if (i == n || limits[i] > depth) i--;
    return i + 1 < n ? i : -1;
}

static void put_range(struct mosdepth *m)
{
    struct depth_run *range = &m->range;
    if (range->depth < 0 || range->begin >= range->end) return;
    bed_text_begin_line(&m->quantized.loose, m->name, range->begin, range->end);
    put_word(&m->quantized, m->options->labels[range->depth]);
    end_line(m, &m->quantized, range->begin, range->end);
}

static void add_to_range(struct mosdepth *m, const struct depth_run *run)
{
    int64_t number = quantize(m->options, run->depth);
    /* mosdepth does not look at the last position. */
    bool goes_on = number == m->range.depth || (run->begin > 0 && run->begin == m->n_bases - 1);
    if (!goes_on) {
        put_range(m);
        m->range = (struct depth_run){.begin = run->begin, .depth = number};
    }
    m->range.end = run->end;
}

static void visit_run(void *arg, const struct depth_run *run)
{
    struct mosdepth *m = arg;
    uint64_t n = (uint64_t)(run->end - run->begin);
    if (m->has_records) {
        depth_counts_add_run(&m->counts, run);
        depth_counts_add_depth(&m->counts, run->depth, n);
    }
    if (m->per_base.sink) put_per_base(m, run);
    if (m->quantized.sink) add_to_range(m, run);
    if (m->by.sink) depth_regions_add_run(&m->regions, run);
}

/* ---- regions ---- */

static void visit_region_run(void *arg, const struct depth_run *run)
{
    struct mosdepth *m = arg;
    if (!m->has_records) return;
    depth_counts_add_run(&m->region_counts, run);
    if (m->options->window == 0)
        depth_counts_add_depth(&m->region_counts, run->depth, (uint64_t)(run->end - run->begin));
}

/* Appends a number that is not negative, as printf does with a point. Rounds it here unless it lies
   close to the middle of two decimal numbers. */
static void put_fixed(struct byte_buffer *raw, double number, int n_decimals)
{
    enum { MOST_BYTES = 512, MOST_SIMPLE = 1 << 20 };
    const double close = 0.001;
    if (n_decimals == 2 && number < MOST_SIMPLE) {
        uint64_t rounded = (uint64_t)(number * 100 + 0.5);
        double rest = number * 100 + 0.5 - (double)rounded;
        if (rest > close && rest < 1 - close) {
            bed_text_number(raw, rounded / 100);
            const uint8_t digits[3] = {'.', (uint8_t)('0' + rounded / 10 % 10),
                                       (uint8_t)('0' + rounded % 10)};
            byte_buffer_copy(raw, digits, sizeof digits);
            return;
        }
    }
    raw->n_bytes += (size_t)snprintf((char *)byte_buffer_reserve(raw, MOST_BYTES), MOST_BYTES,
                                     "%#.*f", n_decimals, number);
}

static void put_region(void *arg, const struct depth_region *region)
{
    const int64_t most_depth = 999;     /* in the distribution of windows: by rounded depth */
    struct mosdepth *m = arg;
    bed_text_begin_line(&m->by.loose, m->name, region->begin, region->end);
    if (region->name) put_word(&m->by, region->name);
    *byte_buffer_append(&m->by.loose.raw, 1) = '\t';
    put_fixed(&m->by.loose.raw, region->depth, m->options->n_decimals);
    end_line(m, &m->by, region->begin, region->end);
    if (m->options->window > 0 && m->has_records) {
        int64_t depth = (int64_t)(region->depth + 0.5);
        depth_counts_add_depth(&m->region_counts, depth < most_depth ? depth : most_depth, 1);
    }
    if (!m->thresholds.sink) return;
    bed_text_begin_line(&m->thresholds.loose, m->name, region->begin, region->end);
    put_word(&m->thresholds, region->name ? region->name : "unknown");
    for (size_t i = 0; i < m->options->n_thresholds; i++) {
        *byte_buffer_append(&m->thresholds.loose.raw, 1) = '\t';
        bed_text_number(&m->thresholds.loose.raw, m->has_records ? region->n_covered[i] : 0);
    }
    end_line(m, &m->thresholds, region->begin, region->end);
}

/* ---- references ---- */

static bool is_skipped(const struct mosdepth *m, int32_t tid)
{
    return m->is_skipped && m->is_skipped[tid];
}

static void begin_ref(struct mosdepth *m, int32_t tid, bool has_records)
{
    m->tid = tid;
    m->has_records = has_records;
    m->name = sam_hdr_tid2name(m->header, tid);
    m->n_bases = (int64_t)sam_hdr_tid2len(m->header, tid);
    m->text = m->end_text;      /* the texts of earlier pieces */
    m->text_end = 0;
    m->range = (struct depth_run){.depth = -1};
    depth_join_begin(&m->join);
    mate_table_begin_ref(&m->mates);
    if (m->by.sink) depth_regions_begin_ref(&m->regions, tid, m->n_bases);
}

static void put_head(struct mosdepth *m)
{
    static const char head[] = "chrom\tlength\tbases\tmean\tmin\tmax\n";
    if (m->summary.sink->n_bytes == 0 && m->summary.text.n_bytes == 0)
        byte_buffer_copy(&m->summary.text, head, sizeof head - 1);
}

static void put_counts(struct mosdepth *m, const char *name, const struct depth_counts *counts,
                       const struct depth_counts *region_counts)
{
    int n_decimals = m->options->n_decimals;
    put_head(m);
    depth_counts_print(counts, name, n_decimals, &m->summary.text);
    depth_counts_print_distribution(counts, name, n_decimals, &m->global_dist.text);
    if (m->by.sink) {
        char *region_name = xasprintf("%s_region", name);
        depth_counts_print(region_counts, region_name, n_decimals, &m->summary.text);
        free(region_name);
        depth_counts_print_distribution(region_counts, name, n_decimals, &m->region_dist.text);
    }
    put_text(m, &m->summary);
    put_text(m, &m->global_dist);
    put_text(m, &m->region_dist);
}

static void end_ref(struct mosdepth *m)
{
    if (m->tid < 0 || is_skipped(m, m->tid)) return;
    depth_join_finish(&m->join, m->n_bases);
    if (m->by.sink) depth_regions_end_ref(&m->regions);
    if (m->quantized.sink) put_range(m);
    if (!m->has_records) return;
    put_counts(m, m->name, &m->counts, &m->region_counts);
    depth_counts_add(&m->all, &m->counts);
    depth_counts_add(&m->all_regions, &m->region_counts);
    depth_counts_clear(&m->counts);
    depth_counts_clear(&m->region_counts);
}

/* Ends the current reference, and goes on to another one, or to the end. */
static void go_to_ref(struct mosdepth *m, int32_t tid)
{
    end_ref(m);
    for (int32_t i = m->tid + 1; i < tid; i++) {        /* no records */
        begin_ref(m, i, false);
        end_ref(m);
    }
    if (tid < m->n_refs) begin_ref(m, tid, true);
}

/* ---- parts ---- */

static void *begin(const struct record_observer *observer)
{
    struct mosdepth_part *part = xmalloc(sizeof *part);
    mosdepth_part_init(part, &of(observer)->rules);
    return part;
}

static int add_records(struct record_observer *observer, void *part,
                       const struct observed_records *observed)
{
    struct bam_records records = observed->all;
    (void)observer;
    for (const uint8_t *rec; (rec = bam_records_next(&records));) mosdepth_part_add(part, rec);
    return 0;
}

static void end(struct record_observer *observer, void *part)
{
    (void)observer;
    mosdepth_part_end(part);
}

static void discard(void *part)
{
    mosdepth_part_release(part);
    free(part);
}

/* Chooses the texts of a piece that no record of earlier parts changes. */
static void choose_texts(struct mosdepth *m, struct mosdepth_part *part, size_t piece)
{
    struct depth_cursor cursor = {0};
    struct per_base_text *at = m->end_text ? m->end_text : part->texts;
    struct per_base_text *end = part->texts + part->n_texts;
    while (at < end && at->piece < piece) at++;
    m->text = at;
    for (; at < end && at->piece == piece; at++)
        if (!depth_join_is_clear(&m->join, &cursor, at->begin, at->end))
            at->begin = -1;     /* not used */
    m->end_text = at;
}

static void add_piece(struct mosdepth *m, struct mosdepth_part *part, size_t number)
{
    const struct depth_piece *piece = &part->depth.pieces[number];
    struct depth_part overlaps = {0};
    struct mate_piece mates = {.part = &part->mates, .is_first = number == 0,
                               .is_last = number + 1 == part->depth.n_pieces,
                               .pos = piece->last_begin};
    if (piece->tid != m->tid) go_to_ref(m, piece->tid);
    depth_part_add_record(&overlaps, piece->tid, 0);
    mate_table_add(&m->mates, &mates, &overlaps);
    depth_part_end(&overlaps);
    depth_join_add(&m->join, overlaps.steps.at, overlaps.steps.n);
    depth_part_release(&overlaps);
    choose_texts(m, part, number);
    depth_join_add_piece(&m->join, &part->depth, piece, piece->last_begin);
}

static int combine(struct record_observer *observer, void *arg)
{
    struct mosdepth *m = of(observer);
    struct mosdepth_part *part = arg;
    m->failed |= part->failed;
    for (size_t i = 0; i < part->depth.n_pieces && !m->failed; i++) add_piece(m, part, i);
    m->text = m->end_text = NULL;
    discard(part);
    return m->failed ? -1 : 0;
}

/* ---- the end ---- */

static int finish(struct record_observer *observer)
{
    struct mosdepth *m = of(observer);
    go_to_ref(m, m->n_refs);
    put_counts(m, "total", &m->all, &m->all_regions);
    struct bed_output *const files[] = {&m->per_base, &m->by, &m->quantized, &m->thresholds};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i]->sink && !m->failed) m->failed = bed_output_finish(files[i]) < 0;
    return m->failed ? -1 : 0;
}

static int print(const struct record_observer *observer, unsigned file, FILE *to)
{
    struct mosdepth *m = of(observer);
    struct bed_output *const outputs[] = {
        [MOSDEPTH_PER_BASE_INDEX] = &m->per_base, [MOSDEPTH_REGIONS_INDEX] = &m->by,
        [MOSDEPTH_QUANTIZED_INDEX] = &m->quantized, [MOSDEPTH_THRESHOLDS_INDEX] = &m->thresholds};
    for (enum mosdepth_file i = MOSDEPTH_PER_BASE_INDEX; i < MOSDEPTH_N_FILES; i++)
        if (outputs[i] && mosdepth_file_number(m->options, i) == (int)file)
            return csi_writer_print(&outputs[i]->csi, to);
    return 0;
}

static void destroy(struct record_observer *observer)
{
    struct mosdepth *m = of(observer);
    struct text_output *const texts[] = {&m->summary, &m->global_dist, &m->region_dist};
    struct bed_output *const files[] = {&m->per_base, &m->by, &m->quantized, &m->thresholds};
    struct depth_counts *const counts[] = {&m->counts, &m->region_counts, &m->all,
                                           &m->all_regions};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) free(texts[i]->text.bytes);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) bed_output_release(files[i]);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) depth_counts_release(counts[i]);
    depth_join_release(&m->join);
    mate_table_release(&m->mates);
    depth_regions_release(&m->regions);
    bed_intervals_release(&m->bed);
    free(m->is_skipped);
    free(m);
}

/* ---- the beginning ---- */

static void skip_all_but(struct mosdepth *m, int32_t tid)
{
    m->is_skipped = xmalloc((size_t)m->n_refs + 1);
    memset(m->is_skipped, true, (size_t)m->n_refs + 1);
    if (tid >= 0) m->is_skipped[tid] = false;
}

/* -c NAME, or NAME:BEGIN-END, of which mosdepth takes the name. */
static int choose_reference(struct mosdepth *m, sam_hdr_t *header, const char *chrom)
{
    int32_t tid = sam_hdr_name2tid(header, chrom);
    if (tid < 0) {
        char *name = xstrdup(chrom);
        name[strcspn(name, ":")] = '\0';
        tid = sam_hdr_name2tid(header, name);
        free(name);
    }
    if (tid >= 0) {
        skip_all_but(m, tid);
        return 0;
    }
    diag_error("--mosdepth: reference '%s' of -c is not in the header", chrom);
    return -1;
}

/* Like mosdepth, leaves out references without intervals if no other file needs their depth. */
static int read_intervals(struct mosdepth *m, sam_hdr_t *header)
{
    static const struct bed_rules rules = {
        .takes = "option --by of --mosdepth takes the size of windows or a BED file",
        .is_lenient = true};
    const struct mosdepth_options *options = m->options;
    if (bed_file_read(options->by, header, &rules, &m->bed) < 0) return -1;
    if (!options->no_per_base || options->n_quantize > 0 || options->n_thresholds > 0) return 0;
    bool *had_chosen = m->is_skipped;
    m->is_skipped = NULL;
    skip_all_but(m, -1);
    for (size_t i = 0; i < m->bed.n; i++) {
        int32_t tid = m->bed.intervals[i].tid;
        m->is_skipped[tid] = had_chosen && had_chosen[tid];
    }
    free(had_chosen);
    return 0;
}

static struct count_sink *sink_of(const struct count_setup *setup, enum mosdepth_file file)
{
    int number = mosdepth_file_number(setup->options, file);
    return number < 0 ? NULL : setup->sinks[number];
}

static void open_bed(const struct count_setup *setup, struct bed_output *out,
                     enum mosdepth_file file)
{
    struct count_sink *sink = sink_of(setup, file);
    if (sink) bed_output_init(out, sink, setup->header);
}

static void open_files(struct mosdepth *m, const struct count_setup *setup)
{
    m->summary.sink = sink_of(setup, MOSDEPTH_SUMMARY);
    m->global_dist.sink = sink_of(setup, MOSDEPTH_GLOBAL_DIST);
    m->region_dist.sink = sink_of(setup, MOSDEPTH_REGION_DIST);
    open_bed(setup, &m->per_base, MOSDEPTH_PER_BASE);
    open_bed(setup, &m->by, MOSDEPTH_REGIONS);
    open_bed(setup, &m->quantized, MOSDEPTH_QUANTIZED);
    open_bed(setup, &m->thresholds, MOSDEPTH_THRESHOLDS);
    if (!m->thresholds.sink) return;
    struct byte_buffer *raw = &m->thresholds.loose.raw;
    byte_buffer_copy(raw, "#chrom\tstart\tend\tregion", 23);
    for (size_t i = 0; i < m->options->n_thresholds; i++) {
        *byte_buffer_append(raw, 1) = '\t';
        bed_text_number(raw, (uint64_t)m->options->thresholds[i]);
        *byte_buffer_append(raw, 1) = 'X';
    }
    *byte_buffer_append(raw, 1) = '\n';
}

static struct record_observer *observe(const struct count_setup *setup)
{
    static const struct observer_kind kind = {
        .begin = begin, .add_records = add_records, .end = end, .combine = combine,
        .discard = discard, .finish = finish, .print = print, .destroy = destroy};
    const struct mosdepth_options *options = setup->options;
    struct mosdepth *m = xcalloc(1, sizeof *m);
    m->base.kind = &kind;
    m->options = options;
    m->header = setup->header;
    m->n_refs = sam_hdr_nref(setup->header);
    m->tid = -1;
    m->join.visit = visit_run;
    m->join.arg = m;
    m->regions = (struct depth_regions){
        .window = options->window, .bed = &m->bed, .thresholds = options->thresholds,
        .n_thresholds = options->n_thresholds, .takes_median = options->takes_median,
        .visit = put_region, .visit_run = visit_region_run, .arg = m};
    if ((options->chrom && choose_reference(m, setup->header, options->chrom) < 0) ||
        (options->by && options->window == 0 && read_intervals(m, setup->header) < 0)) {
        destroy(&m->base);
        return NULL;
    }
    m->rules = (struct mosdepth_rules){m->header, options, m->is_skipped};
    depth_counts_clear(&m->counts);     /* but not the others: as in mosdepth, their least is 0 */
    open_files(m, setup);
    return &m->base;
}

const struct count_kind mosdepth_kind = {
    .in_coordinate_order = true, .memory_share = 16,
    .parse = mosdepth_options_parse, .free_options = mosdepth_options_free,
    .list = offsetof(struct mosdepth_options, given),
    .suffix = mosdepth_suffix, .is_streamed = mosdepth_is_streamed, .observe = observe};
