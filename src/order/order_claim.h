/*
 * order_claim.h -- which order a file claims to have, by the @HD line of its header.
 *
 * A claim is a list of candidates, strictest first: the file keeps its claim if it has the order of
 * one of them. There are several because headers say less than sorters do. SO:coordinate asks for
 * reference and position only (SAM specification, section 1.3), while samtools orders the reads at
 * one place by strand, too; SO:queryname without SS may be the order by numbers of samtools, the
 * older one of its version 1.16, or the plain one of Picard.
 *
 * Functions change nothing but their result, except that htslib parses the header when it is first
 * asked; one thread at a time.
 */
#ifndef ROCKSORT_ORDER_ORDER_CLAIM_H
#define ROCKSORT_ORDER_ORDER_CLAIM_H

#include "bam_sort_key.h"

enum order_part {               /* what of the key is compared */
    ORDER_WHOLE,
    ORDER_PLACES,               /* coordinate: not the strand; nothing of reads without reference */
    ORDER_NAMES,                /* names: not the flags */
    ORDER_MINIMISERS,           /* -M: of reads without reference the minimiser alone */
};

struct order_candidate {
    struct sort_rules rules;    /* without template_ends, minhash.index and long positions */
    enum order_part part;
    char words[96];             /* "sorted by coordinate", as part of a sentence */
    const char *note;           /* what is not as in stricter candidates; or NULL */
};

enum { ORDER_MAX_CANDIDATES = 5 };

struct order_claim {
    struct order_candidate candidates[ORDER_MAX_CANDIDATES];
    unsigned n_candidates;      /* 0: it claims no order that can be checked */
    char header_says[256];      /* "@HD SO:unsorted GO:query", for messages */
};

void order_claim_of_header(sam_hdr_t *header, struct order_claim *claim);

/* The one order of these rules. */
void order_claim_of_rules(const struct sort_rules *rules, struct order_claim *claim);

#endif
