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
#include "output/output_set.h"
#include "resume/group_dir.h"
#include "split/group_list.h"

struct open_group;

struct sorted_output {          /* starts as {settings of files, and of groups} */
    struct output_file files[MOST_OUTPUTS];     /* with groups, [0] has their settings, and patterns
                                                   as names */
    unsigned n_files;
    const struct split_plan *plan;      /* NULL: no groups */
    struct group_list *groups;  /* the known groups; new values of a tag are added */
    const struct group_dir *groups_dir; /* where groups are written */
    struct output_set *set;     /* renames the files */
    /* with groups */
    sam_hdr_t *header;          /* of the output */
    struct byte_buffer shared_header;
    struct open_group **open;   /* one, or several with intervals apart */
    size_t n_open, open_room;
    size_t span;                /* by place: the last span */
    uint8_t *value;             /* by tag: the last value; owned */
    size_t value_bytes;
};

/* Makes the index, to which output chunks add their parts. Checks that no file of a known group
   exists, and that enough groups can be open at the same time. memory_bytes: of the sort. */
int sorted_output_prepare(struct sorted_output *out, sam_hdr_t *header, size_t memory_bytes);

/* Opens the output and writes the header; groups are opened later. raw_bytes: estimate. */
int sorted_output_open(struct sorted_output *out, sam_hdr_t *header, uint64_t raw_bytes);

/* Writes an output chunk, encoded for each file. Changes its metadata of column batches. */
int sorted_output_write(struct sorted_output *out, struct chunk_encoder from[MOST_OUTPUTS]);

/* Closes the output and writes indexes. If all files are complete, they are added to the set for
   publish; else they are removed. Returns 0 on success. If only an index fails, a complete output
   stays, but groups do not. Sets a result for each file; one for all groups. */
int sorted_output_close(struct sorted_output *out, bool complete,
                        struct output_result results[MOST_OUTPUTS]);

/* Call this after close, or without open. */
void sorted_output_release(struct sorted_output *out);

#endif
