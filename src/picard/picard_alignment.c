/*
 * picard_alignment.c -- counts what the file .alignment_summary_metrics shows, for first, second
 * and unpaired reads.
 *
 * Picard's documentation says that counts of bases include supplementary records; they do not.
 */
#include "picard/picard_collect.h"
#include "picard/picard_files.h"
#include "util/xalloc.h"

#include <stdlib.h>

enum { HIGH_MAPQ = 20, HIGH_QUALITY = 20 };

static void add_bin(struct picard_table *table, uint64_t key, enum picard_histogram histogram,
                    uint64_t bin)
{
    picard_table_add(table, key | (uint64_t)histogram << 32 | (uint32_t)bin, 1);
}

/* ---- reads ---- */

static bool is_chimera(const struct picard_read *read, int64_t most_insert)
{
    int64_t n = bam_record_true_template_length(read->rec);
    return n > most_insert || n < -most_insert ||
           bam_record_tid(read->rec) != bam_record_mate_tid(read->rec) ||
           picard_orientation(read) != PAIR_FR || read->tags[TAG_SA].type != 0;
}

static void count_aligned_read(uint64_t *sums, const struct picard_read *read,
                               const struct picard_limits *limits)
{
    int64_t mate_mapq;
    sums[SUM_ALIGNED_READS]++;
    sums[SUM_FORWARD] += !read->is_reverse;
    bool is_paired = read->flag & BAM_FPAIRED;
    sums[SUM_IMPROPER] += is_paired && !(read->flag & BAM_FPROPER_PAIR);
    if (is_paired && !(read->flag & BAM_FMUNMAP)) {
        sums[SUM_IN_PAIRS]++;
        /* Without the tag MQ, Picard does not look at the read's own quality either. */
        bool has_mapq = read->tags[TAG_MQ].type && bam_aux_integer(&read->tags[TAG_MQ], &mate_mapq);
        if (has_mapq && (mate_mapq < HIGH_MAPQ || read->mapq < HIGH_MAPQ)) return;
        sums[SUM_CHIMERA_CANDIDATES]++;
        sums[SUM_CHIMERAS] += is_chimera(read, limits->most_insert);
    } else if (read->mapq >= HIGH_MAPQ) {
        sums[SUM_CHIMERA_CANDIDATES]++;
        sums[SUM_CHIMERAS] += read->tags[TAG_SA].type != 0;
    }
}

static bool is_noise(const struct picard_read *read)
{
    int64_t value = 0;
    return read->tags[TAG_XN].type && bam_aux_integer(&read->tags[TAG_XN], &value) && value == 1;
}

/* ---- bases ---- */

/* How many of n qualities are at least 20. */
static uint64_t count_high(const uint8_t *quals, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += quals[i] >= HIGH_QUALITY;
    return sum;
}

struct walk {                   /* through the bases of a CIGAR */
    const struct picard_read *read;
    struct picard_table *table;
    uint64_t key;               /* of the cell and the category */
    bool is_hq;
    uint64_t n_aligned, n_hq_high, n_mismatches;
};

/* Picard takes the distance from the beginning of the block for that from the beginning of the
   read. */
static void count_bad_cycle(const struct walk *walk, int64_t i)
{
    int64_t n = (int64_t)walk->read->n_bases;
    int64_t cycle = walk->read->is_reverse ? n - i : i + 1;
    add_bin(walk->table, walk->key, HISTOGRAM_BAD_CYCLES, (uint64_t)cycle);
}

/* Picard ignores bases beyond the end of the reference, if it has one. */
static size_t cut_block(const struct fasta_window *window, size_t n, int64_t pos)
{
    if (!window || pos + (int64_t)n <= window->n_bases) return n;
    return pos < window->n_bases ? (size_t)(window->n_bases - pos) : 0;
}

/* True if no base of a part of a read differs from the reference. */
static bool is_equal(const uint8_t *codes, const uint8_t *reference, size_t n)
{
    return memcmp(codes, reference, n) == 0;
}

static void count_block(struct walk *walk, size_t at, size_t n, int64_t pos,
                        const struct fasta_window *window)
{
    enum { STEP = 32 };
    const struct picard_read *read = walk->read;
    n = cut_block(window, n, pos);
    walk->n_aligned += n;
    if (at + n > read->n_bases) n = at < read->n_bases ? read->n_bases - at : 0;
    if (walk->is_hq && read->has_quals) walk->n_hq_high += count_high(read->quals + at, n);
    const uint8_t *reference = window ? window->codes + (pos - window->begin) : NULL;
    if (!reference && read->n_no_calls == 0) return;
    const uint8_t *codes = read->forward + at;
    for (size_t from = 0; from < n; from += STEP) {
        size_t to = from + STEP < n ? from + STEP : n;
        bool has_no_calls = read->n_no_calls > 0;
        if (!has_no_calls && is_equal(codes + from, reference + from, to - from)) continue;
        for (size_t i = from; i < to; i++) {
            bool differs = reference && codes[i] != reference[i];
            walk->n_mismatches += differs;
            if (differs || codes[i] == CODE_N) count_bad_cycle(walk, (int64_t)i);
        }
    }
}

/* Counts the bases of a mapped PF read. */
static void count_aligned_bases(uint64_t *sums, struct walk *walk,
                                const struct fasta_window *window)
{
    const struct picard_read *read = walk->read;
    struct bam_cigar_walk step = bam_cigar_walk(read->cigar, read->pos);
    while (bam_cigar_next(&step)) {
        if (step.type == 3) count_block(walk, (size_t)step.at, (size_t)step.n, step.pos, window);
        sums[SUM_INDELS] += step.op == BAM_CINS || step.op == BAM_CDEL;
    }
    sums[SUM_ALIGNED_BASES] += walk->n_aligned;
    sums[SUM_MISMATCHES] += walk->n_mismatches;
    if (!walk->is_hq) return;
    sums[SUM_HQ_BASES] += walk->n_aligned;
    sums[SUM_HQ_Q20_BASES] += walk->n_hq_high;
    sums[SUM_HQ_MISMATCHES] += walk->n_mismatches;
}

/* Returns the number of soft-clipped bases. */
static uint64_t count_clips(uint64_t *sums, const struct picard_read *read, bool is_mapped)
{
    struct bam_extent extent = bam_cigar_extent(read->cigar);
    uint64_t n_soft = (uint64_t)(extent.soft[0] + extent.soft[1]);
    if (!is_mapped) return n_soft;
    sums[SUM_SOFT_CLIPPED] += n_soft;
    sums[SUM_HARD_CLIPPED] += (uint64_t)(extent.hard[0] + extent.hard[1]);
    int64_t at_3prime = extent.soft[read->is_reverse ? 0 : 1];
    sums[SUM_3PRIME_CLIPPED] += (uint64_t)at_3prime;
    sums[SUM_3PRIME_READS] += at_3prime > 0;
    return n_soft;
}

static void count_read(uint64_t *sums, struct picard_table *table, uint64_t key,
                       const struct picard_read *read, const struct picard_limits *limits)
{
    sums[SUM_TOTAL_READS]++;
    if (!read->is_pf) return;
    bool is_mapped = !(read->flag & BAM_FUNMAP);
    sums[SUM_PF_READS]++;
    sums[SUM_PF_BASES] += read->n_bases;
    sums[SUM_NOISE_READS] += is_noise(read);
    if (!is_mapped || read->mapq == 0) sums[SUM_ADAPTER_READS] += picard_is_adapter(read);
    if (is_mapped) count_aligned_read(sums, read, limits);
    uint64_t n_soft = count_clips(sums, read, is_mapped);
    bool has_cigar = read->cigar.n_ops > 0;     /* also if it is unmapped */
    size_t n_aligned = has_cigar && read->n_bases > n_soft ? read->n_bases - n_soft : 0;
    add_bin(table, key, HISTOGRAM_LENGTH, read->n_bases);
    add_bin(table, key, HISTOGRAM_ALIGNED_LENGTH, n_aligned);
}

void picard_count_alignment(struct picard_counts *counts, uint32_t cell,
                            const struct picard_read *read, const struct picard_limits *limits,
                            const struct fasta_window *window)
{
    uint64_t *sums = picard_counts_sums(counts, cell, read->category);
    uint64_t key = picard_key(cell, read->category, 0);
    count_read(sums, &counts->table, key, read, limits);
    struct walk walk = {.read = read, .table = &counts->table, .key = key,
                        .is_hq = read->is_pf && read->mapq >= HIGH_MAPQ};
    if (read->flag & BAM_FUNMAP || !read->is_pf) {
        for (size_t i = 0; i < read->n_no_calls; i++)
            add_bin(&counts->table, key, HISTOGRAM_BAD_CYCLES, read->no_calls[i] + 1);
        return;
    }
    sums[SUM_HQ_READS] += walk.is_hq;
    count_aligned_bases(sums, &walk, window);
    if (window)
        add_bin(&counts->table, key, HISTOGRAM_HQ_MISMATCHES, walk.is_hq ? walk.n_mismatches : 0);
}

/* ---- the file ---- */

struct alignment_row {
    const char *category;
    uint64_t sums[SUM_N_SUMS];
    uint64_t least_length, most_length, n_bad_cycles;
    double pct_pf, pct_aligned, median_mismatches, mismatch_rate, error_rate, indel_rate;
    double mean_length, sd_length, median_length, mad_length, mean_aligned_length;
    double pct_in_pairs, pct_improper, strand_balance, pct_chimeras, pct_adapter;
    double pct_soft_clip, pct_hard_clip, mean_3prime_clip;
    struct picard_labels labels;
};

#define SUM(name, sum) {name, PICARD_COUNT, offsetof(struct alignment_row, sums[sum])}
#define COUNT(name, member) {name, PICARD_COUNT, offsetof(struct alignment_row, member)}
#define REAL(name, member) {name, PICARD_REAL, offsetof(struct alignment_row, member)}
#define TEXT(name, member) {name, PICARD_TEXT, offsetof(struct alignment_row, member)}

static const struct picard_column columns[] = {
    TEXT("CATEGORY", category),
    SUM("TOTAL_READS", SUM_TOTAL_READS),
    SUM("PF_READS", SUM_PF_READS),
    REAL("PCT_PF_READS", pct_pf),
    SUM("PF_NOISE_READS", SUM_NOISE_READS),
    SUM("PF_READS_ALIGNED", SUM_ALIGNED_READS),
    REAL("PCT_PF_READS_ALIGNED", pct_aligned),
    SUM("PF_ALIGNED_BASES", SUM_ALIGNED_BASES),
    SUM("PF_HQ_ALIGNED_READS", SUM_HQ_READS),
    SUM("PF_HQ_ALIGNED_BASES", SUM_HQ_BASES),
    SUM("PF_HQ_ALIGNED_Q20_BASES", SUM_HQ_Q20_BASES),
    REAL("PF_HQ_MEDIAN_MISMATCHES", median_mismatches),
    REAL("PF_MISMATCH_RATE", mismatch_rate),
    REAL("PF_HQ_ERROR_RATE", error_rate),
    REAL("PF_INDEL_RATE", indel_rate),
    REAL("MEAN_READ_LENGTH", mean_length),
    REAL("SD_READ_LENGTH", sd_length),
    REAL("MEDIAN_READ_LENGTH", median_length),
    REAL("MAD_READ_LENGTH", mad_length),
    COUNT("MIN_READ_LENGTH", least_length),
    COUNT("MAX_READ_LENGTH", most_length),
    REAL("MEAN_ALIGNED_READ_LENGTH", mean_aligned_length),
    SUM("READS_ALIGNED_IN_PAIRS", SUM_IN_PAIRS),
    REAL("PCT_READS_ALIGNED_IN_PAIRS", pct_in_pairs),
    SUM("PF_READS_IMPROPER_PAIRS", SUM_IMPROPER),
    REAL("PCT_PF_READS_IMPROPER_PAIRS", pct_improper),
    COUNT("BAD_CYCLES", n_bad_cycles),
    REAL("STRAND_BALANCE", strand_balance),
    REAL("PCT_CHIMERAS", pct_chimeras),
    REAL("PCT_ADAPTER", pct_adapter),
    REAL("PCT_SOFTCLIP", pct_soft_clip),
    REAL("PCT_HARDCLIP", pct_hard_clip),
    REAL("AVG_POS_3PRIME_SOFTCLIP_LENGTH", mean_3prime_clip),
    TEXT("SAMPLE", labels.sample),
    TEXT("LIBRARY", labels.library),
    TEXT("READ_GROUP", labels.read_group),
};
static const struct picard_class class = {"AlignmentSummaryMetrics", PICARD_COLUMNS(columns)};

static double ratio(uint64_t n, uint64_t total)
{
    return total > 0 ? (double)n / (double)total : 0;
}

static void compute_ratios(struct alignment_row *row)
{
    const uint64_t *n = row->sums;
    row->pct_pf = ratio(n[SUM_PF_READS], n[SUM_TOTAL_READS]);
    row->pct_aligned = ratio(n[SUM_ALIGNED_READS], n[SUM_PF_READS]);
    row->mismatch_rate = ratio(n[SUM_MISMATCHES], n[SUM_ALIGNED_BASES]);
    row->error_rate = ratio(n[SUM_HQ_MISMATCHES], n[SUM_HQ_BASES]);
    row->indel_rate = ratio(n[SUM_INDELS], n[SUM_ALIGNED_BASES]);
    row->pct_in_pairs = ratio(n[SUM_IN_PAIRS], n[SUM_ALIGNED_READS]);
    row->pct_improper = ratio(n[SUM_IMPROPER], n[SUM_ALIGNED_READS]);
    row->strand_balance = ratio(n[SUM_FORWARD], n[SUM_ALIGNED_READS]);
    row->pct_chimeras = ratio(n[SUM_CHIMERAS], n[SUM_CHIMERA_CANDIDATES]);
    row->pct_adapter = ratio(n[SUM_ADAPTER_READS], n[SUM_PF_READS]);
    row->pct_soft_clip = ratio(n[SUM_SOFT_CLIPPED], n[SUM_PF_BASES]);
    row->pct_hard_clip = ratio(n[SUM_HARD_CLIPPED], n[SUM_PF_BASES]);
    row->mean_3prime_clip = ratio(n[SUM_3PRIME_CLIPPED], n[SUM_3PRIME_READS]);
}

/* The histograms of a category, or of both categories of pairs. */
struct unit_bins {
    const struct picard_gathered *level;
    size_t unit;
    int from, to;               /* categories */
    struct picard_bin *memory;  /* of the bins that were taken last */
};

/* Valid until the next call. */
static struct picard_bins take_bins(struct unit_bins *of, enum picard_histogram histogram)
{
    struct picard_bins parts[2] = {{0}, {0}};
    for (int i = of->from; i <= of->to; i++)
        parts[i - of->from] = picard_gathered_bins(of->level, of->unit, (enum picard_category)i,
                                                   histogram);
    free(of->memory);
    struct picard_bin *all = of->memory = xmalloc((parts[0].n + parts[1].n + 1) * sizeof *all);
    size_t n = 0, n_all = 0;
    for (int i = 0; i < 2; i++)
        for (size_t j = 0; j < parts[i].n; j++) all[n_all++] = parts[i].bins[j];
    picard_bins_sort(all, n_all);
    for (size_t i = 0; i < n_all; i++) {
        if (n > 0 && all[n - 1].at == all[i].at) all[n - 1].n += all[i].n;
        else all[n++] = all[i];
    }
    return (struct picard_bins){all, n};
}

/* Cycles with no call, or a mismatch, in 80 % of all reads. */
static uint64_t count_bad_cycles(const struct picard_gathered *level, size_t unit, int category)
{
    struct picard_bins bins = picard_gathered_bins(level, unit, (enum picard_category)category,
                                                   HISTOGRAM_BAD_CYCLES);
    double n_reads = (double)level->sums[unit][category][SUM_TOTAL_READS];
    uint64_t n = 0;
    for (size_t i = 0; i < bins.n; i++) n += (double)bins.bins[i].n / n_reads >= 0.8;
    return n;
}

static void compute_lengths(struct unit_bins *of, struct alignment_row *row)
{
    struct picard_bins lengths = take_bins(of, HISTOGRAM_LENGTH);
    row->mean_length = picard_bins_mean(lengths);
    row->sd_length = picard_bins_deviation(lengths, row->mean_length);
    row->median_length = picard_bins_median(lengths);
    row->mad_length = picard_bins_median_deviation(lengths, row->median_length);
    if (lengths.n > 0) {
        row->least_length = (uint64_t)lengths.bins[0].at;
        row->most_length = (uint64_t)lengths.bins[lengths.n - 1].at;
    }
    row->mean_aligned_length = picard_bins_mean(take_bins(of, HISTOGRAM_ALIGNED_LENGTH));
    row->median_mismatches = picard_bins_median(take_bins(of, HISTOGRAM_HQ_MISMATCHES));
}

static void print_row(const char *name, struct unit_bins *of, FILE *to)
{
    struct alignment_row row = {.category = name, .labels = of->level->labels[of->unit]};
    for (int i = of->from; i <= of->to; i++) {
        for (int sum = 0; sum < SUM_N_SUMS; sum++)
            row.sums[sum] += of->level->sums[of->unit][i][sum];
        row.n_bad_cycles += count_bad_cycles(of->level, of->unit, i);
    }
    compute_ratios(&row);
    compute_lengths(of, &row);
    picard_print_row(&class, &row, to);
}

/* Which rows a unit has: pairs if it has first reads; unpaired reads, or else one row of zeros. */
static void print_unit(const struct picard_gathered *level, size_t unit, FILE *to)
{
    static const struct {
        const char *name;
        int from, to;
    } rows[] = {{"FIRST_OF_PAIR", PICARD_FIRST, PICARD_FIRST},
                {"SECOND_OF_PAIR", PICARD_SECOND, PICARD_SECOND},
                {"PAIR", PICARD_FIRST, PICARD_SECOND},
                {"UNPAIRED", PICARD_UNPAIRED, PICARD_UNPAIRED}};
    bool has_pairs = level->sums[unit][PICARD_FIRST][SUM_TOTAL_READS] > 0;
    bool has_unpaired = level->sums[unit][PICARD_UNPAIRED][SUM_TOTAL_READS] > 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool is_paired = rows[i].from != PICARD_UNPAIRED;
        struct unit_bins of = {level, unit, rows[i].from, rows[i].to, NULL};
        if (is_paired ? has_pairs : has_unpaired || !has_pairs) print_row(rows[i].name, &of, to);
        free(of.memory);
    }
}

static void print_lengths(const struct picard_gathered *level, FILE *to)
{
    static const char *const names[2][2] = {
        {"PAIRED_TOTAL_LENGTH_COUNT", "PAIRED_ALIGNED_LENGTH_COUNT"},
        {"UNPAIRED_TOTAL_LENGTH_COUNT", "UNPAIRED_ALIGNED_LENGTH_COUNT"}};
    struct unit_bins of[2][2] = {
        {{level, 0, PICARD_FIRST, PICARD_SECOND, NULL},
         {level, 0, PICARD_FIRST, PICARD_SECOND, NULL}},
        {{level, 0, PICARD_UNPAIRED, PICARD_UNPAIRED, NULL},
         {level, 0, PICARD_UNPAIRED, PICARD_UNPAIRED, NULL}}};
    const bool is_there[2] = {level->sums[0][PICARD_FIRST][SUM_TOTAL_READS] +
                                      level->sums[0][PICARD_SECOND][SUM_TOTAL_READS] > 0,
                              level->sums[0][PICARD_UNPAIRED][SUM_TOTAL_READS] > 0};
    struct picard_curve curves[4];
    size_t n = 0;
    for (int i = 0; i < 2; i++)
        for (int j = 0; is_there[i] && j < 2; j++)
            curves[n++] = (struct picard_curve){
                names[i][j],
                take_bins(&of[i][j], j == 0 ? HISTOGRAM_LENGTH : HISTOGRAM_ALIGNED_LENGTH)};
    picard_print_curves("Integer", "READ_LENGTH", curves, n, to);
    for (int i = 0; i < 4; i++) free(of[i / 2][i % 2].memory);
}

void picard_print_alignment(const struct picard_report *report, FILE *to)
{
    picard_print_class(&class, to);
    for (int i = 0; i < N_LEVELS; i++)
        for (size_t unit = 0; unit < report->levels[i].n_summed; unit++)
            print_unit(&report->levels[i], unit, to);
    (void)fputc('\n', to);
    if (report->levels[LEVEL_ALL_READS].n_units > 0)
        print_lengths(&report->levels[LEVEL_ALL_READS], to);
    (void)fputc('\n', to);
}
