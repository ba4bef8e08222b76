/*
 * barcode_clusters.c -- see barcode_clusters.h.
 *
 * The barcodes that differ from one in a character are found by changing each of its characters
 * into each that occurs in the barcodes of this key and length, and looking the result up. So a
 * pile with n barcodes takes O(n log n), not n * n.
 */
#include "duplicates/barcode_clusters.h"

#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#define NOT_TAKEN UINT32_MAX

struct cluster_search {
    struct barcode_list *list;
    /* Numbers of barcodes, from 1, at a place that the hash of the text says; 0 is free. The bits
       that numbers do not need are a part of the hash, since few of the looked up texts exist. */
    uint32_t *slots;
    size_t n_slots;             /* a power of two */
    uint32_t number_mask;
    uint32_t *to_visit;         /* taken, but not looked around */
    size_t n_to_visit, to_visit_room;
    uint8_t letters[256];
    size_t n_letters;
};

void barcode_list_add(struct barcode_list *list, const uint8_t *text)
{
    size_t n = list->n, n_bytes = list->n_bytes;
    if (n > 0 && memcmp(barcode_list_text(list, n - 1), text, n_bytes) == 0) {
        list->n_reads[n - 1]++;
        return;
    }
    xgrow(&list->texts, &list->texts_room, (n + 1) * n_bytes, n * n_bytes / 4, 1);
    xgrow(&list->n_reads, &list->reads_room, n + 1, n / 4, sizeof *list->n_reads);
    memcpy(list->texts + n * n_bytes, text, n_bytes);
    list->n_reads[n] = 1;
    list->n = n + 1;
}

void barcode_list_release(struct barcode_list *list)
{
    free(list->texts);
    free(list->n_reads);
    free(list->joined);
    *list = (struct barcode_list){0};
}

static void list_letters(struct cluster_search *s)
{
    bool occurs[256] = {false};
    for (size_t i = 0; i < s->list->n * s->list->n_bytes; i++) occurs[s->list->texts[i]] = true;
    for (size_t c = 0; c < sizeof occurs; c++)
        if (occurs[c]) s->letters[s->n_letters++] = (uint8_t)c;
}

/* The slot of the barcode with this text, or a free one where it belongs. *hash_bits: what the slot
   has besides the number. */
static uint32_t *find_slot(const struct cluster_search *s, const uint8_t *text,
                           uint32_t *hash_bits)
{
    const struct barcode_list *list = s->list;
    uint64_t hash = XXH3_64bits(text, list->n_bytes);
    size_t mask = s->n_slots - 1;
    *hash_bits = (uint32_t)(hash >> 32) & ~s->number_mask;
    for (size_t at = (size_t)hash & mask;; at = (at + 1) & mask) {
        uint32_t slot = s->slots[at], number = slot & s->number_mask;
        if (number == 0) return &s->slots[at];
        if ((slot & ~s->number_mask) == *hash_bits &&
            memcmp(barcode_list_text(list, number - 1), text, list->n_bytes) == 0)
            return &s->slots[at];
    }
}

static void fill_slots(struct cluster_search *s)
{
    uint32_t hash_bits;
    for (s->n_slots = 8; s->n_slots * 3 / 4 <= s->list->n;) s->n_slots *= 2;
    while (s->number_mask < s->list->n) s->number_mask = s->number_mask << 1 | 1;
    s->slots = xcalloc(s->n_slots, sizeof *s->slots);
    for (size_t i = 0; i < s->list->n; i++) {
        uint32_t *slot = find_slot(s, barcode_list_text(s->list, i), &hash_bits);
        *slot = hash_bits | (uint32_t)(i + 1);
    }
}

static void take(struct cluster_search *s, size_t barcode, uint32_t joined)
{
    s->list->joined[barcode] = joined;
    xgrow(&s->to_visit, &s->to_visit_room, s->n_to_visit + 1, s->n_to_visit / 2,
          sizeof *s->to_visit);
    s->to_visit[s->n_to_visit++] = (uint32_t)barcode;
}

/* Takes all barcodes that may be errors of this one. */
static void take_neighbours(struct cluster_search *s, size_t barcode, uint32_t joined)
{
    const struct barcode_list *list = s->list;
    const uint8_t *own = barcode_list_text(list, barcode);
    uint64_t n_reads = list->n_reads[barcode];
    uint8_t text[UINT8_MAX];
    memcpy(text, own, list->n_bytes);
    for (size_t c = 0; c < list->n_bytes; c++) {
        for (size_t i = 0; i < s->n_letters; i++) {
            uint32_t hash_bits;
            if (s->letters[i] == own[c]) continue;
            text[c] = s->letters[i];
            uint32_t number = *find_slot(s, text, &hash_bits) & s->number_mask;
            if (number == 0 || list->joined[number - 1] != NOT_TAKEN) continue;
            if (n_reads + 1 >= 2 * (uint64_t)list->n_reads[number - 1])
                take(s, number - 1, joined);
        }
        text[c] = own[c];
    }
}

static int compare_ranks(const void *a, const void *b)
{
    uint64_t p = *(const uint64_t *)a, q = *(const uint64_t *)b;
    return p < q ? -1 : p > q;
}

/* Returns the numbers of all barcodes in the lower half of each element, the most frequent first;
   those that are equally frequent in their order. */
static uint64_t *rank(const struct barcode_list *list)
{
    uint64_t *ranks = xmalloc(list->n * sizeof *ranks);
    for (size_t i = 0; i < list->n; i++)
        ranks[i] = (uint64_t)(UINT32_MAX - list->n_reads[i]) << 32 | i;
    qsort(ranks, list->n, sizeof *ranks, compare_ranks);
    return ranks;
}

void barcode_list_join(struct barcode_list *list)
{
    struct cluster_search s = {.list = list, .number_mask = 1};
    xgrow(&list->joined, &list->joined_room, list->n, 0, sizeof *list->joined);
    if (list->n == 1) list->joined[0] = 0;
    if (list->n <= 1) return;
    uint64_t *ranks = rank(list);
    list_letters(&s);
    fill_slots(&s);
    for (size_t i = 0; i < list->n; i++) list->joined[i] = NOT_TAKEN;
    for (size_t i = 0; i < list->n; i++) {
        uint32_t first = (uint32_t)ranks[i];
        if (list->joined[first] != NOT_TAKEN) continue;
        take(&s, first, first);
        while (s.n_to_visit > 0) take_neighbours(&s, s.to_visit[--s.n_to_visit], first);
    }
    free(ranks);
    free(s.slots);
    free(s.to_visit);
}
