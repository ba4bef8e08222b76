/*
 * flagstat.h -- counts records by their flags, and prints the counts as `samtools flagstat` 1.24
 * does.
 *
 * Adding a record must take about a nanosecond, so a part only counts how often each combination of
 * flags occurs. What flagstat shows is derived from these numbers once for each part.
 *
 * Order of calls: a part starts as zeros; add each record; flagstat_add_part. A sum starts as {0}
 * and is printed at the end. Threads: a part and a sum have one owner at a time. No errors.
 */
#ifndef ROCKSORT_COUNTS_FLAGSTAT_H
#define ROCKSORT_COUNTS_FLAGSTAT_H

#include "bam/bam_fields.h"

#include <stdio.h>

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
    FLAGSTAT_FLAGS = 1024,      /* combinations of the ten flags that matter */
    FLAGSTAT_MATES = 3,         /* the mate's reference is the same, another, another and sure */
};

struct flagstat_part {
    uint32_t n[FLAGSTAT_MATES][FLAGSTAT_FLAGS];
};

/* The strands (0x10, 0x20) do not matter: the flags above them move down by two bits. */
static inline uint32_t flagstat_pack(uint32_t flag)
{
    return (flag & 0xf) | (flag >> 2 & 0x3f0);
}

static inline uint32_t flagstat_unpack(uint32_t packed)
{
    return (packed & 0xf) | (packed & 0x3f0) << 2;
}

/* Counts a checked record. */
static inline void flagstat_part_add(struct flagstat_part *part, const uint8_t *rec)
{
    enum { SURE_MAPQ = 5 };
    unsigned is_other = bam_record_mate_tid(rec) != bam_record_tid(rec);
    unsigned is_sure = rec[BAM_MAPQ_AT] >= SURE_MAPQ;
    part->n[is_other + (is_other & is_sure)][flagstat_pack(bam_record_flag(rec))]++;
}

void flagstat_add_part(struct flagstat *sum, const struct flagstat_part *part);
void flagstat_join(struct flagstat *sum, const struct flagstat *other);
void flagstat_print(const struct flagstat *sum, FILE *to);

#endif
