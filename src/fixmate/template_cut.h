/*
 * template_cut.h -- cuts spans of whole records into spans of whole templates.
 *
 * A span may begin and end within a template. The cutter makes a span of it: what was left of
 * the spans before it, and its records up to the last template, which the cutter keeps because the
 * next span may continue it. So different threads can work on different spans.
 *
 * Order of calls: template_cut for each span in its order. A caller that has no memory for the last
 * template can take what was kept of it, with template_cut_open. Then it calls template_cut_more
 * for each span, until the template ends, and template_cut for the rest of that span.
 *
 * Only the last records of a span are read, besides the size of each.
 *
 * Ownership: the cutter and each span own a buffer; they start as {0}. Threads: one at a time.
 * Records need not be checked.
 */
#ifndef ROCKSORT_FIXMATE_TEMPLATE_CUT_H
#define ROCKSORT_FIXMATE_TEMPLATE_CUT_H

#include "bam/bam_fields.h"

struct record_bytes {           /* a buffer of raw records */
    uint8_t *at;
    size_t n_bytes, room;
};

struct template_span {
    struct record_bytes left;   /* first these records, which were left of earlier spans */
    size_t from, to;            /* then these of the span */
    size_t n_records;           /* in both */
    size_t left_from;           /* for fixed_records.h: it is done with so many bytes of `left` */
};

struct template_cutter {        /* starts as {0} */
    struct record_bytes kept;   /* the last template */
    size_t n_kept;              /* records in kept */
    struct record_bytes open;   /* name of the template that is open, as a record without more */
    bool is_open;
};

/* Makes a span empty, but keeps its buffer. */
void template_span_empty(struct template_span *templates);

/* True if two records have one read name. False if a name does not fit into its record. */
bool template_same_name(const uint8_t *a, const uint8_t *b);

/* Cuts n_records of n_bytes. is_last: no span follows, and the span gets all records. */
void template_cut(struct template_cutter *cutter, const uint8_t *records, size_t n_bytes,
                  size_t n_records, bool is_last, struct template_span *templates);

/* Opens the template that is kept, which has a record at least: hands its records out as `left` of
   the span. */
void template_cut_open(struct template_cutter *cutter, struct template_span *templates);

/* Makes a span of the records with which a span continues the open template. When that has
   ended, cutter->is_open is false, and the rest of the span, from span->to on, is to be cut. Else
   nothing is left of the span; the caller may set is_open to false if no other follows. */
void template_cut_more(struct template_cutter *cutter, const uint8_t *records, size_t n_bytes,
                       struct template_span *templates);

void template_cutter_release(struct template_cutter *cutter);
void template_span_release(struct template_span *templates);

#endif
