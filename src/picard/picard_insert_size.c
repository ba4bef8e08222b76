/*
 * picard_insert_size.c -- counts the insert sizes of pairs by orientation, and computes their
 * metrics: the file .insert_size_metrics.
 *
 * The second read of each pair counts, unless the template length is 0.
 */
#include "picard/picard_collect.h"

enum picard_orientation picard_orientation(const struct picard_read *read)
{
    bool mate_is_reverse = read->flag & BAM_FMREVERSE;
    if (read->is_reverse == mate_is_reverse) return PAIR_TANDEM;
    int64_t forward = read->pos, reverse;       /* 5' ends */
    if (read->is_reverse) {
        forward = bam_record_true_mate_pos(read->rec);
        reverse = read->pos + bam_cigar_reference_bases(read->cigar) - 1;
    } else {
        reverse = read->pos + bam_record_true_template_length(read->rec);
    }
    return forward < reverse ? PAIR_FR : PAIR_RF;
}

void picard_count_insert_size(struct picard_counts *counts, uint32_t cell,
                              const struct picard_read *read, const struct picard_limits *limits)
{
    const uint32_t left_out = BAM_FUNMAP | BAM_FMUNMAP | BAM_FREAD1 | BAM_FSECONDARY |
                              BAM_FSUPPLEMENTARY;
    int64_t n = bam_record_true_template_length(read->rec);
    if (!(read->flag & BAM_FPAIRED) || read->flag & left_out || n == 0) return;
    if (read->flag & BAM_FDUP && !limits->with_duplicates) return;
    uint64_t bin = (uint64_t)(n < 0 ? -n : n);
    uint64_t key = picard_key(cell, PICARD_SECOND,
                              (enum picard_histogram)(HISTOGRAM_FR + (int)picard_orientation(read)));
    picard_table_add(&counts->table, key | (bin > UINT32_MAX ? UINT32_MAX : bin), 1);
}
