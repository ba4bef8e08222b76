/*
 * parquet_file.h -- writes the page indexes and the footer of a Parquet file, from metadata of its
 * row groups that are kept until then.
 *
 * The footer has the schema, the places of the row groups and the metadata of column_schema.h.
 * Nothing before it needs to be changed, so a file can be written to a pipe.
 *
 * One thread at a time. Errors: -1 after a message.
 */
#ifndef ROCKSORT_COLUMNS_PARQUET_FILE_H
#define ROCKSORT_COLUMNS_PARQUET_FILE_H

#include "columns/column_bytes.h"
#include "columns/parquet_schema.h"
#include "util/byte_order.h"

/* ---- notes ---- */

/*
 * A note is the compact metadata of a row group, about 10 bytes for a page and 40 for a column,
 * which are spooled until the footer is written (column_bytes.h). Order of calls:
 * row_group_metadata_begin, row_group_metadata_chunk for each leaf of the schema,
 * row_group_metadata_end. Chunks are in the file in this order, each with its dictionary page, if
 * any, and its pages. Notes are read by the process that wrote them.
 */
enum { PARQUET_BOUND_BYTES = 64 };      /* bounds are not written for longer texts */

/* A value in statistics: numbers are little-endian. */
struct parquet_bound {
    uint8_t n_bytes;
    uint8_t bytes[PARQUET_BOUND_BYTES];
};

/* The minimum and the maximum. */
struct parquet_bounds {
    bool are_known;
    struct parquet_bound least, most;
};

/* Less than, equal to or greater than 0, in the order that Parquet defines for the type. */
int parquet_bound_compare(enum parquet_type type, const struct parquet_bound *a,
                          const struct parquet_bound *b);

struct parquet_page {
    uint64_t n_rows, n_bytes;   /* bytes in the file, with the page header */
    uint64_t n_nulls;
    struct parquet_bounds bounds;       /* unknown if all are null */
};

struct parquet_chunk {
    enum parquet_encoding encoding;
    uint64_t n_values, n_nulls; /* both include nulls and empty lists */
    uint64_t raw_bytes, n_bytes;        /* of all pages with headers: uncompressed, stored */
    uint64_t dictionary_bytes;  /* stored size of the dictionary page; 0: none */
    struct parquet_bounds bounds;
    bool has_page_bounds;       /* of each page that is not all null */
    struct parquet_page *pages; /* owned */
    size_t n_pages, pages_room;
};

struct parquet_group {
    uint64_t at;                /* its first byte in the file */
    uint64_t n_rows;
    bool is_sorted;             /* by rname and pos, with nulls last */
};

/* Begin, continue and end a note. begin returns its place in `notes`, which end needs. */
size_t row_group_metadata_begin(struct column_bytes *notes, const struct parquet_group *group);
void row_group_metadata_chunk(struct column_bytes *notes, struct parquet_chunk *chunk);
void row_group_metadata_end(struct column_bytes *notes, size_t place);

/* A note begins with how many bytes follow. */
enum { PARQUET_NOTE_HEAD_BYTES = 4 };

static inline size_t row_group_metadata_bytes(const uint8_t *head)
{
    return get_u32(head);
}

/* Adds n_bytes to the places of the groups in the notes. Returns the number of groups, and adds
   their rows to *n_rows. */
size_t row_group_metadata_move(uint8_t *notes, size_t notes_bytes, uint64_t n_bytes,
                               uint64_t *n_rows);

/* Read what follows the head of a note; and its next chunk, reusing the memory of the pages. Return
   the address of what follows. */
const uint8_t *row_group_metadata_read(const uint8_t *at, struct parquet_group *group);
const uint8_t *row_group_metadata_read_chunk(const uint8_t *at, struct parquet_chunk *chunk);

/* ---- files ---- */

struct parquet_file {
    const char *name;           /* in messages */
    const struct column_schema *schema;
    sam_hdr_t *header;
    bool is_compressed;         /* pages, with zstd */
    const struct footer_spool *notes;   /* of all groups, with places in the file */
    size_t n_groups;
    uint64_t n_rows;
};

/* Refuses a file whose row groups cannot fit into a footer of PARQUET_MOST_FOOTER_BYTES. */
int parquet_file_check(const struct parquet_file *file);

/* Writes what follows the groups, which end at byte `position` of the file, about 1 MiB at a time.
   Stops at the first failure; a sink or spool that fails prints the message. */
int parquet_put_file_end(const struct parquet_file *file, uint64_t position,
                         const struct column_sink *sink);

#endif
