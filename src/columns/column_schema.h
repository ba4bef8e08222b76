/*
 * column_schema.h -- the schema of a columnar output: which columns it has, in which order and of
 * which types, from the list in --columns; and how BAM tags become values of these types.
 *
 * doc/columns.md describes the columns for users. Two of them are needed to convert back to BAM:
 * `tags`, a map with every tag that has no column of its own, and `tag_types`, the order and the
 * BAM types of the tags of a record.
 *
 * Ownership: the caller destroys the schema; it keeps no pointers to other memory. It never
 * changes, so any thread may use it.
 */
#ifndef ROCKSORT_COLUMNS_COLUMN_SCHEMA_H
#define ROCKSORT_COLUMNS_COLUMN_SCHEMA_H

#include "bam/bam_aux.h"
#include "bam/record_observer.h"

#include <stdatomic.h>

/* ---- types ---- */

/* INT8 to FLOAT32 are in the same order as their lists. */
enum column_type {
    COLUMN_TEXT,                /* UTF-8, offsets of 32 bits */
    COLUMN_CHAR,                /* a text of one character */
    COLUMN_INT64,
    COLUMN_REFERENCE,           /* reference name: a dictionary with indexes of 32 bits */
    COLUMN_MAP,                 /* from texts to texts */
    COLUMN_INT8,                /* INT8, INT16 and UINT32 are only types of elements */
    COLUMN_UINT8,
    COLUMN_INT16,
    COLUMN_UINT16,
    COLUMN_INT32,
    COLUMN_UINT32,
    COLUMN_FLOAT32,
    COLUMN_INT8_LIST,
    COLUMN_UINT8_LIST,
    COLUMN_INT16_LIST,
    COLUMN_UINT16_LIST,
    COLUMN_INT32_LIST,
    COLUMN_UINT32_LIST,
    COLUMN_FLOAT32_LIST
};

static inline bool column_type_is_text(enum column_type type)
{
    return type == COLUMN_TEXT || type == COLUMN_CHAR;
}

static inline bool column_type_is_list(enum column_type type)
{
    return type >= COLUMN_INT8_LIST;
}

/* The type of a value, or of an element of a list. */
static inline enum column_type column_type_element(enum column_type type)
{
    return column_type_is_list(type) ? type - COLUMN_INT8_LIST + COLUMN_INT8 : type;
}

/* The format of values, or of the elements of a list; for references, of dictionary indexes. */
struct column_number {
    uint8_t n_bytes;            /* 0 for texts and maps */
    bool is_float, is_signed;
};

struct column_number column_type_number(enum column_type type);

/* Bytes of a value, or of an element of a list; 0 for texts and maps. */
static inline size_t column_type_bytes(enum column_type type)
{
    return column_type_number(type).n_bytes;
}

/* True if this is a type of array elements in BAM: one of cCsSiIf. */
bool column_type_is_element(uint8_t letter);

/* True if a column of this type can hold the tag. */
bool column_type_holds(enum column_type type, const struct bam_aux *aux);

/* ---- columns ---- */

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

struct column {
    char name[12];
    enum column_field field;
    enum column_type type;
};

/* The tags that the SAM specification defines, and their columns, in the order of their names. */
extern const struct column standard_tags[];
extern const unsigned n_standard_tags;

/* Returns NULL if the specification does not define a tag with these two letters. */
const struct column *standard_tag_find(const char letters[2]);

enum { NO_COLUMN = 0xffff };

enum { TAG_PLACES = 1 << 14 };  /* two letters of 7 bits */

static inline unsigned tag_place(const void *letters)
{
    const uint8_t *at = letters;
    return (at[0] & 0x7fu) << 7 | (at[1] & 0x7fu);
}

/* Collects which tags the input has. Any thread may add; read it when all have ended. */
struct tag_schema_scan {
    struct record_observer base;        /* an observer of the input, which destroys it */
    _Atomic uint64_t seen[TAG_PLACES / 64];
};

struct tag_schema_scan *tag_schema_scan_create(void);

/* True if a record has a tag with these two letters. */
bool tag_schema_scan_has(const struct tag_schema_scan *tag_scan, const char tag[2]);

struct column_schema {
    struct column *columns;
    unsigned n_columns;
    uint16_t by_field[N_COLUMN_FIELDS]; /* number of the column, or NO_COLUMN */
    uint16_t by_tag[TAG_PLACES];        /* the same */
};

/*
 * Makes a schema from the list of --columns: comma-separated names of fields and tags. A tag that
 * is not a standard one needs a type, as in XS:i or XM:B:c. `all` means all fields and each
 * standard tag that the tag_scan has seen. list NULL: `all`; tag_scan NULL: all standard tags count
 * as seen. Returns NULL after a message.
 */
struct column_schema *column_schema_create(const char *list,
                                           const struct tag_schema_scan *tag_scan);

/* True if the columns depend on the tags of the records: list NULL, or it contains `all`. */
bool column_schema_needs_tag_scan(const char *list);

/* Accepts NULL. */
void column_schema_destroy(struct column_schema *schema);

/* The column of a tag, or NO_COLUMN. */
static inline unsigned column_schema_of_tag(const struct column_schema *schema,
                                            const uint8_t letters[2])
{
    return schema->by_tag[tag_place(letters)];
}

/* The size of a row in which every value is null. */
size_t column_schema_null_bytes(const struct column_schema *schema);

/* True if a column has reference names. */
bool column_schema_has_references(const struct column_schema *schema);

/* ---- outputs ---- */

enum column_format {
    COLUMN_FORMAT_ARROW,
    COLUMN_FORMAT_ARROW_STREAM, /* without footer, for pipes */
    COLUMN_FORMAT_PARQUET
};

/* LZ4 is for Arrow only. */
enum column_codec { COLUMN_CODEC_NONE, COLUMN_CODEC_LZ4, COLUMN_CODEC_ZSTD };

struct column_request {
    const char *list;           /* of --columns; NULL: all */
    enum column_format format;
    enum column_codec codec;
    int level;                  /* of zstd */
};

/*
 * The metadata of a file: the version of the schema and the text of the SAM header. They must be
 * UTF-8. If the header is not, it is converted from Latin-1 to UTF-8, and a third pair says so;
 * scripts/columns2sam.py undoes that.
 */
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
