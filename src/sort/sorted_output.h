/*
 * sorted_output.h -- writes the output of a sort: one file, two (--also), or a file for each group
 * of --split-by, with indexes.
 *
 * Groups are written in a temporary directory (group_dir.h), and renamed when all are complete. A
 * group is opened at its first record and closed after its last, so that few are open at a time. A
 * file is also made for each known group of the header or the BED file that has no records.
 *
 * Order of calls: prepare, before output chunks are made; open; write, for each output chunk;
 * close; release. Threads: one at a time. Errors: -1 after a message.
 */
#ifndef ROCKSORT_SORT_SORTED_OUTPUT_H
#define ROCKSORT_SORT_SORTED_OUTPUT_H

#include "output/chunk_encoder.h"
#include "sort/sort_context.h"

/* Makes the index, to which output chunks add their parts. Checks that no file of a known group
   exists, and that enough groups can be open at the same time. */
int sorted_output_prepare(struct sort_context *sort);

/* Opens the output and writes the header; groups are opened later. raw_bytes: estimate. */
int sorted_output_open(struct sort_context *sort, uint64_t raw_bytes);

/* Writes an output chunk, encoded for each file. Changes its metadata of column batches. */
int sorted_output_write(struct sort_context *sort, struct chunk_encoder from[MOST_OUTPUTS]);

/* Closes the output and writes indexes. If all files are complete, they are added to the set for
   publish; else they are removed. Returns 0 on success. If only an index fails, a complete output
   stays, but groups do not. The sizes of the files are known then; files[0] has that of all
   groups. */
int sorted_output_close(struct sort_context *sort, bool complete);

/* Call this after close, or without open. */
void sorted_output_release(struct sorted_output *out);

#endif
