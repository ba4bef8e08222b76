/*
 * sort_settings.h -- what the user wants of a sort. All that it points to outlives the sort.
 *
 * The frame of the sort (bam_sort.c) sees all of it, and what keeps temporary data and checkpoints.
 * Other stages get settings of their own.
 */
#ifndef ROCKSORT_RESUME_SORT_SETTINGS_H
#define ROCKSORT_RESUME_SORT_SETTINGS_H

#include "bam/bgzf_engine.h"
#include "bam_sort_key.h"
#include "columns/column_schema.h"
#include "fixmate/fixmate.h"
#include "markdup/markdup_rules.h"
#include "output/output_format.h"
#include "resume/checkpoint_dir.h"
#include "spill/compaction_plan.h"
#include "spill/temp_codec.h"
#include "split/split_plan.h"

#include <htslib/hts.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct count_file;
struct output_set;
struct sort_report;

struct sort_settings {
    const char *const *inputs;  /* "-": standard input */
    size_t n_inputs;
    htsFormat input_format;     /* only its options are looked at */
    const char *output;         /* NULL: standard output */
    const char *index_path;     /* of the index to be written, or NULL */
    struct split_request split; /* --split-by: the output's name is a pattern with % */
    const char *split_by;       /* its argument, or NULL */
    struct count_file *count_files;     /* one for each enum count_kind; NULL: nothing is counted */
    bool durable;               /* regular files are on the disk when the sort ends (fsync) */
    bool merge;                 /* the inputs are in order: merge them (--merge) */
    bool merge_may_copy;        /* blocks of the inputs may become blocks of the output */
    bool sum_only;              /* count and checksum the records of the input, write nothing */
    bool verify;                /* check that they are in order; with sum_only and one input */
    bool verify_claim;          /* check the order that the header claims, not that of the rules */
    const char *const *temp_prefixes;   /* of each -T; one NULL without -T */
    size_t n_temp_prefixes;
    struct output_format output_format;
    struct column_request columns;      /* of Arrow and Parquet */
    const char *also;           /* --also, a second output of the same records, or NULL */
    struct output_format also_format;
    struct column_request also_columns;
    int level;                  /* -1: default */
    enum bgzf_engine engine;    /* that deflates BAM and compressed SAM */
    struct sort_rules rules;    /* without template_ends and minhash.index: sort_run makes them */
    const char *fixmate;        /* --fixmate, or NULL: records stay as they are */
    struct fixmate_rules fixmate_rules; /* what it says, without references */
    const char *markdup;        /* --markdup, or NULL: no duplicates are looked for */
    struct markdup_rules markdup_rules;         /* what it says, without read groups */
    const char *minhash_fasta;  /* -I, or NULL */
    int minhash_window;         /* -w */
    bool codec_auto;            /* the sort chooses the codec */
    enum temp_codec codec;      /* if it does not */
    unsigned n_threads;
    size_t memory_bytes;        /* the whole budget */
    struct checkpoint_resources resources;      /* threads and memory as they were asked for */
    uint64_t test_buffer_bytes; /* for tests: such small sort buffers, each of them a run; or 0 */
    uint64_t test_file_bytes;   /* for tests: such small files of runs; or 0 */
    enum compaction_mode compaction;
    uint64_t input_bytes;       /* -s: estimated uncompressed size; 0: unknown */
    bool keep_checkpoint;
    bool no_resume;             /* the temporary data need not outlive the process */
    unsigned fsync_after_seconds;       /* skip fsync until the sort is this old */
    const struct checkpoint *resumed;   /* goes on with this one, or NULL: it has the inputs, the
                                           order and the header */
    bool partial;               /* writes what is there, whether or not it is all of the input */
    struct checkpoint_output asked_output;      /* the output as the options have it */
    bool add_pg;
    const char *command_line;   /* for @PG CL */
    /* Writes reports of a complete output to temporary files, adds them to the set and commits
       them; NULL: there are none. After a failure they are missing. */
    void (*write_reports)(void *arg, const struct sort_report *report, struct output_set *set);
    void *reports_arg;
    bool progress;              /* where no terminal shows it, a line every progress_seconds */
    double progress_seconds;
    bool sample;                /* the report gets a series of samples */
};

/* How the output is deflated. */
static inline struct bgzf_method sort_settings_method(const struct sort_settings *settings)
{
    return (struct bgzf_method){settings->level, settings->engine,
                                settings->output_format.kind == OUTPUT_SAM_GZ};
}

#endif
