/*
 * arrow_format.h -- numbers and names of Arrow IPC that those who write and those who read need: of
 * Message.fbs, Schema.fbs and File.fbs, version 5 of the metadata.
 */
#ifndef ROCKSORT_COLUMNS_ARROW_FORMAT_H
#define ROCKSORT_COLUMNS_ARROW_FORMAT_H

enum { ARROW_METADATA_VERSION = 4 };    /* V5 */

enum { ARROW_HEADER_SCHEMA = 1, ARROW_HEADER_DICTIONARY = 2, ARROW_HEADER_BATCH = 3 };

enum {
    ARROW_TYPE_NULL = 1,
    ARROW_TYPE_INT = 2,
    ARROW_TYPE_FLOAT = 3,
    ARROW_TYPE_BINARY = 4,
    ARROW_TYPE_UTF8 = 5,
    ARROW_TYPE_LIST = 12,
    ARROW_TYPE_STRUCT = 13,
    ARROW_TYPE_UNION = 14,
    ARROW_TYPE_FIXED_LIST = 16,
    ARROW_TYPE_MAP = 17,
    ARROW_TYPE_LARGE_BINARY = 19,
    ARROW_TYPE_LARGE_UTF8 = 20,
    ARROW_TYPE_LARGE_LIST = 21,
    ARROW_TYPE_RUN_END = 22,
    ARROW_TYPE_BINARY_VIEW = 23,
    ARROW_TYPE_UTF8_VIEW = 24,
    ARROW_TYPE_LIST_VIEW = 25,
    ARROW_TYPE_LARGE_LIST_VIEW = 26     /* the last one of 2025 */
};

enum { ARROW_PRECISION_SINGLE = 1, ARROW_PRECISION_DOUBLE = 2 };
enum { ARROW_UNION_SPARSE = 0 };
enum { ARROW_CODEC_LZ4 = 0, ARROW_CODEC_ZSTD = 1 };

#define ARROW_MAGIC "ARROW1"

#endif
