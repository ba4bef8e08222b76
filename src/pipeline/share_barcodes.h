/*
 * share_barcodes.h -- gives reads without barcode that of their mates (duplicates/pair_barcode.h),
 * wherever these are, before duplicates are looked for.
 *
 * Views that wait for a barcode were set aside by name while they were made. Here jobs
 * - remember the names of all that wait, in some 16 bits each (duplicates/name_filter.h);
 * - go through the views of pairs, and copy barcodes of such names to streams by name;
 * - for one partition of the names after another, read the barcodes into a table, and put the views
 *   that wait where they belong, with what the table has for them.
 * If the names of a partition do not fit into a table, it is read several times, a part of the
 * names at a time. If no read waits nothing is done; if no pair has a barcode only the last step.
 *
 * Threads: the caller submits the jobs and waits for them.
 */
#ifndef ROCKSORT_PIPELINE_SHARE_BARCODES_H
#define ROCKSORT_PIPELINE_SHARE_BARCODES_H

#include "duplicates/pair_barcode.h"
#include "pipeline/crew.h"
#include "store/temp_streams.h"

struct share_barcodes_settings {
    struct crew *crew;
    unsigned n_threads;
    size_t memory_bytes;        /* for the tables of all jobs */
    struct temp_streams *views; /* by place; those that waited are added */
    struct temp_streams *waiting;       /* VIEW_N_BARCODE_STREAMS, complete */
    struct barcode_counts *counts;      /* n_lacking: those that get a barcode are subtracted */
};

/* Returns 0, or -1 after a message and crew_fail. */
int share_barcodes(const struct share_barcodes_settings *settings);

#endif
