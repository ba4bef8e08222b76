/*
 * header_union.h -- one header for several inputs, and records that follow it.
 *
 * Order of calls: create with the headers of all inputs; take the header, which may be changed
 * further (sort order, @PG) before others use it; rewrite every record of the inputs that need it;
 * destroy. Input i below is the one of headers[i].
 *
 * What the united header holds:
 *   @SQ  the first input's lines. All inputs must have the same names and lengths in the same
 *        order, or the union fails. Other tags of these lines (M5, UR, AS, ...) are not compared.
 *   @HD  the first input's line.
 *   @PG  all programs. Lines that agree in ID, tags and their whole chain of PP are one line, in
 *        whatever order their tags stand. An ID that an earlier input uses for something else
 *        becomes ID-N with N the number of the input, from 1, or the next that no input has as an
 *        ID. PP follows.
 *   @RG  all read groups, likewise. PG follows, so that read groups whose programs differ are
 *        different.
 *   @CO  all comments, and lines of unknown types, but for those that are in an earlier input, too.
 * The first input keeps its IDs and its lines as they are; lines of later inputs follow behind its
 * last one of their type. If an input has an ID twice, the first line counts, as in htslib.
 *
 * Records refer to @RG and @PG lines in their tags RG:Z and PG:Z. An ID that the header of its
 * input knows follows its line. One that it does not know is left alone, also when the header of
 * another input knows it; but an ID that is missing and that PP or PG of a line names is kept apart
 * from the lines of other inputs.
 *
 * Ownership: the union keeps nothing of what it is given and owns its header. Threads: during
 * create no other thread may use the headers (htslib may write their text anew); after that
 * renames, rewrite_bound and rewrite may be called from any thread. Errors: a message, then NULL.
 */
#ifndef ROCKSORT_INPUT_HEADER_UNION_H
#define ROCKSORT_INPUT_HEADER_UNION_H

#include "bam/bam_fields.h"

#include <stdbool.h>

struct header_union;

/* Checks that y has the references of x; the names are for the message. Returns 0 or -1. */
int header_union_check_references(const sam_hdr_t *x, const char *x_name, const sam_hdr_t *y,
                                  const char *y_name);

/*
 * Unites the headers of n > 0 inputs, whose names are for messages. Their references were checked
 * against those of the first, which alone needs to have them still: a thousand copies would take a
 * lot of memory.
 */
struct header_union *header_union_create(sam_hdr_t *const *headers, const char *const *names,
                                         size_t n);

/* NULL is accepted. */
void header_union_destroy(struct header_union *u);

/* Belongs to the union. */
sam_hdr_t *header_union_header(struct header_union *u);

/* True if an ID of input i has changed: only then its records need to be rewritten. */
bool header_union_renames(const struct header_union *u, size_t i);

/* Upper bound of the bytes that a record of input i takes when it is rewritten; cheap. */
size_t header_union_rewrite_bound(const struct header_union *u, size_t i, const uint8_t *rec);

/*
 * Writes a checked record (bam_record_check) of input i to out, with its first RG:Z and its first
 * PG:Z as the united header has them, and returns its size. All else is copied as it is; if the
 * tags are damaged, that is everything from the damage on.
 */
size_t header_union_rewrite(const struct header_union *u, size_t i, const uint8_t *rec,
                            uint8_t *out);

#endif
