/* template_cut.c -- see template_cut.h. */
#include "template/template_cut.h"

#include "util/byte_order.h"
#include "util/xalloc.h"

#include <stdlib.h>

/* The last records of a piece whose places are remembered. Most templates have two or three. */
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
    /* Zeros may follow a name, as many as a program has written. */
    return strncmp(name_a, name_b, n) == 0 && (n_a == n_b || memchr(name_a, 0, n));
}

static void append(struct record_bytes *buffer, const uint8_t *bytes, size_t n_bytes)
{
    if (n_bytes == 0) return;
    xgrow(&buffer->at, &buffer->room, buffer->n_bytes + n_bytes, buffer->n_bytes / 2, 1);
    memcpy(buffer->at + buffer->n_bytes, bytes, n_bytes);
    buffer->n_bytes += n_bytes;
}

/* ---- the record that lies in two pieces ---- */

/* The bytes that the record that is not whole still needs; before its size is known, those of the
   size. */
static size_t bytes_missing(const struct template_cutter *cutter)
{
    const uint8_t *rec = cutter->kept.at + cutter->kept.n_bytes - cutter->partial_bytes;
    if (cutter->partial_bytes < 4) return 4 - cutter->partial_bytes;
    return bam_record_bytes(rec) - cutter->partial_bytes;
}

static bool size_is_possible(struct template_cutter *cutter, const uint8_t *rec, size_t n_bytes)
{
    struct bam_walk walk = {.at = rec, .end = rec + n_bytes};
    (void)bam_walk_next(&walk);
    cutter->claimed_bytes = walk.claimed_bytes;
    return !walk.is_damaged;
}

/* Completes that record with bytes of the piece, and stores how many it took. Returns 1 if it is
   whole now, 0 if it needs more, or -1. */
static int complete_record(struct template_cutter *cutter, const uint8_t *piece, size_t n_bytes,
                           size_t *taken)
{
    *taken = 0;
    while (*taken < n_bytes) {
        size_t n = bytes_missing(cutter);
        if (n > n_bytes - *taken) n = n_bytes - *taken;
        append(&cutter->kept, piece + *taken, n);
        cutter->partial_bytes += n;
        *taken += n;
        if (cutter->partial_bytes < 4) break;
        const uint8_t *rec = cutter->kept.at + cutter->kept.n_bytes - cutter->partial_bytes;
        if (!size_is_possible(cutter, rec, cutter->partial_bytes)) return -1;
        if (cutter->partial_bytes == bam_record_bytes(rec)) return 1;
    }
    return 0;
}

/* ---- the last template of a piece ---- */

struct last_template {
    size_t at;                  /* where it begins in the piece */
    size_t n_records;           /* that it has there */
};

/* Walks all records and looks for the last that has another name than the one before it. */
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

/* The whole records of a piece. */
struct walked {
    size_t n_records;
    size_t to;                  /* where the last one ends */
    size_t starts[N_LAST];      /* of the last records; that of record i is in starts[i % N_LAST] */
    bool is_damaged;            /* the record at `to` claims an impossible size */
};

static struct walked walk(struct template_cutter *cutter, const uint8_t *piece, size_t from,
                          size_t n_bytes)
{
    struct walked w = {.n_records = 0};
    struct bam_walk walk = {.at = piece + from, .end = piece + n_bytes};
    for (const uint8_t *rec; (rec = bam_walk_next(&walk)) != NULL;)
        w.starts[w.n_records++ % N_LAST] = (size_t)(rec - piece);
    w.to = (size_t)(walk.at - piece);
    w.is_damaged = walk.is_damaged;
    if (walk.is_damaged) cutter->claimed_bytes = walk.claimed_bytes;
    return w;
}

/* The last template of the records that were walked; there is one at least. */
static struct last_template find_last(const uint8_t *piece, size_t from, const struct walked *w)
{
    size_t n = w->n_records < N_LAST ? w->n_records : N_LAST, n_same = 1;
    const uint8_t *last = piece + w->starts[(w->n_records - 1) % N_LAST];
    while (n_same < n &&
           template_same_name(piece + w->starts[(w->n_records - 1 - n_same) % N_LAST], last))
        n_same++;
    if (n_same == N_LAST && w->n_records > N_LAST) {
        struct last_template found = look_from_the_beginning(piece + from, piece + w->to);
        found.at += from;
        return found;
    }
    return (struct last_template){w->starts[(w->n_records - n_same) % N_LAST], n_same};
}

/* ---- cutting ---- */

/* Moves the first n_bytes of what was kept to the stretch; they are n_records. */
static void hand_out_kept(struct template_cutter *cutter, struct template_stretch *stretch,
                          size_t n_bytes, size_t n_records)
{
    struct record_bytes *kept = &cutter->kept;
    append(&stretch->left, kept->at, n_bytes);
    stretch->n_records += n_records;
    if (n_bytes > 0) memmove(kept->at, kept->at + n_bytes, kept->n_bytes - n_bytes);
    kept->n_bytes -= n_bytes;
    cutter->n_kept -= n_records;
}

/* Moves all whole records. */
static void hand_out_all_kept(struct template_cutter *cutter, struct template_stretch *stretch)
{
    hand_out_kept(cutter, stretch, cutter->kept.n_bytes - cutter->partial_bytes, cutter->n_kept);
}

/* Takes the whole records of the piece from `from` on. */
static int cut_records(struct template_cutter *cutter, const uint8_t *piece, size_t from,
                       size_t n_bytes, bool is_last, struct template_stretch *stretch)
{
    struct walked w = walk(cutter, piece, from, n_bytes);
    struct last_template last = {from, 0};
    bool keeps_none = is_last || w.is_damaged;
    stretch->from = stretch->to = from;
    if (keeps_none)
        last.at = w.to;
    else if (w.n_records > 0)
        last = find_last(piece, from, &w);
    bool continues = last.at == from && last.n_records > 0 && cutter->n_kept > 0 &&
                     template_same_name(cutter->kept.at, piece + from);
    if ((w.n_records > 0 || keeps_none) && !continues) {
        hand_out_all_kept(cutter, stretch);
        stretch->to = last.at;
        stretch->n_records += w.n_records - last.n_records;
        stretch->ends_in_piece = w.n_records > 0;
    }
    if (w.is_damaged) return -1;
    append(&cutter->kept, piece + last.at, n_bytes - last.at);
    cutter->n_kept += last.n_records;
    cutter->partial_bytes = n_bytes - w.to;
    return 0;
}

void template_stretch_empty(struct template_stretch *stretch)
{
    stretch->left.n_bytes = stretch->left_from = 0;
    stretch->from = stretch->to = stretch->n_records = 0;
    stretch->ends_in_piece = false;
}

int template_cut(struct template_cutter *cutter, const uint8_t *piece, size_t n_bytes,
                 bool is_last, struct template_stretch *stretch)
{
    static const uint8_t nothing[1];
    size_t from = 0;
    template_stretch_empty(stretch);
    if (n_bytes == 0) piece = nothing;          /* 0 must not be added to NULL */
    if (cutter->partial_bytes > 0) {
        int r = complete_record(cutter, piece, n_bytes, &from);
        if (r < 0 || is_last) hand_out_all_kept(cutter, stretch);
        if (r <= 0) return r;
        size_t rec_bytes = cutter->partial_bytes;
        const uint8_t *rec = cutter->kept.at + cutter->kept.n_bytes - rec_bytes;
        cutter->partial_bytes = 0;
        cutter->n_kept++;
        if (cutter->n_kept > 1 && !template_same_name(cutter->kept.at, rec))
            hand_out_kept(cutter, stretch, cutter->kept.n_bytes - rec_bytes, cutter->n_kept - 1);
    }
    return cut_records(cutter, piece, from, n_bytes, is_last, stretch);
}

/* ---- a template that is not kept ---- */

void template_cut_open(struct template_cutter *cutter, struct template_stretch *stretch)
{
    const uint8_t *rec = cutter->kept.at;
    size_t n_bytes = BAM_RECORD_FIXED_BYTES + bam_record_name_bytes(rec);
    if (n_bytes > bam_record_bytes(rec)) n_bytes = BAM_RECORD_FIXED_BYTES;  /* equals no other */
    cutter->open.n_bytes = 0;
    append(&cutter->open, rec, n_bytes);
    (void)put_u32(cutter->open.at, n_bytes - 4);
    cutter->is_open = true;
    template_stretch_empty(stretch);
    hand_out_all_kept(cutter, stretch);
}

/* The record that has become whole begins the next template, or goes to the stretch. */
static void sort_out_kept(struct template_cutter *cutter, struct template_stretch *stretch)
{
    cutter->partial_bytes = 0;
    cutter->n_kept = 1;
    cutter->is_open = template_same_name(cutter->open.at, cutter->kept.at);
    if (cutter->is_open) hand_out_all_kept(cutter, stretch);
}

int template_cut_more(struct template_cutter *cutter, const uint8_t *piece, size_t n_bytes,
                      struct template_stretch *stretch)
{
    size_t from = 0;
    template_stretch_empty(stretch);
    if (cutter->partial_bytes > 0) {
        int r = complete_record(cutter, piece, n_bytes, &from);
        if (r > 0) sort_out_kept(cutter, stretch);
        stretch->from = stretch->to = from;
        if (r <= 0 || !cutter->is_open) return r < 0 ? -1 : 0;
    }
    if (from == n_bytes) return 0;
    struct bam_walk walk = {.at = piece + from, .end = piece + n_bytes};
    const uint8_t *rec, *to = walk.at;
    while ((rec = bam_walk_next(&walk)) && template_same_name(cutter->open.at, rec)) {
        to = walk.at;
        stretch->n_records++;
    }
    stretch->to = (size_t)(to - piece);
    cutter->is_open = rec == NULL;
    if (walk.is_damaged) {
        cutter->claimed_bytes = walk.claimed_bytes;
        return -1;
    }
    if (rec) return 0;
    append(&cutter->kept, to, (size_t)(piece + n_bytes - to));
    cutter->partial_bytes = n_bytes - stretch->to;
    return 0;
}

void template_cutter_release(struct template_cutter *cutter)
{
    free(cutter->kept.at);
    free(cutter->open.at);
    *cutter = (struct template_cutter){0};
}

void template_stretch_release(struct template_stretch *stretch)
{
    free(stretch->left.at);
    *stretch = (struct template_stretch){0};
}
