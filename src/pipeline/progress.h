/*
 * progress.h -- how far the sort is, while it runs: its phases, and a thread that looks at the
 * counters now and then.
 *
 * The stages count anyway; the callback `look` copies their counters. The thread prints and samples
 * without holding any lock of the sort. There is no thread if nobody wants
 * to know. It waits for a condition of its own, so that it ends at once, and the ends of jobs do
 * not wake it.
 *
 * The line on a terminal is drawn while this process is in its foreground: a process in the
 * background that writes may be stopped for it. Of two sorts in one pipe the first that draws goes
 * on until it ends, then the other: a lock of the terminal says whose the line is.
 *
 * Order of calls: start; enter; stop; finish. By one thread.
 */
#ifndef ROCKSORT_PIPELINE_PROGRESS_H
#define ROCKSORT_PIPELINE_PROGRESS_H

#include "pipeline/sort_report.h"

#include <stdbool.h>

struct progress;

/* What has been done until now. */
struct progress_counts {
    uint64_t records_in, raw_bytes_in;
    uint64_t raw_bytes_before;  /* of these, read by an earlier process */
    uint64_t file_bytes, file_bytes_read, file_bytes_before;   /* of the input files; 0: unknown */
    unsigned n_runs;
    uint64_t spilled_bytes;
    uint64_t records_out, raw_bytes_out, output_bytes;
};

struct progress_settings {
    bool prints;                /* a line every print_seconds, where no terminal shows it */
    double print_seconds;
    bool samples;               /* the report gets a series of samples */
    bool uses_stdout;           /* the sorted records go to standard output */
    bool writes_index;
    bool merges_inputs;         /* --merge */
    void (*look)(void *arg, struct progress_counts *counts);   /* by another thread */
    void *arg;
    struct sort_report *report; /* gets the phases, and the samples */
};

/* The sort begins. */
struct progress *progress_start(const struct progress_settings *settings);

/* The sort goes on to a phase, which may be the one it is in. */
void progress_enter(struct progress *progress, enum sort_phase phase);

/* Ends the thread: nothing is shown any more. */
void progress_stop(struct progress *progress);

/* All is done, and what the sort held is released. Frees the progress. */
void progress_finish(struct progress *progress);

#endif
