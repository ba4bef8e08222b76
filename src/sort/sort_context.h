/*
 * sort_context.h -- the objects of one sort. Stages take it as const, and use what they need.
 *
 * sort_parts.h makes and releases them, prepare.h completes them before the first record is read.
 * Ownership: it has all that is not said to be borrowed. Threads: what changes later says so.
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
#include "sort/spill.h"
#include "spill/record_observers.h"

/* What was written so far, for the progress display. The thread pool's lock guards it. */
struct merge_counts {
    uint64_t n_records;
    uint64_t raw_bytes;
    uint64_t output_bytes;      /* CRAM: 0 */
};

struct sort_context {
    const struct sort_settings *settings;
    struct sort_report *report;
    struct memory_budget budget;        /* as it is when the sort begins */
    struct sort_rules rules;
    struct rules_maker rules_maker;
    struct fixmate_rules fixmate;       /* if the settings ask for it */
    struct cut_names cut_names;         /* of the records that were read */
    struct threads *threads;
    struct sort_buffer_pool *pool;
    struct load_totals *totals;
    struct checkpoint_writer *checkpoint;
    struct temp_store *store;
    struct spiller *spiller;
    struct markdup *duplicates;         /* one of observers_run; NULL: none are looked for */
    const char **temp_prefixes; /* of temp_places */
    struct temp_places temp_places;     /* of temporary files without a name */
    struct markdup_rules markdup_rules;         /* if the settings ask for it */
    struct read_groups *read_groups;    /* for it, or NULL */
    uint32_t first_own_run;     /* runs before it are of an earlier process */
    struct resume resume;
    struct bam_inputs *inputs;
    sam_hdr_t *header;
    struct verification *verification;  /* NULL: nothing is verified */
    struct output_path output_path, index_path, also_path;      /* set with the lock held */
    struct output_path no_path; /* of the index of the second output, which has none */
    struct output_set outputs;          /* of these, and reports; likewise */
    struct group_dir groups_dir;        /* set with the lock held */
    struct split_plan *split;           /* NULL: the output is one file */
    struct group_list *groups;          /* with it, until the report has them */
    struct input_scan scan;
    struct column_output columns[MOST_OUTPUTS]; /* of Arrow and Parquet; else {NULL} */
    struct sorted_output output;
    struct cram_doubt cram_doubt;       /* of the records of all outputs */
    /* of records that are read, of those that become runs, and of those that are written */
    struct record_observers observers_in, observers_run, observers_out;
    struct merge_counts merged;         /* under the lock */
    struct content_sum sum_out;
    bool lost_reader;                   /* the program that reads standard output closed it */
    struct progress *progress;
};

#endif
