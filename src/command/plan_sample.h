/*
 * plan_sample.h -- what the beginning of an input tells about all of it: how much it is compressed,
 * what memory its records take, and how long each step of a sort takes with them on one core.
 *
 * Some megabytes are read, indexed and sorted in memory, compressed as temporary data and deflated
 * as output. This takes about a second, and up to 64 MiB of memory. Nothing is written; no thread
 * is started. Errors: -1 after a message.
 */
#ifndef ROCKSORT_COMMAND_PLAN_SAMPLE_H
#define ROCKSORT_COMMAND_PLAN_SAMPLE_H

#include "bam_sort_key.h"
#include "pipeline/estimate.h"

#include <htslib/hts.h>
#include <stdbool.h>

struct plan_sample_settings {
    const char *path;
    const htsFormat *options;
    struct sort_rules rules;    /* without template_ends, minhash.index and long positions */
    int level;                  /* of the output */
    size_t block_bytes;         /* of temporary data */
};

struct plan_sample {
    const char *format;         /* "BAM", "SAM", ...; a static string */
    uint64_t n_records, raw_bytes;      /* that were read; 0: none, and all below is 0 */
    uint64_t file_bytes;        /* of the file that became them; 0: unknown */
    bool whole;                 /* the sample is the whole input */
    struct record_traits traits;
};

int plan_sample_take(const struct plan_sample_settings *settings, struct plan_sample *sample);

#endif
