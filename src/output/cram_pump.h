/*
 * cram_pump.h -- a pipe whose writing end never fails, in front of a file that may.
 *
 * htslib's threaded CRAM writer frees what its workers are using when a write fails (1.16 to 1.21),
 * and crashes. So it writes into a pipe, and a thread of ours carries the bytes to the file; after
 * the first error, or on request, it throws them away.
 *
 * Order of calls: open; cram_pump_run in a thread of its own, until the writing end is closed;
 * meanwhile set_target, before anything is written, and at any time discard, or a look at `error`;
 * after the thread has ended, close.
 */
#ifndef ROCKSORT_OUTPUT_CRAM_PUMP_H
#define ROCKSORT_OUTPUT_CRAM_PUMP_H

#include <htslib/hfile.h>
#include <stdatomic.h>
#include <stdbool.h>

struct cram_pump {
    int read_fd;
    char *chunk;                /* on its way */
    hFILE *_Atomic target;      /* borrowed */
    atomic_bool discarding;
    atomic_int error;           /* errno of the first failed write, or 0 */
};

/* Makes the pipe. Returns 0, or -1 with errno set. *from, which the caller closes, takes what is to
   go to the target. */
int cram_pump_open(struct cram_pump *pump, hFILE **from);
void cram_pump_set_target(struct cram_pump *pump, hFILE *target);
void cram_pump_run(struct cram_pump *pump);

/* What comes from now on goes nowhere. */
void cram_pump_discard(struct cram_pump *pump);

/* Closes the reading end and frees the memory. */
void cram_pump_close(struct cram_pump *pump);

#endif
