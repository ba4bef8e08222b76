/*
 * load_large.h -- a template that does not fit in memory: its records, in a file without a name
 * where temporary data are, and what they need to know of each other (large_template.h).
 *
 * The records are written while they are read; then they come back in parts, which workers fix.
 *
 * Order of calls: create; add for all its records, in their order; end; next until it returns 0;
 * destroy, when no job works on a part. Threads: the reader's. Errors: -1 after a message.
 */
#ifndef ROCKSORT_PIPELINE_LOAD_LARGE_H
#define ROCKSORT_PIPELINE_LOAD_LARGE_H

#include "template/fixed_records.h"

struct load_large;

struct load_large_settings {    /* all that it points to outlives the template */
    const struct fixmate_rules *rules;
    const char *temp_prefix;    /* where the file is made: see temp_dir.h */
    const char *output;
    size_t part_bytes;          /* of records in a part */
};

/* first_record: number of its first record in the input, from 0. */
struct load_large *load_large_create(const struct load_large_settings *settings,
                                     uint64_t first_record);

/* NULL is accepted. */
void load_large_destroy(struct load_large *large);

/* Adds n_bytes of whole records. */
int load_large_add(struct load_large *large, const uint8_t *records, size_t n_bytes);

/* No more are added. */
int load_large_end(struct load_large *large);

/* Reads the records of the next part into a buffer, and stores the number of the first one. Returns
   1, 0 if there is none, or -1. */
int load_large_next(struct load_large *large, struct record_bytes *buffer, struct fixed_part *part,
                    uint64_t *first_record);

#endif
