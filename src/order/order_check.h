/*
 * order_check.h -- reads which order a file claims to have, and checks in several threads whether
 * its records are in this order.
 *
 * A claim is a list of candidate orders, strictest first. It is true if the file has the order of
 * one candidate; all are checked at the same time, until all are violated. There are several
 * because headers are less exact than sorters. SO:coordinate requires only reference and position
 * (SAM specification, section 1.3), while samtools also orders reads at one position by strand.
 * SO:queryname without SS may be the natural order of samtools, the older one of samtools 1.16, or
 * the lexical one of Picard.
 *
 * The records come in spans, consecutive parts of the file. Any thread finds the first and last
 * keys and the first violation of a span. Results are joined in the order of the file, so the first
 * violation of the file is reported, wherever spans begin and end.
 *
 *     check = order_check_create(claim);
 *     span = order_check_scan(check, ...);     any thread; each span of the file once
 *     r = order_check_join(check, span);       one thread at a time; spans in any order
 *     order_check_verdict(check, &verdict);    after the last span
 *     order_check_destroy(check);
 *
 * Ownership: order_check_join takes the span. The claim must outlive the check; its rules must be
 * complete before the first scan.
 */
#ifndef ROCKSORT_ORDER_ORDER_CHECK_H
#define ROCKSORT_ORDER_ORDER_CHECK_H

#include "bam/record_problem.h"
#include "bam_sort_key.h"

/* ---- claims ---- */

enum order_part {               /* the part of the key that is compared */
    ORDER_WHOLE,
    ORDER_PLACES,               /* coordinate: without the strand; all reads without a reference are
                                   equal */
    ORDER_NAMES,                /* names: without the flags */
    ORDER_MINIMISERS,           /* -M: only the minimiser of reads without reference */
};

struct order_candidate {
    struct sort_rules rules;    /* the caller adds template_ends, minhash.index, long_positions */
    enum order_part part;
    char words[96];             /* "sorted by coordinate", as part of a sentence */
    const char *note;           /* how it differs from stricter candidates; or NULL */
};

enum { ORDER_MAX_CANDIDATES = 5 };

struct order_claim {
    struct order_candidate candidates[ORDER_MAX_CANDIDATES];
    unsigned n_candidates;      /* 0: the file claims no order that can be checked */
    bool is_unsorted;           /* the header says SO:unsorted */
    char header_says[256];      /* "@HD SO:unsorted GO:query", for messages */
};

/* Reads the claim of the @HD line. One thread at a time, because htslib may parse the header. */
void order_claim_of_header(sam_hdr_t *header, struct order_claim *claim);

/* Makes the claim of the user's options: one candidate, the whole order of these rules. */
void order_claim_of_rules(const struct sort_rules *rules, struct order_claim *claim);

/* ---- checks ---- */

struct order_check;
struct order_span;

struct order_record {           /* a record in messages */
    uint64_t number;            /* in the file, from 1 */
    int32_t tid;
    int64_t pos;                /* from 0 */
    uint32_t flag;
    char name[256];
    char value[64];             /* SORT_TAG: the tag as in SAM, cut if it is long; else empty */
};

struct order_verdict {
    bool sorted;                /* some candidate holds */
    const struct order_candidate *candidate;    /* the strictest candidate that holds; if none does,
                                                   the one that was violated last */
    bool has_pair;              /* before and after are set */
    struct order_record before, after;  /* the first violation of the candidate; if the candidate
                                           holds, that of the strictest one */
};

struct order_check *order_check_create(const struct order_claim *claim);

/*
 * Scans the records of [from, to), which have passed bam_record_check. first_record is the number
 * of the first one, from 0. -M may reverse-complement the records. Returns NULL with *problem if a
 * record has no key.
 */
struct order_span *order_check_scan(struct order_check *check, uint8_t *from, const uint8_t *to,
                                    uint64_t first_record, struct record_problem *problem);

/* Describes a record that is in its original form; `number`: from 0. */
void order_record_describe(const struct sort_rules *rules, const uint8_t *rec, uint64_t number,
                           struct order_record *told);

/* Returns 1 if all candidates are violated, so that the caller can stop scanning; else 0. */
int order_check_join(struct order_check *check, struct order_span *span);

void order_check_verdict(const struct order_check *check, struct order_verdict *verdict);

/* Accepts NULL. */
void order_check_destroy(struct order_check *check);

#endif
