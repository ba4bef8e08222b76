/*
 * slice_merge.h -- sorts the entries of one sort buffer, cuts sorted sources into slices, and
 * merges these. An entry represents a record. Sort and merge are stable.
 *
 * In a fixed order (sort_order_is_fixed) an entry holds the whole key and points to the record. In
 * any other order it points to a keyed_record, and its `prefix` is 8 bytes of the key. The function
 * that sorts or merges chooses the depth at which they begin: if all names share their first 20
 * bytes, the first 8 would distinguish none.
 *
 * A *source* is a part of one sorted run in memory: an opened block, or a whole sort buffer. The
 * full key of a record is its sort key, the number of its run, and its index in the run; it is
 * unique. Runs are numbered in the order of the input, so the sort is stable. A *bound* is a full
 * key, as bytes in memcmp order. The records of all sources between two bounds are an *output
 * chunk*. Output chunks can be merged independently; even records with equal sort keys can be split
 * into chunks of any size.
 *
 * Order of calls: merge_cut for each source at the lower bound and at the upper bound; then
 * merge_slices for the slices between the two cuts, in the order of their runs.
 *
 * Ownership: sources and slices borrow their entries. A merge_bound that was set or copied owns its
 * bytes, and a merge_space its buffers; both start as {0}. Threads: any, on different objects.
 * Nothing can fail.
 */
#ifndef ROCKSORT_ORDER_SLICE_MERGE_H
#define ROCKSORT_ORDER_SLICE_MERGE_H

#include "bam_sort_key.h"

#include <stddef.h>

/* ---- entries ---- */

struct sort_entry {
    uint64_t prefix;            /* fixed order: the key; else 8 bytes of the key, see above */
    const void *ref;            /* fixed order: the record; else its keyed_record */
};

struct keyed_record {
    const uint8_t *record;
    uint32_t key_bytes;
    uint8_t key[];              /* has key_bytes bytes; the first 4 lie in the padding of the
                                   struct */
};

/* Distance in bytes from one keyed_record to the next in an array of them. */
static inline size_t keyed_record_bytes(size_t key_bytes)
{
    return (offsetof(struct keyed_record, key) + key_bytes + 7) & ~(size_t)7;
}

/* Writes an entry for each of n keyed_records. Returns the entry after the last. */
static inline struct sort_entry *keyed_records_entries(const uint8_t *keyed, size_t n,
                                                       struct sort_entry *entries)
{
    for (size_t i = 0; i < n; i++) {
        const struct keyed_record *kr = (const struct keyed_record *)keyed;
        *entries++ = (struct sort_entry){0, kr};
        keyed += keyed_record_bytes(kr->key_bytes);
    }
    return entries;
}

static inline const uint8_t *sort_entry_record(enum sort_order order,
                                               const struct sort_entry *entry)
{
    if (sort_order_is_fixed(order)) return entry->ref;
    return ((const struct keyed_record *)entry->ref)->record;
}

/* Returns 8 bytes of a key, from `depth`, as an integer in memcmp order, with zeros after the end
   of the key. */
static inline uint64_t keyed_record_prefix(const struct keyed_record *kr, size_t depth)
{
    uint64_t bytes = 0;
    if (depth + 8 <= kr->key_bytes) {
        memcpy(&bytes, kr->key + depth, 8);
    } else if (depth < kr->key_bytes) {
        memcpy(&bytes, kr->key + depth, kr->key_bytes - depth);
    }
    return __builtin_bswap64(bytes);
}

/* Compares two keys whose first `depth` bytes are equal: below 0, 0, above 0. */
static inline int keyed_record_compare(const struct keyed_record *a, const struct keyed_record *b,
                                       size_t depth)
{
    /* Keys are prefix-free: if no byte of the shorter one is left, they are equal. */
    size_t n = a->key_bytes < b->key_bytes ? a->key_bytes : b->key_bytes;
    return depth < n ? memcmp(a->key + depth, b->key + depth, n - depth) : 0;
}

/* Sorts n entries by their keys. Equal keys keep their order. `spare` has room for n entries. Sets
   the prefixes in an order that is not fixed. */
void sort_entries(const struct sort_rules *rules, struct sort_entry *entries, size_t n,
                  struct sort_entry *spare);

/* ---- bounds ---- */

struct merge_source {
    const struct sort_entry *entries;
    size_t n_entries;
    uint32_t run;
    uint64_t first_index;       /* index of entries[0] in its run */
};

struct merge_slice {
    const struct sort_entry *entries;
    size_t n_entries;
};

enum {
    MERGE_BOUND_TAIL_BYTES = 12,        /* run and index, big-endian, after the key */
    MERGE_BOUND_MOST_BYTES = SORT_KEY_MOST_BYTES + MERGE_BOUND_TAIL_BYTES,
};

struct merge_bound {            /* bytes NULL: above every bound */
    const uint8_t *bytes;
    size_t n_bytes;
};

/* Sets the bound, which owns its bytes, to the full key of source->entries[i]. */
void merge_bound_set(struct merge_bound *bound, enum sort_order order,
                     const struct merge_source *source, size_t i);

/* Sets the bound, which owns its bytes, to a copy of the other one. */
void merge_bound_copy(struct merge_bound *bound, const struct merge_bound *from);

/* Frees the bytes; the bound is {0} again. */
void merge_bound_release(struct merge_bound *bound);

/* Returns the size of the bound of an entry. */
size_t merge_bound_bytes(enum sort_order order, const struct sort_entry *entry);

/* Writes the bytes of the bound of source->entries[i] to out; returns their number. */
size_t merge_bound_store(enum sort_order order, const struct merge_source *source, size_t i,
                         uint8_t *out);

/* True if a bound can have n_bytes bytes. */
static inline bool merge_bound_is_sound(size_t n_bytes)
{
    return n_bytes > MERGE_BOUND_TAIL_BYTES && n_bytes <= MERGE_BOUND_MOST_BYTES;
}

/* Reads run and index from the end of a bound's bytes. */
void merge_bound_position(const uint8_t *bound, size_t bound_bytes, uint32_t *run,
                          uint64_t *index);

/* Compares two bounds: below 0, 0, above 0. */
int merge_bound_compare(const struct merge_bound *a, const struct merge_bound *b);

/* Returns the number of records of the source before the bound. */
size_t merge_cut(const struct sort_rules *rules, const struct merge_source *source,
                 const struct merge_bound *bound);

/* Compares the sort key of an entry with that of a bound, whose bytes are not NULL: below 0, 0,
   above 0. */
int merge_compare(const struct sort_rules *rules, const struct sort_entry *entry,
                  const struct merge_bound *bound);

/* True if no entry has a smaller sort key than the one before it. */
bool merge_is_sorted(const struct sort_rules *rules, const struct sort_entry *entries, size_t n);

/* A place at which sources may be cut. */
struct cut_place {
    const struct merge_source *source;
    size_t index;
    const struct sort_rules *rules;
    size_t n_bytes;             /* estimated raw bytes up to the source's next place */
};

/* Lists places in n_sources sorted sources, which must outlive them: one per sample_bytes of a
   source. Source i has raw_bytes[i] bytes. Returns an array of *n_places, sorted by key, which the
   caller frees. */
struct cut_place *merge_cut_places(const struct sort_rules *rules,
                                   const struct merge_source *sources,
                                   const size_t *raw_bytes, size_t n_sources,
                                   size_t sample_bytes, size_t *n_places);

struct merge_space {
    struct sort_entry *buffer[2];
    size_t n_room;              /* room of each buffer, in entries */
    size_t *starts;             /* where each slice begins, and the end of the last one */
    size_t n_starts;            /* room of starts */
};

/* Makes room for n_entries and n_slices; the content of a buffer is lost if it grows. */
void merge_space_reserve(struct merge_space *space, size_t n_entries, size_t n_slices);
void merge_space_release(struct merge_space *space);

/* Merges n_slices sorted slices, given in the order of their runs, into one sorted sequence.
   *merged points into the space, or at the entries of the only slice, and is valid until the next
   call. Returns the number of entries. */
size_t merge_slices(const struct sort_rules *rules, const struct merge_slice *slices,
                    size_t n_slices, struct merge_space *space, const struct sort_entry **merged);

#endif
