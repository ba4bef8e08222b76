/*
 * parquet_schema.h -- what the columns are in Parquet: which values are stored for each, and the
 * schema of a file.
 *
 * A column of lists or maps is stored as its elements, or as its keys and its values: the leaves of
 * the schema. Two levels say for each stored value where it belongs (Parquet format, "Nested
 * Encoding"): the definition level, what is there, and the repetition level, whether the value
 * continues the row. All columns may have nulls.
 *
 * Pure. Any thread.
 */
#ifndef ROCKSORT_COLUMNS_PARQUET_SCHEMA_H
#define ROCKSORT_COLUMNS_PARQUET_SCHEMA_H

#include "columns/column_schema.h"
#include "columns/thrift_compact.h"

/* The numbers are those of Parquet's parquet.thrift, here and below. */
enum parquet_type {
    PARQUET_INT32 = 1,
    PARQUET_INT64 = 2,
    PARQUET_FLOAT = 4,
    PARQUET_BYTE_ARRAY = 6
};

enum parquet_encoding {
    PARQUET_PLAIN = 0,
    PARQUET_RLE = 3,
    PARQUET_DELTA = 5,          /* DELTA_BINARY_PACKED */
    PARQUET_DELTA_LENGTH = 6,   /* DELTA_LENGTH_BYTE_ARRAY */
    PARQUET_DICTIONARY = 8      /* RLE_DICTIONARY */
};

enum parquet_part { PART_VALUES, PART_KEYS, PART_MAPPED };

struct parquet_leaf {
    unsigned column;            /* its number in the schema */
    enum column_field field;
    enum parquet_part part;
    enum column_type value;     /* of one value: of the column, or of an element of a list */
    enum parquet_type type;
    bool is_repeated;
    unsigned max_definition;    /* definition level of a value that is there */
};

/* The leaves of all columns, in their order; the caller frees them. */
struct parquet_leaf *parquet_leaves(const struct column_schema *schema, unsigned *n);

/* Writes the schema: a list of SchemaElement. */
void parquet_put_schema(struct thrift_writer *writer, int field,
                        const struct column_schema *schema);

/* Writes where the leaf is in the schema: a list of names. */
void parquet_put_path(struct thrift_writer *writer, int field, const struct column_schema *schema,
                      const struct parquet_leaf *leaf);

#endif
