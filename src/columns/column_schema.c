/* column_schema.c -- see column_schema.h. */
#include "columns/column_schema.h"

#include "columns/standard_tags.h"
#include "util/xalloc.h"

#include <ctype.h>
#include <stdlib.h>

static const struct column fields[N_COLUMN_FIELDS] = {
    {"qname", FIELD_QNAME, COLUMN_TEXT},
    {"flag", FIELD_FLAG, COLUMN_UINT16},
    {"rname", FIELD_RNAME, COLUMN_REFERENCE},
    {"pos", FIELD_POS, COLUMN_INT32},
    {"end", FIELD_END, COLUMN_INT32},
    {"mapq", FIELD_MAPQ, COLUMN_UINT8},
    {"cigar", FIELD_CIGAR, COLUMN_TEXT},
    {"rnext", FIELD_RNEXT, COLUMN_REFERENCE},
    {"pnext", FIELD_PNEXT, COLUMN_INT32},
    {"tlen", FIELD_TLEN, COLUMN_INT32},
    {"seq", FIELD_SEQ, COLUMN_TEXT},
    {"qual", FIELD_QUAL, COLUMN_TEXT},
    {"tag_types", FIELD_TAG_TYPES, COLUMN_TEXT},
    {"tags", FIELD_TAGS, COLUMN_MAP},
};

static const char no_column[] =
    "is no column: give a field (qname to qual, end, tag_types, tags) or a tag (NM, XS:i)";

static unsigned place_of(const char letters[2])
{
    return ((unsigned char)letters[0] & 0x7fu) << 7 | ((unsigned char)letters[1] & 0x7fu);
}

/* Adds a column, unless it is there already. Returns false if it is there with another type. */
static bool add_column(struct column_schema *schema, const struct column *column)
{
    uint16_t *place = column->field == FIELD_TAG ? &schema->by_tag[place_of(column->name)]
                                                 : &schema->by_field[column->field];
    if (*place != NO_COLUMN) return schema->columns[*place].type == column->type;
    *place = (uint16_t)schema->n_columns;
    schema->columns = xrealloc(schema->columns, (schema->n_columns + 1) * sizeof *column);
    schema->columns[schema->n_columns++] = *column;
    return true;
}

static struct column tag_column(const char letters[2], enum column_type type)
{
    return (struct column){{letters[0], letters[1]}, FIELD_TAG, type};
}

static void add_all(struct column_schema *schema, const struct tag_census *census)
{
    for (unsigned i = 0; i < FIELD_TAG_TYPES; i++) (void)add_column(schema, &fields[i]);
    for (unsigned i = 0; i < n_standard_tags; i++) {
        const struct column column = tag_column(standard_tags[i].name, standard_tags[i].type);
        if (!census || tag_census_has(census, column.name)) (void)add_column(schema, &column);
    }
    (void)add_column(schema, &fields[FIELD_TAG_TYPES]);
    (void)add_column(schema, &fields[FIELD_TAGS]);
}

/* Finds the field of a name: *column gets it. */
static bool find_field(const char *name, size_t n_bytes, struct column *column)
{
    for (unsigned i = 0; i < N_COLUMN_FIELDS; i++) {
        if (n_bytes != strlen(fields[i].name) || memcmp(name, fields[i].name, n_bytes) != 0)
            continue;
        *column = fields[i];
        return true;
    }
    return false;
}

/* True if a tag may have this name, by the SAM specification. */
static bool is_tag_name(const char *name, size_t n_bytes)
{
    return n_bytes == 2 && isalpha((unsigned char)name[0]) && isalnum((unsigned char)name[1]);
}

/* Adds what one part of the list names. Returns NULL, or what is wrong with it. */
static const char *add_part(struct column_schema *schema, const char *part, size_t n,
                            const struct tag_census *census)
{
    if (n == 3 && memcmp(part, "all", 3) == 0) {
        add_all(schema, census);
        return NULL;
    }
    struct column field;
    if (find_field(part, n, &field)) {
        (void)add_column(schema, &field);
        return NULL;
    }
    size_t n_name = n > 2 && part[2] == ':' ? 2 : n;
    if (!is_tag_name(part, n_name)) return no_column;
    const struct standard_tag *standard = standard_tag_find(part);
    struct column column = tag_column(part, standard ? standard->type : COLUMN_TEXT);
    if (n == 2 && !standard) return "is a tag without a type: add one, as in XS:i";
    bool is_plain = n == 4 && part[3] != 'B', is_array = n == 6 && part[3] == 'B' && part[4] == ':';
    if (n == 4 && part[3] == 'B') return "lacks the type of its elements, as in XB:B:c";
    if (n > 2 && (!(is_plain || is_array) ||
                  !column_type_of_tag(part[3], is_array ? part[5] : 0, &column.type)))
        return "must have a type of SAM: A, i, f, Z, H, or B: and one of cCsSiIf";
    return add_column(schema, &column) ? NULL : "names a tag twice, with two types";
}

static struct column_schema *create_empty(void)
{
    struct column_schema *schema = xcalloc(1, sizeof *schema);
    memset(schema->by_field, 0xff, sizeof schema->by_field);
    memset(schema->by_tag, 0xff, sizeof schema->by_tag);
    return schema;
}

struct column_schema *column_schema_create(const char *list, const struct tag_census *census,
                                           const char **problem, const char **part,
                                           size_t *part_bytes)
{
    struct column_schema *schema = create_empty();
    *problem = NULL;
    *part = list ? list : "all";
    for (;; *part += *part_bytes + 1) {
        *part_bytes = strcspn(*part, ",");
        *problem = add_part(schema, *part, *part_bytes, census);
        if (!*problem && schema->n_columns > COLUMN_SCHEMA_MOST)
            *problem = "is one column too many: there can be 256";
        if (*problem) {
            column_schema_destroy(schema);
            return NULL;
        }
        if ((*part)[*part_bytes] == '\0') return schema;
    }
}

void column_schema_destroy(struct column_schema *schema)
{
    if (!schema) return;
    free(schema->columns);
    free(schema);
}

size_t column_schema_null_bytes(const struct column_schema *schema)
{
    enum { OFFSET_BYTES = 4 };
    size_t n_bytes = 0;
    for (unsigned i = 0; i < schema->n_columns; i++) {
        const struct column_number number = column_type_number(schema->columns[i].type);
        n_bytes += number.n_bytes > 0 && !number.is_list ? number.n_bytes : OFFSET_BYTES;
    }
    return n_bytes;
}

bool column_schema_has_references(const struct column_schema *schema)
{
    return schema->by_field[FIELD_RNAME] != NO_COLUMN || schema->by_field[FIELD_RNEXT] != NO_COLUMN;
}
