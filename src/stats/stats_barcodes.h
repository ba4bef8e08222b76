/*
 * stats_barcodes.h -- counts the bases and qualities of barcodes (tags BC, CR, OX and RX) by
 * position, for --stats.
 *
 * samtools takes the length of the first barcode of a tag, skips longer ones, and takes the first
 * character that is no base as the separator of two barcodes: a character elsewhere ends the
 * barcode. Parts of the output are counted at the same time. So barcodes of different shape
 * (length, and places of the first two characters that are no bases) are counted separately; a part
 * keeps the shapes in the order in which they came, from which combine finds length and separator;
 * these decide at the end which counts are printed.
 *
 * All structs start as {0}, a barcode_order with its number. Threads: one at a time for each
 * struct.
 */
#ifndef ROCKSORT_STATS_STATS_BARCODES_H
#define ROCKSORT_STATS_STATS_BARCODES_H

#include "bam/bam_aux.h"

#include <stdio.h>

enum { STATS_N_BARCODES = 4, BARCODE_N_BASES = 5, BARCODE_N_QUALS = 95 };

struct barcode_shape {
    uint32_t n;                 /* characters */
    int32_t other[2];           /* places of characters that are no bases; -1: none */
};

struct barcode_counts {
    struct barcode_shape shape;
    uint64_t (*bases)[BARCODE_N_BASES];         /* ACGTN; up to other[1] */
    uint64_t (*quals)[BARCODE_N_QUALS];
    uint64_t last_part;         /* that has the shape already */
};

struct stats_barcodes {         /* of one counter */
    struct barcode_tag_counts {
        struct barcode_counts *shapes;
        size_t n, room, last;
    } tags[STATS_N_BARCODES];
};

struct barcode_order {          /* of one part: its shapes, in order */
    uint64_t part;              /* its number, from 1 */
    struct barcode_shape_of {
        int tag;
        struct barcode_shape shape;
    } *at;
    size_t n, room;
};

struct barcode_layout {         /* of the output */
    uint32_t n[STATS_N_BARCODES];               /* 0: no barcode yet */
    int32_t separator[STATS_N_BARCODES];        /* its place + 1; 0: none yet */
};

/* The names of the tags of barcodes and of their qualities. */
extern const char stats_barcode_tags[STATS_N_BARCODES][3], stats_barcode_quals[STATS_N_BARCODES][3];

/* Adds a barcode and its qualities, tags of type 0 if the record has none. */
void stats_barcodes_add(struct stats_barcodes *barcodes, struct barcode_order *order, int tag,
                        const struct bam_aux *text, const struct bam_aux *quals);

/* Adds the shapes of the next part. */
void stats_barcodes_combine(struct barcode_layout *layout, const struct barcode_order *order);

/* Prints the sums of n counters. */
void stats_barcodes_print(const struct barcode_layout *layout,
                          const struct stats_barcodes *const *counters, size_t n, FILE *to);

void stats_barcodes_release(struct stats_barcodes *barcodes);

#endif
