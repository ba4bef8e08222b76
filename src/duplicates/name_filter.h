/*
 * name_filter.h -- remembers names so shortly that it may take some others for them: a Bloom
 * filter. With two bytes for each name it takes one of a hundred for a known one.
 *
 * Names are known by their hash (view_streams.h). Order of calls: create; add; may_have; destroy.
 * Threads: any number may add at a time, if all names of a partition (view_name_partition) are
 * added by one; any may ask when all are added.
 */
#ifndef ROCKSORT_DUPLICATES_NAME_FILTER_H
#define ROCKSORT_DUPLICATES_NAME_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct name_filter;

/* For so many names. It takes at most limit_bytes, or 16 KB if that is more. */
struct name_filter *name_filter_create(uint64_t n_names, size_t limit_bytes);

/* NULL is accepted. */
void name_filter_destroy(struct name_filter *filter);

void name_filter_add(struct name_filter *filter, uint64_t name_hash);

/* True for each name that was added. */
bool name_filter_may_have(const struct name_filter *filter, uint64_t name_hash);

#endif
