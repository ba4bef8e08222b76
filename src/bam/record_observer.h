/*
 * record_observer.h -- the interface of modules that see all records of a sort: they count records,
 * check their order, or collect their tags.
 *
 * An observer is a struct whose first member is a struct record_observer; its kind holds its
 * functions. The stages of a sort have lists of observers and know nothing else about them. Records
 * come in pieces; the result of a piece is a *part*.
 *
 * Order of calls: for each piece begin, add_records (once or more) and end, all by one worker; then
 * combine, or discard after a failure. After the last piece finish; print; destroy. begin_run comes
 * before the pieces of a run; if the disk is full, undo_run follows, and the run is written again.
 *
 * Threads: several may work on different parts. The parts of the output are combined one at a time,
 * in the order of the output; those of the input in any order, several at a time. Errors: -1 after
 * a message.
 */
#ifndef ROCKSORT_BAM_RECORD_OBSERVER_H
#define ROCKSORT_BAM_RECORD_OBSERVER_H

#include "bam/bam_fields.h"

#include <stdio.h>

struct observed_records {
    struct bam_records all;     /* checked */
    uint32_t run;               /* for the input: number of the run or of the input */
    uint64_t first_record;      /* number of the first record in it, from 0, or
                                   RECORD_NUMBER_UNKNOWN */
    const uint8_t *ordinals;    /* of records of a run (bam_block.h); NULL: none */
};

struct record_observer {
    const struct observer_kind *kind;
};

struct observer_kind {          /* a function may be NULL */
    void *(*begin)(const struct record_observer *observer);     /* NULL: there are no parts */
    int (*add_records)(struct record_observer *observer, void *part,
                       const struct observed_records *records);
    void (*end)(struct record_observer *observer, void *part);
    int (*combine)(struct record_observer *observer, void *part);       /* frees the part */
    void (*discard)(void *part);
    void (*begin_run)(struct record_observer *observer);        /* while no part is open */
    void (*undo_run)(struct record_observer *observer, uint32_t run);   /* while no part is open */
    int (*finish)(struct record_observer *observer);    /* completes files that are streamed */
    /* Prints file number `file` of a report (count_kind.h). */
    int (*print)(const struct record_observer *observer, unsigned file, FILE *to);
    void (*destroy)(struct record_observer *observer);
};

#endif
