/*
 * csi_writer.h -- makes the CSI index of a BGZF-compressed BED file while the file is written, as
 * `tabix --csi -p bed` does (CSI specification; tabix specification for the columns).
 *
 * Order of calls: init; add the lines in their order; print, once; release. Neighbouring lines of
 * one bin may be added as one. Structs start as {0}.
 *
 * Memory: the compressed index so far, and for the current reference 24 bytes for each change of
 * the bin and 8 for each window (2^14 bases, or more if a reference is longer than 2^34). Threads:
 * one at a time. Errors: -1 after a message.
 */
#ifndef ROCKSORT_DEPTH_CSI_WRITER_H
#define ROCKSORT_DEPTH_CSI_WRITER_H

#include "util/byte_buffer.h"

#include <htslib/sam.h>
#include <stdio.h>

struct csi_chunk {              /* virtual offsets of lines of a bin */
    uint32_t bin;
    uint64_t begin, end;
};

struct csi_writer {
    int min_shift, depth;       /* of the bins */
    int32_t n_refs, tid;        /* tid: the current reference */
    struct csi_chunk *chunks;
    size_t n_chunks, chunks_room;
    uint64_t *windows;          /* virtual offset of the first line that overlaps each window */
    size_t n_windows, windows_room;
    struct byte_buffer out, packed;     /* the file so far */
    bool failed;
};

/* The references of the header are those of the index. Does not keep the header. */
void csi_writer_init(struct csi_writer *csi, const sam_hdr_t *header);

/* Adds lines [begin, end) of a reference, at virtual offsets. Lines are in order of reference and
   begin. */
void csi_writer_add(struct csi_writer *csi, int32_t tid, int64_t begin, int64_t end,
                    const uint64_t offsets[2]);

/* Ends the index and writes it. */
int csi_writer_print(struct csi_writer *csi, FILE *to);

void csi_writer_release(struct csi_writer *csi);

#endif
