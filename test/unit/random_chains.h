/*
 * random_chains.h -- random reads of one place, for tests of chains of duplicates: few keys, scores
 * and coordinates, so that many of them have to do with each other.
 */
#ifndef ROCKSORT_TEST_RANDOM_CHAINS_H
#define ROCKSORT_TEST_RANDOM_CHAINS_H

#include "random_records.h"

#include "duplicates/duplicate_view.h"

static inline void set_name(struct duplicate_view *view, const char *name)
{
    view->name = (const uint8_t *)name;
    view->name_bytes = (uint8_t)strlen(name);
}

enum { MOST = 60, NAME_ROOM = 40 };

static inline void random_name(struct rng *rng, char *name)
{
    static const char *const tiles[] = {"M:1:", "M:1:", "M:2:", "M:12:", "M:1:1:"};
    const char *tile = tiles[rng_below(rng, sizeof tiles / sizeof *tiles)];
    if (rng_one_in(rng, 12))
        (void)snprintf(name, NAME_ROOM, "q%zu", rng_below(rng, 4));
    else
        (void)snprintf(name, NAME_ROOM, "%s%d:%d%s", tile, (int)rng_below(rng, 24) - 12,
                       (int)rng_below(rng, 24) - 12, rng_one_in(rng, 3) ? "x" : "");
}

/* The strand of a pair's read whose `here` is its 5' end follows from its key. */
static inline bool strand_at_five_end(const struct duplicate_rules *rules,
                               const struct duplicate_view *view)
{
    bool turned = view->orientation == PAIR_RF || (rules->by_sequence &&
                                                   view->orientation == PAIR_RR);
    return view->is_left == turned;
}

static inline struct duplicate_view random_view(struct rng *rng,
                                                const struct duplicate_rules *rules, char *name)
{
    static const enum view_kind kinds[] = {VIEW_SINGLE, VIEW_PAIR, VIEW_PAIR, VIEW_PAIR};
    struct duplicate_view view = {
        .kind = kinds[rng_below(rng, sizeof kinds / sizeof *kinds)],
        .ref = (int32_t)rng_below(rng, 2),
        .pos = (int64_t)rng_below(rng, 4),
        .here = rng_one_in(rng, 4),
        .there = rng_one_in(rng, 4),
        .orientation = rng_one_in(rng, 2) ? PAIR_FR : (uint8_t)rng_below(rng, 4),
        .is_left = rng_one_in(rng, 2),
        .is_reverse = rng_one_in(rng, 2),
        .failed_qc = rng_one_in(rng, 6),
        .score = (int64_t)rng_below(rng, 4),
    };
    bool same_strand = view.orientation == PAIR_FF || view.orientation == PAIR_RR;
    view.other_place = view.here;
    if (view.kind == VIEW_PAIR && same_strand && !rules->by_sequence)
        view.other_place = rng_one_in(rng, 4);
    else if (view.kind == VIEW_PAIR)
        view.is_reverse = strand_at_five_end(rules, &view);
    if (rules->ignores_strand) {
        view.orientation = PAIR_FF;
        view.other_place = (int64_t)rng_below(rng, 4);
    }
    random_name(rng, name);
    set_name(&view, name);
    return view;
}

static inline struct duplicate_rules random_rules(struct rng *rng)
{
    return (struct duplicate_rules){
        .by_sequence = rng_one_in(rng, 2), .ignores_strand = rng_one_in(rng, 4), .names_original = true, .counts = true,
        .optical_distance = rng_one_in(rng, 4) ? 0 : 1 + (int64_t)rng_below(rng, 6),
        .checks_chains = !rng_one_in(rng, 4)};
}

#endif
