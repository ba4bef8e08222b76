/*
 * flagstat.c -- counts records by their flags, and prints the counts as `samtools flagstat` 1.24
 * does: flagstat_kind (stats_kinds.h).
 *
 * Adding a record must take about a nanosecond, so a part only counts how often each combination of
 * flags occurs. The lines of flagstat are derived from these numbers once for each part.
 */
#include "stats/stats_kinds.h"

#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>

/* The lines of flagstat in their order. */
enum flagstat_line {
    FLAGSTAT_TOTAL,
    FLAGSTAT_PRIMARY,
    FLAGSTAT_SECONDARY,
    FLAGSTAT_SUPPLEMENTARY,
    FLAGSTAT_DUPLICATES,
    FLAGSTAT_PRIMARY_DUPLICATES,
    FLAGSTAT_MAPPED,
    FLAGSTAT_PRIMARY_MAPPED,
    FLAGSTAT_PAIRED,
    FLAGSTAT_READ1,
    FLAGSTAT_READ2,
    FLAGSTAT_PROPER,
    FLAGSTAT_BOTH_MAPPED,
    FLAGSTAT_SINGLETONS,
    FLAGSTAT_OTHER_REFERENCE,
    FLAGSTAT_OTHER_REFERENCE_SURE,      /* mapping quality 5 or more */
    FLAGSTAT_N_LINES
};

struct flagstat {
    uint64_t n[FLAGSTAT_N_LINES][2];    /* [1]: of reads that failed quality checks */
};

enum {
    FLAGSTAT_FLAGS = 1024,      /* combinations of the ten relevant flags */
    FLAGSTAT_MATES = 3,         /* the mate's reference: the same, another, another and MAPQ >= 5 */
};

struct observer {
    struct record_observer base;        /* must be the first member */
    struct flagstat sum;
};

struct part {
    uint32_t n[FLAGSTAT_MATES][FLAGSTAT_FLAGS];
};

/* Drops the strand flags (0x10, 0x20): the flags above them move down by two bits. */
static uint32_t pack(uint32_t flag)
{
    return (flag & 0xf) | (flag >> 2 & 0x3f0);
}

static uint32_t unpack(uint32_t packed)
{
    return (packed & 0xf) | (packed & 0x3f0) << 2;
}

static void *begin(const struct record_observer *observer)
{
    (void)observer;
    return xcalloc(1, sizeof(struct part));
}

static int add_records(struct record_observer *observer, void *arg,
                       const struct observed_records *observed)
{
    enum { SURE_MAPQ = 5 };
    struct part *part = arg;
    struct bam_records records = observed->all;
    (void)observer;
    for (const uint8_t *rec; (rec = bam_records_next(&records));) {
        unsigned is_other = bam_record_mate_tid(rec) != bam_record_tid(rec);
        unsigned is_sure = rec[BAM_MAPQ_AT] >= SURE_MAPQ;
        part->n[is_other + (is_other & is_sure)][pack(bam_record_flag(rec))]++;
    }
    return 0;
}

/* Adds n records with the same flags. `mates`: see FLAGSTAT_MATES. */
static void add_alike(struct flagstat *sum, uint32_t flag, int mates, uint64_t n)
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
        /* A record with both flags counts as secondary. */
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

static int combine(struct record_observer *observer, void *arg)
{
    struct flagstat *sum = &((struct observer *)observer)->sum;
    struct part *part = arg;
    for (int mates = 0; mates < FLAGSTAT_MATES; mates++)
        for (uint32_t i = 0; i < FLAGSTAT_FLAGS; i++)
            if (part->n[mates][i] > 0) add_alike(sum, unpack(i), mates, part->n[mates][i]);
    free(part);
    return 0;
}

/* Writes "12.34%", or "N/A" if the total is 0. samtools divides in single precision, which shows in
   files of millions of records. */
static const char *percent(uint64_t n, uint64_t total, char text[32])
{
    if (total == 0) return "N/A";
    (void)snprintf(text, 32, "%.2f%%", (double)((float)n / (float)total) * 100.0);
    return text;
}

static int print(const struct record_observer *observer, unsigned file, FILE *to)
{
    (void)file;
    const struct flagstat *sum = &((const struct observer *)observer)->sum;
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
    return 0;
}

static void destroy(struct record_observer *observer)
{
    free(observer);
}

static struct record_observer *observe(const struct count_setup *setup)
{
    static const struct observer_kind kind = {
        .begin = begin, .add_records = add_records, .combine = combine, .discard = free,
        .print = print, .destroy = destroy};
    struct observer *observer = xcalloc(1, sizeof *observer);
    (void)setup;
    observer->base.kind = &kind;
    return &observer->base;
}

const struct count_kind flagstat_kind = {.observe = observe};
