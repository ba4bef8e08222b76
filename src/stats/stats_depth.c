/* stats_depth.c -- see stats_depth.h. */
#include "stats/stats_depth.h"

#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

/* ---- places ---- */

void stats_places_add(struct stats_places *places, const struct stats_place *place)
{
    xgrow(&places->at, &places->room, places->n + 1, places->n / 2 + 64, sizeof *places->at);
    places->at[places->n++] = *place;
}

void stats_places_span(struct stats_places *places, int64_t gap, uint32_t n)
{
    const size_t n_new = 1 + (size_t)(gap / UINT32_MAX);
    xgrow(&places->spans, &places->spans_room, places->n_spans + n_new, places->n_spans / 2 + 64,
          sizeof *places->spans);
    for (; gap > UINT32_MAX; gap -= UINT32_MAX) {
        places->spans[places->n_spans++] = (struct depth_span){UINT32_MAX, 0};
        places->at[places->n - 1].n_spans++;
    }
    places->spans[places->n_spans++] = (struct depth_span){(uint32_t)gap, n};
    places->at[places->n - 1].n_spans++;
}

void stats_places_length(struct stats_places *places, uint32_t n_bases)
{
    if (n_bases < STATS_FEWEST_BASES || n_bases <= places->most_bases) return;
    xgrow(&places->longer, &places->longer_room, places->n_longer + 1, places->n_longer + 4,
          sizeof *places->longer);
    places->longer[places->n_longer++] = (struct long_read){places->n, n_bases};
    places->most_bases = n_bases;
}

void stats_places_release(struct stats_places *places)
{
    free(places->at);
    free(places->mates);
    free(places->spans);
    free(places->longer);
}

/* ---- the ring ---- */

/* Depths of positions that have left a ring. */
struct depth_counter {
    const struct stats_options *options;
    uint64_t *depths;
    int32_t *kept;              /* depths of the first n_kept positions, which are not counted */
    uint32_t n_kept;
    const int32_t *added;       /* to the first n_added positions */
    uint32_t n_added;
    uint64_t n;                 /* positions so far */
};

static void ring_start(struct depth_ring *ring, uint32_t n_bases, uint32_t size)
{
    *ring = (struct depth_ring){.tid = -1, .n_bases = n_bases, .size = size};
    ring->steps = xcalloc(size, sizeof *ring->steps);
}

static uint32_t modulo(uint64_t i, uint32_t size)
{
    return (uint32_t)(i < size ? i : i % size);
}

static int32_t *step_at(struct depth_ring *ring, uint64_t i)
{
    return &ring->steps[modulo(ring->start + i, ring->size)];
}

static void count_run(struct depth_counter *to, int32_t depth, uint32_t n)
{
    uint32_t i = 0;
    for (; i < n && to->n + i < to->n_kept; i++) to->kept[to->n + i] = depth;
    for (; i < n && to->n + i < to->n_added; i++) {
        int32_t sum = depth + to->added[to->n + i];
        if (sum > 0) to->depths[stats_depth_index(to->options, sum)]++;
    }
    if (depth > 0 && i < n) to->depths[stats_depth_index(to->options, depth)] += n - i;
    to->n += n;
}

/* Counts the first n positions, at most all, and moves the ring behind them. */
static void advance(struct depth_ring *ring, uint32_t n, struct depth_counter *counter)
{
    while (n > 0) {
        const uint32_t most = ring->n_used < n ? ring->n_used : n;
        uint32_t run = most > 0 ? 1 : n, at = ring->start + 1;
        while (run < most) {    /* positions of the same depth */
            if (at >= ring->size) at -= ring->size;
            if (ring->steps[at] != 0) break;
            run++;
            at++;
        }
        count_run(counter, (int32_t)ring->depth, run);
        ring->start = modulo((uint64_t)ring->start + run, ring->size);
        ring->depth += ring->steps[ring->start];
        ring->steps[ring->start] = 0;
        ring->n_used -= run < ring->n_used ? run : ring->n_used;
        n -= run;
    }
}

/* Moves the first position of the ring to `pos` on the same reference. As in samtools, a long way
   leaves the last position of the ring in it. */
static void move_to(struct depth_ring *ring, int64_t pos, struct depth_counter *counter)
{
    if (pos == ring->pos) return;
    const bool is_far = pos == -1 || pos - ring->pos >= ring->size;
    advance(ring, is_far ? ring->size - 1 : (uint32_t)(pos - ring->pos), counter);
    ring->pos = pos;
}

/* Moves the ring to another reference. A count in its last position is left where it is in the
   memory of samtools, which then counts from the begin of that. */
static void leave_reference(struct depth_ring *ring, struct depth_counter *counter)
{
    if (ring->pos == -1) return;
    move_to(ring, -1, counter);
    if (ring->start == 0) return;
    ring->steps[ring->start] = (int32_t)ring->depth;
    ring->n_used = ring->depth != 0 ? ring->size : 0;
    ring->depth = 0;
    ring->start = 0;
}

static void add_steps(struct depth_ring *ring, uint32_t at, int32_t step)
{
    if (at == 0)
        ring->depth += step;
    else
        *step_at(ring, at) += step;
    if (at > ring->n_used) ring->n_used = at;
}

/* Adds positions, which may go round the ring. */
static void add_span(struct depth_ring *ring, int64_t begin, int64_t end)
{
    if (begin < ring->pos) return;
    const uint32_t from = modulo((uint64_t)(begin - ring->pos), ring->size);
    const uint32_t to = modulo((uint64_t)(end - ring->pos), ring->size);
    if (from == to) return;
    add_steps(ring, from, 1);
    if (from > to) {
        add_steps(ring, ring->size, -1);
        if (to > 0) add_steps(ring, 0, 1);
    }
    if (to > 0) add_steps(ring, to, -1);
}

static uint32_t grown_bases(uint32_t n_bases, uint32_t longer)
{
    return longer >= n_bases ? 2 * (1 + longer - n_bases) + n_bases : n_bases;
}

/* Makes the ring larger. samtools copies as many bytes as there are positions, not their counts. */
static void grow(struct depth_ring *ring, uint32_t longer)
{
    const uint32_t size = 5 * longer, first = ring->size - ring->start, second = ring->start;
    int32_t *depths = xcalloc(ring->size, sizeof *depths), depth = (int32_t)ring->depth;
    int32_t *kept = xcalloc((size_t)size + 1, sizeof *kept);
    for (uint32_t i = 0; i < ring->size; i++) {
        if (i > 0) depth += *step_at(ring, i);
        depths[i] = depth;
    }
    memcpy(kept, depths, first);
    if (second > 1) memcpy(kept + first, depths + first, second);
    free(ring->steps);
    free(depths);
    ring->depth = kept[0];
    ring->steps = xcalloc(size, sizeof *ring->steps);
    for (uint32_t i = 1; i < size; i++) ring->steps[i] = kept[i] - kept[i - 1];
    ring->steps[0] = -kept[size - 1];
    free(kept);
    ring->start = 0;
    ring->size = size;
    ring->n_used = size;
    ring->n_bases = grown_bases(ring->n_bases, longer);
}

/* ---- counting places ---- */

struct place_counter {
    struct depth_ring *ring;
    struct depth_counter to;
    struct depth_part *part;            /* NULL: in the ring of the output */
    struct stats_overlaps *overlaps;    /* or NULL */
};

static void add_piece(void *arg, int64_t begin, int64_t end)
{
    struct place_counter *counter = arg;
    add_span(counter->ring, begin, end);
}

static void add_spans(struct place_counter *counter, const struct stats_places *places, size_t i,
                      const struct depth_span *spans)
{
    const struct stats_place *place = &places->at[i];
    int64_t at = place->pos;
    if (counter->overlaps) stats_overlaps_begin(counter->overlaps, place->tid, place->pos);
    for (uint32_t k = 0; k < place->n_spans; k++) {
        const int64_t span[2] = {at + spans[k].gap, at + spans[k].gap + spans[k].n};
        at = span[1];
        if (counter->overlaps)
            stats_overlaps_span(counter->overlaps, &places->mates[i], span, add_piece, counter);
        else
            add_span(counter->ring, span[0], span[1]);
    }
    if (counter->overlaps) stats_overlaps_end(counter->overlaps, &places->mates[i]);
}

/* Moves the ring to a place. */
static void go_to(struct place_counter *counter, const struct stats_place *place)
{
    struct depth_ring *ring = counter->ring;
    struct depth_part *part = counter->part;
    if (ring->tid == -1 || ring->tid != place->tid) {
        if (part && counter->to.n == 0) part->needs_last = true;
        leave_reference(ring, &counter->to);
        if (part && ring->n_used > 0) part->needs_order = true;
        if (part) part->is_renumbered = true;
        ring->tid = place->tid;
    }
    move_to(ring, place->pos, &counter->to);
}

/* Counts places in order. is_there: the ring is at the first one already. In the ring of a part,
   stops if the places need their order. */
static void count_places(struct place_counter *counter, const struct stats_places *places,
                         bool is_there)
{
    const struct long_read *longer = places->longer, *last = longer + places->n_longer;
    const struct depth_span *span = places->spans;
    for (size_t i = 0; i <= places->n; i++) {
        for (; longer < last && longer->place == i; longer++) {
            if (longer->n_bases < counter->ring->n_bases) continue;
            if (counter->part) {
                counter->part->needs_order = true;
                return;
            }
            grow(counter->ring, longer->n_bases);
        }
        if (i == places->n) break;
        if (i > 0 || !is_there) go_to(counter, &places->at[i]);
        if (counter->part && counter->part->needs_order) return;
        add_spans(counter, places, i, span);
        span += places->at[i].n_spans;
    }
}

void stats_part_start(struct depth_part *part, uint32_t n_bases, uint32_t size)
{
    *part = (struct depth_part){0};
    ring_start(&part->ring, n_bases, size);
    part->first = xcalloc(size, sizeof *part->first);
}

void stats_part_count(struct depth_part *part, const struct stats_places *places,
                      const struct stats_options *options)
{
    struct depth_ring *ring = &part->ring;
    struct place_counter counter = {.ring = ring, .part = part};
    part->depths = xcalloc(options->n_depths, sizeof *part->depths);
    counter.to = (struct depth_counter){.options = options, .depths = part->depths,
                                        .kept = part->first, .n_kept = ring->size};
    /* The mates of overlaps may be in other parts. */
    part->needs_order = options->removes_overlaps;
    if (part->is_unsorted || part->needs_order || places->n == 0) return;
    ring->tid = places->at[0].tid;
    ring->pos = places->at[0].pos;
    count_places(&counter, places, true);
    part->n_positions = counter.to.n;
}

void stats_part_release(struct depth_part *part)
{
    free(part->ring.steps);
    free(part->first);
    free(part->depths);
}

/* ---- the sum ---- */

void stats_depth_start(struct stats_depth *depth, const struct stats_options *options,
                       struct fasta_window *reference)
{
    *depth = (struct stats_depth){.options = options, .is_sorted = true, .tid = -1, .bin_pos = -1,
                                  .reference = reference, .window_pos = -1,
                                  .n_bases = STATS_FEWEST_BASES};
    ring_start(&depth->ring, STATS_FEWEST_BASES, 5 * STATS_FEWEST_BASES);
    depth->depths = xcalloc(options->n_depths, sizeof *depth->depths);
    depth->window_bases = options->bin_bases > 10 * STATS_FEWEST_BASES ? options->bin_bases
                                                                       : 10 * STATS_FEWEST_BASES;
    if (options->removes_overlaps) depth->overlaps = stats_overlaps_create();
}

/* Sums the counts of a part and those of earlier records in the ring, which is at the part's first
   place. */
static void join_ring(struct stats_depth *depth, const struct depth_part *part)
{
    struct depth_ring *ring = &depth->ring;
    const uint32_t first = ring->start;
    const uint32_t n =
        part->n_positions < ring->size ? (uint32_t)part->n_positions : ring->size;
    struct depth_counter counter = {.options = depth->options, .depths = depth->depths,
                                    .added = part->first, .n_added = n};
    advance(ring, n, &counter);
    ring->start = part->is_renumbered ? part->ring.start
                                      : modulo((uint64_t)first + part->ring.start, ring->size);
    ring->pos = part->ring.pos;
    ring->tid = part->ring.tid;
    ring->depth += part->ring.depth;
    for (uint32_t i = 1; i <= part->ring.n_used; i++)
        *step_at(ring, i) += part->ring.steps[modulo((uint64_t)part->ring.start + i, ring->size)];
    if (part->ring.n_used > ring->n_used) ring->n_used = part->ring.n_used;
    for (size_t i = 0; i < depth->options->n_depths; i++) depth->depths[i] += part->depths[i];
}

static void count_depths(struct stats_depth *depth, const struct depth_part *part,
                         const struct stats_places *places)
{
    struct place_counter counter = {.ring = &depth->ring, .overlaps = depth->overlaps};
    counter.to = (struct depth_counter){.options = depth->options, .depths = depth->depths};
    bool fits = !part->needs_order && part->ring.n_bases == depth->ring.n_bases &&
                part->ring.size == depth->ring.size;
    if (fits && places->n == 0) return;
    if (fits) go_to(&counter, &places->at[0]);
    if (fits && !(part->needs_last && depth->ring.n_used == depth->ring.size))
        join_ring(depth, part);
    else
        count_places(&counter, places, fits);
}

static void new_bin(struct stats_depth *depth, const struct stats_place *place)
{
    xgrow(&depth->bins, &depth->bins_room, depth->n_bins + 1, depth->n_bins / 2 + 64,
          sizeof *depth->bins);
    depth->bins[depth->n_bins++] = (struct stats_bin){0};
    depth->bin_pos = place->pos;
}

/* Returns the share of G and C in a bin, as far as samtools has the reference, or -1. */
static float bin_content(struct stats_depth *depth, const struct stats_place *place)
{
    struct fasta_window *window = depth->reference;
    int64_t end = place->pos + depth->options->bin_bases, n[9] = {0};
    if (end > depth->window_end) end = depth->window_end;
    const int64_t begin = place->pos > 0 ? place->pos : 0, n_bases = end - place->pos;
    if (fasta_window_move(window, place->tid, begin, begin + n_bases) < 0) return -1;
    for (int64_t at = begin; at < begin + n_bases && at < window->end; at++)
        n[window->codes[at - window->begin]]++;
    const int64_t n_gc = n[2] + n[4], n_known = n_gc + n[1] + n[8];
    return n_known > 0 ? (float)n_gc / (float)n_known : 0;
}

/* samtools begins a bin if a record ends after the last bin, or after the part of the reference
   that it holds. */
static int find_bin(struct stats_depth *depth, const struct stats_place *place)
{
    const int64_t end = place->pos + place->n_bases, bin_bases = depth->options->bin_bases;
    int64_t new_end = 0;
    if (depth->window_pos == -1 || depth->tid != place->tid || depth->window_end < end)
        new_end = end;
    else if (depth->bin_pos + bin_bases >= end)
        return 0;
    else if (depth->window_end < place->pos + bin_bases)
        new_end = place->pos + bin_bases;
    new_bin(depth, place);
    if (new_end > 0) {
        if (new_end - place->pos > depth->window_bases) depth->window_bases = new_end - place->pos;
        if (fasta_window_move(depth->reference, place->tid, place->pos, place->pos) < 0) return -1;
        depth->window_pos = place->pos;
        depth->window_end = place->pos + depth->window_bases;
        if (depth->window_end > depth->reference->n_bases)
            depth->window_end = depth->reference->n_bases;
    }
    const float gc = bin_content(depth, place);
    depth->bins[depth->n_bins - 1].gc = gc;
    return gc < 0 ? -1 : 0;
}

static void add_longer(struct stats_depth *depth, uint32_t n_bases)
{
    depth->n_bases = grown_bases(depth->n_bases, n_bases);
    if (10 * (int64_t)depth->n_bases > depth->window_bases)
        depth->window_bases = 10 * (int64_t)depth->n_bases;
}

static int add_bins(struct stats_depth *depth, const struct stats_places *places)
{
    const struct long_read *longer = places->longer, *last = longer + places->n_longer;
    for (size_t i = 0; i < places->n; i++) {
        const struct stats_place *place = &places->at[i];
        for (; longer < last && longer->place == i; longer++) add_longer(depth, longer->n_bases);
        if (depth->tid == place->tid && place->pos < depth->pos) depth->is_sorted = false;
        if (!depth->is_sorted) return 0;
        if (depth->reference) {
            if (find_bin(depth, place) < 0) return -1;
        } else if (depth->bin_pos == -1 || depth->tid != place->tid ||
                   place->pos - depth->bin_pos > depth->options->bin_bases) {
            new_bin(depth, place);
        }
        depth->tid = place->tid;
        depth->pos = place->pos;
        struct stats_bin *bin = &depth->bins[depth->n_bins - 1];
        bin->depth++;
        bin->gc += place->gc;   /* 0 with a reference */
    }
    for (; longer < last; longer++) add_longer(depth, longer->n_bases);
    return 0;
}

int stats_depth_combine(struct stats_depth *depth, const struct depth_part *part,
                        const struct stats_places *places)
{
    if (part->is_unsorted) depth->is_sorted = false;
    if (!depth->is_sorted) return 0;
    if (add_bins(depth, places) < 0) return -1;
    if (depth->is_sorted) count_depths(depth, part, places);
    return 0;
}

void stats_depth_end(struct stats_depth *depth)
{
    struct depth_counter counter = {.options = depth->options, .depths = depth->depths};
    leave_reference(&depth->ring, &counter);
}

void stats_depth_release(struct stats_depth *depth)
{
    stats_overlaps_destroy(depth->overlaps);
    free(depth->ring.steps);
    free(depth->bins);
    free(depth->depths);
}
