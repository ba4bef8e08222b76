/*
 * planner.h -- estimates what a sort needs: number of runs, temporary space, size of outputs, time.
 *
 * One struct has the facts and the estimates. --plan fills and prints it. A sort fills it once,
 * before its first run or, without runs, before its output, and warns if there is too little space.
 * The estimates call the modules that decide during a sort: memory_budget, store_layout,
 * compaction_plan. Sizes are as exact as the known size of the input; times are rough.
 *
 * Order of calls: begin; set the fields "the input"; set_disks and look_at_space; sample and
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

struct plan_cost {              /* of an output, for each raw byte of records */
    double ratio;               /* bytes written */
    double seconds;             /* of one core */
};

struct plan_traits {            /* properties of the records, from a sample */
    double memory_ratio;        /* memory of a sort buffer / raw bytes in it */
    double load_seconds;        /* CPU time for each raw byte to read, check, index and sort */
    double read_seconds;        /* wait for the file, for each raw byte */
    double pack_ratio[TEMP_CODEC_COUNT];        /* temporary data / raw bytes */
    double read_ends_ratio;     /* read ends of --markdup / raw bytes */
    struct plan_cost deflate, usual;    /* BAM at the level of the settings, and at the default
                                           level */
};

struct plan {
    const struct sort_settings *settings;
    struct memory_budget budget;
    size_t read_ends_memory_bytes; /* memory for read ends of --markdup */
    unsigned n_cpus;            /* 0: unknown */
    /* the input */
    const char *format;         /* "bam", "sam", ... */
    uint64_t file_bytes;        /* of all inputs; 0: unknown */
    uint64_t expected_bytes;    /* of all records, uncompressed; not 0 */
    bool size_is_known;         /* false: expected_bytes is an assumption */
    bool size_is_exact;         /* the sample is the whole input */
    double n_records;           /* estimated, of all inputs; 0: unknown */
    struct plan_traits traits;
    double buffer_raw_bytes; /* raw bytes in a full sort buffer; 0: by its memory */
    double buffer_memory; /* memory of a sort buffer enlarged for large records; 0: usual */
    /* the temporary directories */
    unsigned n_dirs, n_lanes;   /* n_lanes: databases in each directory */
    unsigned most_files;        /* open files of each database */
    bool exceeds_memory;        /* the temporary data will not fit the page cache */
    struct run_store_disks disks;
    /* free space */
    struct disk_space temporary;        /* free_bytes is the sum over all directories */
    struct disk_space output, also;
    bool output_shares, also_shares;    /* on a file system of temporary data */
    /* set by planner_estimate; figures of runs are 0 without runs */
    bool in_memory;             /* no runs */
    uint64_t n_runs;
    uint64_t run_bytes;         /* uncompressed size of each */
    enum temp_codec codec;
    enum codec_reason codec_reason;
    struct compaction_plan compaction;
    uint64_t n_files;           /* read by the merge */
    size_t read_bytes;          /* size of a read; 0: left to the kernel */
    double n_seeks;             /* of the merge */
    double spilled_bytes;       /* written as runs */
    double read_ends_bytes;     /* tapes of --markdup; 0: in memory */
    double needed_bytes;        /* peak temporary space, when a compaction has written its result;
                                   includes read ends */
    double output_bytes, also_bytes;    /* also_bytes 0: no second output */
    double load_seconds, merge_seconds;
};

/* Initializes a plan with one directory and typical records. */
void planner_begin(struct plan *plan, const struct sort_settings *settings,
                   const struct memory_budget *budget);

/* Sets the properties of the disks of the temporary directories. */
void planner_set_disks(struct plan *plan, const struct run_store_disks *disks, unsigned n_dirs,
                       unsigned n_lanes);

/* Gets the free space of n_dirs existing temporary directories, and at the paths of both outputs;
   NULL: no file. */
void planner_look_at_space(struct plan *plan, const char *const *dirs, size_t n_dirs,
                           const char *output, const char *also);

/* Pure. */
void planner_estimate(struct plan *plan);

/* Writes a text for each place with too little space. Returns the number of texts. */
enum { PLAN_TEXT_BYTES = PATH_MAX + 256, PLAN_MOST_TEXTS = 3 };
size_t planner_compare_space(const struct plan *plan, char (*texts)[PLAN_TEXT_BYTES]);

/* Measures n sorted sort buffers that were filled one after another; the last may be partly full.
   Compresses some records of the first. Returns false if there are no records to measure. */
bool planner_sample(struct plan *plan, struct sort_buffer *const *buffers, size_t n);

/* Warns if there is too little space for the rest of a sort. Measures n sorted sort buffers, unless
   space is ample for any records. */
void planner_warn(struct plan *plan, struct sort_buffer *const *buffers, size_t n);

/* ---- planner_print.c ---- */

/* --plan: prints lines "key: value" on standard output. Loads some megabytes of the input, unless
   it is a pipe or standard input. Leaves no file. Prints the reasons, "" or " (auto: 4 CPUs)",
   after threads and memory. */
int planner_print(const struct sort_settings *settings, unsigned n_cpus,
                  const char *threads_reason, const char *memory_reason);

#endif
