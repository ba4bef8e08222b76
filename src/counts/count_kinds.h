/*
 * count_kinds.h -- the kinds of reports about its output that a sort can write (bam/count_kind.h):
 * one line for each. Parses what the user asks of one.
 *
 * Threads: one at a time, as util/option_table.h. Errors: -1 after a message.
 */
#ifndef ROCKSORT_COUNTS_COUNT_KINDS_H
#define ROCKSORT_COUNTS_COUNT_KINDS_H

#include "bam/count_kind.h"

/* The name of the kind, its option, and what that takes. */
#define COUNT_KINDS(KIND)                                                                          \
    KIND(flagstat, "flagstat", "FILE")                                                             \
    KIND(idxstats, "idxstats", "FILE")                                                             \
    KIND(coverage, "coverage", "FILE")                                                             \
    KIND(stats, "stats", "FILE")                                                                   \
    KIND(samtools_checksum, "samtools-checksum", "FILE")                                           \
    KIND(mosdepth, "mosdepth", "PREFIX")                                                           \
    KIND(picard, "picard", "PREFIX")                                                               \
    KIND(bedgraph, "bedgraph", "FILE")                                                             \
    KIND(bigwig, "bigwig", "FILE")

#define ONE_KIND(kind, name, takes) COUNT_##kind,
enum { COUNT_KINDS(ONE_KIND) COUNT_N_KINDS };   /* a kind's number */
#undef ONE_KIND

extern const struct count_kind *const count_kinds[COUNT_N_KINDS];

/* The option, and its name without dashes. */
const char *count_kind_option(int kind);
const char *count_kind_name(int kind);

struct count_request {          /* starts as {0} */
    char *name;                 /* FILE or PREFIX; NULL: the kind is not wanted */
    void *options;
    char *words;                /* the options as one text with absolute paths; "": none */
    char **memory;              /* of the words that the options point into */
};

/* Parses the argument of the option, "FILE" or "OPTIONS FILE". A text that does not begin with an
   option is the whole name, with all its blanks. */
int count_request_parse(int kind, const char *text, struct count_request *request);

void count_request_release(int kind, struct count_request *request);

/* Returns the argument of the option from its parts: parsing it gives them again. The caller frees
   it. */
char *count_request_text(const char *words, const char *name);

#endif
