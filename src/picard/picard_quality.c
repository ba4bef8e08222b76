/*
 * picard_quality.c -- counts qualities for the files .quality_distribution_metrics and
 * .quality_yield_metrics.
 */
#include "picard/picard_collect.h"

enum { ASCII_QUALITY = 33 };

static void add_originals(struct picard_counts *counts, const struct picard_read *read)
{
    const struct bam_aux *tag = &read->tags[TAG_OQ];
    if (!bam_aux_is_text(tag)) return;
    uint64_t *yield = counts->yield_quals[read->is_pf];
    if (read->has_quals)
        for (size_t i = 0; i < read->n_bases; i++) yield[read->quals[i]]--;
    for (size_t i = 0; i + 1 < tag->value_bytes; i++) {
        uint8_t qual = (uint8_t)(tag->value[i] - ASCII_QUALITY);
        yield[qual]++;
        if (i >= read->n_bases || picard_read_code(read, i) != CODE_N)
            counts->original_quals[qual]++;
    }
}

static void add_quals(uint64_t (*lanes)[N_QUALITIES], const uint8_t *quals, size_t n)
{
    size_t i = 0;
    for (; i + N_LANES <= n; i += N_LANES)
        for (size_t lane = 0; lane < N_LANES; lane++) lanes[lane][quals[i + lane]]++;
    for (; i < n; i++) lanes[0][quals[i]]++;
}

void picard_count_quals(struct picard_counts *counts, const struct picard_read *read)
{
    counts->n_reads[read->is_pf]++;
    counts->n_bases[read->is_pf] += read->n_bases;
    if (read->tags[TAG_OQ].type) add_originals(counts, read);
    if (!read->has_quals) return;
    add_quals(counts->quals[read->is_pf], read->quals, read->n_bases);
    for (size_t i = 0; i < read->n_no_calls; i++)
        counts->no_call_quals[read->cycle_quals[read->no_calls[i]]]++;
}
