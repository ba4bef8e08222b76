/*
 * barcode_clusters.c -- see barcode_clusters.h.
 *
 * Items are sorted by key and text, so reads with one barcode stand together. The barcodes that
 * differ from one in a character are found by changing each of its characters into each that occurs
 * in the barcodes of this key, and looking the result up. So a pile with n barcodes takes
 * O(n log n), not n * n.
 */
#include "duplicates/barcode_clusters.h"

#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

/* A barcode of the key that is looked at. They are sorted by text. */
struct barcode {
    uint32_t first, n_reads;    /* its items */
    bool is_taken;
};

struct slot {
    uint32_t number;            /* of a barcode, from 1; 0: free */
    uint32_t hash;              /* a part of it, since few of the looked up texts exist */
};

struct ranked {
    uint32_t n_reads, barcode;
};

struct cluster_search {
    struct barcode_item *items;
    struct barcode *barcodes;
    size_t n, room;
    struct slot *slots;         /* hash table */
    size_t n_slots, slots_room; /* n_slots is a power of two */
    struct ranked *ranked;      /* the most frequent first */
    size_t ranked_room;
    uint32_t *to_visit;         /* taken, but not looked around */
    size_t n_to_visit, to_visit_room;
    uint8_t letters[256];
    size_t n_letters;
};

static int compare_texts(const uint8_t *a, size_t a_bytes, const uint8_t *b, size_t b_bytes)
{
    if (a_bytes != b_bytes) return a_bytes < b_bytes ? -1 : 1;
    return memcmp(a, b, a_bytes);
}

static bool same_key(const struct barcode_item *a, const struct barcode_item *b)
{
    return a->key.low == b->key.low && a->key.high == b->key.high;
}

static bool same_text(const struct barcode_item *a, const struct barcode_item *b)
{
    return compare_texts(a->text, a->n_bytes, b->text, b->n_bytes) == 0;
}

static int compare_items(const void *a, const void *b)
{
    const struct barcode_item *p = a, *q = b;
    if (p->key.low != q->key.low) return p->key.low < q->key.low ? -1 : 1;
    if (p->key.high != q->key.high) return p->key.high < q->key.high ? -1 : 1;
    int r = compare_texts(p->text, p->n_bytes, q->text, q->n_bytes);
    return r != 0 ? r : p->number < q->number ? -1 : p->number > q->number;
}

static const struct barcode_item *item_of(const struct cluster_search *s, size_t barcode)
{
    return &s->items[s->barcodes[barcode].first];
}

/* Lists the barcodes of the items from `first`, all of one key, and the characters in them. Returns
   where the items of the next key begin. */
static size_t list_barcodes(struct cluster_search *s, size_t first, size_t n_items)
{
    bool occurs[256] = {false};
    size_t i = first;
    s->n = s->n_letters = 0;
    for (; i < n_items && same_key(&s->items[i], &s->items[first]); i++) {
        const struct barcode_item *item = &s->items[i];
        if (i > first && same_text(item - 1, item)) {
            s->barcodes[s->n - 1].n_reads++;
            continue;
        }
        xgrow(&s->barcodes, &s->room, s->n + 1, s->n / 2, sizeof *s->barcodes);
        s->barcodes[s->n++] = (struct barcode){.first = (uint32_t)i, .n_reads = 1};
        for (size_t c = 0; c < item->n_bytes; c++) occurs[item->text[c]] = true;
    }
    for (size_t c = 0; c < sizeof occurs; c++)
        if (occurs[c]) s->letters[s->n_letters++] = (uint8_t)c;
    return i;
}

/* The slot of the barcode with this text, or a free one that has its hash now. */
static struct slot *find_slot(const struct cluster_search *s, const uint8_t *text, size_t n_bytes)
{
    uint64_t hash = XXH3_64bits(text, n_bytes);
    size_t mask = s->n_slots - 1;
    for (size_t at = (size_t)hash & mask;; at = (at + 1) & mask) {
        struct slot *slot = &s->slots[at];
        if (slot->number == 0) {
            slot->hash = (uint32_t)(hash >> 32);
            return slot;
        }
        if (slot->hash != (uint32_t)(hash >> 32)) continue;
        const struct barcode_item *item = item_of(s, slot->number - 1);
        if (compare_texts(item->text, item->n_bytes, text, n_bytes) == 0) return slot;
    }
}

static void fill_slots(struct cluster_search *s)
{
    for (s->n_slots = 8; s->n_slots * 3 / 4 <= s->n;) s->n_slots *= 2;
    xgrow(&s->slots, &s->slots_room, s->n_slots, 0, sizeof *s->slots);
    memset(s->slots, 0, s->n_slots * sizeof *s->slots);
    for (size_t i = 0; i < s->n; i++) {
        const struct barcode_item *item = item_of(s, i);
        find_slot(s, item->text, item->n_bytes)->number = (uint32_t)i + 1;
    }
}

/* Joins all reads of a barcode to another one. */
static void take(struct cluster_search *s, size_t barcode, uint32_t joined)
{
    struct barcode *b = &s->barcodes[barcode];
    b->is_taken = true;
    for (size_t i = 0; i < b->n_reads; i++) s->items[b->first + i].joined = joined;
    xgrow(&s->to_visit, &s->to_visit_room, s->n_to_visit + 1, s->n_to_visit, sizeof *s->to_visit);
    s->to_visit[s->n_to_visit++] = (uint32_t)barcode;
}

/* Takes all barcodes that may be errors of this one. */
static void take_neighbours(struct cluster_search *s, size_t barcode, uint32_t joined)
{
    const struct barcode_item *item = item_of(s, barcode);
    uint64_t n_reads = s->barcodes[barcode].n_reads;
    uint8_t text[UINT8_MAX];
    memcpy(text, item->text, item->n_bytes);
    for (size_t c = 0; c < item->n_bytes; c++) {
        for (size_t i = 0; i < s->n_letters; i++) {
            if (s->letters[i] == item->text[c]) continue;
            text[c] = s->letters[i];
            uint32_t number = find_slot(s, text, item->n_bytes)->number;
            if (number == 0 || s->barcodes[number - 1].is_taken) continue;
            if (n_reads + 1 >= 2 * (uint64_t)s->barcodes[number - 1].n_reads)
                take(s, number - 1, joined);
        }
        text[c] = item->text[c];
    }
}

static int compare_ranks(const void *a, const void *b)
{
    const struct ranked *p = a, *q = b;
    if (p->n_reads != q->n_reads) return p->n_reads > q->n_reads ? -1 : 1;
    return p->barcode < q->barcode ? -1 : p->barcode > q->barcode;
}

static void join_of_key(struct cluster_search *s)
{
    if (s->n > 1) fill_slots(s);
    xgrow(&s->ranked, &s->ranked_room, s->n, s->n / 2, sizeof *s->ranked);
    for (size_t i = 0; i < s->n; i++)
        s->ranked[i] = (struct ranked){s->barcodes[i].n_reads, (uint32_t)i};
    qsort(s->ranked, s->n, sizeof *s->ranked, compare_ranks);
    for (size_t i = 0; i < s->n; i++) {
        size_t first = s->ranked[i].barcode;
        if (s->barcodes[first].is_taken) continue;
        uint32_t joined = item_of(s, first)->number;
        take(s, first, joined);
        while (s->n_to_visit > 0 && s->n > 1)
            take_neighbours(s, s->to_visit[--s->n_to_visit], joined);
        s->n_to_visit = 0;
    }
}

void barcode_clusters_join(struct barcode_item *items, size_t n)
{
    struct cluster_search s = {.items = items};
    if (n > 0) qsort(items, n, sizeof *items, compare_items);
    for (size_t i = 0; i < n;) {
        i = list_barcodes(&s, i, n);
        join_of_key(&s);
    }
    free(s.barcodes);
    free(s.slots);
    free(s.ranked);
    free(s.to_visit);
}
