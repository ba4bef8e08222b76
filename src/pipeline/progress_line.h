/*
 * progress_line.h -- how far a sort is: makes one line of text from the counters of the pipeline.
 *
 * Order of calls: at each look at the counters progress_rate_update, then progress_line. Pure; any
 * thread.
 */
#ifndef ROCKSORT_PIPELINE_PROGRESS_LINE_H
#define ROCKSORT_PIPELINE_PROGRESS_LINE_H

#include "pipeline/sort_report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress_facts {
    enum sort_phase phase;
    double seconds;             /* since the start */
    double phase_seconds;       /* since the phase began */
    uint64_t n_records;         /* read */
    uint64_t n_records_written;
    uint64_t input_bytes;       /* size of all input files; 0: unknown */
    uint64_t input_bytes_read;  /* how many of these were read; 0: unknown */
    uint64_t input_bytes_before;        /* how many of these an earlier process had read */
    unsigned n_runs;            /* on disk */
    bool writes_index;
    bool merges_inputs;         /* --merge: the merge reads the inputs */
    double bytes_per_second;    /* of progress_rate: read or merged; 0: unknown */
};

/* Uncompressed bytes a second: a mean in which the last seconds count most. It starts anew at the
   beginning of each phase, with the time and the bytes of that moment. */
struct progress_rate {
    double seconds;             /* time of the last look; 0: there was none */
    uint64_t n_bytes;
    double weight;              /* of all looks so far together: 0 to 1 */
    double bytes_per_second;
};

void progress_rate_update(struct progress_rate *rate, double seconds, uint64_t n_bytes);

/* The share of the phase that is done, 0 to 1; negative: unknown. */
double progress_share(const struct progress_facts *facts);

/* Seconds until the phase ends if its speed stays the same; negative: unknown. */
double progress_seconds_left(const struct progress_facts *facts);

/*
 * Makes the line, in ASCII and without a newline, of at most `width` columns and room - 1 bytes.
 * The less important parts are left out if they do not fit. Returns its length.
 */
size_t progress_line(char *line, size_t room, size_t width, const struct progress_facts *facts);

#endif
