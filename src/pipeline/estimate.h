/*
 * estimate.h -- what a sort will do: whether the input fits into memory, how many runs there will
 * be, whether they are compacted, how much temporary space and about how much time it takes.
 *
 * This is the one estimate: --plan prints it, and the warnings about full disks (space.h) compare
 * it with what is free. It asks the modules that decide while a sort runs: mem_budget.h,
 * spill_policy.h, compaction_plan.h, codec_policy.h. How records compress and what each step takes
 * comes from a sample of them (record_sample.h). Sizes are as good as the estimate of the input's
 * size. Times are rough.
 *
 * The functions are pure.
 */
#ifndef ROCKSORT_PIPELINE_ESTIMATE_H
#define ROCKSORT_PIPELINE_ESTIMATE_H

#include "output/output_format.h"
#include "pipeline/mem_budget.h"
#include "store/codec_policy.h"
#include "store/compaction_plan.h"
#include "store/run_store.h"

/* A sample of records tells this about all of them. */
struct record_traits {
    double memory_ratio;        /* memory of a batch to the raw bytes in it, once all are indexed */
    double memory_at_worst;     /* the same before, for whatever records they turn out to be */
    double record_bytes;        /* of the record that a raw byte belongs to, on average */
    bool by_blocks;             /* records come in whole BGZF blocks; else one by one */
    bool is_text;               /* SAM */
    double deflate_ratio;       /* BAM to raw bytes, at the level of the output */
    double usual_ratio;         /* the same at the default level */
    double pack_ratio[TEMP_CODEC_COUNT];        /* temporary data to raw bytes */
    double view_ratio;          /* views of --markdup to raw bytes; 0: none are made */
    /* seconds for each raw byte, on one core; 0: not measured */
    double read_seconds;        /* waiting for the file */
    double decode_seconds;
    double sort_seconds;        /* checking, indexing, sorting */
    double gather_seconds;      /* copying in sorted order */
    double deflate_seconds, usual_seconds;      /* as the ratios */
    double pack_seconds[TEMP_CODEC_COUNT], unpack_seconds[TEMP_CODEC_COUNT];
};

/* What is written. */
struct estimate_output {
    enum output_kind kind;
    int level;                  /* -1: default */
};

struct estimate_facts {
    struct mem_budget budget;
    uint64_t expected_bytes;    /* of all records, uncompressed; not 0 */
    bool size_is_known;         /* false: the sort itself will not know it, as it reads a pipe */
    uint64_t said_bytes;        /* -s; 0: not given */
    struct record_traits traits;
    double batch_raw_bytes;     /* raw bytes in a full batch; 0: computed from the traits */
    unsigned n_cpus;            /* 0: unknown */
    enum compaction_mode compaction;
    bool codec_auto;
    enum temp_codec codec;
    struct estimate_output outputs[MOST_OUTPUTS];       /* the level of the second is the default */
    unsigned n_outputs;
    size_t view_memory_bytes;   /* for views (duplicates_view_memory) */
    uint64_t large_template_bytes;      /* of a template that does not fit in memory; 0: none */
    /* the temporary directories */
    unsigned n_dirs;
    unsigned n_lanes;           /* databases in each */
    struct run_store_disks disks;
    bool exceeds_memory;        /* the temporary data will not fit the page cache */
    unsigned most_files;        /* that each database may have open */
};

struct estimate {
    bool in_memory;             /* nothing is written to disk; figures of runs are 0 */
    uint64_t n_runs;
    uint64_t run_bytes;         /* uncompressed, of each */
    unsigned n_databases;
    struct compaction_plan compaction;
    uint64_t n_files;           /* that the merge reads */
    size_t read_bytes;          /* of a file at a time; 0: as the kernel does */
    double n_seeks;             /* of the merge */
    enum temp_codec codec;
    enum codec_reason codec_reason;
    double temp_bytes;          /* temporary data that are written, as runs */
    double view_bytes;          /* of --markdup; 0: there are none, or they stay in memory */
    double template_bytes;      /* of the largest template of --fixmate; 0: it fits in memory */
    double needed_bytes;        /* temporary space at the peak, with views and the template:
                                   compactions write their result before they remove what went into
                                   it */
    double output_bytes;
    double also_bytes;          /* of the second output; 0: there is none */
    double load_seconds, merge_seconds;
};

/* Stores the traits of usual short reads, for inputs of which nothing can be read beforehand. */
void estimate_usual_traits(struct record_traits *traits);

/* True if the estimate of these outputs needs what the default level does, whatever the level of
   the output is. */
bool estimate_needs_usual(const struct estimate_output *outputs, unsigned n_outputs);

void estimate_make(const struct estimate_facts *facts, struct estimate *estimate);

#endif
