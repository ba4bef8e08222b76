/*
 * depth_runs.c -- see depth_runs.h.
 *
 * The ends of the intervals of a piece are sorted by a radix sort: intervals of long reads or reads
 * with introns come in no order, and this costs about 10 ns for an interval of a short read. Digits
 * in which all positions agree are left out, so that it takes two passes for most pieces.
 */
#include "depth/depth_runs.h"

#include <stdlib.h>
#include <string.h>

/* ---- parts ---- */

enum { DIGIT_BITS = 11, N_DIGIT_VALUES = 1 << DIGIT_BITS, FEW_EVENTS = 64 };

static unsigned digit(uint64_t event, unsigned shift)
{
    return (unsigned)(event >> shift) & (N_DIGIT_VALUES - 1);
}

static void insertion_sort(uint64_t *events, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        uint64_t event = events[i];
        size_t to = i;
        for (; to > 0 && events[to - 1] > event; to--) events[to] = events[to - 1];
        events[to] = event;
    }
}

/* Sorts the events, which lie in [low, low + span]. */
static void radix_sort(struct depth_part *part, uint64_t low, uint64_t span)
{
    size_t n = part->n_events;
    uint64_t *from = part->events, *to = xmalloc(part->events_room * sizeof *to);
    for (unsigned shift = 0; shift < 64 && span >> shift > 0; shift += DIGIT_BITS) {
        size_t first[N_DIGIT_VALUES] = {0}, sum = 0;
        for (size_t i = 0; i < n; i++) first[digit(from[i] - low, shift)]++;
        for (size_t i = 0; i < N_DIGIT_VALUES; i++) {
            size_t count = first[i];
            first[i] = sum;
            sum += count;
        }
        for (size_t i = 0; i < n; i++) to[first[digit(from[i] - low, shift)]++] = from[i];
        uint64_t *sorted = to;
        to = from;
        from = sorted;
    }
    part->events = from;
    free(to);
}

static void sort_events(struct depth_part *part)
{
    if (part->n_events <= FEW_EVENTS) {
        insertion_sort(part->events, part->n_events);
        return;
    }
    uint64_t low = UINT64_MAX, high = 0;
    for (size_t i = 0; i < part->n_events; i++) {
        if (part->events[i] < low) low = part->events[i];
        if (part->events[i] > high) high = part->events[i];
    }
    radix_sort(part, low, high - low);
}

void depth_part_end(struct depth_part *part)
{
    if (part->n_events == 0) return;
    sort_events(part);
    struct depth_steps *steps = &part->steps;
    for (size_t i = 0; i < part->n_events;) {
        struct depth_step step = {.pos = (int64_t)(part->events[i] >> 1)};
        for (; i < part->n_events && (int64_t)(part->events[i] >> 1) == step.pos; i++)
            step.change += part->events[i] & 1 ? -1 : 1;
        if (step.change == 0) continue;
        if (steps->n == steps->room)
            xgrow(&steps->at, &steps->room, steps->n + 1, steps->n / 2 + 64, sizeof *steps->at);
        steps->at[steps->n++] = step;
    }
    struct depth_piece *last = &part->pieces[part->n_pieces - 1];
    last->n_steps = steps->n - last->first_step;
    part->n_events = 0;
}

void depth_part_add_record(struct depth_part *part, int32_t tid, int64_t pos)
{
    struct depth_piece *last = part->n_pieces > 0 ? &part->pieces[part->n_pieces - 1] : NULL;
    if (!last || last->tid != tid) {
        depth_part_end(part);
        xgrow(&part->pieces, &part->pieces_room, part->n_pieces + 1, part->n_pieces,
              sizeof *part->pieces);
        last = &part->pieces[part->n_pieces++];
        *last = (struct depth_piece){.tid = tid, .first_step = part->steps.n};
    }
    last->last_begin = pos;
}

void depth_part_release(struct depth_part *part)
{
    free(part->pieces);
    free(part->steps.at);
    free(part->events);
}

/* ---- parts in order ---- */

void depth_join_begin(struct depth_join *join)
{
    join->run = (struct depth_run){0};
    join->open.n = 0;
}

bool depth_join_is_clear(const struct depth_join *join, struct depth_cursor *from, int64_t begin,
                         int64_t end)
{
    const struct depth_steps *open = &join->open;
    for (; from->at < open->n && open->at[from->at].pos < begin; from->at++)
        from->depth += open->at[from->at].change;
    return from->depth + join->run.depth == 0 &&
           (from->at == open->n || open->at[from->at].pos > end);
}

void depth_join_add(struct depth_join *join, const struct depth_step *steps, size_t n)
{
    /* Merges from the back: new steps are behind most of the old ones. */
    struct depth_steps *open = &join->open;
    if (n == 0) return;
    xgrow(&open->at, &open->room, open->n + n, open->n / 2 + 64, sizeof *open->at);
    size_t a = open->n, b = n, to = open->n + n;
    while (b > 0)
        open->at[--to] = a > 0 && open->at[a - 1].pos > steps[b - 1].pos ? open->at[--a]
                                                                         : steps[--b];
    /* Adds changes of the same position, from where the merged steps begin. */
    size_t n_steps = to > 0 ? to - 1 : 0;
    for (size_t i = n_steps; i < open->n + n; i++) {
        struct depth_step *last = n_steps > 0 ? &open->at[n_steps - 1] : NULL;
        if (last && last->pos == open->at[i].pos)
            last->change += open->at[i].change;
        else if (last && last->change == 0)
            *last = open->at[i];
        else
            open->at[n_steps++] = open->at[i];
    }
    if (n_steps > 0 && open->at[n_steps - 1].change == 0) n_steps--;
    open->n = n_steps;
}

static inline void take_step(struct depth_join *join, int64_t pos, int64_t change)
{
    struct depth_run *run = &join->run;
    if (change == 0) return;
    if (pos > run->begin) {
        run->end = pos;
        join->visit(join->arg, run);
        run->begin = pos;
    }
    run->depth += change;
}

void depth_join_add_piece(struct depth_join *join, const struct depth_part *part,
                          const struct depth_piece *piece, int64_t until)
{
    const struct depth_step *b = piece ? depth_piece_steps(part, piece) : NULL;
    const struct depth_step *end_b = piece ? b + piece->n_steps : NULL;
    struct depth_steps *open = &join->open;
    const struct depth_step *a = open->at, *end_a = a + open->n;
    for (;;) {
        int64_t pos = a < end_a ? a->pos : INT64_MAX, change = 0;
        if (b < end_b && b->pos < pos) pos = b->pos;
        if (pos >= until) break;
        if (a < end_a && a->pos == pos) change += (a++)->change;
        if (b < end_b && b->pos == pos) change += (b++)->change;
        take_step(join, pos, change);
    }
    open->n = (size_t)(end_a - a);
    if (open->n > 0) memmove(open->at, a, open->n * sizeof *a);
    depth_join_add(join, b, (size_t)(end_b - b));
}

void depth_join_finish(struct depth_join *join, int64_t n_bases)
{
    depth_join_add_piece(join, NULL, NULL, n_bases);
    struct depth_run *run = &join->run;
    if (run->begin >= n_bases) return;
    run->end = n_bases;
    join->visit(join->arg, run);
    run->begin = n_bases;
}

void depth_join_release(struct depth_join *join)
{
    free(join->open.at);
}
