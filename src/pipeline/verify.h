/*
 * verify.h -- what --verify does: checks whether the records are in order.
 *
 * The load is that of --checksum-only. The worker that has checked some records also scans them for
 * their order. The scans are joined in the order of the input (order_check.h). When every order
 * that the file may have is disproved, the load is stopped as by a failure, without a message.
 *
 * Order of calls: create, with the header at hand; observer; finish after the load.
 */
#ifndef ROCKSORT_PIPELINE_VERIFY_H
#define ROCKSORT_PIPELINE_VERIFY_H

#include "bam/record_observer.h"
#include "pipeline/crew.h"
#include "pipeline/rules.h"
#include "pipeline/sort_report.h"

struct verification;

struct verify_settings {
    const char *input;          /* "-": standard input */
    bool claim;                 /* check the order that the header claims, not that of the rules */
    const struct sort_rules *rules;     /* of the options */
};

/* Returns 0 with the verification. If the header claims no order, the verification is NULL, there
   was a message, and nothing need be read. Returns -1 after a message. */
int verification_create(struct crew *crew, const struct verify_settings *settings,
                        struct rules_maker *maker, sam_hdr_t *header,
                        struct verification **verification);

/* The verification as an observer of the input, which destroys it. It fails the crew when all is
   known. NULL is accepted. */
struct record_observer *verification_observer(struct verification *v);

/* After the load, whose result is passed: puts what was found into the report, and prints a message
   if records are not in order. Returns 0 if that is known, else -1. */
int verification_finish(struct verification *v, int loaded, struct sort_report *report);

#endif
