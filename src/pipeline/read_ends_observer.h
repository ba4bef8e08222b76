/*
 * read_ends_observer.h -- an observer that makes the views of records (duplicates.h), for the
 * search for duplicates. Its records are in runs: their places and ordinals are known.
 */
#ifndef ROCKSORT_PIPELINE_READ_ENDS_OBSERVER_H
#define ROCKSORT_PIPELINE_READ_ENDS_OBSERVER_H

#include "bam/record_observer.h"
#include "pipeline/duplicates.h"

/* NULL if duplicates is NULL. */
struct record_observer *read_ends_observer(struct duplicates *duplicates);

#endif
