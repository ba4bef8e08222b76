/*
 * codec_chooser.h -- chooses the codec of each run by what was seen since the last choice.
 *
 * The choice itself is a pure function (codec_policy.h); the chooser keeps what it needs to know
 * from one run to the next. Threads: one.
 */
#ifndef ROCKSORT_PIPELINE_CODEC_CHOOSER_H
#define ROCKSORT_PIPELINE_CODEC_CHOOSER_H

#include "store/codec_policy.h"
#include "store/run_store.h"

#include <stdbool.h>
#include <stdint.h>

struct codec_chooser {
    bool is_auto;               /* set by the caller, as are: */
    enum temp_codec fixed;      /* the codec if it is not chosen */
    unsigned n_threads;
    /* its own, 0 at first */
    struct codec_facts facts;
    double chosen_at;           /* by the monotonic clock; 0: never */
    double put_seconds, end_seconds, wait_seconds, job_seconds;     /* totals at the last choice */
    enum codec_reason reason;   /* of the last choice */
};

/* What the sort has seen until now, when a run is about to begin. */
struct codec_sight {
    uint64_t expected_bytes;    /* whole input, uncompressed; 0: unknown */
    bool was_told;              /* expected_bytes was given with -s */
    uint64_t raw_bytes_read;
    uint64_t raw_bytes_spilled;
    double put_seconds;         /* the spiller: writing runs */
    double end_seconds;         /* the ender: ending runs */
    double wait_seconds;        /* the spiller: waiting for the ender */
    double job_seconds;         /* the workers: jobs */
};

/* The codec for the next run. The store tells what its disks are like. */
enum temp_codec codec_chooser_next(struct codec_chooser *chooser, struct run_store *store,
                                   const struct codec_sight *sight);

#endif
