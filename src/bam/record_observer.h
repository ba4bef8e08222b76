/*
 * record_observer.h -- something that looks at all records of a sort while they pass: it counts
 * them, or checks their order, or finds out which tags there are.
 *
 * An observer is a struct that begins with a struct record_observer; its kind says what it does.
 * The stages of a sort have lists of observers and know nothing else of them. Records come in
 * pieces, and what an observer finds in a piece is a *part*.
 *
 * Order of calls: for each piece begin; add_records once or more; end, all three by one worker;
 * then combine, or discard after a failure. After the last piece finish; print; destroy. A run is
 * written again if its disk is full: begin_run and undo_run come before and after its pieces then.
 *
 * Threads: any number may work on different parts. An observer of the output combines its parts in
 * the order of the output, one at a time; one of the input combines them in any order, and several
 * at the same time. Errors: -1 after a message.
 */
#ifndef ROCKSORT_BAM_RECORD_OBSERVER_H
#define ROCKSORT_BAM_RECORD_OBSERVER_H

#include "bam/bam_fields.h"

#include <stdio.h>

struct observed_records {
    struct bam_records all;     /* checked */
    uint32_t run;               /* of the input: number of the run or input that they are in */
    uint64_t first_record;      /* ... and of the first one in it, from 0, or
                                   RECORD_NUMBER_UNKNOWN */
    const uint8_t *ordinals;    /* of records of a run (bam_block.h); NULL: none */
};

struct record_observer {
    const struct observer_kind *kind;
};

struct observer_kind {          /* what is NULL is not needed */
    void *(*begin)(const struct record_observer *observer);     /* NULL: there are no parts */
    int (*add_records)(struct record_observer *observer, void *part,
                       const struct observed_records *records);
    void (*end)(struct record_observer *observer, void *part);
    int (*combine)(struct record_observer *observer, void *part);       /* frees the part */
    void (*discard)(void *part);
    void (*begin_run)(struct record_observer *observer);        /* no part is under way */
    void (*undo_run)(struct record_observer *observer, uint32_t run);   /* likewise; forgets it */
    void (*finish)(struct record_observer *observer);
    void (*print)(const struct record_observer *observer, FILE *to);
    void (*destroy)(struct record_observer *observer);
};

#endif
