/*
 * arrow_field.h -- the type of a column of Arrow, as the schema of a file has it: a tree, because
 * lists, maps and structs have children.
 *
 * All types are read, also those of columns that nobody wants: their buffers must be counted.
 *
 * Ownership: release frees the children; the rest belongs to the caller. Any thread, once it was
 * read.
 */
#ifndef ROCKSORT_COLUMNS_ARROW_FIELD_H
#define ROCKSORT_COLUMNS_ARROW_FIELD_H

#include "columns/column_type.h"
#include "columns/flat_reader.h"

struct arrow_field {
    unsigned type;                      /* ARROW_TYPE_*; if there is a dictionary, of its values */
    struct column_number number;        /* numbers of up to 64 bits; has no bytes for other types */
    bool is_dense;                      /* of a union */
    bool has_dictionary;                /* a batch holds numbers of its values */
    int64_t dictionary;                 /* its ID */
    struct column_number index;         /* those numbers */
    struct arrow_field *children;
    unsigned n_children;
};

/* Reads a field of a schema. *n_left is how many fields there may be, with children. Returns false
   if there are more, or the field is damaged or of a type that is not known. */
bool arrow_field_read(const struct flat_table *table, unsigned *n_left, struct arrow_field *field);

void arrow_field_release(struct arrow_field *field);

/* How many buffers the field has in a batch, without those of its children, and without those of
   long texts if it has views. */
unsigned arrow_field_buffers(const struct arrow_field *field);

/* True for texts whose values are views: a batch says how many buffers of long texts they have. */
bool arrow_field_has_views(const struct arrow_field *field);

#endif
