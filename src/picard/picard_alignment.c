/*
 * picard_alignment.c -- counts what the file .alignment_summary_metrics shows, for first, second
 * and unpaired reads.
 *
 * Counts of reads leave out supplementary records, counts of bases do not. The reads of the same
 * length and alignment are the usual case, so a CIGAR is walked through once.
 */
#include "picard/picard_collect.h"

enum { HIGH_MAPQ = 20, HIGH_QUALITY = 20 };

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
    int64_t mate_mapq = HIGH_MAPQ;
    sums[SUM_ALIGNED_READS]++;
    sums[SUM_FORWARD] += !read->is_reverse;
    bool is_paired = read->flag & BAM_FPAIRED;
    sums[SUM_IMPROPER] += is_paired && !(read->flag & BAM_FPROPER_PAIR);
    if (is_paired && !(read->flag & BAM_FMUNMAP)) {
        sums[SUM_IN_PAIRS]++;
        if (read->tags[TAG_MQ].type) (void)bam_aux_integer(&read->tags[TAG_MQ], &mate_mapq);
        if (mate_mapq < HIGH_MAPQ || read->mapq < HIGH_MAPQ) return;
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
    uint64_t bad_cycles;        /* key of the histogram */
    bool is_hq;
    uint64_t n_aligned, n_hq_high, n_mismatches, n_hq_mismatches;
};

/* Picard takes the distance from the beginning of the block for that from the beginning of the
   read. */
static void count_bad_cycle(const struct walk *walk, int64_t i)
{
    int64_t n = (int64_t)walk->read->n_bases;
    int64_t cycle = walk->read->is_reverse ? n - i : i + 1;
    picard_table_add(walk->table, walk->bad_cycles | (uint32_t)cycle, 1);
}

static void count_block(struct walk *walk, size_t at, size_t n, int64_t pos,
                        const struct picard_window *window)
{
    const struct picard_read *read = walk->read;
    walk->n_aligned += n;
    if (walk->is_hq) walk->n_hq_high += read->has_quals ? count_high(read->quals + at, n) : 0;
    (void)pos;
    (void)window;
    for (size_t i = 0; read->n_no_calls > 0 && i < n; i++)
        if (picard_read_code(read, at + i) == CODE_N) count_bad_cycle(walk, (int64_t)i);
}

/* Counts the bases of a mapped PF read. */
static void count_aligned_bases(uint64_t *sums, struct walk *walk,
                                const struct picard_window *window)
{
    const struct picard_read *read = walk->read;
    size_t at = 0;
    int64_t pos = read->pos;
    for (size_t i = 0; i < read->cigar.n_ops; i++) {
        uint32_t op = get_u32(read->cigar.ops + 4 * i);
        int type = bam_cigar_type(bam_cigar_op(op));
        size_t n = bam_cigar_oplen(op);
        if (type == 3) count_block(walk, at, n, pos, window);
        sums[SUM_INDELS] += bam_cigar_op(op) == BAM_CINS || bam_cigar_op(op) == BAM_CDEL;
        if (type & 1) at += n;
        if (type & 2) pos += (int64_t)n;
    }
    sums[SUM_ALIGNED_BASES] += walk->n_aligned;
    sums[SUM_MISMATCHES] += walk->n_mismatches;
    if (!walk->is_hq) return;
    sums[SUM_HQ_BASES] += walk->n_aligned;
    sums[SUM_HQ_Q20_BASES] += walk->n_hq_high;
    sums[SUM_HQ_MISMATCHES] += walk->n_hq_mismatches;
}

static void count_clips(uint64_t *sums, const struct picard_read *read, uint64_t *n_soft)
{
    struct bam_extent extent = bam_cigar_extent(read->cigar);
    *n_soft = (uint64_t)(extent.soft[0] + extent.soft[1]);
    sums[SUM_SOFT_CLIPPED] += *n_soft;
    sums[SUM_HARD_CLIPPED] += (uint64_t)(extent.hard[0] + extent.hard[1]);
    int64_t at_3prime = extent.soft[read->is_reverse ? 0 : 1];
    sums[SUM_3PRIME_CLIPPED] += (uint64_t)at_3prime;
    sums[SUM_3PRIME_READS] += at_3prime > 0;
}

/* Counts a read that is not supplementary. */
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
    uint64_t n_soft = 0;
    if (is_mapped) {
        count_aligned_read(sums, read, limits);
        count_clips(sums, read, &n_soft);
    }
    picard_table_add(table, key | (uint64_t)HISTOGRAM_LENGTH << 32 | (uint32_t)read->n_bases, 1);
    picard_table_add(table, key | (uint64_t)HISTOGRAM_ALIGNED_LENGTH << 32 |
                                (uint32_t)(is_mapped ? read->n_bases - n_soft : 0), 1);
}

void picard_count_alignment(struct picard_counts *counts, uint32_t cell,
                            const struct picard_read *read, const struct picard_limits *limits,
                            const struct picard_window *window)
{
    uint64_t *sums = picard_counts_sums(counts, cell, read->category);
    uint64_t key = picard_key(cell, read->category, 0);
    bool is_read = !(read->flag & BAM_FSUPPLEMENTARY);
    if (is_read) count_read(sums, &counts->table, key, read, limits);
    struct walk walk = {.read = read, .table = &counts->table,
                        .bad_cycles = key | (uint64_t)HISTOGRAM_BAD_CYCLES << 32,
                        .is_hq = read->is_pf && read->mapq >= HIGH_MAPQ};
    if (read->flag & BAM_FUNMAP || !read->is_pf) {
        for (size_t i = 0; i < read->n_no_calls; i++)
            picard_table_add(&counts->table, walk.bad_cycles | (read->no_calls[i] + 1), 1);
        return;
    }
    sums[SUM_HQ_READS] += is_read && walk.is_hq;
    count_aligned_bases(sums, &walk, window);
    if (walk.is_hq && window)
        picard_table_add(&counts->table,
                         key | (uint64_t)HISTOGRAM_HQ_MISMATCHES << 32 |
                             (uint32_t)walk.n_hq_mismatches, 1);
}
