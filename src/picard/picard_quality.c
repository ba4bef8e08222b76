/*
 * picard_quality.c -- counts qualities for the files .quality_distribution_metrics and
 * .quality_yield_metrics.
 */
#include "picard/picard_collect.h"
#include "picard/picard_files.h"
#include "picard/picard_print.h"

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

/* ---- files ---- */

static uint64_t count_of(const struct picard_counts *counts, int pf, size_t qual)
{
    uint64_t n = 0;
    for (int lane = 0; lane < N_LANES; lane++) n += counts->quals[pf][lane][qual];
    return n;
}

void picard_print_quals(const struct picard_report *report, FILE *to)
{
    const struct picard_counts *counts = report->counts;
    struct picard_bin bins[2][N_QUALITIES];
    struct picard_curve curves[2] = {{.name = "COUNT_OF_Q"}, {.name = "COUNT_OF_OQ"}};
    size_t n[2] = {0, 0};
    for (size_t qual = 0; qual < N_QUALITIES; qual++) {
        const uint64_t counted[2] = {count_of(counts, 0, qual) + count_of(counts, 1, qual) -
                                         counts->no_call_quals[qual],
                                     counts->original_quals[qual]};
        for (int i = 0; i < 2; i++)
            if (counted[i] > 0) bins[i][n[i]++] = (struct picard_bin){(int64_t)qual, counted[i]};
    }
    for (int i = 0; i < 2; i++) curves[i].bins = (struct picard_bins){bins[i], n[i]};
    (void)fputc('\n', to);
    if (n[0] + n[1] > 0) picard_print_curves("Byte", "QUALITY", curves, n[1] > 0 ? 2 : 1, to);
    (void)fputc('\n', to);
}

struct yield {
    uint64_t n_reads, length;
    uint64_t n_bases, q20, q30, equivalent;     /* of all reads; below: of PF reads */
    uint64_t pf_reads, pf_bases, pf_q20, pf_q30, pf_equivalent;
};

void picard_print_yield(const struct picard_report *report, FILE *to)
{
    const struct picard_counts *counts = report->counts;
    static const struct picard_column columns[] = {
        {"TOTAL_READS", PICARD_COUNT, offsetof(struct yield, n_reads)},
        {"PF_READS", PICARD_COUNT, offsetof(struct yield, pf_reads)},
        {"READ_LENGTH", PICARD_COUNT, offsetof(struct yield, length)},
        {"TOTAL_BASES", PICARD_COUNT, offsetof(struct yield, n_bases)},
        {"PF_BASES", PICARD_COUNT, offsetof(struct yield, pf_bases)},
        {"Q20_BASES", PICARD_COUNT, offsetof(struct yield, q20)},
        {"PF_Q20_BASES", PICARD_COUNT, offsetof(struct yield, pf_q20)},
        {"Q30_BASES", PICARD_COUNT, offsetof(struct yield, q30)},
        {"PF_Q30_BASES", PICARD_COUNT, offsetof(struct yield, pf_q30)},
        {"Q20_EQUIVALENT_YIELD", PICARD_COUNT, offsetof(struct yield, equivalent)},
        {"PF_Q20_EQUIVALENT_YIELD", PICARD_COUNT, offsetof(struct yield, pf_equivalent)},
    };
    static const struct picard_class class = {"CollectQualityYieldMetrics$QualityYieldMetrics",
                                              PICARD_COLUMNS(columns)};
    uint64_t q20[2] = {0}, q30[2] = {0}, sum[2] = {0};
    for (int pf = 0; pf < 2; pf++)
        for (size_t qual = 0; qual < N_QUALITIES; qual++) {
            uint64_t n = count_of(counts, pf, qual) + counts->yield_quals[pf][qual];
            sum[pf] += qual * n;
            q20[pf] += qual >= 20 ? n : 0;
            q30[pf] += qual >= 30 ? n : 0;
        }
    struct yield yield = {
        .n_reads = counts->n_reads[0] + counts->n_reads[1], .pf_reads = counts->n_reads[1],
        .n_bases = counts->n_bases[0] + counts->n_bases[1], .pf_bases = counts->n_bases[1],
        .q20 = q20[0] + q20[1], .pf_q20 = q20[1], .q30 = q30[0] + q30[1], .pf_q30 = q30[1],
        .equivalent = (sum[0] + sum[1]) / 20, .pf_equivalent = sum[1] / 20};
    if (yield.n_reads > 0) yield.length = yield.n_bases / yield.n_reads;
    picard_print_class(&class, to);
    picard_print_row(&class, &yield, to);
    (void)fputs("\n\n", to);
}
