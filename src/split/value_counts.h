/*
 * value_counts.h -- counts the different values of a tag while records are read, so that
 * --split-by finds out at once that it would write too many files.
 *
 * A value counts by the hash of its first 512 bytes, so there may be more values than are counted.
 * Memory: a megabyte.
 */
#ifndef ROCKSORT_SPLIT_VALUE_COUNTS_H
#define ROCKSORT_SPLIT_VALUE_COUNTS_H

#include "bam/record_observer.h"

/* An observer of the input, which fails after a message if there are more values than
   SPLIT_MOST_PIECES. */
struct record_observer *value_counts_observer(const char tag[2]);

#endif
