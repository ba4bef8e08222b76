/*
 * column_request.h -- what the user asks of an output of columns.
 */
#ifndef ROCKSORT_COLUMNS_COLUMN_REQUEST_H
#define ROCKSORT_COLUMNS_COLUMN_REQUEST_H

#include "columns/column_schema.h"

enum column_format {
    COLUMN_FORMAT_ARROW,
    COLUMN_FORMAT_ARROW_STREAM, /* read from its begin to its end, as from a pipe */
    COLUMN_FORMAT_PARQUET
};

/* LZ4 is for Arrow only. */
enum column_codec { COLUMN_CODEC_NONE, COLUMN_CODEC_LZ4, COLUMN_CODEC_ZSTD };

struct column_request {
    const char *list;           /* of --columns (column_schema.h); NULL: all */
    enum column_format format;
    enum column_codec codec;
    int level;                  /* of zstd */
};

/* True if the columns depend on which tags the records have. */
bool column_request_needs_census(const struct column_request *request);

/* Makes the schema (column_schema_create). NULL after a message. */
struct column_schema *column_request_schema(const struct column_request *request,
                                            const struct tag_census *census);

#endif
