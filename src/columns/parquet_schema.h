/*
 * parquet_schema.h -- maps columns to Parquet: the stored leaves of each column, the schema of a
 * file, and the field numbers and enum values of parquet.thrift.
 *
 * Values are stored in the leaves of the schema: a list has one leaf (its elements), a map has two
 * (keys and values). Each stored value has two levels (Parquet format, "Nested Encoding"): the
 * definition level says what is null or empty, the repetition level whether the value continues the
 * row. All columns may have nulls.
 *
 * Pure. Any thread.
 */
#ifndef ROCKSORT_COLUMNS_PARQUET_SCHEMA_H
#define ROCKSORT_COLUMNS_PARQUET_SCHEMA_H

#include "columns/column_schema.h"
#include "columns/thrift_compact.h"

/* ---- numbers of parquet.thrift ---- */

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

#define PARQUET_MAGIC "PAR1"

enum { PARQUET_MAGIC_BYTES = 4 };

enum { PARQUET_CODEC_NONE = 0, PARQUET_CODEC_ZSTD = 6 };

/* FileMetaData */
enum { FILE_VERSION = 1, FILE_SCHEMA, FILE_ROWS, FILE_GROUPS, FILE_METADATA, FILE_CREATED_BY,
       FILE_ORDERS };
enum { PAIR_KEY = 1, PAIR_VALUE };

/* SchemaElement, ConvertedType (for readers older than 2018), LogicalType and IntType */
enum { ELEMENT_TYPE = 1, ELEMENT_REPETITION = 3, ELEMENT_NAME, ELEMENT_CHILDREN, ELEMENT_CONVERTED,
       ELEMENT_LOGICAL = 10 };
enum { REQUIRED = 0, OPTIONAL, REPEATED };
enum { CONVERTED_UTF8 = 0, CONVERTED_MAP = 1, CONVERTED_LIST = 3 };
enum { CONVERTED_UINT8 = 11, CONVERTED_UINT16, CONVERTED_UINT32 };
enum { CONVERTED_INT8 = 15, CONVERTED_INT16 };
enum { LOGICAL_STRING = 1, LOGICAL_MAP = 2, LOGICAL_LIST = 3, LOGICAL_INTEGER = 10 };
enum { INTEGER_BITS = 1, INTEGER_IS_SIGNED };

/* RowGroup, ColumnChunk, ColumnMetaData, Statistics, BoundaryOrder */
enum { GROUP_CHUNKS = 1, GROUP_RAW_BYTES, GROUP_ROWS, GROUP_SORTING, GROUP_AT, GROUP_BYTES,
       GROUP_ORDINAL };
enum { CHUNK_AT = 2, CHUNK_METADATA, CHUNK_OFFSETS_AT, CHUNK_OFFSETS_BYTES, CHUNK_BOUNDS_AT,
       CHUNK_BOUNDS_BYTES };
enum { COLUMN_PHYSICAL = 1, COLUMN_ENCODINGS, COLUMN_PATH, COLUMN_CODEC, COLUMN_VALUES,
       COLUMN_RAW_BYTES, COLUMN_STORED_BYTES, COLUMN_DATA_AT = 9, COLUMN_DICTIONARY_AT = 11,
       COLUMN_STATISTICS };
enum { STATISTICS_NULLS = 3, STATISTICS_MOST = 5, STATISTICS_LEAST, STATISTICS_MOST_IS_VALUE,
       STATISTICS_LEAST_IS_VALUE };
enum { ORDER_NONE = 0, ORDER_ASCENDING = 1 };

/* PageHeader */
enum { PAGE_DATA = 0, PAGE_DICTIONARY = 2 };
enum { HEADER_TYPE = 1, HEADER_RAW_BYTES, HEADER_BYTES, HEADER_CRC, HEADER_DATA,
       HEADER_DICTIONARY = 7 };

/* DataPageHeader and DictionaryPageHeader */
enum { DATA_VALUES = 1, DATA_ENCODING, DATA_DEFINITIONS, DATA_REPETITIONS };

/* ---- leaves ---- */

enum parquet_part { PART_VALUES, PART_KEYS, PART_MAPPED };

struct parquet_leaf {
    unsigned column;            /* its number in the schema */
    enum column_field field;
    enum parquet_part part;
    enum column_type value;     /* of a value of the column, or of an element of a list */
    enum parquet_type type;
    bool is_repeated;
    unsigned max_definition;    /* definition level of a value that is not null */
};

/* Returns the leaves of all columns, in order; the caller frees them. */
struct parquet_leaf *parquet_leaves(const struct column_schema *schema, unsigned *n);

/* Writes the schema: a list of SchemaElement. */
void parquet_put_schema(struct thrift_writer *writer, int field,
                        const struct column_schema *schema);

/* Writes the path of the leaf in the schema: a list of names. */
void parquet_put_path(struct thrift_writer *writer, int field, const struct column_schema *schema,
                      const struct parquet_leaf *leaf);

#endif
