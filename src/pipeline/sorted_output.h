/*
 * sorted_output.h -- what a sort writes: one file, or two (--also), or with --split-by the pieces.
 *
 * Order of calls: prepare, before segments are made; open; write, for each segment; close. Threads:
 * one at a time. Errors: -1 after a message.
 */
#ifndef ROCKSORT_PIPELINE_SORTED_OUTPUT_H
#define ROCKSORT_PIPELINE_SORTED_OUTPUT_H

#include "output/output_set.h"
#include "pipeline/output_file.h"
#include "pipeline/piece_dir.h"
#include "pipeline/split_output.h"

struct sorted_output {          /* starts as {settings of files, and those of pieces} */
    struct output_file files[MOST_OUTPUTS];     /* with pieces the first is what they are like */
    unsigned n_files;
    const struct split_plan *plan;      /* NULL: there are no pieces */
    struct piece_list *pieces;          /* with a plan */
    const struct piece_dir *pieces_dir; /* with pieces: where they are written */
    struct output_set *set;             /* gives files their names */
    struct split_output *split;
};

/* Makes the index of which segments make parts, and looks at the names of pieces. memory_bytes: of
   the sort. */
int sorted_output_prepare(struct sorted_output *out, sam_hdr_t *header, size_t memory_bytes);

/* Opens the output, about raw_bytes of records, and writes the header. Pieces are opened later. */
int sorted_output_open(struct sorted_output *out, sam_hdr_t *header, uint64_t raw_bytes);

/* Changes the notes of columns in the segment. */
int sorted_output_write(struct sorted_output *out, struct segment *segment);

/* Closes the output, and writes indexes. If all files are complete, so is the set, and they wait
   there for their names; else they are removed. Returns 0 if all is well. A complete output stays if
   only its index fails; pieces do not. Sets a result for each file; all pieces have one. */
int sorted_output_close(struct sorted_output *out, bool complete,
                        struct output_result results[MOST_OUTPUTS]);

/* Frees what the output has, after close or without open. */
void sorted_output_release(struct sorted_output *out);

#endif
