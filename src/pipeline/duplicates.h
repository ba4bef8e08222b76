/*
 * duplicates.h -- finds the duplicates among all records of a sort, and marks them.
 *
 * While runs are spilled, the workers that compress a pack also make a view of each record
 * (duplicates/duplicate_view.h). Views are some 24 bytes. They go to streams
 * (duplicates/view_streams.h), which go to a temporary file when their memory is full. When all
 * records are read, the workers do the same for the batches in memory, and then resolve one
 * partition of them after another (resolve_duplicates.h): the result is one bit for each record of
 * each run (duplicate_marks.h). The merge looks the bits up when it opens blocks.
 *
 * Which reads are duplicates does not depend on the order in which views come, nor on how the
 * records lie in runs: a run is a part of the input, and ordinals say what came first in it
 * (record_ordinals.h).
 *
 * Order of calls: create; prepare, when the rules know the read groups; for each run begin_run,
 * take, and end_run or undo_run; decide; mark; counts; destroy. Threads: the spiller, later the
 * thread that runs the phases, makes these calls; workers call duplicate_looks_*, take and mark.
 */
#ifndef ROCKSORT_PIPELINE_DUPLICATES_H
#define ROCKSORT_PIPELINE_DUPLICATES_H

#include "duplicates/duplicate_rules.h"
#include "duplicates/group_counts.h"
#include "duplicates/read_coords.h"
#include "pipeline/batch.h"
#include "pipeline/crew.h"
#include "store/temp_streams.h"

struct duplicates;

struct duplicates_settings {
    struct crew *crew;
    const struct duplicate_rules *rules;
    unsigned n_threads;
    size_t memory_bytes;       /* for all of it */
    struct temp_places places; /* of temporary files */
};

struct duplicates *duplicates_create(const struct duplicates_settings *settings);

/* NULL is accepted. */
void duplicates_destroy(struct duplicates *d);

/* Before the first record: the rules have their groups now. */
void duplicates_prepare(struct duplicates *d);

/* Of the whole memory of a sort, the part that the search takes. */
size_t duplicates_memory(size_t total_bytes);

/* Of the same, the part for views. With more of them all go to a temporary file. */
size_t duplicates_view_memory(const struct duplicate_rules *rules, size_t total_bytes);

/* ---- views, by workers ---- */

/* How many examined reads lack what the options look for. */
struct barcode_counts {
    uint64_t n_examined, n_lacking;     /* examined reads; those that have no barcode */
    uint64_t n_unreadable;              /* record_views.lacks_barcode */
    uint64_t n_names, n_without_coords; /* names searched for coordinates; those without */
};

/* The views of some records that follow one another in a run. */
struct duplicate_looks {
    uint8_t *bytes; /* chunks */
    size_t n_bytes, room;
    struct group_counts counts; /* of the records */
    struct barcode_counts barcodes;
};

/* Where a record is. */
struct record_place {
    uint32_t run;
    uint64_t index;   /* in the run */
    uint64_t ordinal; /* the index, unless record_ordinals_are_needed */
};

/* The memory in which a worker's jobs gather views. */
struct view_gather *worker_view_gather(struct worker *worker);

/* Adds the view of a record, which stays until duplicate_looks_end. `gather` belongs to the worker.
   Returns 0, or -1 after a message that names the read. */
int duplicate_looks_add(const struct duplicates *d, struct view_gather *gather,
                        struct duplicate_looks *looks, const uint8_t *rec,
                        const struct record_place *place);
void duplicate_looks_end(struct view_gather *gather, struct duplicate_looks *looks, uint32_t run);
void duplicate_looks_release(struct duplicate_looks *looks);

/* ---- the runs ---- */

/* The run that will be written. */
void duplicates_begin_run(struct duplicates *d);

/* Takes the views of a part of it, and empties looks. Returns 0, or -1 after a message. Any job may
   call it: for the spiller it would be 0.07 s of CPU for each million records. It may have to wait
   for another job, and for a write to the file. */
int duplicates_take(struct duplicates *d, struct duplicate_looks *looks);

/* The run is in the store, with so many records; or it is not, and will be written again. Undo
   returns 0, or -1 after a message. */
void duplicates_end_run(struct duplicates *d, uint32_t run, uint64_t n_records);
int duplicates_undo_run(struct duplicates *d);

/* ---- when all records are read ---- */

/* True if all records must be in runs before duplicates are decided: records get more than a flag,
   or deciding needs the memory. NULL: false. */
bool duplicates_need_runs(const struct duplicates *d);

/* True if records get more than a flag. NULL: false. */
bool duplicates_rewrite_records(const struct duplicates *d);

/* By how many bytes a record can grow at most; and by how many records grow on average, an estimate
   that is known when all is decided. NULL: 0. */
size_t duplicates_growth(const struct duplicates *d);
size_t duplicates_usual_growth(const struct duplicates *d);

/* Makes the views of n batches in memory, the first of which is run number `first_run` to the
   merge, finds all duplicates, and marks those in the batches. Takes up to spare_bytes more memory
   for so long. Returns 0, or -1 after a message and crew_fail. */
int duplicates_decide(struct duplicates *d, struct batch *const *batches, size_t n,
                      uint32_t first_run, size_t spare_bytes);

/* Bytes of all views, and bytes that went to temporary files. */
void duplicates_bytes(const struct duplicates *d, uint64_t *views, uint64_t *files);

/* What was read and found: one element for each group, as in duplicate_stats.h. */
const struct duplicate_counts *duplicates_counts(const struct duplicates *d, size_t *n);

/* Marks the duplicates among n raw records, one after another, the first of which has this index in
   the run. Returns 0, or -1 after a message. */
int duplicates_mark(const struct duplicates *d, uint32_t run, uint64_t first_index, uint8_t *raw,
                    size_t n);

/*
 * If the rules do more than set the flag: writes n raw records of a run as they will be in the
 * output, but for the flag, which duplicates_mark has set. Returns new memory, which has room for
 * tail_bytes after them, and sets *raw_bytes to their size; or NULL after a message.
 */
uint8_t *duplicates_rewrite(const struct duplicates *d, uint32_t run, uint64_t first_index,
                            const uint8_t *raw, size_t n, size_t *raw_bytes, size_t tail_bytes);

#endif
