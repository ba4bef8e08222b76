/*
 * column_schema.h -- which columns the output has, in which order, and of which types.
 *
 * doc/columns.md describes them for users. Two columns serve the way back to BAM: `tags`, a map with
 * every tag that has no column of its own, and `tag_types`, which says for each record in which
 * order its tags stood and of which types of BAM they were.
 *
 * Ownership: the caller destroys the schema; it borrows nothing. It does not change once it is made:
 * any thread may look at it.
 */
#ifndef ROCKSORT_COLUMNS_COLUMN_SCHEMA_H
#define ROCKSORT_COLUMNS_COLUMN_SCHEMA_H

#include "columns/column_type.h"
#include "columns/tag_census.h"

/* Goes into the metadata of each file. It changes when a reader of today's files would not
   understand those of tomorrow. */
#define COLUMN_SCHEMA_VERSION "1"

enum column_field {
    FIELD_QNAME,
    FIELD_FLAG,
    FIELD_RNAME,
    FIELD_POS,
    FIELD_END,
    FIELD_MAPQ,
    FIELD_CIGAR,
    FIELD_RNEXT,
    FIELD_PNEXT,
    FIELD_TLEN,
    FIELD_SEQ,
    FIELD_QUAL,
    FIELD_TAG_TYPES,
    FIELD_TAGS,
    N_COLUMN_FIELDS,
    FIELD_TAG = N_COLUMN_FIELDS         /* one tag */
};

enum { NO_COLUMN = 0xffff };

/* Each column of each batch takes memory and a part of the footer, whether or not it has values. */
enum { COLUMN_SCHEMA_MOST = 256 };  /* columns that a list may name */

struct column {
    char name[12];
    enum column_field field;
    enum column_type type;
};

struct column_schema {
    struct column *columns;
    unsigned n_columns;
    uint16_t by_field[N_COLUMN_FIELDS]; /* number of the column, or NO_COLUMN */
    uint16_t by_tag[1 << 14];           /* the same, for two letters of 7 bits */
};

/*
 * Makes the schema of a list of columns that --columns takes: names, separated by commas, of the
 * fields above and of tags; a tag that is no standard one with its type, as XS:i or XM:B:c. `all`
 * stands for all fields and each standard tag that the census has seen. A list of NULL is `all`;
 * without a census all standard tags count as seen. Returns NULL and a static text in *problem, and
 * the offending part of the list in *part and *part_bytes, if the list is wrong or has more than
 * COLUMN_SCHEMA_MOST columns.
 */
struct column_schema *column_schema_create(const char *list, const struct tag_census *census,
                                           const char **problem, const char **part,
                                           size_t *part_bytes);

/* NULL is accepted. */
void column_schema_destroy(struct column_schema *schema);

/* The column of a tag, or NO_COLUMN. */
static inline unsigned column_schema_of_tag(const struct column_schema *schema,
                                            const uint8_t letters[2])
{
    return schema->by_tag[(letters[0] & 0x7fu) << 7 | (letters[1] & 0x7fu)];
}

/* Bytes that a row takes in which all is null. */
size_t column_schema_null_bytes(const struct column_schema *schema);

/* True if some column has names of references. */
bool column_schema_has_references(const struct column_schema *schema);

#endif
