/*
 * sort_context.h -- the objects of one sort. Stages take it as const, and use what they need.
 *
 * sort_parts.h makes and releases them, prepare.h completes them before the first record is read.
 * Ownership: it has all that is not said to be borrowed. Threads: what changes later says so.
 */
#ifndef ROCKSORT_PIPELINE_SORT_CONTEXT_H
#define ROCKSORT_PIPELINE_SORT_CONTEXT_H

#include "output/cram_check.h"
#include "pipeline/merge.h"
#include "pipeline/progress.h"
#include "pipeline/record_observers.h"
#include "pipeline/resume.h"
#include "pipeline/rules.h"
#include "pipeline/sort_settings.h"
#include "pipeline/spill.h"
#include "pipeline/survey.h"
#include "pipeline/verify.h"

struct sort_context {
    const struct sort_settings *settings;
    struct sort_report *report;
    struct mem_budget budget;           /* as it is when the sort begins */
    struct sort_rules rules;
    struct rules_maker rules_maker;
    struct fixmate_rules fixmate;       /* if the settings ask for it */
    struct cut_names cut_names;         /* of the records that were read */
    struct crew *crew;
    struct batch_pool *pool;
    struct load_totals *totals;
    struct checkpoint_writer *checkpoint;
    struct temp_store *store;
    struct spiller *spiller;
    struct duplicates *duplicates;      /* one of observers_run; NULL: none are looked for */
    const char **temp_prefixes; /* of temp_places */
    struct temp_places temp_places;     /* of temporary files without a name */
    struct duplicate_rules duplicate_rules;     /* if the settings ask for it */
    struct read_groups *read_groups;    /* for it, or NULL */
    uint32_t first_own_run;     /* runs before it are of an earlier process */
    struct resume resume;
    struct bam_inputs *inputs;
    sam_hdr_t *header;
    struct verification *verification;  /* NULL: nothing is verified */
    struct output_path output_path, index_path, also_path;      /* set with the lock held */
    struct output_path no_path; /* of the index of the second output, which has none */
    struct output_set outputs;          /* of these, and reports; likewise */
    struct piece_dir pieces_dir;        /* set with the lock held */
    struct split_plan *split;           /* NULL: the output is one file */
    struct piece_list *pieces;          /* with it, until the report has them */
    struct survey survey;
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
