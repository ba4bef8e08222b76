/*
 * picard_read.h -- a record with its bases and qualities in the order in which they were sequenced,
 * for the modules that count for --picard.
 *
 * Order of calls: a struct starts as {0}; set, for each record; release. Threads: one at a time.
 * Nothing fails. Pointers into the record are valid as long as the record is.
 */
#ifndef ROCKSORT_PICARD_PICARD_READ_H
#define ROCKSORT_PICARD_PICARD_READ_H

#include "bam/bam_long.h"
#include "picard/picard_counts.h"

enum { CODE_A = 1, CODE_C = 2, CODE_G = 4, CODE_T = 8, CODE_N = 15 };  /* of bases in BAM */

enum picard_tag { TAG_RG, TAG_MQ, TAG_SA, TAG_XN, TAG_OQ, TAG_CG, N_TAGS };

struct picard_read {
    const uint8_t *rec;
    uint32_t flag;
    uint8_t mapq;
    bool is_pf, is_reverse, has_quals;
    enum picard_category category;
    size_t n_bases;
    struct bam_cigar cigar;
    int64_t pos;
    const uint8_t *seq, *quals; /* of the record */
    struct bam_aux tags[N_TAGS];
    /* By cycle; padded with zeros to blocks of CYCLE_BLOCK. */
    uint8_t *codes, *cycle_quals;
    const uint8_t *forward;     /* codes in the order of the record; only after
                                   picard_read_turn */
    size_t n_no_calls;
    uint32_t *no_calls;         /* cycles - 1 of the bases N, in order */
    uint8_t *codes_memory, *forward_memory;     /* private, as the next line */
    size_t room, no_calls_room;
};

/* Reads a checked record. */
void picard_read_set(struct picard_read *read, const uint8_t *rec);

/* Sets `forward`. */
void picard_read_turn(struct picard_read *read);

void picard_read_release(struct picard_read *read);

/* The base at an index of the record, which is not that of the cycle on the reverse strand. */
static inline unsigned picard_read_code(const struct picard_read *read, size_t i)
{
    return read->seq[i / 2] >> (i % 2 == 0 ? 4 : 0) & 15;
}

#endif
