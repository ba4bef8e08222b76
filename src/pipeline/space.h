/*
 * space.h -- early warnings: will temporary data and output fit their file systems?
 *
 * Asked once, as soon as the size of the input is known. Threads: any.
 */
#ifndef ROCKSORT_PIPELINE_SPACE_H
#define ROCKSORT_PIPELINE_SPACE_H

#include "store/temp_codec.h"

#include <htslib/hts.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct space_settings {
    bool nothing_is_written;    /* only the checksum is wanted */
    const htsFormat *output_format;
    int level;
    const char *output;         /* the regular file that is written; NULL: it is none */
    bool codec_auto;            /* else: */
    enum temp_codec codec;
    size_t memory_bytes;        /* the budget */
    const char *const *temp_prefixes;   /* of each -T; NULL without -T */
    size_t n_temp_prefixes;
};

/* Warns if temporary data or output of so many bytes of records will not fit their disks. */
void space_warn(const struct space_settings *settings, uint64_t raw_bytes);

#endif
