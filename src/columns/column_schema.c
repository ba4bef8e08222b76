/* column_schema.c -- see column_schema.h. */
#include "columns/column_schema.h"

#include "bam/header_text.h"
#include "util/diag.h"
#include "util/terminal_text.h"
#include "util/words.h"
#include "util/xalloc.h"

#include <ctype.h>
#include <stdlib.h>

/* Change it when existing readers would not understand new files. */
#define SCHEMA_VERSION "1"

/* Each column takes memory and room in the footer in each batch, even without values. */
enum { MOST_COLUMNS = 256 };

/* ---- types ---- */

/* In the order of the types of lists in enum column_type. */
static const char elements[] = "cCsSiIf";

struct column_number column_type_number(enum column_type type)
{
    static const struct column_number numbers[] = {
        [COLUMN_INT64] = {8, false, true},    [COLUMN_REFERENCE] = {4, false, true},
        [COLUMN_INT8] = {1, false, true},     [COLUMN_UINT8] = {1, false, false},
        [COLUMN_INT16] = {2, false, true},    [COLUMN_UINT16] = {2, false, false},
        [COLUMN_INT32] = {4, false, true},    [COLUMN_UINT32] = {4, false, false},
        [COLUMN_FLOAT32] = {4, true, true},
    };
    return numbers[column_type_element(type)];
}

/* The letter in `elements`, or NULL. */
static const char *element_at(uint8_t letter)
{
    return memchr(elements, letter, sizeof elements - 1);
}

bool column_type_is_element(uint8_t letter)
{
    return element_at(letter) != NULL;
}

/* Finds the column type for a tag type: A i f Z H, or B with the letter of the elements. Returns
   false if there is none. */
static bool type_of_tag(char type, char element, enum column_type *column)
{
    const char *at = element_at((uint8_t)element);
    switch (type) {
    case 'A': *column = COLUMN_CHAR; return true;
    case 'i': *column = COLUMN_INT64; return true;
    case 'f': *column = COLUMN_FLOAT32; return true;
    case 'Z':
    case 'H': *column = COLUMN_TEXT; return true;
    case 'B':
        if (at) *column = (enum column_type)(COLUMN_INT8_LIST + (at - elements));
        return at != NULL;
    default: return false;
    }
}

bool column_type_holds(enum column_type type, const struct bam_aux *aux)
{
    char tag_type = aux->type;
    if (strchr("cCsSI", tag_type)) tag_type = 'i';
    enum column_type of_tag;
    return type_of_tag(tag_type, tag_type == 'B' ? (char)aux->value[0] : 0, &of_tag) &&
           of_tag == type;
}

/* ---- fields and tags ---- */

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

/* From the SAM optional fields specification, section 1, without reserved and obsolete tags, and
   without CG, which holds long CIGARs. */
#define TAG(name, type) {name, FIELD_TAG, COLUMN_##type}
const struct column standard_tags[] = {
    TAG("AM", INT64), TAG("AS", INT64), TAG("BC", TEXT), TAG("BQ", TEXT), TAG("BZ", TEXT),
    TAG("CB", TEXT), TAG("CC", TEXT), TAG("CM", INT64), TAG("CO", TEXT), TAG("CP", INT64),
    TAG("CQ", TEXT), TAG("CR", TEXT), TAG("CS", TEXT), TAG("CT", TEXT), TAG("CY", TEXT),
    TAG("E2", TEXT), TAG("FI", INT64), TAG("FS", TEXT), TAG("FZ", UINT16_LIST), TAG("H0", INT64),
    TAG("H1", INT64), TAG("H2", INT64), TAG("HI", INT64), TAG("IH", INT64), TAG("LB", TEXT),
    TAG("MC", TEXT), TAG("MD", TEXT), TAG("MI", TEXT), TAG("ML", UINT8_LIST), TAG("MM", TEXT),
    TAG("MN", INT64), TAG("MQ", INT64), TAG("NH", INT64), TAG("NM", INT64), TAG("OA", TEXT),
    TAG("OC", TEXT), TAG("OP", INT64), TAG("OQ", TEXT), TAG("OX", TEXT), TAG("PG", TEXT),
    TAG("PQ", INT64), TAG("PT", TEXT), TAG("PU", TEXT), TAG("Q2", TEXT), TAG("QT", TEXT),
    TAG("QX", TEXT), TAG("R2", TEXT), TAG("RG", TEXT), TAG("RX", TEXT), TAG("SA", TEXT),
    TAG("SM", INT64), TAG("TC", INT64), TAG("TS", CHAR), TAG("U2", TEXT), TAG("UQ", INT64),
};
#undef TAG

const unsigned n_standard_tags = sizeof standard_tags / sizeof *standard_tags;

/* Finds the column with this name in a table, or NULL. */
static const struct column *find_column(const struct column *table, unsigned n, const char *name,
                                        size_t n_bytes)
{
    for (unsigned i = 0; i < n; i++)
        if (n_bytes == strlen(table[i].name) && memcmp(name, table[i].name, n_bytes) == 0)
            return &table[i];
    return NULL;
}

const struct column *standard_tag_find(const char letters[2])
{
    return find_column(standard_tags, n_standard_tags, letters, 2);
}

/* ---- which tags there are ---- */

static int add_records(struct record_observer *observer, void *part,
                       const struct observed_records *observed)
{
    struct tag_schema_scan *tag_scan = (struct tag_schema_scan *)observer;
    struct bam_records records = observed->all;
    uint64_t seen[TAG_PLACES / 64] = {0};
    (void)part;
    for (const uint8_t *rec; (rec = bam_records_next(&records));) {
        const uint8_t *at = bam_record_tags(rec);
        struct bam_aux aux;
        while (bam_aux_read(rec, &at, &aux) > 0) {
            unsigned place = tag_place(aux.start);
            seen[place / 64] |= UINT64_C(1) << place % 64;
        }
    }
    /* Writes only new bits, to avoid contention for cache lines. */
    for (unsigned i = 0; i < TAG_PLACES / 64; i++)
        if (seen[i] & ~atomic_load_explicit(&tag_scan->seen[i], memory_order_relaxed))
            (void)atomic_fetch_or(&tag_scan->seen[i], seen[i]);
    return 0;
}

static void destroy_scan(struct record_observer *observer)
{
    free(observer);
}

struct tag_schema_scan *tag_schema_scan_create(void)
{
    static const struct observer_kind kind = {.add_records = add_records, .destroy = destroy_scan};
    struct tag_schema_scan *tag_scan = xcalloc(1, sizeof *tag_scan);
    tag_scan->base.kind = &kind;
    return tag_scan;
}

bool tag_schema_scan_has(const struct tag_schema_scan *tag_scan, const char tag[2])
{
    unsigned place = tag_place(tag);
    return atomic_load(&tag_scan->seen[place / 64]) >> place % 64 & 1;
}

/* ---- schemas ---- */

/* Adds a column, unless it is there already. Returns false if it is there with another type. */
static bool add_column(struct column_schema *schema, const struct column *column)
{
    const char *name = column->name;
    uint16_t *place = column->field == FIELD_TAG ? &schema->by_tag[tag_place(name)]
                                                 : &schema->by_field[column->field];
    if (*place != NO_COLUMN) return schema->columns[*place].type == column->type;
    *place = (uint16_t)schema->n_columns;
    schema->columns = xrealloc(schema->columns, (schema->n_columns + 1) * sizeof *column);
    schema->columns[schema->n_columns++] = *column;
    return true;
}

static void add_all(struct column_schema *schema, const struct tag_schema_scan *tag_scan)
{
    for (unsigned i = 0; i < FIELD_TAG_TYPES; i++) (void)add_column(schema, &fields[i]);
    for (unsigned i = 0; i < n_standard_tags; i++)
        if (!tag_scan || tag_schema_scan_has(tag_scan, standard_tags[i].name))
            (void)add_column(schema, &standard_tags[i]);
    (void)add_column(schema, &fields[FIELD_TAG_TYPES]);
    (void)add_column(schema, &fields[FIELD_TAGS]);
}

/* Adds the columns of one item of the list. Returns NULL, or what is wrong with it. */
static const char *add_part(struct column_schema *schema, const char *part, size_t n,
                            const struct tag_schema_scan *tag_scan)
{
    const struct column *field = find_column(fields, N_COLUMN_FIELDS, part, n);
    if (n == 3 && memcmp(part, "all", 3) == 0) {
        add_all(schema, tag_scan);
        return NULL;
    }
    if (field) {
        (void)add_column(schema, field);
        return NULL;
    }
    bool has_two = n == 2 || (n > 2 && part[2] == ':');
    if (!has_two || !isalpha((unsigned char)part[0]) || !isalnum((unsigned char)part[1]))
        return "is not a column: give a field (qname to qual, end, tag_types, tags) or a tag (NM, "
               "XS:i)";
    const struct column *standard = standard_tag_find(part);
    if (n == 2 && !standard) return "is a tag without a type: add one, as in XS:i";
    struct column column = {{part[0], part[1]}, FIELD_TAG, standard ? standard->type : COLUMN_TEXT};
    bool is_plain = n == 4 && part[3] != 'B', is_array = n == 6 && part[3] == 'B' && part[4] == ':';
    if (n == 4 && part[3] == 'B') return "lacks the type of its elements, as in XB:B:c";
    if (n > 2 && (!(is_plain || is_array) ||
                  !type_of_tag(part[3], is_array ? part[5] : 0, &column.type)))
        return "must have a type of SAM: A, i, f, Z, H, or B: and one of cCsSiIf";
    return add_column(schema, &column) ? NULL : "names a tag twice, with two types";
}

/* Prints what is wrong with one item of the list. */
static void refuse_part(const char *list, const char *part, size_t n, const char *problem)
{
    enum { MOST_QUOTED = 40 };
    if (n == 0)
        diag_error("option --columns has an empty name in '%s'", list);
    else
        diag_error("option --columns: '%.*s' %s", (int)(n < MOST_QUOTED ? n : MOST_QUOTED), part,
                   problem);
}

struct column_schema *column_schema_create(const char *list, const struct tag_schema_scan *tag_scan)
{
    struct column_schema *schema = xcalloc(1, sizeof *schema);
    memset(schema->by_field, 0xff, sizeof schema->by_field);
    memset(schema->by_tag, 0xff, sizeof schema->by_tag);
    size_t n;
    for (const char *part = list ? list : "all";; part += n + 1) {
        n = strcspn(part, ",");
        const char *problem = add_part(schema, part, n, tag_scan);
        if (!problem && schema->n_columns > MOST_COLUMNS)
            problem = "is one column too many: there can be 256";
        if (problem) {
            refuse_part(list, part, n, problem);
            column_schema_destroy(schema);
            return NULL;
        }
        if (part[n] == '\0') return schema;
    }
}

bool column_schema_needs_tag_scan(const char *list)
{
    return !list || words_list_has(list, "all");
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
        enum column_type type = schema->columns[i].type;
        size_t value_bytes = column_type_is_list(type) ? 0 : column_type_bytes(type);
        n_bytes += value_bytes > 0 ? value_bytes : OFFSET_BYTES;
    }
    return n_bytes;
}

bool column_schema_has_references(const struct column_schema *schema)
{
    return schema->by_field[FIELD_RNAME] != NO_COLUMN || schema->by_field[FIELD_RNEXT] != NO_COLUMN;
}

/* ---- metadata ---- */

/* Converts Latin-1 to UTF-8; the caller frees the result. */
static char *make_latin(const char *text)
{
    char *latin = xmalloc(2 * strlen(text) + 1), *to = latin;
    for (const uint8_t *at = (const uint8_t *)text; *at; at++) {
        if (*at >= 0x80) *to++ = (char)(0xc0 | *at >> 6);
        *to++ = (char)(*at < 0x80 ? *at : 0x80 | (*at & 0x3f));
    }
    *to = '\0';
    return latin;
}

void column_metadata_make(struct column_metadata *metadata, sam_hdr_t *header)
{
    const char *text = header_whole_text(header);
    *metadata = (struct column_metadata){
        .n = 2, .pairs = {{"rocksort_columns", SCHEMA_VERSION}, {"sam_header", text},
                          {"sam_header_encoding", "latin-1"}}};
    if (utf8_is_valid(text, strlen(text))) return;
    metadata->pairs[1].value = metadata->latin = make_latin(text);
    metadata->n = 3;
}

void column_metadata_release(struct column_metadata *metadata)
{
    free(metadata->latin);
}
