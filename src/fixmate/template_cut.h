/*
 * template_cut.h -- turns spans of whole records into spans of whole templates.
 *
 * A span of records may begin and end within a template. Its template_span contains the records
 * kept of earlier spans and its own records, except the last template: the cutter keeps that one,
 * because the next span may continue it. So different threads can work on different template_spans.
 *
 * Order of calls: template_cut for each span in its order. If the last template is too large, the
 * caller takes its records so far with template_cut_open, calls template_cut_more for each span
 * until it ends, and template_cut for the rest of that span.
 *
 * Reads the sizes of all records, and the names of only the last ones.
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
    struct record_bytes left;   /* first these records, kept of earlier spans */
    size_t from, to;            /* then these of the span */
    size_t n_records;           /* in both */
    size_t left_from;           /* for fixed_records.h: these bytes of `left` are done */
};

struct template_cutter {        /* starts as {0} */
    struct record_bytes kept;   /* the last template */
    size_t n_kept;              /* records in kept */
    struct record_bytes open;   /* a record with nothing but the name of the open template */
    bool is_open;
};

/* Makes a span empty, but keeps its buffer. */
void template_span_empty(struct template_span *templates);

/* True if two records have the same read name. False if a name does not fit into its record. */
bool template_same_name(const uint8_t *a, const uint8_t *b);

/* Cuts a span of n_records in n_bytes. is_last: no span follows, so *templates gets all records. */
void template_cut(struct template_cutter *cutter, const uint8_t *records, size_t n_bytes,
                  size_t n_records, bool is_last, struct template_span *templates);

/* Opens the kept template, which has at least one record: moves its records to templates->left. */
void template_cut_open(struct template_cutter *cutter, struct template_span *templates);

/* Stores in *templates the records of a span that continue the open template. If it ends in this
   span, cutter->is_open becomes false, and the rest of the span, from templates->to on, is to be
   cut. Else the whole span was used; the caller may set is_open to false if no span follows. */
void template_cut_more(struct template_cutter *cutter, const uint8_t *records, size_t n_bytes,
                       struct template_span *templates);

void template_cutter_release(struct template_cutter *cutter);
void template_span_release(struct template_span *templates);

#endif
