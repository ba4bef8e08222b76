/*
 * record_observers.h -- calls lists of observers (bam/record_observer.h) of the input and of the
 * output.
 *
 * Threads: see record_observer.h. A list is complete before its first record.
 */
#ifndef ROCKSORT_SPILL_RECORD_OBSERVERS_H
#define ROCKSORT_SPILL_RECORD_OBSERVERS_H

#include "bam/record_observer.h"

enum { MOST_OBSERVERS = 24 };

struct record_observers {       /* starts as {0}; a copy has the same observers */
    struct record_observer *all[MOST_OBSERVERS];
    unsigned n;
};

struct observed_parts {         /* starts as {0} */
    const struct record_observers *observers;   /* NULL: there are no parts */
    void *all[MOST_OBSERVERS];
    bool failed;                /* an observer has failed */
};

/* Adds an observer to the list; Accepts NULL. */
void record_observers_add(struct record_observers *observers, struct record_observer *observer);

/* Call begin_run before a run is written, and undo_run before it is written again. */
void record_observers_begin_run(const struct record_observers *observers);
void record_observers_undo_run(const struct record_observers *observers, uint32_t run);

/* Destroys all observers of the list. */
void record_observers_destroy(struct record_observers *observers);

/* Shows records to all observers (NULL: none), as one part. Returns 0, or -1 after a message. */
int record_observers_look(const struct record_observers *observers,
                          const struct observed_records *records);

/* ---- parts that get their records one by one ---- */

/* observers NULL: none. */
void observed_parts_begin(struct observed_parts *parts, const struct record_observers *observers);

/* Adds records. Returns 0, or -1 after a message. */
int observed_parts_show(struct observed_parts *parts, const struct observed_records *records);

/* Adds a record of the output. */
static inline void observed_parts_add(struct observed_parts *parts, const uint8_t *rec)
{
    if (parts->observers->n == 0) return;
    const struct observed_records one = {.all = {rec, rec + bam_record_bytes(rec)}};
    parts->failed |= observed_parts_show(parts, &one) < 0;
}

/* Call it after the last record. Returns 0, or -1 if an observer has failed. */
int observed_parts_end(struct observed_parts *parts);

/* Returns 0, or -1 after a message. */
int observed_parts_combine(struct observed_parts *parts);

/* Frees parts that were not combined. */
void observed_parts_discard(struct observed_parts *parts);

/* Ends and combines the parts if r is 0, else discards them. Returns 0, or -1 after a message. */
int observed_parts_close(struct observed_parts *parts, int r);

#endif
