/*
 * stats_counts.h -- counts what --stats prints of records, apart from what depends on their order
 * (stats_depth.h).
 *
 * A struct stats_counts starts as {0}. One thread at a time adds to it; its numbers are sums, so
 * several can be added up at the end.
 */
#ifndef ROCKSORT_STATS_STATS_COUNTS_H
#define ROCKSORT_STATS_STATS_COUNTS_H

#include "bam/fasta_reference.h"
#include "bam/bam_long.h"
#include "stats/stats_barcodes.h"
#include "stats/stats_cycles.h"
#include "stats/stats_inserts.h"
#include "stats/stats_options.h"
#include "stats/stats_targets.h"

enum stats_number {
    STATS_FILTERED, STATS_READS_FIRST, STATS_READS_LAST, STATS_READS_OTHER, STATS_MAPPED_SINGLE,
    STATS_MAPPED_PAIRED, STATS_UNMAPPED, STATS_PROPER, STATS_PAIRED, STATS_DUPLICATES, STATS_MAPQ_0,
    STATS_QC_FAILED, STATS_SECONDARY, STATS_SUPPLEMENTARY, STATS_OTHER_REFERENCE,
    STATS_BASES, STATS_BASES_FIRST, STATS_BASES_LAST, STATS_BASES_MAPPED, STATS_BASES_CIGAR,
    STATS_BASES_TRIMMED, STATS_BASES_DUPLICATED, STATS_MISMATCHES,
    STATS_CRC_NAMES, STATS_CRC_BASES, STATS_CRC_QUALS,
    STATS_N_NUMBERS
};

/* Reads by length: all; those of a fragment, at its number + 1. */
enum { STATS_LENGTHS_ALL, STATS_N_LENGTHS = 1 + STATS_N_FRAGMENTS };

enum { STATS_INSERTIONS, STATS_DELETIONS, STATS_N_INDELS };
enum { STATS_MOST_INDEL = 300, STATS_GC_STEPS = 200, STATS_MISMATCH_COLUMNS = 257 };

struct stats_row {              /* numbers by length or cycle */
    uint64_t *n;
    size_t room;
};

struct stats_counts {
    uint64_t numbers[STATS_N_NUMBERS];
    uint64_t mapqs[256];
    int64_t gc_steps[STATS_N_FRAGMENTS][STATS_GC_STEPS];        /* changes of the counts */
    uint64_t indels[STATS_N_INDELS][STATS_MOST_INDEL];          /* [length - 1] */
    uint32_t longest[STATS_N_LENGTHS];  /* with hard clips; of supplementary records, too */
    struct stats_row lengths[STATS_N_LENGTHS];
    struct stats_row indel_cycles[STATS_N_INDELS][STATS_N_FRAGMENTS];
    struct stats_row mismatches;        /* [cycle * 257]: N; after it, by quality */
    struct stats_inserts inserts;
    struct stats_cycles cycles;
    struct stats_barcodes barcodes;
};

/* A record that is not filtered out. */
struct stats_read {
    const uint8_t *rec;
    uint32_t flag, n_bases;
    uint32_t length;            /* with hard clips */
    int fragment;               /* enum stats_fragment; -1: neither, -2: both */
    struct bam_cigar cigar;
    struct bam_aux nm, texts[STATS_N_BARCODES], quals[STATS_N_BARCODES];
    const struct stats_target *target;  /* the first one that it overlaps; NULL without targets */
    /* Results. */
    bool has_place;             /* it is mapped and has bases, and is not secondary */
    uint32_t n_gc;
    int64_t n_deleted;          /* bases of the reference */
};

/* Reads a record with bases, apart from `target`. */
void stats_read_parse(struct stats_read *read, const uint8_t *rec);

/* Adds a record, and fills in the results. */
void stats_counts_add(struct stats_counts *counts, const struct stats_options *options,
                      struct barcode_order *order, struct stats_read *read);

/* Adds the differences of a mapped record to the reference. Returns 0, or -1 after a message. */
int stats_counts_mismatches(struct stats_counts *counts, struct fasta_window *reference,
                            const struct stats_read *read);

/* The number at a place; 0 beyond the end. */
static inline uint64_t stats_row_get(const struct stats_row *row, size_t i)
{
    return i < row->room ? row->n[i] : 0;
}

void stats_counts_release(struct stats_counts *counts);

#endif
