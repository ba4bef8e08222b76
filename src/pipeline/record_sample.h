/*
 * record_sample.h -- measures on a sample of sorted records how well they compress, as temporary
 * data with each codec and as output, and how long that takes on one core.
 *
 * --plan measures the beginning of the input; a sort whose disks may be too small measures some
 * records of its first batches. Takes some milliseconds a megabyte, except for deflating.
 *
 * Threads: any, each with records of its own. Memory: half a megabyte.
 */
#ifndef ROCKSORT_PIPELINE_RECORD_SAMPLE_H
#define ROCKSORT_PIPELINE_RECORD_SAMPLE_H

#include "bam/bgzf_engine.h"
#include "duplicates/duplicate_rules.h"
#include "order/entry_sort.h"
#include "pipeline/estimate.h"

struct record_sample_settings {
    struct bgzf_method method;  /* of the output */
    bool measures_usual;        /* what the default level does, too; else the traits say that of the
                                   method there */
    size_t block_bytes;         /* of temporary data; it makes no difference beyond 128 KiB */
    const struct duplicate_rules *duplicates;   /* of --markdup, or NULL */
    size_t pack_bytes;          /* of records whose views are written together; not
                                   used without --markdup */
    double most_deflate_seconds;        /* what is left of the sample then is not deflated */
};

/* Copies the records of sorted entries to `out`, as many as fit there. Returns their bytes. */
size_t record_sample_gather(enum sort_order order, const struct sort_entry *entries,
                            size_t n_entries, uint8_t *out, size_t room);

/*
 * Sets the ratios and seconds of packing, unpacking and deflating in *traits. n_bytes is not 0.
 * Returns 0, or -1 if a library could not compress the sample; there is no message.
 */
int record_sample_measure(const struct record_sample_settings *settings, const uint8_t *sorted,
                          size_t n_bytes, struct record_traits *traits);

#endif
