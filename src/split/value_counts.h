/*
 * value_counts.h -- counts the different values of a tag while records are read, so that
 * --split-by finds out at once that it would write too many files.
 *
 * A value counts by the hash of its first 512 bytes, so there may be more values than are counted.
 *
 * Threads: any number may add at the same time. Memory: a megabyte.
 */
#ifndef ROCKSORT_SPLIT_VALUE_COUNTS_H
#define ROCKSORT_SPLIT_VALUE_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

struct value_counts;

struct value_counts *value_counts_create(const char tag[2]);

/* Accepts NULL. */
void value_counts_destroy(struct value_counts *counts);

/* Adds checked records that follow each other. Returns false if there are more values than
   SPLIT_MOST_PIECES. Counts of NULL do nothing and return true. */
bool value_counts_add(struct value_counts *counts, const uint8_t *from, const uint8_t *to);

#endif
