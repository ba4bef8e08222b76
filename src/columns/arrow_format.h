/*
 * arrow_format.h -- numbers and names of Arrow IPC that those who write and those who read need: of
 * Message.fbs, Schema.fbs and File.fbs, version 5 of the metadata.
 */
#ifndef ROCKSORT_COLUMNS_ARROW_FORMAT_H
#define ROCKSORT_COLUMNS_ARROW_FORMAT_H

enum { ARROW_METADATA_VERSION = 4 };    /* V5 */

enum { ARROW_HEADER_SCHEMA = 1, ARROW_HEADER_DICTIONARY = 2, ARROW_HEADER_BATCH = 3 };

enum {
    ARROW_TYPE_INT = 2,
    ARROW_TYPE_FLOAT = 3,
    ARROW_TYPE_UTF8 = 5,
    ARROW_TYPE_LIST = 12,
    ARROW_TYPE_STRUCT = 13,
    ARROW_TYPE_MAP = 17
};

enum { ARROW_PRECISION_SINGLE = 1 };
enum { ARROW_CODEC_LZ4 = 0, ARROW_CODEC_ZSTD = 1 };

#define ARROW_MAGIC "ARROW1"

#endif
