/*
 * cram_pump.h -- a pipe between htslib's CRAM writer and the output, whose writing end never fails.
 *
 * When a write fails, htslib's threaded CRAM writer frees what its workers are using, and crashes
 * (1.16 to 1.21). So it writes into a pipe, and a thread of ours copies the bytes to the output.
 * After the first error, or after cram_pump_discard, that thread throws the bytes away.
 *
 * Order of calls: open; run, in a thread of its own, which returns when the writing end is closed;
 * set_target before anything is written; discard at any time; close when run has returned.
 *
 * Ownership: the pump owns the reading end; the caller owns the writing end and the target.
 * Threads: set_target and discard may be called, and `error` read, while run runs.
 */
#ifndef ROCKSORT_OUTPUT_CRAM_PUMP_H
#define ROCKSORT_OUTPUT_CRAM_PUMP_H

#include <htslib/hfile.h>
#include <stdatomic.h>

struct cram_pump {
    int read_fd;
    char *chunk;                /* buffer of cram_pump_run */
    hFILE *_Atomic target;
    atomic_bool discarding;
    atomic_int error;           /* errno of the first failed write, or 0 */
};

/* Makes the pipe. What is written to *from goes to the target; the caller closes *from. Returns 0,
   or -1 with errno set. */
int cram_pump_open(struct cram_pump *pump, hFILE **from);
void cram_pump_set_target(struct cram_pump *pump, hFILE *target);
void cram_pump_run(struct cram_pump *pump);

/* From now on the bytes are thrown away. */
void cram_pump_discard(struct cram_pump *pump);

/* Closes the reading end and frees the memory. */
void cram_pump_close(struct cram_pump *pump);

#endif
