/* arrow_field.c -- see arrow_field.h. The numbers of fields are those of Arrow's Schema.fbs. */
#include "columns/arrow_field.h"

#include "columns/arrow_format.h"
#include "util/xalloc.h"

#include <stdlib.h>

enum { MOST_LEVELS = 32 };

static struct column_number integer_of(const struct flat_table *type)
{
    uint64_t n_bits = flat_read_number(type, 0, 4, 0);
    bool is_known = n_bits == 8 || n_bits == 16 || n_bits == 32 || n_bits == 64;
    return (struct column_number){.n_bytes = is_known ? (uint8_t)(n_bits / 8) : 0,
                                  .is_signed = flat_read_number(type, 1, 1, 0) != 0};
}

static struct column_number float_of(const struct flat_table *type)
{
    uint64_t precision = flat_read_number(type, 0, 2, 0);
    uint8_t n_bytes = precision == ARROW_PRECISION_SINGLE   ? 4
                      : precision == ARROW_PRECISION_DOUBLE ? 8
                                                            : 0;
    return (struct column_number){.n_bytes = n_bytes, .is_float = true, .is_signed = true};
}

static bool read_dictionary(const struct flat_table *dictionary, struct arrow_field *field)
{
    struct flat_table index;
    field->has_dictionary = true;
    field->dictionary = (int64_t)flat_read_number(dictionary, 0, 8, 0);
    field->index = (struct column_number){.n_bytes = 4, .is_signed = true};
    if (flat_read_table(dictionary, 1, &index)) field->index = integer_of(&index);
    return field->index.n_bytes > 0;
}

static bool read_field(const struct flat_table *table, unsigned level, unsigned *n_left,
                       struct arrow_field *field)
{
    struct flat_table inner;
    *field = (struct arrow_field){.type = (unsigned)flat_read_number(table, 2, 1, 0)};
    if (*n_left == 0 || level == MOST_LEVELS) return false;
    --*n_left;
    bool has_type = flat_read_table(table, 3, &inner);
    if (has_type && field->type == ARROW_TYPE_INT) field->number = integer_of(&inner);
    if (has_type && field->type == ARROW_TYPE_FLOAT) field->number = float_of(&inner);
    if (has_type && field->type == ARROW_TYPE_UNION)
        field->is_dense = flat_read_number(&inner, 0, 2, 0) != ARROW_UNION_SPARSE;
    if (flat_read_table(table, 4, &inner) && !read_dictionary(&inner, field)) return false;
    struct flat_items children = flat_read_vector(table, 5, 4);
    if (children.n > *n_left) return false;
    field->children = xcalloc(children.n + 1, sizeof *field->children);
    for (; field->n_children < children.n; field->n_children++) {
        struct arrow_field *child = &field->children[field->n_children];
        if (flat_read_item(&children, field->n_children, &inner) &&
            read_field(&inner, level + 1, n_left, child))
            continue;
        arrow_field_release(child);
        return false;
    }
    return field->type > 0 && field->type <= ARROW_TYPE_LARGE_LIST_VIEW;
}

bool arrow_field_read(const struct flat_table *table, unsigned *n_left, struct arrow_field *field)
{
    if (read_field(table, 0, n_left, field)) return true;
    arrow_field_release(field);
    return false;
}

void arrow_field_release(struct arrow_field *field)
{
    for (unsigned i = 0; i < field->n_children; i++) arrow_field_release(&field->children[i]);
    free(field->children);
    *field = (struct arrow_field){0};
}

unsigned arrow_field_buffers(const struct arrow_field *field)
{
    if (field->has_dictionary) return 2;
    switch (field->type) {
    case ARROW_TYPE_NULL:
    case ARROW_TYPE_RUN_END: return 0;
    case ARROW_TYPE_STRUCT:
    case ARROW_TYPE_FIXED_LIST: return 1;
    case ARROW_TYPE_UNION: return field->is_dense ? 2 : 1;
    case ARROW_TYPE_BINARY:
    case ARROW_TYPE_UTF8:
    case ARROW_TYPE_LARGE_BINARY:
    case ARROW_TYPE_LARGE_UTF8:
    case ARROW_TYPE_LIST_VIEW:
    case ARROW_TYPE_LARGE_LIST_VIEW: return 3;
    default: return 2;
    }
}

bool arrow_field_has_views(const struct arrow_field *field)
{
    return !field->has_dictionary &&
           (field->type == ARROW_TYPE_UTF8_VIEW || field->type == ARROW_TYPE_BINARY_VIEW);
}
