/*
 * column_type.h -- the types of columns, as Arrow and Parquet know them, and how BAM's tags become
 * values of them.
 *
 * The functions are pure and may be called from any thread.
 */
#ifndef ROCKSORT_COLUMNS_COLUMN_TYPE_H
#define ROCKSORT_COLUMNS_COLUMN_TYPE_H

#include "bam/bam_aux.h"

enum column_type {
    COLUMN_TEXT,                /* UTF-8, offsets of 32 bits */
    COLUMN_CHAR,                /* a text of one character */
    COLUMN_UINT8,
    COLUMN_UINT16,
    COLUMN_INT32,
    COLUMN_INT64,
    COLUMN_FLOAT32,
    COLUMN_REFERENCE,           /* name of a reference: a dictionary with indexes of 32 bits */
    COLUMN_INT8_LIST,
    COLUMN_UINT8_LIST,
    COLUMN_INT16_LIST,
    COLUMN_UINT16_LIST,
    COLUMN_INT32_LIST,
    COLUMN_UINT32_LIST,
    COLUMN_FLOAT32_LIST,
    COLUMN_MAP                  /* from texts to texts */
};

static inline bool column_type_is_text(enum column_type type)
{
    return type == COLUMN_TEXT || type == COLUMN_CHAR;
}

static inline bool column_type_is_list(enum column_type type)
{
    return type >= COLUMN_INT8_LIST && type <= COLUMN_FLOAT32_LIST;
}

/* What the values of a type are, or the elements of a list. The numbers of references are indexes of
   their dictionary. */
struct column_number {
    uint8_t n_bytes;            /* 0: texts and maps are no numbers */
    bool is_list, is_float, is_signed;
};

struct column_number column_type_number(enum column_type type);

/* Bytes of a value, or of an element of a list; 0 for texts and maps. */
static inline size_t column_type_bytes(enum column_type type)
{
    return column_type_number(type).n_bytes;
}

/* True if elements of an array of BAM may be of this type: one of cCsSiIf. */
bool column_type_is_element(uint8_t letter);

/* True if a column of this type can hold the tag. */
bool column_type_holds(enum column_type type, const struct bam_aux *aux);

/* The type of the columns for tags of this type: A i f Z H, or for arrays B with the letter of their
   elements in `element`. Returns false if there is no such type. */
bool column_type_of_tag(char type, char element, enum column_type *column);

#endif
