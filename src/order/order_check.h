/*
 * order_check.h -- whether records are in order, found out by several threads.
 *
 * The records come in spans, consecutive stretches of the file. Each span is scanned by itself, in
 * any thread; what is known of it then, its first and last keys and whether it is in order, is
 * joined with the others in the order of the file. So the violation that is reported is the first
 * one, wherever spans begin and end.
 *
 * Several candidate orders (order_claim.h) are checked at the same time, until all are violated.
 *
 *     check = order_check_create(claim);
 *     span = order_check_scan(check, ...);     any thread; each span of the file once
 *     r = order_check_join(check, span);       one thread at a time; in any order
 *     order_check_verdict(check, &verdict);    after the last
 *     order_check_destroy(check);
 *
 * Memory: some KB and twice the size of a key for each candidate and span that waits for one before
 * it. Ownership: join takes the span. The claim, with its rules complete, outlives the check.
 */
#ifndef ROCKSORT_ORDER_ORDER_CHECK_H
#define ROCKSORT_ORDER_ORDER_CHECK_H

#include "bam/record_problem.h"
#include "order/order_claim.h"

struct order_check;
struct order_span;

struct order_record {           /* what is told about a record */
    uint64_t number;            /* in the file, from 1 */
    int32_t tid;
    int64_t pos;                /* from 0 */
    uint32_t flag;
    char name[256];
    char value[64];             /* SORT_TAG: of the tag, as in SAM, perhaps cut; else empty */
};

struct order_verdict {
    bool sorted;
    const struct order_candidate *candidate;    /* that holds, or, if none does, held longest */
    bool has_pair;              /* the first violation: of that candidate; if it holds, */
    struct order_record before, after;  /* ... of the strictest */
};

/* NULL without memory. */
struct order_check *order_check_create(const struct order_claim *claim);

/*
 * Scans the records of [from, to), which have passed bam_record_check; the first one has number
 * first_record, from 0. May change the records (-M turns them). NULL with a problem.
 */
struct order_span *order_check_scan(struct order_check *check, uint8_t *from, const uint8_t *to,
                                    uint64_t first_record, struct record_problem *problem);

/* Returns 1 if every candidate is violated by now: the rest need not be looked at. Else 0. */
int order_check_join(struct order_check *check, struct order_span *span);

/* Number of records that were joined without a gap from the beginning. */
uint64_t order_check_n_records(const struct order_check *check);

void order_check_verdict(const struct order_check *check, struct order_verdict *verdict);

/* NULL is accepted. */
void order_check_destroy(struct order_check *check);

#endif
