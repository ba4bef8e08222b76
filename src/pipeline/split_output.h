/*
 * split_output.h -- the pieces of the output (--split-by): a file for each, with its index.
 *
 * All are written in a directory of their own (piece_dir.h), and get their names when all are
 * complete. A piece is opened when its first record comes, and closed after its last: so few are
 * open at the same time, however many there are. Pieces that are known from the header or the BED
 * file are made without records, too.
 *
 * Order of calls: create, when the references are known; file, for each stretch in order, when the
 * header is complete; close. Then the list of pieces says what was written. Threads: one at a time.
 * Errors: -1 or NULL after a message.
 */
#ifndef ROCKSORT_PIPELINE_SPLIT_OUTPUT_H
#define ROCKSORT_PIPELINE_SPLIT_OUTPUT_H

#include "output/output_set.h"
#include "pipeline/output_file.h"
#include "pipeline/piece_dir.h"
#include "pipeline/segment.h"
#include "split/piece_list.h"

struct split_output;

struct split_output_settings {
    const struct split_plan *plan;
    struct piece_list *pieces;  /* those that the plan knows; values of a tag are added */
    const char *dir;            /* in which pieces are written */
    struct output_set *set;     /* gives them their names */
    const struct output_settings *like; /* borrowed; the names are patterns with % for that of the
                                           piece */
    const struct temp_places *places;   /* as in output_file.h */
    sam_hdr_t *header;          /* of the output */
    size_t memory_bytes;        /* of the sort */
};

/* Checks that no known piece has the name of a file that exists, and that those that must be open
   at the same time can be. */
struct split_output *split_output_create(const struct split_output_settings *settings);

/* Accepts NULL. */
void split_output_destroy(struct split_output *split);

/* The open file of the piece to which a stretch belongs. */
struct output_file *split_output_file(struct split_output *split,
                                      const struct segment_stretch *stretch);

/* Closes all files. If the output is complete, makes the pieces without records; then all wait in
   the set for their names. */
int split_output_close(struct split_output *split, bool complete,
                       struct output_result *result);

#endif
