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
#include "store/temp_codec.h"

#include <htslib/hts.h>
#include <stdbool.h>

enum { PLAN_SAMPLE_MOST_BLOCK_BYTES = 128 << 10 };

struct plan_sample_settings {
    const char *path;
    const htsFormat *options;
    struct sort_rules rules;    /* without template_ends, minhash.index and long positions */
    int level;                  /* of the output */
    size_t block_bytes;         /* of temporary data; at most PLAN_SAMPLE_MOST_BLOCK_BYTES */
};

struct plan_sample {
    const char *format;         /* "BAM", "SAM", ...; a static string */
    uint64_t n_records, raw_bytes;      /* that were read; 0: none, and all below is 0 */
    uint64_t file_bytes;        /* of the file that became them; 0: unknown */
    bool whole;                 /* that is all there is */
    double memory_ratio;        /* memory of a batch to raw bytes, once they are indexed; */
    double memory_at_worst;     /* ... and before, whatever records they turn out to be */
    bool by_blocks;             /* it comes in whole BGZF blocks; else by records */
    bool is_text;
    /* seconds for each raw byte, on one core */
    double read_seconds;        /* waiting for the file */
    double decode_seconds;
    double sort_seconds;        /* checking, indexing, sorting */
    double gather_seconds;      /* copying in sorted order */
    double deflate_seconds;
    double deflate_ratio;       /* output to raw bytes */
    double pack_seconds[TEMP_CODEC_COUNT], unpack_seconds[TEMP_CODEC_COUNT];
    double pack_ratio[TEMP_CODEC_COUNT];
};

int plan_sample_take(const struct plan_sample_settings *settings, struct plan_sample *sample);

#endif
