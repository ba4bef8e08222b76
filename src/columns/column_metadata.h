/*
 * column_metadata.h -- what the schema of a file of columns says besides the columns: their version,
 * and the text of the SAM header.
 *
 * Metadata are UTF-8. A header that is not, an old one in Latin-1 as a rule, is written as if each
 * of its bytes were a character of Latin-1, and a third pair says so: scripts/columns2sam.py undoes
 * it.
 *
 * Any thread.
 */
#ifndef ROCKSORT_COLUMNS_COLUMN_METADATA_H
#define ROCKSORT_COLUMNS_COLUMN_METADATA_H

#include <htslib/sam.h>

#define COLUMN_VERSION_KEY "rocksort_columns"
#define COLUMN_HEADER_KEY "sam_header"
#define COLUMN_ENCODING_KEY "sam_header_encoding"
#define COLUMN_LATIN "latin-1"

struct column_metadata {
    unsigned n;
    struct {
        const char *key, *value;
    } pairs[3];
    char *latin;
};

/* The values are valid until the header changes, or the metadata are released. */
void column_metadata_make(struct column_metadata *metadata, sam_hdr_t *header);
void column_metadata_release(struct column_metadata *metadata);

#endif
