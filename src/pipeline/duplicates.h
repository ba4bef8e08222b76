/*
 * duplicates.h -- finds the duplicates among all records of a sort, and marks them.
 *
 * It is an observer (bam/record_observer.h) of records in runs: of each it makes a view of some 24
 * bytes (duplicates/duplicate_view.h). Views go to streams (view_chunks.h), which go to
 * a temporary file when their memory is full. When all records were seen, jobs resolve one
 * partition of the views after another (resolve_duplicates.h). The result is a bit for each record
 * of each run, and tags (duplicate_marks.h), which the merge looks up when it opens blocks.
 *
 * Which reads are duplicates does not depend on the order in which views come, nor on how records
 * lie in runs: ordinals say what came first in the input (record_ordinals.h).
 *
 * Order of calls: create; prepare, when the rules know the read groups; all records; resolve; find,
 * mark and counts; destroy, by the observer. Threads: any may find and mark; one makes the other
 * calls.
 */
#ifndef ROCKSORT_PIPELINE_DUPLICATES_H
#define ROCKSORT_PIPELINE_DUPLICATES_H

#include "bam/record_observer.h"
#include "duplicates/duplicate_rules.h"
#include "duplicates/duplicate_stats.h"
#include "pipeline/duplicate_marks.h"

struct duplicates;

struct duplicates_settings {
    struct crew *crew;
    const struct duplicate_rules *rules;
    unsigned n_threads;
    size_t memory_bytes;       /* for all of it */
    struct temp_places places; /* of temporary files */
};

struct duplicates *duplicates_create(const struct duplicates_settings *settings);

/* Its observer, which destroys it. NULL: NULL. */
struct record_observer *duplicates_observer(struct duplicates *d);

/* Before the first record: the rules have their groups now. */
void duplicates_prepare(struct duplicates *d);

/* Of the whole memory of a sort, the part that the search takes; and the part of that for views:
   if they need more, all go to a temporary file. */
size_t duplicates_memory(size_t total_bytes);
size_t duplicates_view_memory(const struct duplicate_rules *rules, size_t total_bytes);

/* True if all records must be in runs before duplicates are resolved: records get more than a flag,
   or resolving needs the memory. NULL: false. */
bool duplicates_need_runs(const struct duplicates *d);

/* By how many bytes a record can grow at most; and by how many records grow on average, an estimate
   that is known when all is resolved. NULL: 0. */
size_t duplicates_growth(const struct duplicates *d);
size_t duplicates_usual_growth(const struct duplicates *d);

/* Finds all duplicates. Takes up to spare_bytes more memory for so long. Returns 0, or -1 after a
   message and crew_fail. */
int duplicates_resolve(struct duplicates *d, size_t spare_bytes);

/* Bytes of all views, and bytes that went to temporary files. */
void duplicates_bytes(const struct duplicates *d, uint64_t *views, uint64_t *files);

/* What was read and found: one element for each group, as in duplicate_stats.h. */
const struct duplicate_counts *duplicates_counts(const struct duplicates *d, size_t *n);

/* Finds which of n records of a run are duplicates, as duplicate_marks_find. */
int duplicates_find(const struct duplicates *d, uint32_t run, uint64_t first, uint64_t n,
                    struct found_marks *found);

struct marked_records { /* raw, one after another */
    uint8_t *bytes;
    size_t n_bytes, n;
};

/* Sets the flags of duplicates; `first` is the index of the first record in the run. If the rules
   do more than that, the records become new memory, as they will be in the output, with room for
   tail_bytes after them. Returns 0, or -1 after a message. */
int duplicates_mark(const struct duplicates *d, uint32_t run, uint64_t first,
                    struct marked_records *records, size_t tail_bytes);

#endif
