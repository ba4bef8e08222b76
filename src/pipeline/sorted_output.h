/*
 * sorted_output.h -- what a sort writes: one file, or two (--also), or the pieces of --split-by, a
 * file for each with its index.
 *
 * Pieces are written in a directory of their own (piece_dir.h), and get their names when all are
 * complete. A piece is opened when its first record comes, and closed after its last, so that few
 * are open at a time. Pieces that are known from the header or the BED file are made without
 * records, too.
 *
 * Order of calls: prepare, before segments are made; open; write, for each segment; close; release.
 * Threads: one at a time. Errors: -1 after a message.
 */
#ifndef ROCKSORT_PIPELINE_SORTED_OUTPUT_H
#define ROCKSORT_PIPELINE_SORTED_OUTPUT_H

#include "output/output_set.h"
#include "pipeline/piece_dir.h"
#include "pipeline/segment_output.h"
#include "split/piece_list.h"

struct open_piece;

struct sorted_output {          /* starts as {settings of files, and of pieces} */
    struct output_file files[MOST_OUTPUTS];     /* with pieces the first is what they are like; its
                                                   names are patterns */
    unsigned n_files;
    const struct split_plan *plan;      /* NULL: there are no pieces */
    struct piece_list *pieces;  /* with a plan: those that it knows; values of a tag are added */
    const struct piece_dir *pieces_dir; /* with pieces: where they are written */
    struct output_set *set;     /* gives files their names */
    /* with pieces */
    sam_hdr_t *header;          /* of the output */
    struct output_header shared_header;
    struct open_piece **open;   /* one, or those whose intervals lie apart */
    size_t n_open, open_room;
    size_t span;                /* by place: of the last stretch */
    uint8_t *value;             /* by tag: of the last stretch; owned */
    size_t value_bytes;
};

/* Makes the index of which segments make parts. Checks that no known piece has the name of a file
   that exists, and that those that must be open at the same time can be. memory_bytes: of the
   sort. */
int sorted_output_prepare(struct sorted_output *out, sam_hdr_t *header, size_t memory_bytes);

/* Opens the output, about raw_bytes of records, and writes the header. Pieces are opened later. */
int sorted_output_open(struct sorted_output *out, sam_hdr_t *header, uint64_t raw_bytes);

/* Writes what a segment has for each file. Changes its notes of columns. */
int sorted_output_write(struct sorted_output *out, struct segment_output from[MOST_OUTPUTS]);

/* Closes the output, and writes indexes. If all files are complete, so is the set, and they wait
   there for their names; else they are removed. Returns 0 if all is well. A complete output stays if
   only its index fails; pieces do not. Sets a result for each file; all pieces have one. */
int sorted_output_close(struct sorted_output *out, bool complete,
                        struct output_result results[MOST_OUTPUTS]);

/* Frees what the output has, after close or without open. */
void sorted_output_release(struct sorted_output *out);

#endif
