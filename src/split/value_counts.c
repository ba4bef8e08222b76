/*
 * value_counts.c -- see value_counts.h.
 *
 * The hashes stand in a table with linear probing, into which threads put them without a lock.
 */
#include "split/value_counts.h"

#include "order/bam_key_tag.h"
#include "split/split_plan.h"
#include "util/xalloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { N_SLOTS = 1 << 17 };
_Static_assert(SPLIT_MOST_PIECES < N_SLOTS / 5 * 4, "probing stays short");

struct value_counts {
    struct record_observer base;        /* must be the first member */
    char tag[2];
    atomic_uint n;
    _Atomic uint64_t slots[N_SLOTS];    /* 0: free */
};

static uint64_t hash_of(const struct value_counts *counts, const uint8_t *rec)
{
    uint8_t value[512];
    size_t n = bam_key_tag_encode(counts->tag, rec, value, sizeof value);
    uint64_t hash = XXH3_64bits(value, n < sizeof value ? n : sizeof value);
    return hash ? hash : 1;
}

/* Puts a hash into the table if it is not there. */
static void put(struct value_counts *counts, uint64_t hash)
{
    for (size_t i = hash % N_SLOTS;; i = (i + 1) % N_SLOTS) {
        uint64_t there = 0;
        if (atomic_compare_exchange_strong(&counts->slots[i], &there, hash)) {
            (void)atomic_fetch_add(&counts->n, 1);
            return;
        }
        if (there == hash) return;
    }
}

static int refuse(void)
{
    split_plan_refuse(SPLIT_TAG);
    return -1;
}

static int add_records(struct record_observer *observer, void *part,
                       const struct observed_records *observed)
{
    struct value_counts *counts = (struct value_counts *)observer;
    struct bam_records records = observed->all;
    (void)part;
    for (const uint8_t *rec; (rec = bam_records_next(&records));) {
        /* Other threads may add one value each before they look. */
        if (atomic_load(&counts->n) > SPLIT_MOST_PIECES) return refuse();
        put(counts, hash_of(counts, rec));
    }
    return atomic_load(&counts->n) > SPLIT_MOST_PIECES ? refuse() : 0;
}

static void destroy(struct record_observer *observer)
{
    free(observer);
}

struct record_observer *value_counts_observer(const char tag[2])
{
    static const struct observer_kind kind = {.add_records = add_records, .destroy = destroy};
    struct value_counts *counts = xcalloc(1, sizeof *counts);
    counts->base.kind = &kind;
    memcpy(counts->tag, tag, sizeof counts->tag);
    return &counts->base;
}
