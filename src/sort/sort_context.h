/*
 * sort_context.h -- the objects of one sort. Stages take it as const where they only use it.
 *
 * sort_setup.h makes and releases them, prepare.h completes them before the first record is read.
 * Ownership: it owns all that is not said to be borrowed. Threads: constant after that, unless
 * stated otherwise.
 */
#ifndef ROCKSORT_SORT_SORT_CONTEXT_H
#define ROCKSORT_SORT_SORT_CONTEXT_H

#include "markdup/markdup.h"
#include "output/cram_check.h"
#include "output/output_file.h"
#include "output/output_set.h"
#include "resume/group_dir.h"
#include "resume/resume.h"
#include "resume/sort_settings.h"
#include "resume/temp_store.h"
#include "sort/rules.h"
#include "sort/sort_report.h"
#include "spill/record_observers.h"
#include "split/group_list.h"
#include "split/split_plan.h"

/* Borrowed from observers that must see the whole input before the first record is written; NULL:
   not needed. */
struct input_scan {
    struct range_counts *ranges;        /* to choose ranges of groups */
    struct tag_schema_scan *tags;       /* to choose columns */
};

struct sorted_output {          /* see sorted_output.h */
    struct output_file files[MOST_OUTPUTS];     /* with groups, [0] has their settings, and patterns
                                                   as names */
    unsigned n_files;
    /* with groups */
    struct byte_buffer shared_header;
    struct open_group **open;   /* one, or several with intervals apart */
    size_t n_open, open_room;
    size_t span;                /* by place: the last span */
    uint8_t *value;             /* by tag: the last value; owned */
    size_t value_bytes;
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
    struct markdup *markdup;            /* one of observers_run; NULL without --markdup */
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
    struct group_list *groups;          /* with split; owned by the report when
                                           the output is complete */
    struct input_scan scan;
    struct column_output columns[MOST_OUTPUTS]; /* of Arrow and Parquet; else {NULL} */
    struct sorted_output output;
    struct cram_doubt cram_doubt;       /* of all outputs */
    /* see records that are read, that are written to runs, and that are written to the output */
    struct record_observers observers_in, observers_run, observers_out;
    struct content_sum sum_out;         /* of the records written so far; under the lock */
    uint64_t bytes_out;                 /* written so far; CRAM: 0; under the lock */
    struct progress *progress;
};

#endif
