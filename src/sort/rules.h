/*
 * rules.h -- completes the rules of the sort order with data from the header and from files, and
 * prints order violations.
 *
 * Ownership: the maker owns what the rules point to, and must outlive them. Threads: one.
 */
#ifndef ROCKSORT_SORT_RULES_H
#define ROCKSORT_SORT_RULES_H

#include "bam_sort_key.h"
#include "fixmate/fixmate.h"
#include "order/order_check.h"
#include "order/slice_merge.h"
#include "output/output_format.h"

#include <htslib/sam.h>

struct rules_maker {            /* the caller sets the first three; the rest starts as 0 */
    const char *header_name;    /* source of the header, for messages */
    const char *fasta;          /* -I; NULL: none, or the runs already hold the values of all
                                   records */
    int minhash_window;         /* -w */
    struct bam_key_template *template_ends;
    struct minhash_index *minhash_index;
    int64_t *reference_bases;   /* lengths of all references, with --fixmate */
};

/* Completes the rules. Returns 0, or -1 after a message. */
int rules_complete(struct rules_maker *maker, sam_hdr_t *header, struct sort_rules *rules);

/* Completes the rules of --fixmate, as parsed from the options, from the header. The caller sets
   long_positions and max_template_bytes. */
void rules_complete_fixmate(struct rules_maker *maker, const sam_hdr_t *header,
                            struct fixmate_rules *rules);

/* Adds our @PG line after each chain of programs. command_line: NULL for none. Returns 0, or -1
   after a message. */
int rules_add_program(const struct rules_maker *maker, sam_hdr_t *header,
                      const char *command_line);

/* Returns 0, or -1 after a message if the output format cannot hold a reference: too long, without
   bases (makes a CRAM unreadable), or with a name that columns cannot hold. */
int rules_check_format(sam_hdr_t *header, const struct output_format *format);

/* Prints why the header of `name` cannot be changed, and returns -1. */
int rules_header_error(const char *name);

/* Prints the verdict of order_check.h, which must have a pair: an error, or a note if the input is
   in order. */
void order_violation_print_verdict(const char *input, sam_hdr_t *header,
                                   const struct order_verdict *verdict);

/* Prints an error: two consecutive entries of the input violate the rules.
   `number`: of the second one, from 0. */
void order_violation_print(const struct sort_rules *rules, sam_hdr_t *header, const char *input,
                           const struct sort_entry *before, const struct sort_entry *after,
                           uint64_t number);

void rules_release(struct rules_maker *maker);

#endif
