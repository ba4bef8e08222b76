/*
 * load.h -- the reader: input to sorted batches in memory.
 *
 * The calling thread reads; workers inflate, parse, check, index and sort (load_jobs.h).
 */
#ifndef ROCKSORT_PIPELINE_LOAD_H
#define ROCKSORT_PIPELINE_LOAD_H

#include "pipeline/load_jobs.h"

struct load_settings {
    struct crew *crew;
    struct batch_pool *pool;
    struct load_totals *totals;
    struct bam_inputs *inputs;
    size_t n_inputs;
    int32_t n_refs;
    struct input_position start;        /* where reading begins */
    const struct mem_budget *budget;
    const struct sort_rules *rules;
    struct verification *verification;  /* NULL: nothing is verified */
    bool sum_only;              /* only the checksum is wanted */
    const struct fixmate_rules *fixmate;        /* NULL: records stay as they are */
    const char *temp_prefix, *output;   /* where templates go that do not fit in memory: see
                                           temp_dir.h */
    struct survey survey;       /* gets all records */
    bool saves_part;            /* what came of an input that ends with an error is to be kept */
};

/*
 * Reads all inputs. The caller has set the totals to loading; this sets them to not loading when
 * the last batch is sealed. When it returns no job is left that works on a batch. Returns 0, or -1
 * after a message and crew_fail. If the input ended early and what came is to be kept it returns 0,
 * and the totals say that the input is cut.
 */
int load_input(const struct load_settings *settings);

#endif
