/*
 * decide.h -- finds the duplicates among the views of all records: jobs that decide one partition
 * of the streams (duplicates/view_streams.h) after another.
 *
 * The best read of each key is kept in a table, and whatever is worse is marked as soon as it
 * shows. With -S the names of duplicates that have other records are collected, and then those
 * records are marked.
 *
 * If the keys of a partition do not fit into a table, it is read several times, a part of the keys
 * at a time. So a pile of a hundred million duplicates takes no memory, and a hundred million keys
 * take time.
 *
 * Threads: the caller submits the jobs and waits for them.
 */
#ifndef ROCKSORT_PIPELINE_DECIDE_H
#define ROCKSORT_PIPELINE_DECIDE_H

#include "pipeline/decide_settings.h"

/* Marks all duplicates. Returns 0, or -1 after a message and crew_fail. */
int decide_duplicates(const struct decide_settings *settings);

#endif
