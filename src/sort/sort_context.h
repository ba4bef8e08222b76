/*
 * sort_context.h -- the objects of one sort. Stages take it as const.
 *
 * sort_setup.h makes and releases them, prepare.h completes them before the first record is read.
 * Ownership: it owns all that is not said to be borrowed. Threads: constant after that, unless
 * stated otherwise.
 */
#ifndef ROCKSORT_SORT_SORT_CONTEXT_H
#define ROCKSORT_SORT_SORT_CONTEXT_H

#include "markdup/markdup.h"
#include "output/cram_check.h"
#include "output/input_scan.h"
#include "resume/resume.h"
#include "resume/sort_settings.h"
#include "sort/rules.h"
#include "sort/sort_report.h"
#include "sort/sorted_output.h"
#include "spill/record_observers.h"
#include "resume/temp_store.h"

/* What was merged so far, for the progress display. Under the lock of the thread pool. */
struct merge_counts {
    uint64_t n_records;
    uint64_t raw_bytes;
    uint64_t output_bytes;      /* CRAM: 0 */
};

struct spiller {                /* see spiller.h */
    enum temp_codec codec;      /* of the last run, and the reason if the sort chooses it */
    enum codec_reason codec_reason;
    pthread_t thread;
    bool space_is_checked;
    struct spill_totals totals; /* only the thread that spills writes them, under the lock */
};

struct sort_context {
    const struct sort_settings *settings;
    struct sort_report *report;
    struct memory_budget budget;        /* at the start of the sort */
    struct sort_rules rules;
    struct rules_maker rules_maker;
    struct fixmate_rules fixmate;       /* with --fixmate */
    struct cut_names cut_names;         /* of the records that were read */
    struct threads *threads;
    struct sort_buffer_pool *pool;
    struct load_totals *totals;
    struct checkpoint_writer *checkpoint;
    struct temp_store *store;
    struct spiller spiller;
    struct markdup *duplicates;         /* one of observers_run; NULL without --markdup */
    const char **temp_prefixes; /* of temp_places */
    struct temp_places temp_places;     /* for unnamed temporary files */
    struct markdup_rules markdup_rules;         /* with --markdup */
    struct read_groups *read_groups;    /* for --markdup, or NULL */
    uint32_t first_own_run;     /* earlier runs are from an earlier process */
    struct resume resume;
    struct bam_inputs *inputs;
    sam_hdr_t *header;
    struct verification *verification;  /* NULL without --verify */
    struct output_path output_path, index_path, also_path;      /* set with the lock held */
    struct output_path no_path; /* {0}: the second output has no index */
    struct output_set outputs;          /* these, and reports; set with the lock held */
    struct group_dir groups_dir;        /* set with the lock held */
    struct split_plan *split;           /* NULL without --split-by */
    struct group_list *groups;          /* with split, until moved to the report */
    struct input_scan scan;
    struct column_output columns[MOST_OUTPUTS]; /* of Arrow and Parquet; else {NULL} */
    struct sorted_output output;
    struct cram_doubt cram_doubt;       /* of all outputs */
    /* see records that are read, that are written to runs, and that are written to the output */
    struct record_observers observers_in, observers_run, observers_out;
    struct merge_counts merged;         /* under the lock */
    struct content_sum sum_out;
    bool lost_reader;                   /* the reader of standard output closed it */
    struct progress *progress;
};

#endif
