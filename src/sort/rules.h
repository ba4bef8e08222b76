/*
 * rules.h -- the rules of the order: those of the options, and what they need from the header and
 * from files; and which two records violate them.
 *
 * Ownership: the maker owns what the rules point to, so it outlives them. Threads: one.
 */
#ifndef ROCKSORT_SORT_RULES_H
#define ROCKSORT_SORT_RULES_H

#include "bam_sort_key.h"
#include "fixmate/fixmate.h"
#include "order/order_check.h"
#include "output/output_format.h"

#include <htslib/sam.h>

struct rules_maker {            /* the first three are set by the caller, the rest starts as 0 */
    const char *header_name;    /* where the header comes from, for messages */
    const char *fasta;          /* -I; NULL: none, or runs have the values of all records */
    int minhash_window;         /* -w */
    struct bam_key_template *template_ends;
    struct minhash_index *minhash_index;
    int64_t *reference_bases;   /* of all references, if mates are fixed */
};

/* Gives the rules what they need. Returns 0, or -1 after a message. */
int rules_complete(struct rules_maker *maker, sam_hdr_t *header, struct sort_rules *rules);

/* Gives the rules of --fixmate what they need of the header. They are those of the options, and
   long_positions and max_template_bytes are left to the caller. */
void rules_complete_fixmate(struct rules_maker *maker, const sam_hdr_t *header,
                            struct fixmate_rules *rules);

/* Adds our @PG line after each chain of programs. command_line: NULL for none. Returns 0, or -1
   after a message. */
int rules_add_program(const struct rules_maker *maker, sam_hdr_t *header,
                      const char *command_line);

/* Returns 0, or -1 after a message if the format of the output cannot hold a reference: it is too
   long, has no bases, which makes a CRAM unreadable, or a name that columns cannot hold. */
int rules_check_format(sam_hdr_t *header, const struct output_format *format);

/* Prints why the header of `name` cannot be changed, and returns -1. */
int rules_header_error(const char *name);

/* Prints what order_check.h found in the input: an error, or a note if the input is in order. The
   verdict has a pair. */
void order_violation_print_verdict(const char *input, sam_hdr_t *header,
                                   const struct order_verdict *verdict);

/* Prints an error: two records of the input that follow each other, in the form in which they are
   sorted, are not in the order of the rules. `number` is that of the second one, from 0. */
void order_violation_print(const struct sort_rules *rules, sam_hdr_t *header, const char *input,
                           const uint8_t *before, const uint8_t *after, uint64_t number);

void rules_release(struct rules_maker *maker);

#endif
