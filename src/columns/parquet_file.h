/*
 * parquet_file.h -- what stands before and after the row groups of a Parquet file.
 *
 * After the groups come the indexes of pages and the footer: the schema, where the groups are, and
 * the metadata of column_metadata.h.
 * Nothing before them must be changed, so a file can be written to a pipe.
 *
 * Pure, but for the header (header_text.h).
 */
#ifndef ROCKSORT_COLUMNS_PARQUET_FILE_H
#define ROCKSORT_COLUMNS_PARQUET_FILE_H

#include "columns/column_notes.h"
#include "columns/parquet_note.h"

#include <htslib/sam.h>

struct parquet_file {
    const struct column_schema *schema;
    sam_hdr_t *header;
    bool is_compressed;         /* its pages, by zstd */
    const struct column_notes *notes;   /* of all groups, with their places in the file */
    size_t n_groups;
    uint64_t n_rows;
};

/* Appends what precedes the groups. */
void parquet_put_file_begin(struct column_bytes *out);

/* True if n_groups row groups cannot fit into a footer of PARQUET_MOST_FOOTER_BYTES. */
bool parquet_file_has_too_many(size_t n_groups, const struct column_schema *schema);

/* How writing the end of a file went. It stops at the first failure. */
enum parquet_file_end {
    PARQUET_END_OK = 0,
    PARQUET_END_SINK_FAILED,
    PARQUET_END_NOTES_FAILED,   /* after a message */
    PARQUET_END_TOO_LARGE       /* the footer */
};

/* Writes what follows the groups, which end at byte `position` of the file, about 1 MiB at a
   time. */
enum parquet_file_end parquet_put_file_end(const struct parquet_file *file, uint64_t position,
                                           const struct column_sink *sink);

#endif
