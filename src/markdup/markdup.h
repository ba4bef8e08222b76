/*
 * markdup.h -- finds the duplicates among all records of a sort, and marks them.
 *
 * It is an observer (bam/record_observer.h) of records in runs: of each it makes the read ends of
 * some 24 bytes (markdup/read_ends.h). read ends go to streams (read_ends_store.h), which go to a
 * temporary file when their memory is full. When all records were seen, jobs resolve one partition
 * of the read ends after another (resolve_duplicates.h). The result is a bit for each record of
 * each run, and tags (duplicate_marks.h), which the merge looks up when it opens blocks.
 *
 * Which reads are duplicates does not depend on the order in which read ends come, nor on how
 * records lie in runs: ordinals say what came first in the input (sort_buffer.h).
 *
 * Order of calls: create; prepare, when the rules know the read groups; all records; resolve; find,
 * mark and counts; destroy, by the observer. Threads: any may find and mark; one makes the other
 * calls.
 */
#ifndef ROCKSORT_MARKDUP_MARKDUP_H
#define ROCKSORT_MARKDUP_MARKDUP_H

#include "bam/record_observer.h"
#include "markdup/duplicate_marks.h"
#include "markdup/markdup_rules.h"
#include "markdup/markdup_stats.h"

struct markdup;

struct markdup_settings {
    struct threads *threads;
    const struct markdup_rules *rules;
    unsigned n_threads;
    size_t memory_bytes;       /* for all of it */
    struct temp_places places; /* of temporary files */
};

struct markdup *markdup_create(const struct markdup_settings *settings);

/* Its observer, which destroys it. NULL: NULL. */
struct record_observer *markdup_observer(struct markdup *d);

/* Before the first record: the rules have their groups now. */
void markdup_prepare(struct markdup *d);

/* Of the whole memory of a sort, the part that the search takes; and the part of that for read
   ends: if they need more, all go to a temporary file. */
size_t markdup_memory(size_t total_bytes);
size_t duplicates_ends_memory(const struct markdup_rules *rules, size_t total_bytes);

/* True if all records must be in runs before duplicates are resolved: records get more than a flag,
   or resolving needs the memory. NULL: false. */
bool markdup_need_runs(const struct markdup *d);

/* By how many bytes a record can grow at most; and by how many records grow on average, an estimate
   that is known when all is resolved. NULL: 0. */
size_t markdup_growth(const struct markdup *d);
size_t markdup_usual_growth(const struct markdup *d);

/* Finds all duplicates. Takes up to spare_bytes more memory for so long. Returns 0, or -1 after a
   message and thread_pool_fail. */
int markdup_resolve(struct markdup *d, size_t spare_bytes);

/* Bytes of all read ends, and bytes that went to temporary files. */
void markdup_bytes(const struct markdup *d, uint64_t *all_ends, uint64_t *files);

/* What was read and found: one element for each group, as in markdup_stats.h. */
const struct duplicate_counts *markdup_counts(const struct markdup *d, size_t *n);

/* Finds which of n records of a run are duplicates, as duplicate_marks_find. */
int markdup_find(const struct markdup *d, uint32_t run, uint64_t first, uint64_t n,
                 struct found_marks *found);

struct marked_records { /* raw, one after another */
    uint8_t *bytes;
    size_t n_bytes, n;
};

/* Sets the flags of duplicates; `first` is the index of the first record in the run. If the rules
   do more than that, the records become new memory, as they will be in the output, with room for
   tail_bytes after them. Returns 0, or -1 after a message. */
int markdup_mark(const struct markdup *d, uint32_t run, uint64_t first,
                 struct marked_records *records, size_t tail_bytes);

#endif
