/* flagstat.c -- see flagstat.h. */
#include "counts/flagstat.h"

#include <inttypes.h>

/* Adds n records with the same flags. `mates`: see flagstat_part_add. */
static void add_records(struct flagstat *sum, uint32_t flag, int mates, uint64_t n)
{
    int failed = (flag & BAM_FQCFAIL) != 0;
    bool is_mapped = !(flag & BAM_FUNMAP), is_duplicate = flag & BAM_FDUP;
    bool is_primary = !(flag & (BAM_FSECONDARY | BAM_FSUPPLEMENTARY));
    bool is_paired = is_primary && flag & BAM_FPAIRED;
    bool both_mapped = is_paired && is_mapped && !(flag & BAM_FMUNMAP);
    const bool counts[FLAGSTAT_N_LINES] = {
        [FLAGSTAT_TOTAL] = true,
        [FLAGSTAT_PRIMARY] = is_primary,
        [FLAGSTAT_SECONDARY] = flag & BAM_FSECONDARY,
        /* A record with both flags is a secondary one. */
        [FLAGSTAT_SUPPLEMENTARY] = !is_primary && !(flag & BAM_FSECONDARY),
        [FLAGSTAT_DUPLICATES] = is_duplicate,
        [FLAGSTAT_PRIMARY_DUPLICATES] = is_primary && is_duplicate,
        [FLAGSTAT_MAPPED] = is_mapped,
        [FLAGSTAT_PRIMARY_MAPPED] = is_primary && is_mapped,
        [FLAGSTAT_PAIRED] = is_paired,
        [FLAGSTAT_READ1] = is_paired && flag & BAM_FREAD1,
        [FLAGSTAT_READ2] = is_paired && flag & BAM_FREAD2,
        [FLAGSTAT_PROPER] = is_paired && is_mapped && flag & BAM_FPROPER_PAIR,
        [FLAGSTAT_BOTH_MAPPED] = both_mapped,
        [FLAGSTAT_SINGLETONS] = is_paired && is_mapped && flag & BAM_FMUNMAP,
        [FLAGSTAT_OTHER_REFERENCE] = both_mapped && mates > 0,
        [FLAGSTAT_OTHER_REFERENCE_SURE] = both_mapped && mates > 1,
    };
    for (int i = 0; i < FLAGSTAT_N_LINES; i++)
        if (counts[i]) sum->n[i][failed] += n;
}

void flagstat_add_part(struct flagstat *sum, const struct flagstat_part *part)
{
    for (int mates = 0; mates < FLAGSTAT_MATES; mates++)
        for (uint32_t i = 0; i < FLAGSTAT_FLAGS; i++)
            if (part->n[mates][i] > 0)
                add_records(sum, flagstat_unpack(i), mates, part->n[mates][i]);
}

void flagstat_join(struct flagstat *sum, const struct flagstat *other)
{
    for (int i = 0; i < FLAGSTAT_N_LINES; i++)
        for (int failed = 0; failed < 2; failed++) sum->n[i][failed] += other->n[i][failed];
}

/* "12.34%", or N/A of nothing. samtools divides in single precision, which shows in files of
   millions of records. */
static const char *percent(uint64_t n, uint64_t total, char text[32])
{
    if (total == 0) return "N/A";
    (void)snprintf(text, 32, "%.2f%%", (double)((float)n / (float)total) * 100.0);
    return text;
}

void flagstat_print(const struct flagstat *sum, FILE *to)
{
    enum { NO_PERCENTAGE = -1 };
    static const struct {
        const char *words;
        int total;              /* the line that is 100 %, or NO_PERCENTAGE */
    } lines[FLAGSTAT_N_LINES] = {
        {"in total (QC-passed reads + QC-failed reads)", NO_PERCENTAGE},
        {"primary", NO_PERCENTAGE},
        {"secondary", NO_PERCENTAGE},
        {"supplementary", NO_PERCENTAGE},
        {"duplicates", NO_PERCENTAGE},
        {"primary duplicates", NO_PERCENTAGE},
        {"mapped", FLAGSTAT_TOTAL},
        {"primary mapped", FLAGSTAT_PRIMARY},
        {"paired in sequencing", NO_PERCENTAGE},
        {"read1", NO_PERCENTAGE},
        {"read2", NO_PERCENTAGE},
        {"properly paired", FLAGSTAT_PAIRED},
        {"with itself and mate mapped", NO_PERCENTAGE},
        {"singletons", FLAGSTAT_PAIRED},
        {"with mate mapped to a different chr", NO_PERCENTAGE},
        {"with mate mapped to a different chr (mapQ>=5)", NO_PERCENTAGE},
    };
    for (int i = 0; i < FLAGSTAT_N_LINES; i++) {
        char passed[32], failed[32];
        const uint64_t *n = sum->n[i];
        (void)fprintf(to, "%" PRIu64 " + %" PRIu64 " %s", n[0], n[1], lines[i].words);
        if (lines[i].total != NO_PERCENTAGE) {
            const uint64_t *total = sum->n[lines[i].total];
            (void)fprintf(to, " (%s : %s)", percent(n[0], total[0], passed),
                          percent(n[1], total[1], failed));
        }
        (void)fputc('\n', to);
    }
}
