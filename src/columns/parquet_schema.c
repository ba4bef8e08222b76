/* parquet_schema.c -- see parquet_schema.h. */
#include "columns/parquet_schema.h"

#include "columns/parquet_format.h"
#include "util/xalloc.h"

static enum column_type element_of(enum column_type list)
{
    switch (list) {
    case COLUMN_UINT8_LIST: return COLUMN_UINT8;
    case COLUMN_UINT16_LIST: return COLUMN_UINT16;
    case COLUMN_INT32_LIST: return COLUMN_INT32;
    case COLUMN_FLOAT32_LIST: return COLUMN_FLOAT32;
    default: return list;       /* of types that only lists have */
    }
}

static enum parquet_type stored_as(enum column_type value)
{
    switch (value) {
    case COLUMN_TEXT:
    case COLUMN_CHAR:
    case COLUMN_REFERENCE: return PARQUET_BYTE_ARRAY;
    case COLUMN_INT64: return PARQUET_INT64;
    case COLUMN_FLOAT32: return PARQUET_FLOAT;
    default: return PARQUET_INT32;
    }
}

struct parquet_leaf *parquet_leaves(const struct column_schema *schema, unsigned *n)
{
    struct parquet_leaf *leaves = xmalloc(2 * schema->n_columns * sizeof *leaves);
    *n = 0;
    for (unsigned i = 0; i < schema->n_columns; i++) {
        const struct column *column = &schema->columns[i];
        struct parquet_leaf leaf = {
            .column = i, .field = column->field, .value = column->type, .max_definition = 1,
        };
        if (column->type == COLUMN_MAP) {
            leaf.value = COLUMN_TEXT;
            leaf.part = PART_KEYS;
        } else if (column_type_is_list(column->type)) {
            leaf.value = element_of(column->type);
        }
        leaf.is_repeated = column->type == COLUMN_MAP || column_type_is_list(column->type);
        leaf.max_definition = leaf.is_repeated ? 2 : 1;
        leaf.type = stored_as(leaf.value);
        leaves[(*n)++] = leaf;
        if (column->type != COLUMN_MAP) continue;
        leaf.part = PART_MAPPED;
        leaf.max_definition = 3;        /* it might be null */
        leaves[(*n)++] = leaf;
    }
    return leaves;
}

/* ---- the schema ---- */

/* Writes an element that is none of a struct: its children follow. */
static void put_parent(struct thrift_writer *writer, const char *name, int repetition, int children)
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

static void put_integer_type(struct thrift_writer *writer, int converted, int n_bits,
                             bool is_signed)
{
    thrift_i32(writer, ELEMENT_CONVERTED, converted);
    thrift_struct(writer, ELEMENT_LOGICAL);
    thrift_struct(writer, LOGICAL_INTEGER);
    thrift_i8(writer, INTEGER_BITS, (int8_t)n_bits);
    thrift_bool(writer, INTEGER_IS_SIGNED, is_signed);
    thrift_end(writer);
    thrift_end(writer);
}

static void put_leaf(struct thrift_writer *writer, const char *name, int repetition,
                     enum column_type value)
{
    thrift_item_struct(writer);
    thrift_i32(writer, ELEMENT_TYPE, stored_as(value));
    thrift_i32(writer, ELEMENT_REPETITION, repetition);
    thrift_text(writer, ELEMENT_NAME, name);
    switch (value) {
    case COLUMN_TEXT:
    case COLUMN_CHAR:
    case COLUMN_REFERENCE: put_converted(writer, CONVERTED_UTF8, LOGICAL_STRING); break;
    case COLUMN_UINT8: put_integer_type(writer, CONVERTED_UINT8, 8, false); break;
    case COLUMN_UINT16: put_integer_type(writer, CONVERTED_UINT16, 16, false); break;
    case COLUMN_UINT32_LIST: put_integer_type(writer, CONVERTED_UINT32, 32, false); break;
    case COLUMN_INT8_LIST: put_integer_type(writer, CONVERTED_INT8, 8, true); break;
    case COLUMN_INT16_LIST: put_integer_type(writer, CONVERTED_INT16, 16, true); break;
    default: break;
    }
    thrift_end(writer);
}

static void put_column(struct thrift_writer *writer, const struct column *column)
{
    if (column_type_is_list(column->type)) {
        put_parent(writer, column->name, OPTIONAL, 1);
        put_converted(writer, CONVERTED_LIST, LOGICAL_LIST);
        thrift_end(writer);
        put_parent(writer, "list", REPEATED, 1);
        thrift_end(writer);
        put_leaf(writer, "element", REQUIRED, element_of(column->type));
    } else if (column->type == COLUMN_MAP) {
        put_parent(writer, column->name, OPTIONAL, 1);
        put_converted(writer, CONVERTED_MAP, LOGICAL_MAP);
        thrift_end(writer);
        put_parent(writer, "key_value", REPEATED, 2);
        thrift_end(writer);
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

static void put_names(struct thrift_writer *writer, int field, const char *const *names, size_t n)
{
    thrift_list(writer, field, THRIFT_BYTES, n);
    for (size_t i = 0; i < n; i++) thrift_item_bytes(writer, names[i], strlen(names[i]));
}

void parquet_put_path(struct thrift_writer *writer, int field, const struct column_schema *schema,
                      const struct parquet_leaf *leaf)
{
    const char *names[3] = {schema->columns[leaf->column].name, "list", "element"};
    if (leaf->part != PART_VALUES) {
        names[1] = "key_value";
        names[2] = leaf->part == PART_KEYS ? "key" : "value";
    }
    put_names(writer, field, names, leaf->is_repeated ? 3 : 1);
}
