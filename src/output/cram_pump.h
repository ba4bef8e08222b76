/*
 * cram_pump.h -- copies bytes from htslib's CRAM writer to the output, so that its writes never
 * fail.
 *
 * When a write fails, htslib's threaded CRAM writer frees memory that its workers use, and crashes
 * (1.16 to 1.21). So it writes into a socket pair, and a thread of ours copies the bytes to the
 * output. After the first error, or after cram_pump_discard, that thread discards the bytes.
 *
 * Order of calls: open; run, in a thread of its own; set_target before anything is written; discard
 * at any time; end after the last byte was written; close after run has returned. run returns after
 * end, whether or not the writing end was closed: if htslib cannot encode a record, it never closes
 * it.
 *
 * Ownership: the pump owns the reading end; the caller owns the writing end and the target.
 * Threads: set_target, discard and end may be called, and `error` read, while run runs.
 */
#ifndef ROCKSORT_OUTPUT_CRAM_PUMP_H
#define ROCKSORT_OUTPUT_CRAM_PUMP_H

#include <htslib/hfile.h>
#include <stdatomic.h>

struct cram_pump {
    int read_fd;
    int end_fd;                 /* a second descriptor of the writing end, for cram_pump_end */
    char *chunk;                /* buffer of cram_pump_run */
    hFILE *_Atomic target;
    atomic_bool discarding;
    char failure[160];          /* its message from transfers_failure, or ""; set before `error` */
    atomic_int error;           /* errno of the first failed write, or 0 */
};

/* Makes the sockets. Bytes written to *from go to the target; the caller closes *from. Returns 0,
   or -1 with errno set. */
int cram_pump_open(struct cram_pump *pump, hFILE **from);
void cram_pump_set_target(struct cram_pump *pump, hFILE *target);
void cram_pump_run(struct cram_pump *pump);

/* Discards all further bytes. */
void cram_pump_discard(struct cram_pump *pump);

/* Call this after the last write: run returns once it has copied all bytes. */
void cram_pump_end(struct cram_pump *pump);

/* Closes all but the writing end, and frees the memory. */
void cram_pump_close(struct cram_pump *pump);

#endif
