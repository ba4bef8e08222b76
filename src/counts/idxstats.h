/*
 * idxstats.h -- counts mapped and unmapped records of each reference, and prints the counts as
 * `samtools idxstats` 1.24 does of a BAM file with an index.
 *
 * All threads share one array of counts. In coordinate order a worker meets the same reference
 * again and again. In other orders a file has either few references, and the worker meets each of
 * them often; or many, and two workers hardly ever meet the same one at the same time. So each part
 * collects the counts of some references, and adds them to the array when another reference takes
 * the place, and at the end.
 *
 * Order of calls: create; parts, which start as zeros: add records, end; print when all parts have
 * ended; destroy. Memory: 16 bytes for each reference.
 * Threads: a part has one owner at a time; several threads may have parts. No errors.
 */
#ifndef ROCKSORT_COUNTS_IDXSTATS_H
#define ROCKSORT_COUNTS_IDXSTATS_H

#include "bam/bam_fields.h"

#include <stdio.h>

struct idxstats;

enum { IDXSTATS_PLACES = 256 };         /* 4 KiB */

struct idxstats_place {
    int32_t tid;
    uint32_t n[2];              /* mapped, unmapped */
};

struct idxstats_part {
    struct idxstats_place places[IDXSTATS_PLACES];
};

struct idxstats *idxstats_create(int32_t n_refs);

/* NULL is accepted. */
void idxstats_destroy(struct idxstats *stats);

/* Adds a place to the shared counts and empties it. */
void idxstats_flush(struct idxstats *stats, struct idxstats_place *place);

/* Counts a checked record. */
static inline void idxstats_part_add(struct idxstats *stats, struct idxstats_part *part,
                                     const uint8_t *rec)
{
    int32_t tid = bam_record_tid(rec);
    struct idxstats_place *place = &part->places[(uint32_t)tid % IDXSTATS_PLACES];
    if (place->tid != tid) {
        idxstats_flush(stats, place);
        place->tid = tid;
    }
    place->n[(bam_record_flag(rec) & BAM_FUNMAP) != 0]++;
}

/* Adds all that the part still has, and makes it empty. */
void idxstats_part_end(struct idxstats *stats, struct idxstats_part *part);

/* The header has the references whose number create was told. */
void idxstats_print(const struct idxstats *stats, const sam_hdr_t *header, FILE *to);

#endif
