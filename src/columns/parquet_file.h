/*
 * parquet_file.h -- what stands before and after the row groups of a Parquet file.
 *
 * After the groups come the indexes of pages and the footer: the schema, where the groups are, and
 * the metadata of column_schema.h. Nothing before them must be changed, so a file can be written to
 * a pipe.
 *
 * One thread at a time. Errors: -1 after a message.
 */
#ifndef ROCKSORT_COLUMNS_PARQUET_FILE_H
#define ROCKSORT_COLUMNS_PARQUET_FILE_H

#include "columns/parquet_note.h"

struct parquet_file {
    const char *name;           /* in messages */
    const struct column_schema *schema;
    sam_hdr_t *header;
    bool is_compressed;         /* its pages, by zstd */
    const struct column_notes *notes;   /* of all groups, with their places in the file */
    size_t n_groups;
    uint64_t n_rows;
};

/* Refuses a file whose row groups cannot fit into a footer of PARQUET_MOST_FOOTER_BYTES. */
int parquet_file_check(const struct parquet_file *file);

/* Writes what follows the groups, which end at byte `position` of the file, about 1 MiB at a time.
   Stops at the first failure; a sink and notes print the message of theirs. */
int parquet_put_file_end(const struct parquet_file *file, uint64_t position,
                         const struct column_sink *sink);

#endif
