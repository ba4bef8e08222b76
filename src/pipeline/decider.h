/*
 * decider.h -- what the two ways of deciding have in common (decide.h): jobs that each take a
 * partition, passes over its streams, and what becomes of a duplicate that was found.
 *
 * Order of calls: decision_prepare; decide_partitions, any number of times, whose jobs call the
 * rest; decision_release. Threads: one job has a decider for itself; the caller of
 * decide_partitions waits.
 */
#ifndef ROCKSORT_PIPELINE_DECIDER_H
#define ROCKSORT_PIPELINE_DECIDER_H

#include "pipeline/decide_settings.h"
#include "pipeline/key_parts.h"

struct decider;
struct chain_work;

/* The work of all jobs. */
struct decision {
    const struct decide_settings *settings;
    struct decider *deciders;   /* one for each job that may run at a time */
    int (*decide)(struct decider *decider);     /* a partition; returns 0, or -1 after a message */
    pthread_mutex_t names_lock; /* for appending names and guests, and nothing else */
};

/* What one job works with. */
struct decider {
    struct crew_slot slot;
    struct decision *decision;
    struct duplicate_table *singles, *pairs;
    struct chain_work *chains;  /* of decide_chains.h, or NULL */
    struct temp_stream_reader reader;
    struct group_counts counts;
    unsigned partition;
    /* of passes over parts of the keys */
    uint64_t n_views;           /* that were visited since the pass began */
    uint64_t n_done;            /* of these, that a pass has seen before it was given up */
    bool is_again;              /* the view that is visited is one of them */
};

static inline const struct duplicate_rules *rules_of(const struct decider *decider)
{
    return decider->decision->settings->rules;
}

void decision_prepare(struct decision *decision, const struct decide_settings *settings);

/* Also adds what all jobs have counted to settings->counts. */
void decision_release(struct decision *decision);

/* Has all partitions decided. Returns 0, or -1 if the crew has failed. */
int decide_partitions(struct decision *decision, int (*decide)(struct decider *));

/* ---- passes ---- */

/* What a pass over a stream does with each view. TABLE_FULL and TABLE_FAILED end the pass. */
typedef enum table_result (*view_visitor)(struct decider *decider,
                                          const struct duplicate_view *view, uint32_t run,
                                          struct key_part keys);

/* Reads a whole stream of views. Returns 0, 1 if a table was full, or -1 after a message. */
int visit_stream(struct decider *decider, unsigned stream, view_visitor visit,
                 struct key_part keys);

/* A pass over all keys of a part. Returns as visit_stream. */
typedef int (*part_pass)(struct decider *decider, struct key_part keys);

/* Makes passes over all keys at once, or, if they do not fit into a table, over so many parts of
   them that they do. Parts that are done stay done: the one that did not fit is divided, and what
   was found in it before the table was full is right, and will be found again. Returns the number
   of parts, or -1 after a message. */
int decide_in_parts(struct decider *decider, part_pass pass);

/* ---- what was found ---- */

/* Counts a duplicate of a group. */
void count_duplicate(struct decider *decider, uint32_t group, bool is_pair);

/* Marks a duplicate and counts it, once. Returns 1, 0 if that was done already, or -1 after a
   message. */
int mark_duplicate(struct decider *decider, const struct duplicate_record *record, bool is_pair);

/* What is remembered of a duplicate that has other records, which will be marked, too. The name of
   its original follows. */
struct name_entry {
    struct duplicate_key key;   /* of its name */
    struct duplicate_name name; /* its pointer means nothing */
};

/* Returns 0, or -1 after a message. */
int remember_name(struct decider *decider, const uint8_t *name, size_t name_bytes,
                  const struct duplicate_name *duplicate);

/* The counts of a group, to add to; until the next call. */
static inline struct duplicate_counts *decider_counts(struct decider *decider, size_t group)
{
    return group_counts_of(&decider->counts, decider->decision->settings->counts, group);
}

/* Prints the message about a read of a pair that lacks a score. */
void report_lack_of_score(const uint8_t *name, size_t name_bytes);

#endif
