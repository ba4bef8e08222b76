/*
 * arrow_dictionary.h -- dictionaries of texts that a file of Arrow has, as they are at this place
 * of the file: a later message may replace or extend one.
 *
 * Order of calls: expect for each field of the schema that has one; for each message, clear unless
 * it is a delta, and add its texts.
 * Ownership: the caller releases the list. Any thread may look at it while it does not change.
 */
#ifndef ROCKSORT_COLUMNS_ARROW_DICTIONARY_H
#define ROCKSORT_COLUMNS_ARROW_DICTIONARY_H

#include "bam/header_text.h"
#include "columns/arrow_field.h"
#include "columns/column_bytes.h"

/* Which reference of the header an entry names, if it names one. */
enum { REFERENCE_UNKNOWN = -1, REFERENCE_NULL = -2 };

struct arrow_dictionary {
    int64_t id;
    struct arrow_field values;          /* their type; its children are borrowed */
    struct column_bytes texts;
    struct column_bytes ends;           /* of each text, 64 bits */
    struct column_bytes references;     /* of each text, 32 bits; also says whether it is null */
    size_t n;
};

struct arrow_dictionaries {
    struct arrow_dictionary *list;
    size_t n;
};

/* Notes that the field, which has a dictionary, is to be read. */
void arrow_dictionaries_expect(struct arrow_dictionaries *dictionaries,
                               const struct arrow_field *field);

/* NULL: no field was expected to have it. */
struct arrow_dictionary *arrow_dictionaries_find(const struct arrow_dictionaries *dictionaries,
                                                 int64_t id);

void arrow_dictionaries_release(struct arrow_dictionaries *dictionaries);

void arrow_dictionary_clear(struct arrow_dictionary *dictionary);

/* Adds a text, or a null if it has no address. `references` has the numbers of the header's
   references by their names. Returns false if there are too many texts. */
bool arrow_dictionary_add(struct arrow_dictionary *dictionary, struct text text,
                          const struct text_map *references);

/* Text i; NULL: it is null. */
struct text arrow_dictionary_text(const struct arrow_dictionary *dictionary, size_t i);

/* The reference that text i names, or REFERENCE_UNKNOWN or REFERENCE_NULL. */
int32_t arrow_dictionary_reference(const struct arrow_dictionary *dictionary, size_t i);

#endif
