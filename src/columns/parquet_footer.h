/*
 * parquet_footer.h -- writes what follows the row groups of a Parquet file: page indexes and
 * footer.
 *
 * The footer has the schema, the places of the row groups and the metadata of column_schema.h.
 * Nothing before it needs to be changed, so a file can be written to a pipe. What each group adds
 * to the page indexes and the footer is made when the group is written, and spooled on tapes:
 * about 100 bytes for a column.
 *
 * One thread at a time. Errors: -1 after a message.
 */
#ifndef ROCKSORT_COLUMNS_PARQUET_FOOTER_H
#define ROCKSORT_COLUMNS_PARQUET_FOOTER_H

#include "columns/column_sink.h"
#include "columns/parquet_group.h"

/* The streams of the spool: the indexes of bounds and of offsets of pages, and the groups in the
   footer. */
enum parquet_stream { PARQUET_BOUNDS, PARQUET_OFFSETS, PARQUET_GROUPS, PARQUET_N_STREAMS };

struct parquet_footer {
    const char *name;           /* in messages */
    const struct column_schema *schema;
    struct parquet_leaf *leaves;        /* of the schema */
    unsigned n_leaves;
    bool is_compressed;         /* pages, with zstd */
    struct tape_set *spool;     /* of PARQUET_N_STREAMS */
    uint64_t most_footer_bytes; /* readers keep the footer in memory */
    uint64_t n_groups, n_rows;
};

/* Adds groups whose metadata (parquet_group.h) count from byte `position` of the file. Refuses a
   file whose footer would be larger than most_footer_bytes. */
int parquet_footer_add(struct parquet_footer *file, const struct byte_buffer *metadata,
                       uint64_t position);

/* Writes what follows the groups, which end at byte `position` of the file, about 1 MiB at a time.
   Stops at the first failure; a sink that fails prints the message. */
int parquet_footer_end(const struct parquet_footer *file, sam_hdr_t *header, uint64_t position,
                       const struct column_sink *sink);

#endif
