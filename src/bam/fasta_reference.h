/*
 * picard_reference.h -- reads the bases of the reference, for mismatches and GC bias: an indexed
 * FASTA file, which may be compressed by bgzip.
 *
 * Order of calls: open; each worker takes a window, moves it, and gives it back; close. The windows
 * are kept for the next worker. Threads: any; one at a time for each window. Errors: NULL or -1
 * after a message.
 */
#ifndef ROCKSORT_PICARD_PICARD_REFERENCE_H
#define ROCKSORT_PICARD_PICARD_REFERENCE_H

#include <htslib/sam.h>
#include <stdint.h>

struct picard_reference;

struct picard_window {          /* some bases of a reference, as codes of BAM */
    int32_t tid;
    int64_t begin, end;         /* positions of those in `codes`, within the reference */
    int64_t n_bases;            /* of the whole reference */
    const uint8_t *codes;       /* that of position `begin`, and so on */
};

/* Opens a file that has all references of the header. Keeps the path and the header. */
struct picard_reference *picard_reference_open(const char *path, sam_hdr_t *header);
void picard_reference_close(struct picard_reference *reference);        /* accepts NULL */

struct picard_window *picard_window_take(struct picard_reference *reference);
void picard_window_give_back(struct picard_reference *reference, struct picard_window *window);

/* Makes sure that the window has the bases from begin to end that the reference has. */
int picard_window_move(struct picard_window *window, int32_t tid, int64_t begin, int64_t end);

#endif
