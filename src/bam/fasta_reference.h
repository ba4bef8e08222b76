/*
 * fasta_reference.h -- reads the bases of the reference for reports: an indexed FASTA file, which
 * may be compressed by bgzip.
 *
 * Order of calls: open; each worker takes a window, moves it, and gives it back; close, when all
 * are given back. Windows are kept for the next worker. Threads: any; one at a time for each
 * window. Errors: NULL or -1 after a message.
 */
#ifndef ROCKSORT_BAM_FASTA_REFERENCE_H
#define ROCKSORT_BAM_FASTA_REFERENCE_H

#include <htslib/sam.h>
#include <stdint.h>

struct fasta_reference;

struct fasta_window {           /* some bases of a reference, as codes */
    int32_t tid;
    int64_t begin, end;         /* positions of those in `codes`, within the reference */
    int64_t n_bases;            /* of the whole reference, in the file */
    const uint8_t *codes;       /* that of position `begin`, and so on */
};

struct fasta_use {              /* outlives the reference */
    const char *option;         /* for messages, such as "--picard" */
    const unsigned char *codes; /* of each character: 256 */
};

/* Opens a file that has all references of the header, and makes its index if there is none. Keeps
   the path and the header. */
struct fasta_reference *fasta_reference_open(const char *path, sam_hdr_t *header,
                                             const struct fasta_use *use);
void fasta_reference_close(struct fasta_reference *reference);  /* accepts NULL */

struct fasta_window *fasta_window_take(struct fasta_reference *reference);
void fasta_window_give_back(struct fasta_reference *reference, struct fasta_window *window);

/* Makes sure that the window has the bases from begin to end that the reference has. */
int fasta_window_move(struct fasta_window *window, int32_t tid, int64_t begin, int64_t end);

#endif
