/*
 * picard_bases.c -- counts bases and sums qualities by cycle, and prints them: the files
 * .base_distribution_by_cycle_metrics and .quality_by_cycle_metrics.
 *
 * The counters of a block of cycles are bytes (of qualities: 16 bits), which the compiler adds as
 * vectors; every 255 reads they are added to the sums. So a base costs a fraction of a nanosecond.
 */
#include "picard/picard_collect.h"
#include "picard/picard_files.h"
#include "picard/picard_print.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>

enum { MOST_FEW = 255, ASCII_QUALITY = 33 };

static void add_block(struct picard_cycles *cycles, const uint8_t *codes, const uint8_t *quals,
                      size_t at)
{
    static const uint8_t of_base[N_BASES] = {CODE_A, CODE_C, CODE_G, CODE_T};
    for (int base = 0; base < N_BASES; base++) {
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
    cycles->n_reads[read->n_bases - 1]++;
    if (read->has_quals) cycles->n_with_quals[read->n_bases - 1]++;
}

/* ---- files ---- */

/* Returns how many reads reach each cycle, from the numbers of reads of each length. */
static uint64_t *reads_by_cycle(const uint64_t *by_length, size_t n)
{
    uint64_t *reach = xcalloc(n + 1, sizeof *reach);
    for (size_t i = n; i-- > 0;) reach[i] = reach[i + 1] + by_length[i];
    return reach;
}

struct base_row {
    uint64_t read_end, cycle;
    double percent[N_BASES + 1];
};

static size_t print_read_end(const struct picard_class *class, const struct picard_cycles *cycles,
                             uint64_t read_end, size_t n_before, FILE *to)
{
    uint64_t *n_reads = reads_by_cycle(cycles->n_reads, cycles->room);
    size_t i = 0;
    for (; i < cycles->room && n_reads[i] > 0; i++) {
        struct base_row row = {.read_end = read_end, .cycle = n_before + i + 1};
        uint64_t n_others = n_reads[i];
        for (int base = 0; base < N_BASES; base++) {
            row.percent[base] = 100.0 * (double)cycles->bases[base][i] / (double)n_reads[i];
            n_others -= cycles->bases[base][i];
        }
        row.percent[N_BASES] = 100.0 * (double)n_others / (double)n_reads[i];
        picard_print_row(class, &row, to);
    }
    free(n_reads);
    return i;
}

void picard_print_bases(const struct picard_report *report, FILE *to)
{
    const struct picard_counts *counts = report->counts;
    static const struct picard_column columns[] = {
        {"READ_END", PICARD_COUNT, offsetof(struct base_row, read_end)},
        {"CYCLE", PICARD_COUNT, offsetof(struct base_row, cycle)},
        {"PCT_A", PICARD_REAL, offsetof(struct base_row, percent[BASE_A])},
        {"PCT_C", PICARD_REAL, offsetof(struct base_row, percent[BASE_C])},
        {"PCT_G", PICARD_REAL, offsetof(struct base_row, percent[BASE_G])},
        {"PCT_T", PICARD_REAL, offsetof(struct base_row, percent[BASE_T])},
        {"PCT_N", PICARD_REAL, offsetof(struct base_row, percent[N_BASES])},
    };
    static const struct picard_class class = {"BaseDistributionByCycleMetrics",
                                              PICARD_COLUMNS(columns)};
    bool is_empty = counts->cycles[0].room == 0 && counts->cycles[1].room == 0;
    if (!is_empty) picard_print_class(&class, to);
    size_t n = 0;
    for (int end = 0; end < 2; end++)
        n = print_read_end(&class, &counts->cycles[end], (uint64_t)end + 1, n, to);
    (void)fputs("\n\n", to);
}

struct cycle_mean {
    int64_t cycle;
    double mean;
};

/* The mean qualities of all cycles; those of second reads follow those of first reads. */
struct means {
    struct cycle_mean *at;
    size_t n, room;
    int64_t last;               /* cycle of first reads */
};

static void add_means(struct means *means, const uint64_t *sums, const uint64_t *by_length,
                      size_t n, bool is_second)
{
    uint64_t *n_reads = reads_by_cycle(by_length, n);
    int64_t before = means->last;
    for (size_t i = 0; i < n && n_reads[i] > 0; i++) {
        /* Picard drops the cycles of first reads whose qualities are all 0. */
        if (sums[i] == 0 && !is_second) continue;
        xgrow(&means->at, &means->room, means->n + 1, means->n + 128, sizeof *means->at);
        means->last = before + (int64_t)i + 1;
        means->at[means->n++] =
            (struct cycle_mean){means->last, (double)sums[i] / (double)n_reads[i]};
    }
    free(n_reads);
}

void picard_print_cycle_quals(const struct picard_report *report, FILE *to)
{
    const struct picard_counts *counts = report->counts;
    struct means means[2] = {{0}, {0}};         /* of qualities; of OQ tags */
    for (int end = 0; end < 2; end++) {
        const struct picard_cycles *cycles = &counts->cycles[end];
        add_means(&means[0], cycles->quals, cycles->n_with_quals, cycles->room, end == 1);
        if (cycles->n_original)
            add_means(&means[1], cycles->original_quals, cycles->n_original, cycles->room,
                      end == 1);
    }
    (void)fputc('\n', to);
    if (means[0].n > 0 || means[1].n > 0)
        (void)fprintf(to, "## HISTOGRAM\tjava.lang.Integer\nCYCLE\tMEAN_QUALITY%s\n",
                      means[1].n > 0 ? "\tMEAN_ORIGINAL_QUALITY" : "");
    for (size_t i = 0, j = 0; i < means[0].n || j < means[1].n;) {
        int64_t cycle = i < means[0].n ? means[0].at[i].cycle : INT64_MAX;
        if (j < means[1].n && means[1].at[j].cycle < cycle) cycle = means[1].at[j].cycle;
        bool has[2] = {i < means[0].n && means[0].at[i].cycle == cycle,
                       j < means[1].n && means[1].at[j].cycle == cycle};
        (void)fprintf(to, "%" PRId64 "\t", cycle);
        picard_print_real(has[0] ? means[0].at[i].mean : 0, to);
        if (means[1].n > 0) {
            (void)fputc('\t', to);
            picard_print_real(has[1] ? means[1].at[j].mean : 0, to);
        }
        (void)fputc('\n', to);
        i += has[0];
        j += has[1];
    }
    (void)fputc('\n', to);
    for (int i = 0; i < 2; i++) free(means[i].at);
}
