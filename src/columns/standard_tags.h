/*
 * standard_tags.h -- the tags that the SAM specification defines, and the columns that they become.
 */
#ifndef ROCKSORT_COLUMNS_STANDARD_TAGS_H
#define ROCKSORT_COLUMNS_STANDARD_TAGS_H

#include "columns/column_type.h"

struct standard_tag {
    char name[3];
    enum column_type type;
};

/* In the order of their names. */
extern const struct standard_tag standard_tags[];
extern const unsigned n_standard_tags;

/* NULL if the specification does not define a tag of these two letters. */
const struct standard_tag *standard_tag_find(const char letters[2]);

#endif
