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
#include "pipeline/sort_settings.h"

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

/* The sort begins. look(arg, &counts) is called by another thread. The report gets the phases and
   the samples. */
struct progress *progress_start(const struct sort_settings *settings,
                                void (*look)(void *arg, struct progress_counts *counts),
                                void *arg, struct sort_report *report);

/* The sort goes on to a phase, which may be the one it is in. */
void progress_enter(struct progress *progress, enum sort_phase phase);

/* Ends the thread: nothing is shown any more. */
void progress_stop(struct progress *progress);

/* All is done, and what the sort held is released. Frees the progress. */
void progress_finish(struct progress *progress);

#endif
