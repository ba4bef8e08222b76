/*
 * parquet_file.h -- what stands before and after the row groups of a Parquet file, and the notes
 * that it is made from.
 *
 * After the groups come the indexes of pages and the footer: the schema, where the groups are, and
 * the metadata of column_schema.h. Nothing before them must be changed, so a file can be written to
 * a pipe.
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
 * A note is what the footer says of a row group, in few bytes, about 10 a page and 40 a column: it
 * is kept until the file ends (column_bytes.h). It begins with row_group_metadata_begin, has a
 * chunk for each leaf of the schema, and ends with row_group_metadata_end. Chunks follow each other
 * in the file in this order, each with its dictionary page, if it has one, and its pages. Notes are
 * read by the process that wrote them.
 */
enum { PARQUET_BOUND_BYTES = 64 };      /* longer texts are no bounds */

/* A value as statistics have it: numbers in little-endian bytes. */
struct parquet_bound {
    uint8_t n_bytes;
    uint8_t bytes[PARQUET_BOUND_BYTES];
};

/* The least and the greatest value. */
struct parquet_bounds {
    bool are_known;
    struct parquet_bound least, most;
};

/* Less than, equal to or greater than 0, in the order that Parquet defines for the type. */
int parquet_bound_compare(enum parquet_type type, const struct parquet_bound *a,
                          const struct parquet_bound *b);

struct parquet_page {
    uint64_t n_rows, n_bytes;   /* bytes in the file, with the header of the page */
    uint64_t n_nulls;
    struct parquet_bounds bounds;       /* unknown if all are null */
};

struct parquet_chunk {
    enum parquet_encoding encoding;
    uint64_t n_values, n_nulls; /* values: with nulls and empty lists; so are nulls */
    uint64_t raw_bytes, n_bytes;        /* of all pages with their headers: uncompressed, stored */
    uint64_t dictionary_bytes;  /* stored, of the dictionary page; 0: there is none */
    struct parquet_bounds bounds;
    bool has_page_bounds;       /* of each page that is not all null */
    struct parquet_page *pages; /* owned */
    size_t n_pages, pages_room;
};

struct parquet_group {
    uint64_t at;                /* its first byte */
    uint64_t n_rows;
    bool is_sorted;             /* by rname and pos, with nulls last */
};

/* Begins a note. Returns its place in `notes`. */
size_t row_group_metadata_begin(struct column_bytes *notes, const struct parquet_group *group);
void row_group_metadata_chunk(struct column_bytes *notes, struct parquet_chunk *chunk);
void row_group_metadata_end(struct column_bytes *notes, size_t place);

/* A note begins with how many bytes follow. */
enum { PARQUET_NOTE_HEAD_BYTES = 4 };

static inline size_t row_group_metadata_bytes(const uint8_t *head)
{
    return get_u32(head);
}

/* Moves the groups of the notes by n_bytes in the file. Returns how many groups there are, and adds
   their rows to *n_rows. */
size_t row_group_metadata_move(uint8_t *notes, size_t notes_bytes, uint64_t n_bytes,
                               uint64_t *n_rows);

/* Read what follows the head of a note, and its next chunk, whose pages' memory is used again.
   Return what follows: after the last chunk the next note. */
const uint8_t *row_group_metadata_read(const uint8_t *at, struct parquet_group *group);
const uint8_t *row_group_metadata_read_chunk(const uint8_t *at, struct parquet_chunk *chunk);

/* ---- files ---- */

struct parquet_file {
    const char *name;           /* in messages */
    const struct column_schema *schema;
    sam_hdr_t *header;
    bool is_compressed;         /* its pages, by zstd */
    const struct footer_spool *notes;   /* of all groups, with their places in the file */
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
