/*
 * arrow_normal.h -- lays out values of Arrow that other programs have written as column_batch.h
 * does.
 *
 * A column has one type, but programs write its values in many ways: texts with offsets of 32 or 64
 * bits, as views, or as numbers of a dictionary; integers of any size; maps as lists of structs.
 * All become the one layout that column_record.h reads. Values that are laid out like that are
 * moved, not copied, and not looked at: column_values_problem checks them. Others are checked here.
 *
 * Threads: any, on different bodies.
 */
#ifndef ROCKSORT_COLUMNS_ARROW_NORMAL_H
#define ROCKSORT_COLUMNS_ARROW_NORMAL_H

#include "columns/arrow_array.h"
#include "columns/arrow_dictionary.h"
#include "columns/column_batch.h"

/* What the columns of a batch have in common. */
struct arrow_normal {
    struct arrow_body *body;            /* counts the memory, and notes damage */
    const struct arrow_dictionaries *dictionaries;
    const struct text_map *references;  /* of the header: their numbers by their names */
    const char *problem;                /* of a column, to follow its name; NULL: see the body */
};

/* True if the values of such a field can become those of a column of this type, if they fit. */
bool arrow_normal_can(const struct arrow_field *field, enum column_type type);

/* The type of the column that the field of a tag becomes. Returns false if there is none. */
bool arrow_normal_tag_type(const struct arrow_field *field, const char *letters,
                           enum column_type *type);

/* Lays out the values, some of which are moved out of the array. `to` must be empty. Returns false,
   with a problem, if they are damaged or do not fit. */
bool arrow_normal_put(struct arrow_normal *normal, const struct arrow_field *field,
                      struct arrow_array *array, enum column_type type, struct column_values *to);

/* Adds the values to the dictionary. Returns false, with a problem, if they are damaged. */
bool arrow_normal_add(struct arrow_normal *normal, const struct arrow_array *array,
                      struct arrow_dictionary *dictionary);

#endif
