/*
 * sorted_output.h -- what a sort writes: one file, or two (--also), or the groups of --split-by, a
 * file for each with its index.
 *
 * Groups are written in a directory of their own (group_dir.h), and get their names when all are
 * complete. A group is opened when its first record comes, and closed after its last, so that few
 * are open at a time. Groups that are known from the header or the BED file are made without
 * records, too.
 *
 * Order of calls: prepare, before output chunks are made; open; write, for each output chunk;
 * close; release. Threads: one at a time. Errors: -1 after a message.
 */
#ifndef ROCKSORT_SORT_SORTED_OUTPUT_H
#define ROCKSORT_SORT_SORTED_OUTPUT_H

#include "output/chunk_encoder.h"
#include "output/output_set.h"
#include "resume/group_dir.h"
#include "split/group_list.h"

struct open_group;

struct sorted_output {          /* starts as {settings of files, and of groups} */
    struct output_file files[MOST_OUTPUTS];     /* with groups the first is what they are like; its
                                                   names are patterns */
    unsigned n_files;
    const struct split_plan *plan;      /* NULL: there are no groups */
    struct group_list *groups;  /* with a plan: those that it knows; values of a tag are added */
    const struct group_dir *groups_dir; /* with groups: where they are written */
    struct output_set *set;     /* gives files their names */
    /* with groups */
    sam_hdr_t *header;          /* of the output */
    struct output_header shared_header;
    struct open_group **open;   /* one, or those whose intervals lie apart */
    size_t n_open, open_room;
    size_t span;                /* by place: of the last span */
    uint8_t *value;             /* by tag: of the last span; owned */
    size_t value_bytes;
};

/* Makes the index to which output chunks add their parts. Checks that no known group has the name
   of a file that exists, and that those that must be open at the same time can be. memory_bytes: of
   the sort. */
int sorted_output_prepare(struct sorted_output *out, sam_hdr_t *header, size_t memory_bytes);

/* Opens the output, about raw_bytes of records, and writes the header. Groups are opened later. */
int sorted_output_open(struct sorted_output *out, sam_hdr_t *header, uint64_t raw_bytes);

/* Writes what an output chunk has for each file. Changes its notes of columns. */
int sorted_output_write(struct sorted_output *out, struct chunk_encoder from[MOST_OUTPUTS]);

/* Closes the output, and writes indexes. If all files are complete, so is the set, and they wait
   there for their names; else they are removed. Returns 0 if all is well. A complete output stays
   if only its index fails; groups do not. Sets a result for each file; all groups have one. */
int sorted_output_close(struct sorted_output *out, bool complete,
                        struct output_result results[MOST_OUTPUTS]);

/* Frees what the output has, after close or without open. */
void sorted_output_release(struct sorted_output *out);

#endif
