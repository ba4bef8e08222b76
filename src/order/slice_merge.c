/*
 * slice_merge.c -- see slice_merge.h.
 *
 * Sorting, fixed orders: a radix sort on the 64-bit key, least significant byte first, which moves
 * the entries to the spare room and back. Bytes that are equal in all keys are skipped: with a
 * human genome 5 of the 8 bytes differ. Counting also detects entries that are already sorted.
 *
 * Other orders: most significant bytes first, in steps of 8. The prefixes of a range of entries are
 * the 8 bytes after the common prefix of its keys. The range is radix-sorted by them, and each
 * group of equal prefixes is sorted further in the same way. Small ranges are insertion-sorted.
 *
 * Merging. Neighbouring slices are merged in pairs, in ceil(log2(slices)) passes over 16-byte
 * entries, which stay in the second-level cache. In a fixed order the inner loop has no branch that
 * depends on the data. In any other order, the common prefix of the smallest and the largest key of
 * an output chunk is common to all its keys. The 8 bytes after it decide nearly every comparison,
 * so the keys are seldom fetched.
 */
#include "order/slice_merge.h"

#include "util/byte_order.h"
#include "util/xalloc.h"

#include <stdlib.h>

static const struct keyed_record *keyed(const struct sort_entry *entry)
{
    return entry->ref;
}

/* ---- sorting ---- */

enum {
    SMALL_RANGE = 24,           /* below this, insertion sort beats counting 8 x 256 digits */
    N_DIGITS = 8,
    N_VALUES = 256,
};

static void insertion_sort_prefix(struct sort_entry *e, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct sort_entry moving = e[i];
        size_t at = i;
        for (; at > 0 && moving.prefix < e[at - 1].prefix; at--) e[at] = e[at - 1];
        e[at] = moving;
    }
}

/* Counts every digit of every prefix; returns true if the prefixes are already in order. */
static bool count_digits(const struct sort_entry *e, size_t n, size_t count[N_DIGITS][N_VALUES])
{
    bool in_order = true;
    uint64_t previous = 0;
    memset(count, 0, sizeof(size_t) * N_DIGITS * N_VALUES);
    for (size_t i = 0; i < n; i++) {
        uint64_t prefix = e[i].prefix;
        in_order &= prefix >= previous;
        previous = prefix;
        for (int digit = 0; digit < N_DIGITS; digit++) count[digit][prefix >> (8 * digit) & 0xff]++;
    }
    return in_order;
}

/* Sorts by prefix, stably; the result is in e. Not inlined: sort_keyed calls itself up to 8,000
   times, and the counts take 16 KiB of the stack. */
static __attribute__((noinline)) void
radix_sort_prefix(struct sort_entry *e, size_t n, struct sort_entry *spare)
{
    if (n < SMALL_RANGE) {
        insertion_sort_prefix(e, n);
        return;
    }
    size_t count[N_DIGITS][N_VALUES];
    if (count_digits(e, n, count)) return;
    struct sort_entry *from = e, *to = spare;
    for (int digit = 0; digit < N_DIGITS; digit++) {
        int shift = 8 * digit;
        if (count[digit][e[0].prefix >> shift & 0xff] == n) continue;
        size_t at = 0;
        for (int value = 0; value < N_VALUES; value++) {
            size_t here = count[digit][value];
            count[digit][value] = at;
            at += here;
        }
        for (size_t i = 0; i < n; i++) to[count[digit][from[i].prefix >> shift & 0xff]++] = from[i];
        struct sort_entry *swap = from;
        from = to;
        to = swap;
    }
    if (from != e) memcpy(e, from, n * sizeof *e);
}

static void insertion_sort_keyed(struct sort_entry *e, size_t n, size_t depth)
{
    for (size_t i = 1; i < n; i++) {
        struct sort_entry moving = e[i];
        const struct keyed_record *key = keyed(&moving);
        size_t at = i;
        for (; at > 0 && keyed_record_compare(key, keyed(&e[at - 1]), depth) < 0; at--)
            e[at] = e[at - 1];
        e[at] = moving;
    }
}

/* Returns the length of the common prefix of a range of keys, which is at least `depth`. */
static size_t common_bytes(const struct sort_entry *e, size_t n, size_t depth)
{
    const struct keyed_record *first = keyed(&e[0]);
    size_t common = first->key_bytes;
    for (size_t i = 1; i < n && common > depth; i++) {
        const struct keyed_record *kr = keyed(&e[i]);
        size_t limit = common < kr->key_bytes ? common : kr->key_bytes;
        size_t at = depth;
        while (at < limit && kr->key[at] == first->key[at]) at++;
        common = at;
    }
    return common;
}

static void sort_keyed(struct sort_entry *e, size_t n, struct sort_entry *spare, size_t depth)
{
    if (n < 2) return;
    if (n < SMALL_RANGE) {
        insertion_sort_keyed(e, n, depth);
        return;
    }
    depth = common_bytes(e, n, depth);
    if (depth >= keyed(&e[0])->key_bytes) return;   /* all keys are equal */
    for (size_t i = 0; i < n; i++) e[i].prefix = keyed_record_prefix(keyed(&e[i]), depth);
    radix_sort_prefix(e, n, spare);
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && e[to].prefix == e[from].prefix;) to++;
        sort_keyed(e + from, to - from, spare, depth + 8);
    }
}

void sort_entries(const struct sort_rules *rules, struct sort_entry *entries, size_t n,
                  struct sort_entry *spare)
{
    if (sort_order_is_fixed(rules->order))
        radix_sort_prefix(entries, n, spare);
    else
        sort_keyed(entries, n, spare, 0);
}

/* ---- bounds ---- */

size_t merge_bound_bytes(enum sort_order order, const struct sort_entry *entry)
{
    size_t key_bytes = sort_order_is_fixed(order) ? SORT_KEY_FIXED_BYTES : keyed(entry)->key_bytes;
    return key_bytes + MERGE_BOUND_TAIL_BYTES;
}

size_t merge_bound_store(enum sort_order order, const struct merge_source *source, size_t i,
                         uint8_t *out)
{
    const struct sort_entry *entry = &source->entries[i];
    size_t key_bytes = merge_bound_bytes(order, entry) - MERGE_BOUND_TAIL_BYTES;
    if (sort_order_is_fixed(order))
        sort_key_store_fixed(entry->prefix, out);
    else
        memcpy(out, keyed(entry)->key, key_bytes);
    put_big_endian(out + key_bytes, source->run, 4);
    put_big_endian(out + key_bytes + 4, source->first_index + i, 8);
    return key_bytes + MERGE_BOUND_TAIL_BYTES;
}

void merge_bound_set(struct merge_bound *bound, enum sort_order order,
                     const struct merge_source *source, size_t i)
{
    uint8_t *bytes = xmalloc(merge_bound_bytes(order, &source->entries[i]));
    merge_bound_release(bound);
    *bound = (struct merge_bound){bytes, merge_bound_store(order, source, i, bytes)};
}

void merge_bound_copy(struct merge_bound *bound, const struct merge_bound *from)
{
    merge_bound_release(bound);
    if (from->bytes)
        *bound = (struct merge_bound){xmemdup(from->bytes, from->n_bytes), from->n_bytes};
}

void merge_bound_release(struct merge_bound *bound)
{
    free((uint8_t *)(uintptr_t)bound->bytes);
    *bound = (struct merge_bound){0};
}

void merge_bound_position(const uint8_t *bound, size_t bound_bytes, uint32_t *run,
                          uint64_t *index)
{
    const uint8_t *tail = bound + bound_bytes - MERGE_BOUND_TAIL_BYTES;
    *run = (uint32_t)get_big_endian(tail, 4);
    *index = get_big_endian(tail + 4, 8);
}

int merge_bound_compare(const struct merge_bound *a, const struct merge_bound *b)
{
    if (!a->bytes || !b->bytes) return (a->bytes == NULL) - (b->bytes == NULL);
    return compare_bytes(a->bytes, a->n_bytes, b->bytes, b->n_bytes);
}

int merge_compare(const struct sort_rules *rules, const struct sort_entry *entry,
                  const struct merge_bound *bound)
{
    if (sort_order_is_fixed(rules->order)) {
        uint64_t key = sort_key_load_fixed(bound->bytes);
        return (entry->prefix > key) - (entry->prefix < key);
    }
    const struct keyed_record *kr = keyed(entry);
    return compare_bytes(kr->key, kr->key_bytes, bound->bytes,
                         bound->n_bytes - MERGE_BOUND_TAIL_BYTES);
}

bool merge_is_sorted(const struct sort_rules *rules, const struct sort_entry *entries, size_t n)
{
    bool fixed = sort_order_is_fixed(rules->order), sorted = true;
    for (size_t i = 1; i < n && sorted; i++)
        sorted = fixed ? entries[i - 1].prefix <= entries[i].prefix
                       : keyed_record_compare(keyed(&entries[i - 1]), keyed(&entries[i]), 0) <= 0;
    return sorted;
}

size_t merge_cut(const struct sort_rules *rules, const struct merge_source *source,
                 const struct merge_bound *bound)
{
    if (!bound->bytes) return source->n_entries;
    uint32_t run;
    uint64_t index;
    merge_bound_position(bound->bytes, bound->n_bytes, &run, &index);
    size_t low = 0, high = source->n_entries;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int c = merge_compare(rules, &source->entries[middle], bound);
        if (c == 0) c = (source->run > run) - (source->run < run);
        if (c == 0) c = source->first_index + middle < index ? -1 : 0;
        if (c < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- merging ---- */

void merge_space_reserve(struct merge_space *space, size_t n_entries, size_t n_slices)
{
    if (n_entries > space->n_room) {
        space->n_room = n_entries + n_entries / 8 + 1024;
        for (int i = 0; i < 2; i++) {
            free(space->buffer[i]);     /* first, because buffers are large */
            space->buffer[i] = xmalloc(space->n_room * sizeof(struct sort_entry));
        }
    }
    xgrow(&space->starts, &space->n_starts, n_slices + 1, n_slices + 15, sizeof *space->starts);
}

void merge_space_release(struct merge_space *space)
{
    free(space->buffer[0]);
    free(space->buffer[1]);
    free(space->starts);
    *space = (struct merge_space){0};
}

/* Merges two slices into out. Where keys are equal, those of the left one come first. Unless keys
   are fixed, prefixes are bytes depth .. depth + 7 of the keys. Inlined, so that the loop for fixed
   keys has no branch but its end. */
static inline __attribute__((always_inline)) void
merge_two(const struct merge_slice *left, const struct merge_slice *right, struct sort_entry *out,
          bool fixed, size_t depth)
{
    const struct sort_entry *a = left->entries, *a_end = a + left->n_entries;
    const struct sort_entry *b = right->entries, *b_end = b + right->n_entries;
    while (a < a_end && b < b_end) {
        bool take_b = b->prefix < a->prefix;
        if (!fixed && b->prefix == a->prefix)
            take_b = keyed_record_compare(keyed(b), keyed(a), depth + 8) < 0;
        const struct sort_entry *next = take_b ? b : a;
        *out++ = *next;
        b += take_b;
        a += !take_b;
    }
    memcpy(out, a, (size_t)((const uint8_t *)a_end - (const uint8_t *)a));
    out += a_end - a;
    memcpy(out, b, (size_t)((const uint8_t *)b_end - (const uint8_t *)b));
}

/* Sets the prefixes of the entries of an output chunk to the 8 bytes after the common prefix of all
   its keys. Returns the length of the common prefix. */
static size_t set_prefixes(const struct merge_slice *slices, size_t n_slices,
                           struct sort_entry *entries, size_t n)
{
    const struct keyed_record *low = NULL, *high = NULL;
    for (size_t i = 0; i < n_slices; i++) {
        if (slices[i].n_entries == 0) continue;
        const struct keyed_record *first = keyed(&slices[i].entries[0]);
        const struct keyed_record *last = keyed(&slices[i].entries[slices[i].n_entries - 1]);
        if (!low || keyed_record_compare(first, low, 0) < 0) low = first;
        if (!high || keyed_record_compare(last, high, 0) > 0) high = last;
    }
    if (!low || !high) return 0;
    size_t limit = low->key_bytes < high->key_bytes ? low->key_bytes : high->key_bytes, depth = 0;
    while (depth < limit && low->key[depth] == high->key[depth]) depth++;
    for (size_t i = 0; i < n; i++)
        entries[i].prefix = keyed_record_prefix(keyed(&entries[i]), depth);
    return depth;
}

size_t merge_slices(const struct sort_rules *rules, const struct merge_slice *slices,
                    size_t n_slices, struct merge_space *space, const struct sort_entry **merged)
{
    size_t n = 0;
    for (size_t i = 0; i < n_slices; i++) n += slices[i].n_entries;
    if (n == 0 || n_slices == 1) {
        *merged = n ? slices[0].entries : NULL;
        return n;
    }
    merge_space_reserve(space, n, n_slices);
    struct sort_entry *from = space->buffer[0], *to = space->buffer[1];
    size_t *starts = space->starts, n_parts = 0, at = 0;
    for (size_t i = 0; i < n_slices; i++) {
        if (slices[i].n_entries == 0) continue;
        starts[n_parts++] = at;
        memcpy(from + at, slices[i].entries, slices[i].n_entries * sizeof *from);
        at += slices[i].n_entries;
    }
    starts[n_parts] = n;
    bool fixed = sort_order_is_fixed(rules->order);
    size_t depth = fixed || n_parts < 2 ? 0 : set_prefixes(slices, n_slices, from, n);
    while (n_parts > 1) {
        size_t n_merged = 0;
        for (size_t i = 0; i < n_parts; i += 2) {
            size_t begin = starts[i], middle = starts[i + 1];
            size_t end = i + 2 <= n_parts ? starts[i + 2] : middle;
            const struct merge_slice left = {from + begin, middle - begin};
            const struct merge_slice right = {from + middle, end - middle};
            if (fixed)
                merge_two(&left, &right, to + begin, true, 0);
            else
                merge_two(&left, &right, to + begin, false, depth);
            starts[n_merged++] = begin;
        }
        starts[n_merged] = n;
        n_parts = n_merged;
        struct sort_entry *swap = from;
        from = to;
        to = swap;
    }
    *merged = from;
    return n;
}

/* ---- places to cut at ---- */

static int compare_places(const void *a_place, const void *b_place)
{
    const struct cut_place *a = a_place, *b = b_place;
    const struct sort_entry *x = &a->source->entries[a->index], *y = &b->source->entries[b->index];
    if (sort_order_is_fixed(a->rules->order)) {
        if (x->prefix != y->prefix) return x->prefix < y->prefix ? -1 : 1;
    } else {
        int c = keyed_record_compare(x->ref, y->ref, 0);
        if (c) return c;
    }
    if (a->source->run != b->source->run) return a->source->run < b->source->run ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

struct cut_place *merge_cut_places(const struct sort_rules *rules,
                                   const struct merge_source *sources,
                                   const size_t *raw_bytes, size_t n_sources,
                                   size_t sample_bytes, size_t *n_places)
{
    size_t n_most = n_sources, n = 0;
    for (size_t i = 0; i < n_sources; i++) n_most += raw_bytes[i] / sample_bytes + 1;
    struct cut_place *places = xcalloc(n_most, sizeof *places);
    for (size_t i = 0; i < n_sources; i++) {
        size_t n_entries = sources[i].n_entries, n_samples = raw_bytes[i] / sample_bytes + 1;
        if (n_samples > n_entries) n_samples = n_entries;
        for (size_t k = 0; k < n_samples; k++)
            places[n++] = (struct cut_place){&sources[i], k * n_entries / n_samples, rules,
                                             raw_bytes[i] / n_samples};
    }
    qsort(places, n, sizeof *places, compare_places);
    *n_places = n;
    return places;
}
