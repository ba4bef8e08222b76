/*
 * template_cut.h -- finds where templates begin and end in a stream of whole records.
 *
 * Reads the sizes of all records, and the names of only the last ones. Records need not be checked.
 * Pure; any thread.
 */
#ifndef ROCKSORT_FIXMATE_TEMPLATE_CUT_H
#define ROCKSORT_FIXMATE_TEMPLATE_CUT_H

#include "bam/bam_fields.h"

struct last_template {
    size_t at;                  /* offset of its first record */
    size_t n_records;
};

/* Finds the last template of records; without records it is empty. */
struct last_template template_find_last(const uint8_t *from, const uint8_t *to);

/* True if two records have the same read name. False if a name does not fit into its record. */
bool template_same_name(const uint8_t *a, const uint8_t *b);

/* Returns a new record with nothing but the name of `rec`. The caller frees it. */
uint8_t *template_copy_name(const uint8_t *rec);

/* The memory that a template takes, for its limit: three copies (as read, as fixed, in its sort
   buffer), another one of its tags with -M, and a draft for each record. */
size_t template_memory_bytes(size_t n_bytes, size_t n_records);

#endif
