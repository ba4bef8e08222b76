/*
 * template_cut.h -- cuts a stream of raw records into stretches of whole templates.
 *
 * The records come in pieces, each of which may begin and end within a record and within a
 * template. The cutter gives each piece back as a stretch: what was left of the pieces before it,
 * and the records of the piece up to its last template. It keeps the last template, which the next
 * piece may continue. So a stretch has whole templates only, and different threads can work on
 * different stretches.
 *
 * Order of calls: template_cut for each piece in its order. A caller that has no memory for the
 * last template can take what was kept of it, with template_cut_open. Then it calls
 * template_cut_more for each piece, until the template ends, and template_cut for the rest of that
 * piece.
 *
 * Only the last records of a piece are looked at, besides the size of each; the time for a piece
 * does not depend on how many templates it has.
 *
 * Ownership: the cutter and each stretch own a buffer; they start as {0}. Threads: one at a time.
 * Errors: codes, no messages. Records need not be checked.
 */
#ifndef ROCKSORT_TEMPLATE_TEMPLATE_CUT_H
#define ROCKSORT_TEMPLATE_TEMPLATE_CUT_H

#include "bam/bam_fields.h"

struct record_bytes {           /* a buffer of raw records */
    uint8_t *at;
    size_t n_bytes, room;
};

struct template_stretch {
    struct record_bytes left;   /* first these records, which were left of earlier pieces */
    size_t from, to;            /* then these of the piece */
    size_t n_records;           /* in both */
    bool ends_in_piece;         /* the next template begins at `to`; if false it began in an earlier
                                   piece, or its beginning is not known */
    size_t left_from;           /* for fixed_records.h: it is done with so many bytes of `left` */
};

struct template_cutter {        /* starts as {0} */
    struct record_bytes kept;   /* the last template, and the beginning of a record */
    size_t n_kept;              /* whole records in kept */
    size_t partial_bytes;       /* of kept: of a record that is not whole */
    size_t claimed_bytes;       /* after an error: the size that the record claims */
    struct record_bytes open;   /* name of the template that is open, as a record without more */
    bool is_open;
};

/* Makes a stretch empty, but keeps its buffer. */
void template_stretch_empty(struct template_stretch *stretch);

/* True if two records have one read name. False if a name does not fit into its record. */
bool template_same_name(const uint8_t *a, const uint8_t *b);

/*
 * Cuts a piece of n_bytes. is_last: no piece follows, and the stretch gets all whole records; if
 * cutter->partial_bytes is not 0 then, the stream ends within a record. Returns 0, or -1 if a
 * record claims an impossible size; then, too, the stretch has all whole records before it.
 */
int template_cut(struct template_cutter *cutter, const uint8_t *piece, size_t n_bytes,
                 bool is_last, struct template_stretch *stretch);

/* Opens the template that is kept, which is one at least: hands out its whole records as `left` of
   the stretch. */
void template_cut_open(struct template_cutter *cutter, struct template_stretch *stretch);

/*
 * Finds the records with which a piece continues the template that is open; they become the
 * stretch. When the template has ended, cutter->is_open is false, and the rest of the piece, from
 * stretch->to on, is to be cut. Else nothing is left of the piece, and the caller may set is_open
 * to false if no other follows. Returns 0, or -1 if a record claims an impossible size.
 */
int template_cut_more(struct template_cutter *cutter, const uint8_t *piece, size_t n_bytes,
                      struct template_stretch *stretch);

void template_cutter_release(struct template_cutter *cutter);
void template_stretch_release(struct template_stretch *stretch);

#endif
