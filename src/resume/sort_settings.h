/*
 * sort_settings.h -- all settings of a sort, made from the options. Whatever they point to outlives
 * it.
 *
 * They do not change during a sort. Stages reach them through sort_context.h.
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

struct count_report;
struct output_set;
struct sort_report;

struct sort_settings {
    const char *const *inputs;  /* "-": standard input */
    size_t n_inputs;
    htsFormat input_format;     /* only its options are used */
    const char *output;         /* NULL: standard output */
    const char *index_path;     /* index to write, or NULL */
    struct split_request split; /* --split-by: the output's name is a pattern with % */
    const char *split_by;       /* its argument, or NULL */
    struct count_report *counts;        /* one for each kind; NULL: nothing is counted */
    const char *reference;      /* --reference, or NULL */
    bool durable;               /* --fsync: regular files are on disk when the sort ends */
    bool merge;                 /* --merge: the inputs are already sorted */
    bool merge_may_copy;        /* --merge may copy compressed blocks */
    bool sum_only;              /* only count and checksum the records, write nothing */
    bool verify;                /* check the order; with sum_only and one input */
    bool verify_claim;          /* check the order in the header, not that of the rules */
    const char *const *temp_prefixes;   /* of each -T; one NULL without -T */
    size_t n_temp_prefixes;
    struct output_format output_format;
    struct column_request columns;      /* of Arrow and Parquet */
    const char *also;           /* --also, a second output of the same records, or NULL */
    struct output_format also_format;
    struct column_request also_columns;
    int level;                  /* -1: default */
    enum bgzf_engine engine;    /* compressor of BAM and compressed SAM */
    struct sort_rules rules;    /* without template_ends and minhash.index: sort_run makes them */
    const char *fixmate;        /* --fixmate, or NULL */
    struct fixmate_rules fixmate_rules; /* parsed, without references */
    const char *markdup;        /* --markdup, or NULL */
    struct markdup_rules markdup_rules;         /* parsed, without read groups */
    const char *minhash_fasta;  /* -I, or NULL */
    int minhash_window;         /* -w */
    bool codec_auto;            /* the sort chooses the codec */
    enum temp_codec codec;      /* unless codec_auto */
    unsigned n_threads;
    size_t memory_bytes;        /* the whole budget */
    uint64_t test_buffer_bytes; /* for tests: size of a sort buffer, one for each run; or 0 */
    uint64_t test_file_bytes;   /* for tests: size of a file of a run; or 0 */
    enum compaction_mode compaction;
    uint64_t input_bytes;       /* -s: estimated uncompressed size; 0: unknown */
    bool keep_checkpoint;
    bool no_resume;             /* --no-resume: make no checkpoint, sync no temporary data */
    unsigned fsync_after_seconds;       /* skip fsync until the sort is this old */
    const struct checkpoint *resumed;   /* checkpoint to resume, or NULL; it has the inputs, the
                                           order and the header */
    bool partial;               /* --partial: write the records that were saved */
    struct checkpoint_output asked_output;      /* counts and reports from the options */
    const char **options;       /* those that a checkpoint keeps */
    size_t n_options;
    bool add_pg;
    const char *command_line;   /* for @PG CL */
    /* Writes reports of a complete output to temporary files, adds them to the set and commits
       them; or NULL. After a failure the output is complete without them. */
    void (*write_reports)(void *arg, const struct sort_report *report, struct output_set *set);
    void *reports_arg;
    bool progress;              /* without a terminal, print a line every progress_seconds */
    double progress_seconds;
    bool sample;                /* collect samples in the report */
};

/* The compression of the output. */
static inline struct bgzf_method sort_settings_method(const struct sort_settings *settings)
{
    return (struct bgzf_method){settings->level, settings->engine,
                                settings->output_format.kind == OUTPUT_SAM_GZ};
}

#endif
