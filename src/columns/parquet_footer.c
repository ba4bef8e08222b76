/* parquet_footer.c -- see parquet_footer.h. */
#include "columns/parquet_footer.h"

#include "columns/column_metadata.h"
#include "columns/parquet_codec.h"
#include "columns/parquet_format.h"
#include "columns/parquet_values.h"
#include "columns/thrift_reader.h"
#include "util/xalloc.h"

#include <stdlib.h>

enum { MOST_COLUMNS = 8192, MOST_ELEMENTS = 5 * MOST_COLUMNS, MOST_TREE_DEPTH = 64 };

static const char bad_schema[] = "its schema is damaged, or has too many columns";

struct text {
    const char *at;             /* NULL: there is none */
    size_t n;
};

static bool is_text(struct text text, const char *what)
{
    return text.at && text.n == strlen(what) && memcmp(text.at, what, text.n) == 0;
}

void parquet_footer_release(struct parquet_footer *footer)
{
    free(footer->header);
    free(footer->unknown);
    free(footer->problem);
    column_schema_destroy(footer->schema);
    free(footer->leaves);
    free(footer->groups);
    free(footer->chunks);
    *footer = (struct parquet_footer){0};
}

/* A footer that is being read. */
struct footer_reader {
    struct thrift_reader thrift;
    struct parquet_footer *footer;
    uint64_t end;               /* of what can be pages */
    const char *problem;        /* the first; NULL: none but perhaps damage */
    struct element *elements;
    size_t n_elements;
    struct text version, header, encoding;
    uint64_t n_rows;
    unsigned n_chunks;          /* of each group, as the groups have them */
};

static void complain(struct footer_reader *reader, const char *problem)
{
    if (!reader->problem) reader->problem = problem;
}

static struct text read_text(struct thrift_reader *thrift, const struct thrift_field *field)
{
    size_t n;
    const uint8_t *at = thrift_read_bytes(thrift, field, &n);
    return (struct text){(const char *)at, n};
}

/* ---- the elements of the schema ---- */

struct element {
    struct text name;
    int64_t type, repetition, n_children, converted;
    bool has_type, has_converted;
    bool has_logical;           /* a LogicalType of any kind */
    int64_t n_bits;             /* of an integer by its LogicalType or ConvertedType; 0: none */
    bool is_signed;
};

/* LogicalType */
static void read_logical(struct thrift_reader *thrift, const struct thrift_field *field,
                         struct element *element)
{
    struct thrift_field kind, detail;
    if (!thrift_enter(thrift, field)) return;
    while (thrift_next(thrift, &kind)) {
        element->has_logical = true;
        if (kind.number != LOGICAL_INTEGER) {
            thrift_skip(thrift, &kind);
            continue;
        }
        if (!thrift_enter(thrift, &kind)) return;
        while (thrift_next(thrift, &detail)) {
            if (detail.number == INTEGER_BITS)
                element->n_bits = thrift_read_integer(thrift, &detail);
            else if (detail.number == INTEGER_IS_SIGNED)
                element->is_signed = thrift_read_bool(thrift, &detail);
            else
                thrift_skip(thrift, &detail);
        }
    }
}

/* The bits of an integer by its ConvertedType, unless its LogicalType has told. */
static void apply_converted(struct element *element)
{
    static const uint8_t bits[] = {8, 16, 32, 64};
    if (!element->has_converted || element->has_logical) return;
    element->is_signed = element->converted >= CONVERTED_INT8;
    if (element->converted >= CONVERTED_UINT8 && element->converted <= CONVERTED_INT64)
        element->n_bits = bits[(element->converted - CONVERTED_UINT8) % 4];
}

static struct element read_element(struct thrift_reader *thrift)
{
    struct element element = {.repetition = REQUIRED};
    struct thrift_field field;
    if (!thrift_enter_item(thrift)) return element;
    while (thrift_next(thrift, &field)) {
        switch (field.number) {
        case ELEMENT_TYPE:
            element.type = thrift_read_integer(thrift, &field);
            element.has_type = true;
            break;
        case ELEMENT_REPETITION: element.repetition = thrift_read_integer(thrift, &field); break;
        case ELEMENT_NAME: element.name = read_text(thrift, &field); break;
        case ELEMENT_CHILDREN: element.n_children = thrift_read_integer(thrift, &field); break;
        case ELEMENT_CONVERTED:
            element.converted = thrift_read_integer(thrift, &field);
            element.has_converted = true;
            break;
        case ELEMENT_LOGICAL: read_logical(thrift, &field, &element); break;
        default: thrift_skip(thrift, &field);
        }
    }
    apply_converted(&element);
    return element;
}

static void read_elements(struct footer_reader *reader, const struct thrift_field *field)
{
    size_t n = thrift_enter_list(&reader->thrift, field, THRIFT_STRUCT);
    if (reader->elements || n > MOST_ELEMENTS) {
        complain(reader, bad_schema);
        return;
    }
    reader->elements = xcalloc(n + 1, sizeof *reader->elements);
    reader->n_elements = n;
    for (size_t i = 0; i < n; i++) reader->elements[i] = read_element(&reader->thrift);
}

/* ---- columns ---- */

enum { MOST_LEAVES = 2 };       /* of a column */

/* What lies below an element of the root. */
struct shape {
    struct {
        const struct element *element;
        struct parquet_stored_leaf leaf;
    } leaves[MOST_LEAVES];
    unsigned n_leaves;          /* all; the first ones are above */
    bool is_nested;             /* lists of lists, which no column has */
};

/* Goes through an element and those below it. Returns the number of the one after them, or 0. */
static size_t walk(const struct footer_reader *reader, size_t i, unsigned depth,
                   struct parquet_stored_leaf above, struct shape *shape)
{
    if (i >= reader->n_elements || depth > MOST_TREE_DEPTH) return 0;
    const struct element *element = &reader->elements[i++];
    if (element->repetition != REQUIRED) above.max_definition++;
    if (element->repetition == REPEATED) {
        if (above.is_repeated || depth == 0) shape->is_nested = true;
        above.is_repeated = true;
        above.item_definition = above.max_definition;
    }
    if (element->has_type) {
        if (shape->n_leaves++ >= MOST_LEAVES) return i;
        above.type = (enum parquet_type)element->type;
        above.is_unsigned = element->n_bits > 0 && !element->is_signed;
        shape->leaves[shape->n_leaves - 1].element = element;
        shape->leaves[shape->n_leaves - 1].leaf = above;
        return i;
    }
    for (int64_t k = 0; k < element->n_children && i > 0; k++)
        i = walk(reader, i, depth + 1, above, shape);
    return i;
}

/* The type that a tag's column has if these are its values. Returns false if there is none. */
static bool type_of_values(const struct element *element, bool is_list, enum column_type *type)
{
    switch (element->type) {
    case PARQUET_BYTE_ARRAY: *type = COLUMN_TEXT; return !is_list;
    case PARQUET_FLOAT:
    case PARQUET_DOUBLE: *type = is_list ? COLUMN_FLOAT32_LIST : COLUMN_FLOAT32; return true;
    case PARQUET_INT32:
    case PARQUET_INT64: break;
    default: return false;
    }
    bool is_annotated = element->has_logical || element->has_converted;
    if (is_annotated && element->n_bits == 0) return false;     /* a date, say */
    *type = COLUMN_INT64;
    if (!is_list) return true;
    /* The letter of BAM for the elements is known by their type alone. */
    int64_t n_bits = element->n_bits ? element->n_bits : element->type == PARQUET_INT64 ? 64 : 32;
    bool is_signed = element->n_bits == 0 || element->is_signed;
    for (*type = COLUMN_INT8_LIST; *type < COLUMN_FLOAT32_LIST; ++*type) {
        const struct column_number number = column_type_number(*type);
        if (8 * number.n_bytes == n_bits && number.is_signed == is_signed) return true;
    }
    return false;
}

/* True if the values can be those of a field of this type, if they fit. */
static bool can_become(const struct shape *shape, enum column_type type)
{
    enum column_type is;
    bool is_map = type == COLUMN_MAP;
    bool has_texts = is_map || column_type_is_text(type) || type == COLUMN_REFERENCE;
    if (shape->n_leaves != (is_map ? 2u : 1u) || shape->is_nested) return false;
    for (unsigned i = 0; i < shape->n_leaves; i++) {
        const struct parquet_stored_leaf *leaf = &shape->leaves[i].leaf;
        if (leaf->is_repeated != is_map ||
            !type_of_values(shape->leaves[i].element, false, &is) ||
            is != (has_texts ? COLUMN_TEXT : COLUMN_INT64))
            return false;
    }
    return true;
}

/* Tells keys from values of a map. */
static bool find_parts(struct shape *shape)
{
    for (unsigned i = 0; i < 2; i++) {
        bool is_key = is_text(shape->leaves[i].element->name, "key");
        if (!is_key && !is_text(shape->leaves[i].element->name, "value")) return false;
        shape->leaves[i].leaf.part = is_key ? PART_KEYS : PART_MAPPED;
        shape->leaves[i].leaf.value = COLUMN_TEXT;
    }
    return shape->leaves[0].leaf.part != shape->leaves[1].leaf.part;
}

/* Finds out what the column of the file is. Returns 1, 0 if it is not read, or -1 if its type
   cannot be read. */
static int read_column(struct footer_reader *reader, struct shape *shape, struct text name,
                       struct column *column)
{
    struct parquet_footer *footer = reader->footer;
    struct parquet_stored_leaf *first = &shape->leaves[0].leaf;
    enum column_role role = column_schema_role(name.at, name.n, column);
    if (role == COLUMN_IS_UNKNOWN && !footer->unknown)
        footer->unknown = xasprintf("%.*s", (int)name.n, name.at);
    if (role != COLUMN_IS_READ) return 0;
    bool can_read = column->field == FIELD_TAG
                        ? shape->n_leaves == 1 && !shape->is_nested &&
                              type_of_values(shape->leaves[0].element, first->is_repeated,
                                             &column->type)
                        : can_become(shape, column->type);
    first->value = column->type;
    if (can_read && (column->type != COLUMN_MAP || find_parts(shape))) return 1;
    footer->problem = column_schema_wrong_type(name.at, name.n);
    return -1;
}

/* Makes the schema and the leaves of the elements. */
static const char *make_schema(struct footer_reader *reader)
{
    struct parquet_footer *footer = reader->footer;
    if (reader->n_elements == 0) return parquet_damaged;
    int64_t n = reader->elements[0].n_children;
    if (n < 0 || n > MOST_COLUMNS || (size_t)n >= reader->n_elements) return bad_schema;
    struct column *columns = xcalloc((size_t)n + 1, sizeof *columns);
    footer->leaves = xcalloc(MOST_LEAVES * (size_t)n + 1, sizeof *footer->leaves);
    const char *problem = NULL;
    size_t at = 1;
    unsigned n_columns = 0;
    for (unsigned i = 0; i < (unsigned)n && !problem; i++) {
        struct shape shape = {0};
        const struct element *element = &reader->elements[at < reader->n_elements ? at : 0];
        at = walk(reader, at, 0, (struct parquet_stored_leaf){.column = n_columns}, &shape);
        int r = -1;
        if (at > 0 && element->name.at)
            r = read_column(reader, &shape, element->name, &columns[n_columns]);
        if (r < 0) problem = footer->problem ? footer->problem : bad_schema;
        for (unsigned k = 0; k < shape.n_leaves && r > 0; k++) {
            shape.leaves[k].leaf.chunk = footer->n_chunks + k;
            footer->leaves[footer->n_leaves++] = shape.leaves[k].leaf;
        }
        footer->n_chunks += shape.n_leaves;
        n_columns += r > 0;
    }
    if (!problem && at != reader->n_elements) problem = bad_schema;
    if (!problem) footer->schema = column_schema_of(columns, n_columns, &footer->problem);
    free(columns);
    if (footer->schema) footer->problem = column_schema_problem(footer->schema);
    return problem ? problem : footer->problem;
}

/* ---- groups ---- */

/* ColumnMetaData */
static void read_chunk_metadata(struct footer_reader *reader, const struct thrift_field *of,
                                struct parquet_stored_chunk *chunk)
{
    struct thrift_reader *thrift = &reader->thrift;
    struct thrift_field field;
    int64_t data_at = -1, dictionary_at = 0, n_bytes = -1, n_values = -1, raw_bytes = 0, codec = -1;
    if (!thrift_enter(thrift, of)) return;
    while (thrift_next(thrift, &field)) {
        switch (field.number) {
        case COLUMN_CODEC: codec = thrift_read_integer(thrift, &field); break;
        case COLUMN_VALUES: n_values = thrift_read_integer(thrift, &field); break;
        case COLUMN_RAW_BYTES: raw_bytes = thrift_read_integer(thrift, &field); break;
        case COLUMN_STORED_BYTES: n_bytes = thrift_read_integer(thrift, &field); break;
        case COLUMN_DATA_AT: data_at = thrift_read_integer(thrift, &field); break;
        case COLUMN_DICTIONARY_AT: dictionary_at = thrift_read_integer(thrift, &field); break;
        default: thrift_skip(thrift, &field);
        }
    }
    /* Some programs write that a dictionary that is not there is at byte 0. */
    int64_t at = dictionary_at > 0 && dictionary_at < data_at ? dictionary_at : data_at;
    if (n_values == 0) at = n_bytes = 0;        /* whatever is said of its pages */
    bool is_inside = n_bytes >= 0 && at >= 0 && (uint64_t)n_bytes <= reader->end &&
                     (uint64_t)at <= reader->end - (uint64_t)n_bytes;
    if (thrift->damaged || n_values < 0 || raw_bytes < 0 || !is_inside) {
        complain(reader, parquet_damaged);
        return;
    }
    *chunk = (struct parquet_stored_chunk){
        .at = (uint64_t)at, .n_bytes = (uint64_t)n_bytes, .n_values = (uint64_t)n_values,
        .raw_bytes = (uint64_t)raw_bytes,
        .codec = codec >= 0 && codec < N_PARQUET_CODECS ? (int)codec : -1,
    };
}

/* ColumnChunk */
static void read_chunk(struct footer_reader *reader, struct parquet_stored_chunk *chunk)
{
    struct thrift_reader *thrift = &reader->thrift;
    struct thrift_field field;
    bool has_metadata = false;
    if (!thrift_enter_item(thrift)) return;
    while (thrift_next(thrift, &field)) {
        if (field.number == CHUNK_FILE) complain(reader, "its columns are in other files");
        if (field.number == CHUNK_ENCRYPTION) complain(reader, "it is encrypted");
        if (field.number != CHUNK_METADATA) {
            thrift_skip(thrift, &field);
            continue;
        }
        read_chunk_metadata(reader, &field, chunk);
        has_metadata = true;
    }
    if (!has_metadata) complain(reader, parquet_damaged);
}

/* RowGroup. Its chunks are added to those of the footer, whatever their number is. */
static size_t read_group(struct footer_reader *reader, struct parquet_stored_group *group,
                         size_t first, size_t *room)
{
    struct thrift_reader *thrift = &reader->thrift;
    struct parquet_footer *footer = reader->footer;
    struct thrift_field field;
    size_t n_chunks = 0;
    int64_t n_rows = -1;
    if (!thrift_enter_item(thrift)) return 0;
    while (thrift_next(thrift, &field)) {
        if (field.number == GROUP_ROWS) {
            n_rows = thrift_read_integer(thrift, &field);
        } else if (field.number == GROUP_CHUNKS && n_chunks == 0) {
            n_chunks = thrift_enter_list(thrift, &field, THRIFT_STRUCT);
            xgrow(&footer->chunks, room, first + n_chunks, first, sizeof *footer->chunks);
            for (size_t i = 0; i < n_chunks && !thrift->damaged; i++)
                read_chunk(reader, &footer->chunks[first + i]);
        } else {
            thrift_skip(thrift, &field);
        }
    }
    /* There are columns, so each group has chunks: many groups cannot be said in few bytes. */
    if (n_rows < 0 || n_chunks == 0) complain(reader, parquet_damaged);
    group->n_rows = (uint64_t)n_rows;
    return n_chunks;
}

static void read_groups(struct footer_reader *reader, const struct thrift_field *field)
{
    struct parquet_footer *footer = reader->footer;
    size_t n = thrift_enter_list(&reader->thrift, field, THRIFT_STRUCT), n_chunks = 0, room = 0;
    if (footer->groups) {
        complain(reader, parquet_damaged);
        return;
    }
    footer->groups = xcalloc(n + 1, sizeof *footer->groups);
    footer->n_groups = n;
    for (size_t i = 0; i < n && !reader->thrift.damaged && !reader->problem; i++) {
        size_t n_here = read_group(reader, &footer->groups[i], n_chunks, &room);
        if (i > 0 && n_here * i != n_chunks) complain(reader, parquet_damaged);
        n_chunks += n_here;
    }
    reader->n_chunks = n > 0 ? (unsigned)(n_chunks / n) : 0;
}

/* Adds the chunk of a leaf to those of its group. Returns NULL, or what is wrong. */
static const char *add_chunk(const struct parquet_stored_leaf *leaf,
                             const struct parquet_stored_chunk *chunk,
                             struct parquet_stored_group *group)
{
    if (leaf->is_repeated ? chunk->n_values < group->n_rows : chunk->n_values != group->n_rows)
        return parquet_damaged;
    group->n_bytes += chunk->n_bytes;
    group->raw_bytes += chunk->raw_bytes;
    return parquet_codec_problem(chunk->codec);
}

/* Checks that groups and schema agree. */
static const char *check_groups(const struct footer_reader *reader)
{
    struct parquet_footer *footer = reader->footer;
    if (footer->n_groups > 0 && reader->n_chunks != footer->n_chunks) return parquet_damaged;
    for (size_t i = 0; i < footer->n_groups; i++) {
        struct parquet_stored_group *group = &footer->groups[i];
        const struct parquet_stored_chunk *chunks = &footer->chunks[i * footer->n_chunks];
        for (unsigned k = 0; k < footer->n_leaves; k++) {
            const struct parquet_stored_leaf *leaf = &footer->leaves[k];
            const char *problem = add_chunk(leaf, &chunks[leaf->chunk], group);
            if (problem) return problem;
        }
        footer->n_rows += group->n_rows;
        if (footer->n_rows > INT64_MAX) return parquet_damaged;
    }
    return footer->n_rows == reader->n_rows ? NULL : parquet_damaged;
}

/* ---- metadata ---- */

static void read_pair(struct footer_reader *reader)
{
    struct thrift_field field;
    struct text key = {0}, value = {0};
    if (!thrift_enter_item(&reader->thrift)) return;
    while (thrift_next(&reader->thrift, &field)) {
        if (field.number == PAIR_KEY)
            key = read_text(&reader->thrift, &field);
        else if (field.number == PAIR_VALUE)
            value = read_text(&reader->thrift, &field);
        else
            thrift_skip(&reader->thrift, &field);
    }
    if (is_text(key, COLUMN_VERSION_KEY)) reader->version = value;
    if (is_text(key, COLUMN_HEADER_KEY)) reader->header = value;
    if (is_text(key, COLUMN_ENCODING_KEY)) reader->encoding = value;
}

static const char *make_header(struct footer_reader *reader)
{
    struct text header = reader->header;
    if (reader->version.at && !is_text(reader->version, COLUMN_SCHEMA_VERSION))
        return COLUMN_OTHER_VERSION;
    if (!header.at) return NULL;
    if (header.n > 0 && memchr(header.at, 0, header.n)) return parquet_damaged;
    char *text = xmalloc(header.n + 1);
    memcpy(text, header.at, header.n);
    text[header.n] = '\0';
    if (is_text(reader->encoding, COLUMN_LATIN)) column_metadata_undo_latin(text);
    reader->footer->header = text;
    return NULL;
}

/* ---- the footer ---- */

/* FileMetaData */
static void read_file(struct footer_reader *reader)
{
    struct thrift_reader *thrift = &reader->thrift;
    struct thrift_field field;
    while (thrift_next(thrift, &field)) {
        if (reader->problem) return;
        switch (field.number) {
        case FILE_SCHEMA: read_elements(reader, &field); break;
        case FILE_ROWS: reader->n_rows = (uint64_t)thrift_read_integer(thrift, &field); break;
        case FILE_GROUPS: read_groups(reader, &field); break;
        case FILE_METADATA:
            for (size_t i = thrift_enter_list(thrift, &field, THRIFT_STRUCT); i > 0; i--)
                read_pair(reader);
            break;
        case FILE_ENCRYPTION: complain(reader, "it is encrypted"); break;
        default: thrift_skip(thrift, &field);
        }
    }
    if (thrift->damaged) complain(reader, parquet_damaged);
}

const char *parquet_footer_read(struct parquet_footer *footer, const uint8_t *bytes, size_t n_bytes,
                                uint64_t file_bytes)
{
    struct footer_reader reader = {
        .thrift = thrift_read(bytes, n_bytes), .footer = footer, .end = file_bytes,
    };
    *footer = (struct parquet_footer){0};
    read_file(&reader);
    const char *problem = reader.problem;
    if (!problem) problem = make_header(&reader);
    if (!problem) problem = make_schema(&reader);
    if (!problem) problem = check_groups(&reader);
    free(reader.elements);
    return problem;
}
