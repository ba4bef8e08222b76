/*
 * markdup.h -- finds and marks the duplicates among all records of a sort.
 *
 * An observer (bam/record_observer.h) of the records in runs makes read ends of each record, about
 * 35 bytes (read_ends.h), and appends them to tapes (read_ends_store.h), which spill to a temporary
 * file when their memory is full. When all records were seen, jobs resolve the read ends partition
 * by partition (markdup_partition.h). The result is a bit for each record of each run, and tags
 * (duplicate_marks.h), which the merge looks up when it opens blocks.
 *
 * The result depends neither on the order in which read ends arrive nor on how records are divided
 * into runs: ordinals give the input order (spill/sort_buffer.h).
 *
 * Order of calls: create; prepare, when the rules have the read groups; all records; resolve; find,
 * mark and counts. The observer destroys it. Threads: any thread may call find and mark; one thread
 * makes the other calls.
 */
#ifndef ROCKSORT_MARKDUP_MARKDUP_H
#define ROCKSORT_MARKDUP_MARKDUP_H

#include "bam/record_observer.h"
#include "markdup/duplicate_marks.h"
#include "markdup/markdup_rules.h"
#include "markdup/markdup_stats.h"

struct markdup;

/* memory_bytes: total. places: of temporary files. */
struct markdup *markdup_create(struct threads *threads, unsigned n_threads,
                               const struct markdup_rules *rules, size_t memory_bytes,
                               const struct temp_places *places);

/* Returns the observer, which owns d. d NULL: returns NULL. */
struct record_observer *markdup_observer(struct markdup *d);

/* Call it before the first record, when the rules have their read groups. */
void markdup_prepare(struct markdup *d);

/* Return how much of a sort's memory --markdup takes; and how much of that is for read ends: if
   they need more, all of them go to a temporary file. */
size_t markdup_memory(size_t total_bytes);
size_t markdup_read_ends_memory(const struct markdup_rules *rules, size_t total_bytes);

/* True if all sort buffers must be spilled before duplicates are resolved: because records get more
   than a flag, or because resolving needs the memory. NULL: false. */
bool markdup_need_runs(const struct markdup *d);

/* Return the maximum growth of a record in bytes; and the average growth, an estimate that is known
   after markdup_resolve. NULL: 0. */
size_t markdup_growth(const struct markdup *d);
size_t markdup_usual_growth(const struct markdup *d);

/* Finds all duplicates. Uses up to spare_bytes of additional memory during the call. Returns 0, or
   -1 after a message and thread_pool_fail. */
int markdup_resolve(struct markdup *d, size_t spare_bytes);

/* Returns the counts: *n elements, one for each group (markdup_stats.h). Stores the bytes of all
   read ends, and the bytes written to temporary files. */
const struct duplicate_counts *markdup_counts(const struct markdup *d, size_t *n,
                                              uint64_t *read_ends, uint64_t *files);

/* Finds which of n records of a run are duplicates, like duplicate_marks_find. */
int markdup_find(const struct markdup *d, uint32_t run, uint64_t first, uint64_t n,
                 struct found_marks *found);

struct marked_records { /* raw, one after another */
    uint8_t *bytes;
    size_t n_bytes, n;
};

/* Sets the flags of duplicates; `first` is the index of the first record in the run. If the rules
   also change tags or names, replaces the memory of the records with a rewritten copy. Returns 0,
   or -1 after a message. */
int markdup_mark(const struct markdup *d, uint32_t run, uint64_t first,
                 struct marked_records *records);

#endif
