/*
 * parquet_footer.h -- what the end of a Parquet file says: which columns there are, how they are
 * stored, and where. Nothing that is read is believed.
 *
 * Columns that another program has written again may be stored in other ways than rocksort does it:
 * integers of other widths, numbers with a fraction of 64 bits, lists of structs in place of maps.
 * A schema is made as if they were rocksort's; who reads values checks that they fit. Columns that
 * no record needs are left out.
 *
 * Ownership: parquet_footer_release frees what the footer has. One thread at a time.
 */
#ifndef ROCKSORT_COLUMNS_PARQUET_FOOTER_H
#define ROCKSORT_COLUMNS_PARQUET_FOOTER_H

#include "columns/parquet_schema.h"

/* How a leaf of the schema is stored. A value is repeated in at most one way: lists of lists are no
   columns. */
struct parquet_stored_leaf {
    unsigned column;            /* its number in the schema */
    unsigned chunk;             /* the number of its chunk in a row group */
    enum parquet_part part;
    enum column_type value;     /* of one value: of the column, or of its list */
    enum parquet_type type;
    bool is_unsigned, is_repeated;
    unsigned max_definition;    /* of a value that is there */
    unsigned item_definition;   /* of an element that is there, but may be null */
};

struct parquet_stored_chunk {
    uint64_t at, n_bytes;       /* within the file */
    uint64_t n_values;          /* with nulls */
    uint64_t raw_bytes;         /* decompressed, as it says */
    int codec;                  /* of those of the leaves: one that is read */
};

struct parquet_stored_group {
    uint64_t n_rows;
    uint64_t n_bytes, raw_bytes;        /* of the chunks of all leaves */
};

struct parquet_footer {
    char *header;               /* the text of the SAM header; NULL: the file has lost it */
    struct column_schema *schema;       /* all that records need */
    char *unknown;              /* the name of a column that no record has, or NULL */
    char *problem;              /* a text that parquet_footer_read has made, or NULL */
    struct parquet_stored_leaf *leaves;
    unsigned n_leaves;
    struct parquet_stored_group *groups;
    size_t n_groups;
    uint64_t n_rows;            /* of all groups */
    struct parquet_stored_chunk *chunks;        /* of all groups, n_chunks each */
    unsigned n_chunks;
};

/* Reads the footer: bytes that ended at byte `file_bytes` of the file, but for the 8 bytes that end
   each file. Returns NULL, or what is wrong: a text that is valid until the footer is released,
   which must be done in any case. */
const char *parquet_footer_read(struct parquet_footer *footer, const uint8_t *bytes, size_t n_bytes,
                                uint64_t file_bytes);

void parquet_footer_release(struct parquet_footer *footer);

#endif
