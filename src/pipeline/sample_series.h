/*
 * sample_series.h -- samples of a run over time, a bounded number of them however long it takes.
 *
 * At first there is one each SAMPLE_SECONDS; whenever the series is full every second one is
 * dropped and the interval doubles, so that a run of any length has SAMPLE_MOST / 2 to SAMPLE_MOST
 * samples at even distances (fewer if it was short).
 *
 * Order of calls: init; add when it is due, and once more at the end; release at any time. One
 * thread at a time.
 */
#ifndef ROCKSORT_PIPELINE_SAMPLE_SERIES_H
#define ROCKSORT_PIPELINE_SAMPLE_SERIES_H

#include "pipeline/sort_phase.h"

#include <stddef.h>
#include <stdint.h>

enum { SAMPLE_MOST = 1024 };

/* A plot of a run of half a minute has a hundred points; a sample takes 50 us. */
#define SAMPLE_SECONDS 0.25

struct sample {
    double seconds;             /* since the start */
    enum sort_phase phase;
    uint64_t records_in, raw_bytes_in;
    uint64_t records_out, output_bytes;         /* written */
    uint64_t n_runs, spilled_bytes;     /* uncompressed */
    uint64_t resident_bytes;
    double cpu_seconds;
    uint64_t disk_read_bytes, disk_written_bytes;
};

struct sample_series {          /* starts as {0} */
    struct sample *samples;
    size_t n;
    double interval_seconds;
};

/* Returns 0, or -1 without memory (no message); there is a series of no samples then. */
int sample_series_init(struct sample_series *series);

/* When the next sample is due, in seconds since the start. */
double sample_series_due(const struct sample_series *series);

/* Adds a sample, whose time is not before the last one's. */
void sample_series_add(struct sample_series *series, const struct sample *sample);

void sample_series_release(struct sample_series *series);

#endif
