/* record_counts.c -- see record_counts.h. */
#include "counts/record_counts.h"

#include "util/xalloc.h"

#include <stdlib.h>

const char *count_kind_name(enum count_kind kind)
{
    static const char *const names[COUNT_N_KINDS] = {
        [COUNT_FLAGSTAT] = "flagstat",
        [COUNT_IDXSTATS] = "idxstats",
        [COUNT_COVERAGE] = "coverage",
    };
    return names[kind];
}

struct record_counts *record_counts_create(const bool wanted[COUNT_N_KINDS], sam_hdr_t *header)
{
    bool any = false;
    for (int i = 0; i < COUNT_N_KINDS; i++) any |= wanted[i];
    if (!any) return NULL;
    struct record_counts *counts = xcalloc(1, sizeof *counts);
    counts->header = header;
    counts->has_flagstat = wanted[COUNT_FLAGSTAT];
    if (wanted[COUNT_IDXSTATS]) counts->idxstats = idxstats_create(sam_hdr_nref(header));
    if (wanted[COUNT_COVERAGE]) counts->coverage = coverage_create(header);
    return counts;
}

void record_counts_destroy(struct record_counts *counts)
{
    if (!counts) return;
    idxstats_destroy(counts->idxstats);
    coverage_destroy(counts->coverage);
    free(counts);
}

struct record_counts_part *record_counts_part_create(struct record_counts *counts)
{
    if (!counts) return NULL;
    struct record_counts_part *part = xcalloc(1, sizeof *part);
    part->all = counts;
    if (counts->has_flagstat) part->flags = xcalloc(1, sizeof *part->flags);
    if (counts->idxstats) part->refs = xcalloc(1, sizeof *part->refs);
    if (counts->coverage) part->coverage = coverage_part_create(counts->coverage);
    return part;
}

void record_counts_part_end(struct record_counts_part *part)
{
    if (!part) return;
    if (part->flags) flagstat_add_part(&part->flagstat, part->flags);
    if (part->refs) idxstats_part_end(part->all->idxstats, part->refs);
    if (part->coverage) coverage_part_end(part->coverage);
    free(part->flags);
    free(part->refs);
    part->flags = NULL;
    part->refs = NULL;
}

void record_counts_part_destroy(struct record_counts_part *part)
{
    if (!part) return;
    free(part->flags);
    free(part->refs);
    coverage_part_destroy(part->coverage);
    free(part);
}

void record_counts_join(const struct record_counts_part *part)
{
    if (!part) return;
    flagstat_join(&part->all->flagstat, &part->flagstat);
    if (part->coverage) coverage_join(part->all->coverage, part->coverage);
}

void record_counts_finish(struct record_counts *counts)
{
    if (counts->coverage) coverage_finish(counts->coverage);
}

void record_counts_print(const struct record_counts *counts, enum count_kind kind, FILE *to)
{
    switch (kind) {
    case COUNT_FLAGSTAT: flagstat_print(&counts->flagstat, to); break;
    case COUNT_IDXSTATS: idxstats_print(counts->idxstats, counts->header, to); break;
    default: coverage_print(counts->coverage, to);
    }
}
