/*
 * bam_inputs.h -- the inputs of a sort: their united header, then one reader after the other.
 *
 * Order of calls: open; header; next until it returns 0; close at any time. Several inputs are
 * opened once for their headers, closed, and opened again to be read, so that only one is open at a
 * time. An input that cannot be opened again, such as a pipe, stays open. An input that has another
 * header when it is opened again, or another size when it has been read, is an error.
 * Threads: one at a time. Errors: -1 or NULL after a message.
 */
#ifndef ROCKSORT_INPUT_BAM_INPUTS_H
#define ROCKSORT_INPUT_BAM_INPUTS_H

#include "input/bam_reader.h"

#include <sys/stat.h>

struct bam_inputs;

/* Opens all inputs and unites their headers. Paths, options and pool outlive the inputs. */
struct bam_inputs *bam_inputs_open(const char *const *paths, size_t n, const htsFormat *options,
                                   htsThreadPool *pool);

/* Owned by the inputs; the caller may change it before the first reader is used. */
sam_hdr_t *bam_inputs_header(struct bam_inputs *inputs);

/* True if reading can begin anywhere: all inputs are files of BGZF-compressed BAM. */
bool bam_inputs_can_seek(const struct bam_inputs *inputs);

/* What input i was just before it was opened; NULL if it is no regular file. */
const struct stat *bam_inputs_file(const struct bam_inputs *inputs, size_t i);

/* Before the first bam_inputs_next: has reading begin at a position. Returns how many bytes of the
   files lie before it. */
uint64_t bam_inputs_start_at(struct bam_inputs *inputs, const struct input_position *position);

/* Number of the reader that was shown last. */
uint32_t bam_inputs_number(const struct bam_inputs *inputs);

/* Closes the reader that was shown and shows the next one. Returns 1, 0 after the last, -1 on
   error. */
int bam_inputs_next(struct bam_inputs *inputs, struct bam_reader **reader);

/* After an error: true if the reason is that an input changed. */
bool bam_inputs_changed(const struct bam_inputs *inputs);

/* The size of all files together; 0: unknown, since one of the inputs is no regular file. */
uint64_t bam_inputs_bytes(const struct bam_inputs *inputs);

/* How many of these bytes have been read; 0: unknown. */
uint64_t bam_inputs_bytes_read(const struct bam_inputs *inputs);

/* NULL is accepted. */
void bam_inputs_close(struct bam_inputs *inputs);

#endif
