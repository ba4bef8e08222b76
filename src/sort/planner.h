/*
 * planner.h -- what a sort will need: how many runs, how much temporary space, how large outputs
 * will be, and about how much time it will take.
 *
 * One struct has the facts and the estimates. --plan fills and prints it. A sort fills it once,
 * before its first run or, without runs, before its output, and warns if there is too little space.
 * The estimates ask the modules that decide while a sort runs: memory_budget, store_layout,
 * compaction_plan. Sizes are as good as that of the input is known; times are rough.
 *
 * Order of calls: begin; set what is known of the input; set_disks and look_at_space; sample and
 * estimate, or warn. planner_print does all of this. A plan owns nothing. Threads: one for each
 * plan. Errors: -1 after a message.
 */
#ifndef ROCKSORT_SORT_PLANNER_H
#define ROCKSORT_SORT_PLANNER_H

#include "os/disk_space.h"
#include "resume/sort_settings.h"
#include "spill/memory_budget.h"
#include "spill/run_store.h"
#include "spill/sort_buffer.h"
#include "spill/store_layout.h"

struct plan_cost {              /* of a step, for each raw byte of the records */
    double ratio;               /* bytes that it makes */
    double seconds;             /* of one core */
};

struct plan_traits {            /* of the records, from a sample of them */
    double memory_ratio;        /* memory of a sort buffer to the raw bytes in it */
    double load_seconds;        /* of one core, for each raw byte: to read, check, index and sort */
    double read_seconds;        /* of waiting for the file, for each raw byte */
    double pack_ratio[TEMP_CODEC_COUNT];        /* temporary data to raw bytes */
    double read_ends_ratio;     /* bytes that --markdup remembers to raw bytes */
    struct plan_cost deflate, usual;    /* BAM as the settings want it, and at the default level */
};

struct plan {
    const struct sort_settings *settings;
    struct memory_budget budget;
    size_t read_ends_memory_bytes; /* for what --markdup remembers */
    unsigned n_cpus;            /* 0: unknown */
    /* the input */
    const char *format;         /* "bam", "sam", ... */
    uint64_t file_bytes;        /* of all inputs; 0: unknown */
    uint64_t expected_bytes;    /* of all records, uncompressed; not 0 */
    bool size_is_known;         /* false: expected_bytes is an assumption */
    bool size_is_exact;         /* the sample is the whole input */
    double n_records;           /* of all inputs, about; 0: unknown */
    struct plan_traits traits;
    double buffer_raw_bytes; /* raw bytes in a full sort buffer; 0: as many as its memory takes */
    double buffer_memory; /* of it, if records are larger than other sort buffers; 0: as others */
    /* the temporary directories */
    unsigned n_dirs, n_lanes;   /* n_lanes: databases in each directory */
    unsigned most_files;        /* that each database may have open */
    bool exceeds_memory;        /* the temporary data will not fit the page cache */
    struct run_store_disks disks;
    /* free space */
    struct disk_space temporary;        /* free_bytes is the sum over all directories */
    struct disk_space output, also;
    bool output_shares, also_shares;    /* they are on a file system of temporary data */
    /* set by planner_estimate; figures of runs are 0 if there are none */
    bool in_memory;             /* there are none */
    uint64_t n_runs;
    uint64_t run_bytes;         /* uncompressed, of each */
    enum temp_codec codec;
    enum codec_reason codec_reason;
    struct compaction_plan compaction;
    uint64_t n_files;           /* that the merge reads */
    size_t read_bytes;          /* of a file at a time; 0: as the kernel does */
    double n_seeks;             /* of the merge */
    double spilled_bytes;       /* written as runs */
    double read_ends_bytes;     /* a file of --markdup; 0: there is none */
    double needed_bytes;        /* temporary space at the peak, when a compaction has written its
                                   result; includes read ends */
    double output_bytes, also_bytes;    /* also_bytes: of the second output; 0: there is none */
    double load_seconds, merge_seconds;
};

/* Begins a plan with one directory and usual records. */
void planner_begin(struct plan *plan, const struct sort_settings *settings,
                   const struct memory_budget *budget);

/* Sets what the disks of the temporary directories are like. */
void planner_set_disks(struct plan *plan, const struct run_store_disks *disks, unsigned n_dirs,
                       unsigned n_lanes);

/* Looks at the free space of n_dirs existing directories for temporary data, and where the output
   and that of --also will be; NULL: it is no file. */
void planner_look_at_space(struct plan *plan, const char *const *dirs, size_t n_dirs,
                           const char *output, const char *also);

/* Pure. */
void planner_estimate(struct plan *plan);

/* Writes a text for each place with too little space. Returns how many there are. */
enum { PLAN_TEXT_BYTES = PATH_MAX + 256, PLAN_MOST_TEXTS = 3 };
size_t planner_compare_space(const struct plan *plan, char (*texts)[PLAN_TEXT_BYTES]);

/* Measures n sorted sort buffers that were filled one after the other, the last one perhaps in
   part. Compresses some records of the first. Returns false if they tell nothing. */
bool planner_sample(struct plan *plan, struct sort_buffer *const *buffers, size_t n);

/* Warns if there is too little space for the rest of a sort. Measures n sorted sort buffers, unless
   there is more space than any records need. */
void planner_warn(struct plan *plan, struct sort_buffer *const *buffers, size_t n);

/* ---- planner_print.c ---- */

/* --plan: prints lines "key: value" on standard output. Loads some megabytes of the input, but not
   of a pipe or standard input. Leaves no file. The reasons, "" or " (auto: 4 CPUs)", are printed
   after threads and memory. */
int planner_print(const struct sort_settings *settings, unsigned n_cpus,
                  const char *threads_reason, const char *memory_reason);

#endif
