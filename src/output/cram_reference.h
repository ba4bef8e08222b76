/*
 * cram_reference.h -- compares the reference of a CRAM output with the header.
 *
 * htslib looks for the sequences when it writes the header and the records, after hours of sorting.
 * What cannot work is found here at the start, from the index of the FASTA file (.fai).
 *
 * A sequence that the header names and the file lacks is no error by itself: perhaps no read lies
 * there, or htslib finds the sequence by the tags M5 or UR of its @SQ line. If htslib lacks a
 * sequence, it makes one of the reads and embeds it in the CRAM (embed_ref=2). Up to 1.18 that is
 * not safe: htslib crashes if an unplaced record without bases ends a slice, reserves memory for
 * all bases between the first and the last read of a slice, fails if reads are not in the order of
 * positions (1.16), and, if it begins to embed after other references were used, writes '=' or
 * wrong bases (1.16) or aborts. So such an htslib is told at the start to write without references
 * (no_ref=1) if a sequence will not be found, and else never to embed.
 *
 * Reads beyond the end of a sequence of the file cannot be written: the CRAM could not be read, or
 * such a read would have other bases.
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
    bool embeds;                /* the CRAM may get a reference that is made of the reads */
    bool no_ref, no_embedding;  /* htslib is to be told no_ref=1, embed_ref=0 */
    int64_t *n_bases;           /* of each sequence in the file, INT64_MAX where that lacks it; NULL:
                                   no file is used */
};

/* Refuses what cannot work, and warns of what is odd. Does nothing if the format is not CRAM.
   output: its name, for messages. */
int cram_reference_check(sam_hdr_t *header, const htsFormat *format, const char *output);

/* Finds out what the other functions need to know. */
int cram_reference_open(sam_hdr_t *header, const htsFormat *format, struct cram_reference *ref);

/* Returns false if the reference of the record ends before it, so that it could not be read. */
bool cram_reference_admits(const struct cram_reference *ref, const bam1_t *record);

void cram_reference_release(struct cram_reference *ref);

#endif
