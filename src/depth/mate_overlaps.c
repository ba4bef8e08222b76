/*
 * mate_overlaps.c -- see mate_overlaps.h.
 *
 * mosdepth keeps the state of each name: no read of the reference waits, or one does. At the begin
 * of a part the state is not known. After a read that waits it is known until the end of the part.
 * A second read before that is asked; so is a read with the begin of its mate, after which the
 * state depends on the answer, and later reads of its name are asked, too. Most second reads belong
 * to pairs that do not overlap; asking for one costs a look-up in a small table.
 */
#include "depth/mate_overlaps.h"

#include <stdlib.h>
#include <string.h>

/* A read that waits. In deep piles there are many. */
struct waiting_read {
    int64_t begin, end;
    struct mate_read *whole;    /* owned; NULL: it has one operation and covers [begin, end) */
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wunused-function"
#include <htslib/khash.h>
KHASH_MAP_INIT_INT64(names, uint32_t)
KHASH_MAP_INIT_INT64(waiting, struct waiting_read)
#pragma GCC diagnostic pop

enum { MOST_WAITING = 1 << 14 };

/* States of a name besides the index of the read that waits. */
static const uint32_t none_waits = UINT32_MAX, is_asked = UINT32_MAX - 1;

static void keep(struct mate_read *to, const struct mate_read *read)
{
    *to = *read;
    to->spans = read->n_spans > 0 ? xmemdup(read->spans, read->n_spans * sizeof *read->spans)
                                  : NULL;
}

static void free_reads(const struct mate_read *reads, size_t n)
{
    for (size_t i = 0; i < n; i++) free(reads[i].spans);
}

/* Takes the overlap of a pair from the depth. */
static void correct(struct depth_part *depth, const struct mate_read *first,
                    const struct mate_read *second)
{
    if (first->has_one_op && second->has_one_op) {
        depth_part_add(depth, second->begin, first->end, true);
        return;
    }
    const struct span *a = first->spans, *end_a = a + first->n_spans;
    const struct span *b = second->spans, *end_b = b + second->n_spans;
    while (a < end_a && b < end_b) {
        depth_part_add(depth, a->begin > b->begin ? a->begin : b->begin,
                       a->end < b->end ? a->end : b->end, true);
        if (a->end < b->end)
            a++;
        else
            b++;
    }
}

/* ---- parts ---- */

void mate_part_begin_piece(struct mate_part *part)
{
    enum { MOST_KEPT = 1024 };          /* buckets; to clear more costs time for each reference */
    free_reads(part->reads, part->n_reads);
    part->n_reads = 0;
    part->n_pieces++;
    if (part->names && kh_n_buckets(part->names) > MOST_KEPT) {
        kh_destroy(names, part->names);
        part->names = NULL;
    }
    if (part->names)
        kh_clear(names, part->names);
    else
        xalloc_require((part->names = kh_init(names)) != NULL);
}

static void ask(struct mate_part *part, const struct mate_read *read)
{
    xgrow(&part->asked, &part->asked_room, part->n_asked + 1, part->n_asked + 16,
          sizeof *part->asked);
    keep(&part->asked[part->n_asked++], read);
}

static uint32_t begin_to_wait(struct mate_part *part, const struct mate_read *read)
{
    xgrow(&part->reads, &part->reads_room, part->n_reads + 1, part->n_reads + 16,
          sizeof *part->reads);
    keep(&part->reads[part->n_reads], read);
    return (uint32_t)part->n_reads++;
}

void mate_part_add(struct mate_part *part, struct depth_part *depth, const struct mate_read *read)
{
    khint_t at = kh_get(names, part->names, read->name);
    bool is_known = at != kh_end(part->names) && kh_val(part->names, at) != is_asked;
    uint32_t state = is_known ? kh_val(part->names, at) : none_waits;
    is_known |= part->n_pieces > 1;     /* earlier parts have no records of this reference */
    if (read->role == MATE_SECOND && state == none_waits) {
        if (!is_known) ask(part, read);
        return;
    }
    if (read->role != MATE_WAITS && state != none_waits) {
        correct(depth, &part->reads[state], read);
        kh_val(part->names, at) = none_waits;
        return;
    }
    int r;
    at = kh_put(names, part->names, read->name, &r);
    xalloc_require(r >= 0);
    if (read->role == MATE_WAITS || is_known) {
        kh_val(part->names, at) = begin_to_wait(part, read);
    } else {
        kh_val(part->names, at) = is_asked;
        ask(part, read);
    }
}

void mate_part_release(struct mate_part *part)
{
    if (part->names) kh_destroy(names, part->names);
    free_reads(part->reads, part->n_reads);
    free_reads(part->asked, part->n_asked);
    free(part->reads);
    free(part->asked);
}

/* ---- the table ---- */

void mate_table_begin_ref(struct mate_table *table)
{
    mate_table_release(table);
    xalloc_require((table->waiting = kh_init(waiting)) != NULL);
    table->most = MOST_WAITING;
}

static void free_waiting(const struct waiting_read *waiting)
{
    if (waiting->whole) free_reads(waiting->whole, 1);
    free(waiting->whole);
}

static void take_out(struct mate_table *table, khint_t at)
{
    free_waiting(&kh_val(table->waiting, at));
    kh_del(waiting, table->waiting, at);
}

/* Moves a read into the table. */
static void put(struct mate_table *table, struct mate_read *read)
{
    int r;
    khint_t at = kh_put(waiting, table->waiting, read->name, &r);
    xalloc_require(r >= 0);
    struct waiting_read *waiting = &kh_val(table->waiting, at);
    if (r == 0) free_waiting(waiting);
    *waiting = (struct waiting_read){read->begin, read->end, NULL};
    bool is_simple = read->has_one_op && read->n_spans == 1;
    if (!is_simple) waiting->whole = xmemdup(read, sizeof *read);
    if (is_simple) free(read->spans);
    read->spans = NULL;
}

static void answer(struct mate_table *table, struct mate_read *read, struct depth_part *depth)
{
    khint_t at = kh_get(waiting, table->waiting, read->name);
    if (at != kh_end(table->waiting)) {
        const struct waiting_read *waiting = &kh_val(table->waiting, at);
        struct span span = {waiting->begin, waiting->end};
        const struct mate_read simple = {.has_one_op = true, .begin = waiting->begin,
                                         .end = waiting->end, .spans = &span, .n_spans = 1};
        correct(depth, waiting->whole ? waiting->whole : &simple, read);
        take_out(table, at);
    } else if (read->role == MATE_EITHER) {
        put(table, read);
    }
}

static void add_states(struct mate_table *table, struct mate_part *part)
{
    for (khint_t i = kh_begin(part->names); i != kh_end(part->names); i++) {
        if (!kh_exist(part->names, i) || kh_val(part->names, i) == is_asked) continue;
        if (kh_val(part->names, i) != none_waits) {
            put(table, &part->reads[kh_val(part->names, i)]);
            continue;
        }
        khint_t at = kh_get(waiting, table->waiting, kh_key(part->names, i));
        if (at != kh_end(table->waiting)) take_out(table, at);
    }
}

/* Forgets reads that no later read can overlap: their mates were left out. */
static void forget_late(struct mate_table *table, int64_t pos)
{
    for (khint_t i = kh_begin(table->waiting); i != kh_end(table->waiting); i++)
        if (kh_exist(table->waiting, i) && kh_val(table->waiting, i).end <= pos)
            take_out(table, i);
    while (table->most < 2 * (size_t)kh_size(table->waiting)) table->most *= 2;
}

void mate_table_add(struct mate_table *table, const struct mate_piece *piece,
                    struct depth_part *depth)
{
    struct mate_part *part = piece->part;
    for (size_t i = 0; piece->is_first && i < part->n_asked; i++)
        answer(table, &part->asked[i], depth);
    if (piece->is_last && part->names) add_states(table, part);
    if (kh_size(table->waiting) > table->most) forget_late(table, piece->pos);
}

void mate_table_release(struct mate_table *table)
{
    if (!table->waiting) return;
    for (khint_t i = kh_begin(table->waiting); i != kh_end(table->waiting); i++)
        if (kh_exist(table->waiting, i)) free_waiting(&kh_val(table->waiting, i));
    kh_destroy(waiting, table->waiting);
    table->waiting = NULL;
}
