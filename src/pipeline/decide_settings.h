/* decide_settings.h -- what the search for duplicates works with: decide.h. */
#ifndef ROCKSORT_PIPELINE_DECIDE_SETTINGS_H
#define ROCKSORT_PIPELINE_DECIDE_SETTINGS_H

#include "pipeline/duplicate_marks.h"
#include "duplicates/duplicate_rules.h"
#include "duplicates/group_counts.h"
#include "pipeline/crew.h"
#include "pipeline/duplicate_notes.h"
#include "store/temp_streams.h"

struct decide_settings {
    struct crew *crew;
    const struct duplicate_rules *rules;
    unsigned n_threads;
    size_t memory_bytes;        /* for the tables of all jobs */
    struct temp_places places;  /* of temporary files */
    uint64_t *file_bytes;       /* bytes that go to other temporary files are added */
    struct temp_streams *views; /* VIEW_N_STREAMS, complete */
    struct temp_streams *names; /* VIEW_N_PARTITIONS, empty, for -S; or NULL */
    struct temp_streams *guests;        /* VIEW_N_PARTITIONS, empty, if the rules need chains */
    struct duplicate_notes *notes;      /* for tags; or NULL */
    struct duplicate_marks *marks;      /* knows all runs */
    struct group_totals *counts;        /* what is found is added */
};

#endif
