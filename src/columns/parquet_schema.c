/* parquet_schema.c -- see parquet_schema.h. */
#include "columns/parquet_schema.h"

#include "util/xalloc.h"

/* How values are stored, by their type. */
static const struct {
    enum parquet_type type;
    bool is_text;
    int8_t converted, n_bits;   /* for integers that need a logical type; n_bits 0: none */
} stored[] = {
    [COLUMN_TEXT] = {PARQUET_BYTE_ARRAY, true, 0, 0},
    [COLUMN_CHAR] = {PARQUET_BYTE_ARRAY, true, 0, 0},
    [COLUMN_REFERENCE] = {PARQUET_BYTE_ARRAY, true, 0, 0},
    [COLUMN_INT64] = {PARQUET_INT64, false, 0, 0},
    [COLUMN_INT8] = {PARQUET_INT32, false, CONVERTED_INT8, 8},
    [COLUMN_UINT8] = {PARQUET_INT32, false, CONVERTED_UINT8, 8},
    [COLUMN_INT16] = {PARQUET_INT32, false, CONVERTED_INT16, 16},
    [COLUMN_UINT16] = {PARQUET_INT32, false, CONVERTED_UINT16, 16},
    [COLUMN_INT32] = {PARQUET_INT32, false, 0, 0},
    [COLUMN_UINT32] = {PARQUET_INT32, false, CONVERTED_UINT32, 32},
    [COLUMN_FLOAT32] = {PARQUET_FLOAT, false, 0, 0},
};

struct parquet_leaf *parquet_leaves(const struct column_schema *schema, unsigned *n)
{
    struct parquet_leaf *leaves = xmalloc(2 * schema->n_columns * sizeof *leaves);
    *n = 0;
    for (unsigned i = 0; i < schema->n_columns; i++) {
        const struct column *column = &schema->columns[i];
        bool is_map = column->type == COLUMN_MAP, is_list = column_type_is_list(column->type);
        struct parquet_leaf leaf = {
            .column = i, .field = column->field, .part = is_map ? PART_KEYS : PART_VALUES,
            .value = is_map ? COLUMN_TEXT : column_type_element(column->type),
            .is_repeated = is_map || is_list, .max_definition = is_map || is_list ? 2 : 1,
        };
        leaf.type = stored[leaf.value].type;
        leaves[(*n)++] = leaf;
        if (!is_map) continue;
        leaf.part = PART_MAPPED;
        leaf.max_definition = 3;        /* entries could be null */
        leaves[(*n)++] = leaf;
    }
    return leaves;
}

/* ---- the schema ---- */

/* Begins an element with children, which the caller writes after ending it. */
static void begin_parent(struct thrift_writer *writer, const char *name, int repetition,
                         int children)
{
    thrift_item_struct(writer);
    thrift_i32(writer, ELEMENT_REPETITION, repetition);
    thrift_text(writer, ELEMENT_NAME, name);
    thrift_i32(writer, ELEMENT_CHILDREN, children);
}

static void put_converted(struct thrift_writer *writer, int converted, int logical)
{
    thrift_i32(writer, ELEMENT_CONVERTED, converted);
    thrift_struct(writer, ELEMENT_LOGICAL);
    thrift_empty_struct(writer, logical);
    thrift_end(writer);
}

/* Writes a column of lists or maps, and the group of its elements. */
static void put_groups(struct thrift_writer *writer, const char *name, int converted, int logical,
                       const char *group, int children)
{
    begin_parent(writer, name, OPTIONAL, 1);
    put_converted(writer, converted, logical);
    thrift_end(writer);
    begin_parent(writer, group, REPEATED, children);
    thrift_end(writer);
}

static void put_leaf(struct thrift_writer *writer, const char *name, int repetition,
                     enum column_type value)
{
    thrift_item_struct(writer);
    thrift_i32(writer, ELEMENT_TYPE, stored[value].type);
    thrift_i32(writer, ELEMENT_REPETITION, repetition);
    thrift_text(writer, ELEMENT_NAME, name);
    if (stored[value].is_text) put_converted(writer, CONVERTED_UTF8, LOGICAL_STRING);
    if (stored[value].n_bits > 0) {
        thrift_i32(writer, ELEMENT_CONVERTED, stored[value].converted);
        thrift_struct(writer, ELEMENT_LOGICAL);
        thrift_struct(writer, LOGICAL_INTEGER);
        thrift_integer(writer, INTEGER_BITS, THRIFT_I8, stored[value].n_bits);
        thrift_bool(writer, INTEGER_IS_SIGNED, column_type_number(value).is_signed);
        thrift_end(writer);
        thrift_end(writer);
    }
    thrift_end(writer);
}

static void put_column(struct thrift_writer *writer, const struct column *column)
{
    if (column_type_is_list(column->type)) {
        put_groups(writer, column->name, CONVERTED_LIST, LOGICAL_LIST, "list", 1);
        put_leaf(writer, "element", REQUIRED, column_type_element(column->type));
    } else if (column->type == COLUMN_MAP) {
        put_groups(writer, column->name, CONVERTED_MAP, LOGICAL_MAP, "key_value", 2);
        put_leaf(writer, "key", REQUIRED, COLUMN_TEXT);
        put_leaf(writer, "value", OPTIONAL, COLUMN_TEXT);
    } else {
        put_leaf(writer, column->name, OPTIONAL, column->type);
    }
}

void parquet_put_schema(struct thrift_writer *writer, int field,
                        const struct column_schema *schema)
{
    size_t n = 1 + schema->n_columns;
    for (unsigned i = 0; i < schema->n_columns; i++) {
        if (column_type_is_list(schema->columns[i].type)) n += 2;
        if (schema->columns[i].type == COLUMN_MAP) n += 3;
    }
    thrift_list(writer, field, THRIFT_STRUCT, n);
    thrift_item_struct(writer);
    thrift_text(writer, ELEMENT_NAME, "schema");
    thrift_i32(writer, ELEMENT_CHILDREN, (int32_t)schema->n_columns);
    thrift_end(writer);
    for (unsigned i = 0; i < schema->n_columns; i++) put_column(writer, &schema->columns[i]);
}

void parquet_put_path(struct thrift_writer *writer, int field, const struct column_schema *schema,
                      const struct parquet_leaf *leaf)
{
    const char *names[3] = {schema->columns[leaf->column].name, "list", "element"};
    size_t n = leaf->is_repeated ? 3 : 1;
    if (leaf->part != PART_VALUES) {
        names[1] = "key_value";
        names[2] = leaf->part == PART_KEYS ? "key" : "value";
    }
    thrift_list(writer, field, THRIFT_BYTES, n);
    for (size_t i = 0; i < n; i++) thrift_item_bytes(writer, names[i], strlen(names[i]));
}
