/*
 * cram_reference.h -- checks, before a sort, that the FASTA file of a CRAM output fits the header.
 *
 * htslib looks up the sequences when it writes the header and the records, after hours of sorting.
 * This module finds the problems at the start, from the index of the FASTA file (.fai).
 *
 * A sequence that the header names and the file lacks is not yet an error: perhaps no read is
 * placed there, or htslib finds the sequence by the tags M5 or UR of its @SQ line. If htslib finds
 * no sequence, it builds one from the reads and embeds it in the CRAM (embed_ref=2). Up to 1.18
 * that is not safe: htslib crashes if an unplaced record without bases ends a slice, reserves
 * memory for all bases between the first and the last read of a slice, fails if reads are not in
 * coordinate order (1.16), and, if it embeds after it has used other references, writes '=' or
 * wrong bases (1.16) or aborts. So before 1.21 (1.19 and 1.20 are untested) this module sets
 * no_ref=1, to write without references, if a sequence will not be found, else embed_ref=0.
 *
 * Reads beyond the end of their sequence are refused: the CRAM would be unreadable or have wrong
 * bases.
 *
 * Order of calls: check, at the start; open, when the CRAM is written; admits, for each record;
 * release. A struct cram_reference owns its array. Threads: one at a time for each. Errors: -1
 * after a message.
 */
#ifndef ROCKSORT_OUTPUT_CRAM_REFERENCE_H
#define ROCKSORT_OUTPUT_CRAM_REFERENCE_H

#include <htslib/sam.h>
#include <stdbool.h>

struct cram_reference {
    const char *fasta;          /* borrowed from the options; NULL: none is given */
    bool embeds;                /* htslib may embed a reference built from the reads */
    bool no_ref, no_embedding;  /* htslib is to be told no_ref=1, embed_ref=0 */
    int64_t *n_bases;           /* length of each sequence in the file, INT64_MAX if missing; NULL:
                                   no file is used */
};

/* Refuses a reference that cannot work, and warns of a doubtful one. Does nothing unless the format
   is CRAM. output: its name, for messages. */
int cram_reference_check(sam_hdr_t *header, const htsFormat *format, const char *output);

/* Fills *ref for the functions below. */
int cram_reference_open(sam_hdr_t *header, const htsFormat *format, struct cram_reference *ref);

/* Returns false if the record lies beyond the end of its reference. */
bool cram_reference_admits(const struct cram_reference *ref, const bam1_t *record);

void cram_reference_release(struct cram_reference *ref);

#endif
