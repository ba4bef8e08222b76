/*
 * order_claim.h -- which order a file claims to have in the @HD line of its header.
 *
 * A claim is a list of candidates, strictest first. The claim is true if the file has the order of
 * one candidate. There are several candidates because headers are less exact than sorters.
 * SO:coordinate asks for reference and position only (SAM specification, section 1.3), while
 * samtools also orders the reads at one place by strand. SO:queryname without SS may be the order
 * by numbers of samtools, the older one of samtools 1.16, or the plain one of Picard.
 *
 * order_check.h checks a claim. Functions write only the claim, which the caller owns. But htslib
 * may parse the header at the first question about it, so only one thread at a time may pass the
 * same header. Nothing can fail.
 */
#ifndef ROCKSORT_ORDER_ORDER_CLAIM_H
#define ROCKSORT_ORDER_ORDER_CLAIM_H

#include "bam_sort_key.h"

enum order_part {               /* the part of the key that is compared */
    ORDER_WHOLE,
    ORDER_PLACES,               /* coordinate: without the strand; reads without a reference are all
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

void order_claim_of_header(sam_hdr_t *header, struct order_claim *claim);

/* The claim that the user makes with options: one candidate, the whole order of these rules. */
void order_claim_of_rules(const struct sort_rules *rules, struct order_claim *claim);

#endif
