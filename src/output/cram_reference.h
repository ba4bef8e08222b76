/*
 * cram_reference.h -- compares the reference of a CRAM output with the header.
 *
 * htslib looks for the sequences when it writes the header and the records, which is after hours of
 * sorting. What cannot work is found here at the start, from the index of the FASTA file (.fai).
 *
 * A sequence that the header names and the file lacks is no error by itself: perhaps no read lies
 * there, or htslib finds the sequence by the tags M5 or UR of its @SQ line. If htslib finds that it
 * has no sequence for some reads, it puts a reference into the CRAM that it makes of the reads
 * (embed_ref=2). But htslib 1.16 does so halfway: it writes '=' or wrong bases into the CRAM, or
 * aborts, depending on which thread comes first. So up to 1.16 it is told what to do from the
 * beginning: to embed such a reference if a sequence will probably not be found, and else never to
 * change its mind, which makes a sequence that it does not find an error. It also writes '=' if a
 * slice has reads of several references and one of these is embedded, so it is told not to make such
 * slices then.
 *
 * If a sequence of the file is shorter than the header says, reads beyond its end cannot be written:
 * the CRAM could not be read, or such a read would have other bases. Longer sequences do no harm.
 *
 * Order of calls: check, at the start; open, when the CRAM is written; admits, for each record;
 * release. Ownership: a struct cram_reference owns its array. Threads: one at a time for each.
 * Errors: -1 after a message.
 */
#ifndef ROCKSORT_OUTPUT_CRAM_REFERENCE_H
#define ROCKSORT_OUTPUT_CRAM_REFERENCE_H

#include <htslib/sam.h>
#include <stdbool.h>

struct cram_reference {
    const char *fasta;          /* borrowed from the options; NULL: none, or not comparable */
    bool embeds;                /* the CRAM may get a reference that is made of the reads */
    bool no_ref, no_embedding;  /* htslib is to be told no_ref=1, embed_ref=0 */
    int64_t *n_bases;           /* of each sequence that is shorter in the file than in the header,
                                   INT64_MAX for the others; NULL: none is shorter */
};

/* Refuses what cannot work, and warns of what is odd. Does nothing if the format is not CRAM.
   output: its name, for messages. */
int cram_reference_check(sam_hdr_t *header, const htsFormat *format, const char *output);

/* Finds out what the other functions need to know. */
int cram_reference_open(sam_hdr_t *header, const htsFormat *format, struct cram_reference *ref);

/* Returns false if the reference of the record ends before it. */
bool cram_reference_admits(const struct cram_reference *ref, const bam1_t *record);

void cram_reference_release(struct cram_reference *ref);

#endif
