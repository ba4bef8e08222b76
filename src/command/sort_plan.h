/*
 * sort_plan.h -- what a sort would do: whether the input fits into memory, how many runs there
 * would be, whether they would be compacted, how much temporary space and about how much time it
 * would take. For --plan.
 *
 * The figures come from the same modules that decide when a sort runs (mem_budget.h,
 * compaction_plan.h, codec_choice.h), and from a sample of the input. Sizes are as good as the
 * estimate of the input's; times are rough.
 *
 * Pure functions.
 */
#ifndef ROCKSORT_COMMAND_SORT_PLAN_H
#define ROCKSORT_COMMAND_SORT_PLAN_H

#include "command/plan_sample.h"
#include "pipeline/mem_budget.h"
#include "store/codec_choice.h"
#include "store/compaction_plan.h"

struct sort_plan_facts {
    struct mem_budget budget;
    uint64_t expected_bytes;    /* of all records, uncompressed; not 0 */
    bool size_is_known;         /* to the program: not a pipe, or -s was given */
    uint64_t said_bytes;        /* -s; 0: not given */
    struct plan_sample sample;  /* if nothing could be read: the usual */
    unsigned n_cpus;
    enum compaction_mode compaction;
    bool codec_auto;
    enum temp_codec codec;
    /* the temporary directories */
    unsigned n_dirs;
    unsigned n_lanes;           /* databases in each */
    bool in_memory;             /* all of them are none */
    bool slow_to_seek;          /* one of them is */
    double seek_seconds, bytes_per_second, parallel;    /* of the slowest; 0: not measured */
    bool exceeds_memory;        /* the temporary data will not fit the page cache */
    uint64_t free_bytes;
    unsigned most_files;        /* that may be open, in all */
};

struct sort_plan {
    bool in_memory;             /* nothing is written; all but the times is 0 */
    uint64_t n_runs;
    uint64_t run_bytes;         /* uncompressed, of each */
    unsigned n_databases;
    struct compaction_plan compaction;
    unsigned compaction_width;
    uint64_t n_files;           /* that the merge reads */
    size_t read_bytes;          /* of a file at a time; 0: as the kernel does */
    double n_seeks;             /* of the merge */
    enum temp_codec codec;
    enum codec_reason codec_reason;
    bool codec_may_change;      /* to none, if the disk keeps up */
    double temp_bytes;          /* that are written */
    double space_bytes;         /* ... and needed, with what compactions need for a moment */
    double output_bytes;
    double load_seconds, merge_seconds;
};

/* A sample of the usual short reads, for inputs of which nothing can be read beforehand. */
void sort_plan_usual_sample(struct plan_sample *sample);

void sort_plan_make(const struct sort_plan_facts *facts, struct sort_plan *plan);

#endif
