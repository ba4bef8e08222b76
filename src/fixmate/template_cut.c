/* template_cut.c -- see template_cut.h. */
#include "fixmate/template_cut.h"

#include "util/byte_order.h"
#include "util/xalloc.h"

#include <stdlib.h>

/* How many of the last records of a span are remembered. Most templates have two or three. */
enum { N_LAST = 16 };

bool template_same_name(const uint8_t *a, const uint8_t *b)
{
    size_t n_a = bam_record_name_bytes(a), n_b = bam_record_name_bytes(b);
    if (BAM_RECORD_FIXED_BYTES + n_a > bam_record_bytes(a) ||
        BAM_RECORD_FIXED_BYTES + n_b > bam_record_bytes(b))
        return false;
    const char *name_a = (const char *)bam_record_name(a);
    const char *name_b = (const char *)bam_record_name(b);
    if (n_a == n_b && memcmp(name_a, name_b, n_a) == 0) return true;
    size_t n = n_a < n_b ? n_a : n_b;
    /* Some programs pad names with several NULs. */
    return strncmp(name_a, name_b, n) == 0 && (n_a == n_b || memchr(name_a, 0, n));
}

static void append(struct record_bytes *buffer, const uint8_t *bytes, size_t n_bytes)
{
    if (n_bytes == 0) return;
    xgrow(&buffer->at, &buffer->room, buffer->n_bytes + n_bytes, buffer->n_bytes / 2, 1);
    memcpy(buffer->at + buffer->n_bytes, bytes, n_bytes);
    buffer->n_bytes += n_bytes;
}

/* ---- the last template of a span ---- */

struct last_template {
    size_t at;                  /* where it begins in the span */
    size_t n_records;           /* in the span */
};

/* Walks all records to find the last one whose name differs from that of its predecessor. */
static struct last_template look_from_the_beginning(const uint8_t *from, const uint8_t *to)
{
    struct last_template last = {0, 0};
    const uint8_t *before = from;
    for (const uint8_t *rec = from; rec < to; rec += bam_record_bytes(rec)) {
        if (!template_same_name(before, rec))
            last = (struct last_template){.at = (size_t)(rec - from)};
        last.n_records++;
        before = rec;
    }
    return last;
}

/* Finds the last template of records of n_bytes; without records it is empty. */
static struct last_template find_last(const uint8_t *records, size_t n_bytes)
{
    size_t starts[N_LAST], n_records = 0, n_same = 1;   /* record i starts at starts[i % N_LAST] */
    for (size_t at = 0; at < n_bytes; at += bam_record_bytes(records + at))
        starts[n_records++ % N_LAST] = at;
    if (n_records == 0) return (struct last_template){0, 0};
    size_t n = n_records < N_LAST ? n_records : N_LAST;
    const uint8_t *last = records + starts[(n_records - 1) % N_LAST];
    while (n_same < n &&
           template_same_name(records + starts[(n_records - 1 - n_same) % N_LAST], last))
        n_same++;
    if (n_same == N_LAST && n_records > N_LAST)
        return look_from_the_beginning(records, records + n_bytes);
    return (struct last_template){starts[(n_records - n_same) % N_LAST], n_same};
}

/* ---- cutting ---- */

/* Moves the kept records to the span. */
static void hand_out_kept(struct template_cutter *cutter, struct template_span *templates)
{
    append(&templates->left, cutter->kept.at, cutter->kept.n_bytes);
    templates->n_records += cutter->n_kept;
    cutter->kept.n_bytes = cutter->n_kept = 0;
}

void template_span_empty(struct template_span *templates)
{
    templates->left.n_bytes = templates->left_from = 0;
    templates->from = templates->to = templates->n_records = 0;
}

void template_cut(struct template_cutter *cutter, const uint8_t *records, size_t n_bytes,
                  size_t n_records, bool is_last, struct template_span *templates)
{
    struct last_template last = {.at = n_bytes};
    template_span_empty(templates);
    if (!is_last) last = find_last(records, n_bytes);
    bool continues = last.at == 0 && last.n_records > 0 && cutter->n_kept > 0 &&
                     template_same_name(cutter->kept.at, records);
    if ((n_records > 0 || is_last) && !continues) {
        hand_out_kept(cutter, templates);
        templates->to = last.at;
        templates->n_records += n_records - last.n_records;
    }
    if (last.n_records > 0) append(&cutter->kept, records + last.at, n_bytes - last.at);
    cutter->n_kept += last.n_records;
}

/* ---- open templates ---- */

void template_cut_open(struct template_cutter *cutter, struct template_span *templates)
{
    const uint8_t *rec = cutter->kept.at;
    size_t n_bytes = BAM_RECORD_FIXED_BYTES + bam_record_name_bytes(rec);
    if (n_bytes > bam_record_bytes(rec)) n_bytes = BAM_RECORD_FIXED_BYTES;  /* no name */
    cutter->open.n_bytes = 0;
    append(&cutter->open, rec, n_bytes);
    (void)put_u32(cutter->open.at, n_bytes - 4);
    cutter->is_open = true;
    template_span_empty(templates);
    hand_out_kept(cutter, templates);
}

void template_cut_more(struct template_cutter *cutter, const uint8_t *records, size_t n_bytes,
                       struct template_span *templates)
{
    template_span_empty(templates);
    while (templates->to < n_bytes &&
           template_same_name(cutter->open.at, records + templates->to)) {
        templates->to += bam_record_bytes(records + templates->to);
        templates->n_records++;
    }
    cutter->is_open = templates->to == n_bytes;
}

void template_cutter_release(struct template_cutter *cutter)
{
    free(cutter->kept.at);
    free(cutter->open.at);
    *cutter = (struct template_cutter){0};
}

void template_span_release(struct template_span *templates)
{
    free(templates->left.at);
    *templates = (struct template_span){0};
}
