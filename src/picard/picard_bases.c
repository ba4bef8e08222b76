/*
 * picard_bases.c -- counts bases and sums qualities by cycle, and prints them: the files
 * .base_distribution_by_cycle_metrics and .quality_by_cycle_metrics.
 *
 * The counters of a block of cycles are bytes (of qualities: 16 bits), which the compiler adds as
 * vectors; every 255 reads they are added to the sums. So a base costs a fraction of a nanosecond.
 */
#include "picard/picard_collect.h"

enum { MOST_FEW = 255, ASCII_QUALITY = 33 };

static void add_block(struct picard_cycles *cycles, const uint8_t *codes, const uint8_t *quals,
                      size_t at)
{
    static const uint8_t of_base[BASE_N] = {CODE_A, CODE_C, CODE_G, CODE_T};
    for (int base = 0; base < BASE_N; base++) {
        uint8_t *few = cycles->few[base] + at;
        for (int i = 0; i < CYCLE_BLOCK; i++)
            few[i] = (uint8_t)(few[i] + (codes[at + (size_t)i] == of_base[base]));
    }
    uint16_t *few = cycles->few_quals + at;
    for (int i = 0; i < CYCLE_BLOCK; i++) few[i] = (uint16_t)(few[i] + quals[at + (size_t)i]);
}

static void add_original(struct picard_cycles *cycles, const struct picard_read *read)
{
    const struct bam_aux *tag = &read->tags[TAG_OQ];
    size_t n = bam_aux_is_text(tag) ? tag->value_bytes - 1 : 0;
    if (n == 0) return;
    picard_cycles_reserve(cycles, n);
    picard_cycles_reserve_original(cycles);
    cycles->n_original[n - 1]++;
    for (size_t i = 0; i < n; i++)
        cycles->original_quals[read->is_reverse ? n - 1 - i : i] +=
            (uint8_t)(tag->value[i] - ASCII_QUALITY);
}

void picard_count_bases(struct picard_counts *counts, const struct picard_read *read)
{
    struct picard_cycles *cycles = &counts->cycles[(read->flag & BAM_FPAIRED) != 0 &&
                                                   (read->flag & BAM_FREAD2) != 0];
    if (read->tags[TAG_OQ].type) add_original(cycles, read);
    if (read->n_bases == 0) return;
    picard_cycles_reserve(cycles, read->n_bases);
    for (size_t at = 0; at < read->n_bases; at += CYCLE_BLOCK)
        add_block(cycles, read->codes, read->cycle_quals, at);
    if (++cycles->n_few == MOST_FEW) picard_cycles_flush(cycles);
    for (size_t i = 0; i < read->n_no_calls; i++) cycles->bases[BASE_N][read->no_calls[i]]++;
    if (read->has_quals) cycles->n_reads[read->n_bases - 1]++;
}
