/*
 * duplicate_chains.c -- see duplicate_chains.h.
 *
 * One pass in the order of the sorted file decides who is a duplicate of whom, with two tables that
 * know the best read of each key so far. found_by leads from each duplicate to a better read, so
 * the end of that path is the best read of the chain.
 *
 * What comes then is free of order. A duplicate is optical if it was near to the read that it
 * became a duplicate of, is near to the best read, or is near to a better duplicate of its chain.
 * samtools compares all duplicates that are near in x. Here they are sorted into square cells: all
 * in a cell are near to each other, so only the best of each cell needs to be compared with the
 * eight cells around it.
 */
#include "duplicates/duplicate_chains.h"

#include "duplicates/barcode_clusters.h"
#include "duplicates/chain_rules.h"
#include "duplicates/duplicate_table.h"
#include "duplicates/read_coords.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

/* The best read of each key: numbers of members, from 1, at a place that the hash of the key says;
   0 is free. */
struct best_reads {
    uint32_t *slots;
    size_t n_slots;             /* a power of two */
};

struct search {
    const struct duplicate_rules *rules;
    struct chain_member *members;
    size_t n;
    struct best_reads pairs, singles;
    uint64_t *pair_barcodes, *single_barcodes;  /* of clusters; NULL: each its own */
    struct read_coords *coords; /* with -d, else NULL */
};

static size_t number_of(const struct search *s, const struct chain_member *m)
{
    return (size_t)(m - s->members);
}

static bool is_paired(const struct chain_member *m)
{
    return chain_is_paired(&m->view);
}

/* ---- keys ---- */

static struct duplicate_key pair_key(const struct search *s, const struct chain_member *m)
{
    if (!s->pair_barcodes) return duplicate_key_of_pair(s->rules, &m->view);
    struct duplicate_view view = m->view;
    view.barcode = s->pair_barcodes[number_of(s, m)];
    return duplicate_key_of_pair(s->rules, &view);
}

static struct duplicate_key single_key(const struct search *s, const struct chain_member *m)
{
    if (!s->single_barcodes) return duplicate_key_of_single(s->rules, &m->view);
    struct duplicate_view view = m->view;
    view.barcode = s->single_barcodes[number_of(s, m)];
    return duplicate_key_of_single(s->rules, &view);
}

typedef struct duplicate_key (*key_function)(const struct search *s, const struct chain_member *m);

static struct best_reads best_reads_create(size_t n)
{
    struct best_reads best = {.n_slots = 8};
    while (best.n_slots * 3 / 4 <= n) best.n_slots *= 2;
    best.slots = xcalloc(best.n_slots, sizeof *best.slots);
    return best;
}

/* The slot of the key of a member, which may be free. Keys are not stored: to make one again costs
   less than the memory. */
static uint32_t *find_slot(const struct search *s, const struct best_reads *best,
                           key_function key_of, const struct chain_member *m)
{
    struct duplicate_key key = key_of(s, m);
    size_t mask = best->n_slots - 1;
    for (size_t at = (size_t)key.low & mask;; at = (at + 1) & mask) {
        uint32_t number = best->slots[at];
        if (number == 0) return &best->slots[at];
        struct duplicate_key other = key_of(s, &s->members[number - 1]);
        if (other.low == key.low && other.high == key.high) return &best->slots[at];
    }
}

static struct chain_member *member_in(const struct search *s, const uint32_t *slot)
{
    return &s->members[*slot - 1];
}

static void put_into(const struct search *s, uint32_t *slot, const struct chain_member *m)
{
    *slot = (uint32_t)number_of(s, m) + 1;
}

/* ---- where reads lie on the flow cell ---- */

static const struct read_coords *coords_of(const struct search *s, struct chain_member *m)
{
    struct read_coords *coords = &s->coords[number_of(s, m)];
    if (m->has_coords) return coords;
    char name[256];
    memcpy(name, m->view.name, m->view.name_bytes);
    name[m->view.name_bytes] = '\0';
    *coords = read_coords_of(s->rules, name);
    m->has_coords = true;
    return coords;
}

static bool are_near(const struct search *s, struct chain_member *a, struct chain_member *b)
{
    return read_coords_near(coords_of(s, a), (const char *)a->view.name, coords_of(s, b),
                            (const char *)b->view.name, s->rules->optical_distance);
}

/* ---- who is better ---- */

static uint32_t marked_at(const struct chain_member *m)
{
    return m->place > m->found_by->place ? m->place : m->found_by->place;
}

static bool is_better_duplicate(const struct chain_member *a, const struct chain_member *b)
{
    int r = chain_compare_duplicates(&a->view, &b->view);
    return r != 0 ? r < 0 : marked_at(a) > marked_at(b);
}

/* ---- the pass ---- */

static void mark(const struct search *s, struct chain_member *m, struct chain_member *better)
{
    m->is_duplicate = true;
    m->found_by = better;
    if (s->coords) m->is_optical = m->was_optical = are_near(s, m, better);
}

/* A read and the best one of its single key. The first pair of a key stays in the table. */
static void meet_single(const struct search *s, struct chain_member *m)
{
    uint32_t *slot = find_slot(s, &s->singles, single_key, m);
    if (*slot == 0) {
        put_into(s, slot, m);
        return;
    }
    struct chain_member *best = member_in(s, slot);
    if (is_paired(m) && is_paired(best)) return;
    if (!is_paired(m) && chain_single_loses(&m->view, &best->view)) {
        best->count++;
        mark(s, m, best);
        return;
    }
    /* 1.24 counts all single reads before the first pair as one. */
    m->count += is_paired(m) ? 1 : best->count;
    put_into(s, slot, m);
    mark(s, best, m);
}

/* A member of a pair and the best one of its key. Returns NULL, or the one that lacks a score. */
static const struct chain_member *meet_pair(const struct search *s, struct chain_member *m)
{
    uint32_t *slot = find_slot(s, &s->pairs, pair_key, m);
    if (*slot == 0) {
        put_into(s, slot, m);
        return NULL;
    }
    struct chain_member *best = member_in(s, slot);
    const struct duplicate_view *lacks_score = chain_lacks_score(&m->view, &best->view);
    if (lacks_score) return lacks_score == &m->view ? m : best;
    if (chain_compare_reads(&m->view, &best->view) < 0) {
        m->count += best->count;
        put_into(s, slot, m);
        mark(s, best, m);
    } else {
        best->count++;
        mark(s, m, best);
    }
    return NULL;
}

/* By their places in the sorted file. */
static int compare_members(const struct chain_member *m, const struct chain_member *o)
{
    if (m->view.ref != o->view.ref) return m->view.ref < o->view.ref ? -1 : 1;
    if (m->view.pos != o->view.pos) return m->view.pos < o->view.pos ? -1 : 1;
    if (m->view.is_reverse != o->view.is_reverse) return o->view.is_reverse ? -1 : 1;
    if (m->run != o->run) return m->run < o->run ? -1 : 1;
    return m->view.ordinal < o->view.ordinal ? -1 : m->view.ordinal > o->view.ordinal;
}

static int compare_places(const void *a, const void *b)
{
    return compare_members(*(struct chain_member *const *)a, *(struct chain_member *const *)b);
}

static const struct chain_member *go_through_all(struct search *s)
{
    struct chain_member **order = xmalloc((s->n + 1) * sizeof *order);
    const struct chain_member *lacks_score = NULL;
    for (size_t i = 0; i < s->n; i++) order[i] = &s->members[i];
    qsort(order, s->n, sizeof *order, compare_places);
    s->pairs = best_reads_create(s->n);
    s->singles = best_reads_create(s->n);
    for (size_t i = 0; i < s->n && !lacks_score; i++) {
        struct chain_member *m = order[i];
        m->place = (uint32_t)i;
        meet_single(s, m);
        if (is_paired(m)) lacks_score = meet_pair(s, m);
    }
    free(s->pairs.slots);
    free(s->singles.slots);
    free(order);
    return lacks_score;
}

/* ---- complete chains ---- */

/* Sets the originals of a duplicate, and of all on its path, to the best read of the chain. */
static void find_original(struct chain_member *m)
{
    struct chain_member *best = m, *next;
    while (best->original) best = best->original;
    for (; m != best; m = next) {
        next = m->original;
        m->original = best;
    }
}

static void find_originals(const struct search *s)
{
    for (size_t i = 0; i < s->n; i++) s->members[i].original = s->members[i].found_by;
    if (!s->rules->checks_chains) return;
    for (size_t i = 0; i < s->n; i++) find_original(&s->members[i]);
}

/* ---- optical duplicates of each other ---- */

/* Where a duplicate lies. Points are sorted by chain, then by cell. */
struct point {
    uint64_t cell;              /* hash of tile and cell */
    uint32_t chain;             /* number of the original */
    uint32_t number;            /* of the duplicate */
};

/* The number of the cell that is so many cells away in x and y. */
static uint64_t cell_of(const struct search *s, struct chain_member *m, int64_t dx, int64_t dy)
{
    const struct read_coords *coords = coords_of(s, m);
    const uint64_t words[] = {
        (uint64_t)(chain_cell(s->rules, coords->x) + dx),
        (uint64_t)(chain_cell(s->rules, coords->y) + dy),
        XXH3_64bits(m->view.name + coords->begin, (size_t)(coords->end - coords->begin)),
    };
    return XXH3_64bits(words, sizeof words);
}

static int compare_points(const void *a, const void *b)
{
    const struct point *p = a, *q = b;
    if (p->chain != q->chain) return p->chain < q->chain ? -1 : 1;
    if (p->cell != q->cell) return p->cell < q->cell ? -1 : 1;
    return p->number < q->number ? -1 : p->number > q->number;
}

/* As in 1.24 duplicates are not compared if their best read has no coordinates. Returns an array
   of *n_points. */
static struct point *list_points(const struct search *s, size_t *n_points)
{
    struct point *points = NULL;
    size_t n = 0, room = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct chain_member *m = &s->members[i];
        if (!m->is_duplicate || !coords_of(s, m->original)->known || !coords_of(s, m)->known)
            continue;
        xgrow(&points, &room, n + 1, n / 4 + 64, sizeof *points);
        points[n++] = (struct point){cell_of(s, m, 0, 0), (uint32_t)number_of(s, m->original),
                                     (uint32_t)i};
    }
    if (n > 0) qsort(points, n, sizeof *points, compare_points);
    *n_points = n;
    return points;
}

/* The first of n points of a chain that is not in a cell before this one. */
static size_t find_cell(const struct point *points, size_t n, uint64_t cell)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (points[middle].cell < cell)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has_better_in_cell(const struct search *s, const struct point *points, size_t n,
                               uint64_t cell, struct chain_member *m)
{
    for (size_t i = find_cell(points, n, cell); i < n && points[i].cell == cell; i++) {
        struct chain_member *other = &s->members[points[i].number];
        if (is_better_duplicate(other, m) && are_near(s, other, m)) return true;
    }
    return false;
}

static bool has_better_around(const struct search *s, const struct point *points, size_t n,
                              struct chain_member *m)
{
    for (int64_t dx = -1; dx <= 1; dx++)
        for (int64_t dy = -1; dy <= 1; dy++)
            if ((dx != 0 || dy != 0) &&
                has_better_in_cell(s, points, n, cell_of(s, m, dx, dy), m))
                return true;
    return false;
}

/* Compares all of one cell with the best of them. Returns it. */
static struct chain_member *compare_in_cell(const struct search *s, const struct point *points,
                                            size_t n)
{
    struct chain_member *best = &s->members[points[0].number];
    for (size_t i = 1; i < n; i++) {
        struct chain_member *m = &s->members[points[i].number];
        if (is_better_duplicate(m, best)) best = m;
    }
    for (size_t i = 0; i < n; i++) {
        struct chain_member *m = &s->members[points[i].number];
        if (m != best && are_near(s, m, best)) m->is_optical = true;
    }
    return best;
}

static void compare_in_chain(const struct search *s, const struct point *points, size_t n)
{
    for (size_t i = 0, in_cell; i < n; i += in_cell) {
        for (in_cell = 1; i + in_cell < n && points[i + in_cell].cell == points[i].cell;) in_cell++;
        struct chain_member *best = compare_in_cell(s, &points[i], in_cell);
        if (!best->is_optical) best->is_optical = has_better_around(s, points, n, best);
    }
}

static void compare_duplicates(const struct search *s)
{
    size_t n;
    struct point *points = list_points(s, &n);
    for (size_t i = 0, in_chain; i < n; i += in_chain) {
        for (in_chain = 1; i + in_chain < n && points[i + in_chain].chain == points[i].chain;)
            in_chain++;
        if (in_chain > 1) compare_in_chain(s, &points[i], in_chain);
    }
    free(points);
}

static void check_chains(const struct search *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct chain_member *m = &s->members[i];
        if (m->is_duplicate && !m->is_optical) m->is_optical = are_near(s, m, m->original);
    }
    compare_duplicates(s);
}

/* ---- barcodes ---- */

/* Gives members the barcode of their cluster. */
static uint64_t *join_barcodes(const struct search *s, bool of_pairs)
{
    struct barcode_item *items = xmalloc((s->n + 1) * sizeof *items);
    uint64_t *barcodes = xmalloc((s->n + 1) * sizeof *barcodes);
    size_t n_items = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct chain_member *m = &s->members[i];
        barcodes[i] = m->view.barcode;
        if (!m->view.barcode_text || m->view.barcode_bytes == 0) continue;
        if (of_pairs && !is_paired(m)) continue;
        struct duplicate_view view = m->view;
        view.barcode = 0;
        items[n_items++] = (struct barcode_item){
            .key = of_pairs ? duplicate_key_of_pair(s->rules, &view)
                            : duplicate_key_of_single(s->rules, &view),
            .text = view.barcode_text, .n_bytes = view.barcode_bytes, .number = (uint32_t)i,
        };
    }
    barcode_clusters_join(items, n_items);
    for (size_t i = 0; i < n_items; i++)
        barcodes[items[i].number] = s->members[items[i].joined].view.barcode;
    free(items);
    return barcodes;
}

/* ---- all of it ---- */

static void prepare(struct search *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct chain_member *m = &s->members[i];
        m->is_duplicate = m->is_optical = m->was_optical = m->has_coords = false;
        m->count = 1;
        m->original = m->found_by = NULL;
    }
    if (s->rules->optical_distance > 0) s->coords = xmalloc((s->n + 1) * sizeof *s->coords);
    if (s->rules->barcode_mismatches > 0) {
        s->pair_barcodes = join_barcodes(s, true);
        s->single_barcodes = join_barcodes(s, false);
    }
}

size_t duplicate_chains_route(const struct duplicate_rules *rules, struct chain_member *members,
                              size_t n, const struct chain_member **ends)
{
    struct search s = {.rules = rules, .members = members, .n = n};
    size_t n_ends = 0, n_routed = 0;
    for (size_t i = 0; i < n; i++) n_ends += members[i].view.kind == VIEW_END;
    /* No memset: without members there may be no array. */
    for (size_t i = 0; i < n; i++) ends[i] = NULL;
    if (n_ends == 0) return 0;
    s.singles = best_reads_create(n_ends);
    /* First the ends alone, so that other pairs need no place in the table. */
    for (int ends_only = 1; ends_only >= 0; ends_only--) {
        for (size_t i = 0; i < n; i++) {
            struct chain_member *m = &members[i];
            bool is_end = m->view.kind == VIEW_END;
            if (is_end != (ends_only == 1) || m->view.kind == VIEW_SINGLE) continue;
            if (!is_end && !duplicate_view_meets_singles(rules, &m->view)) continue;
            uint32_t *slot = find_slot(&s, &s.singles, single_key, m);
            if (*slot == 0 ? is_end : compare_members(m, member_in(&s, slot)) < 0)
                put_into(&s, slot, m);
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (members[i].view.kind != VIEW_SINGLE) continue;
        const uint32_t *slot = find_slot(&s, &s.singles, single_key, &members[i]);
        if (*slot == 0 || member_in(&s, slot)->view.kind != VIEW_END) continue;
        ends[i] = member_in(&s, slot);
        n_routed++;
    }
    free(s.singles.slots);
    return n_routed;
}

const struct chain_member *duplicate_chains_decide(const struct duplicate_rules *rules,
                                                   struct chain_member *members, size_t n)
{
    struct search s = {.rules = rules, .members = members, .n = n};
    prepare(&s);
    const struct chain_member *lacks_score = go_through_all(&s);
    free(s.pair_barcodes);
    free(s.single_barcodes);
    if (!lacks_score) {
        find_originals(&s);
        if (s.coords && rules->checks_chains) check_chains(&s);
    }
    free(s.coords);
    return lacks_score;
}
