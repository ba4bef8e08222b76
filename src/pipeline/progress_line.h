/*
 * progress_line.h -- how far a sort is, in words: one line from the counters of the pipeline.
 *
 * Order of calls: progress_rate_update with each look at the counters, then progress_line. Pure
 * functions.
 */
#ifndef ROCKSORT_PIPELINE_PROGRESS_LINE_H
#define ROCKSORT_PIPELINE_PROGRESS_LINE_H

#include "pipeline/sort_phase.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress_facts {
    enum sort_phase phase;
    double seconds;             /* since the start */
    double phase_seconds;       /* since the phase began */
    uint64_t n_records;         /* read */
    uint64_t n_records_written;
    uint64_t input_bytes;       /* of all inputs, as they are stored; 0: unknown */
    uint64_t input_bytes_read;  /* of these; 0: unknown */
    uint64_t input_bytes_before;        /* of these: an earlier process has read them */
    unsigned n_runs;            /* on disk */
    bool writes_index;
    double bytes_per_second;    /* uncompressed, lately: read or merged; 0: unknown */
};

/* Uncompressed bytes a second, lately: a mean in which what is past counts less and less. Starts
   with each phase, as of its beginning. */
struct progress_rate {
    double seconds;             /* of the last look; 0: there was none */
    uint64_t n_bytes;
    double weight;              /* of all looks so far: 0 to 1 */
    double bytes_per_second;
};

void progress_rate_update(struct progress_rate *rate, double seconds, uint64_t n_bytes);

/* The share of the phase that is done, 0 to 1; negative: unknown. */
double progress_share(const struct progress_facts *facts);

/* Seconds until the phase ends if it goes on as it has gone; negative: unknown. */
double progress_seconds_left(const struct progress_facts *facts);

/*
 * Makes the line, without a newline, in at most `width` columns and room - 1 bytes (ASCII): what is
 * less important is left out where it does not fit. Returns its length.
 */
size_t progress_line(char *line, size_t room, size_t width, const struct progress_facts *facts);

#endif
