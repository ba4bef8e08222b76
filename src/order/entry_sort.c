/*
 * entry_sort.c -- see entry_sort.h.
 *
 * Fixed orders: a radix sort on the 64-bit key, least significant byte first, which moves the
 * entries to the spare room and back. Bytes that are the same in all keys are skipped: with a human
 * genome 5 of the 8 bytes differ. Entries that are in order already are recognised while counting.
 *
 * Other orders: most significant bytes first, in steps of 8. The prefixes of a range of entries are
 * the 8 bytes after the longest common beginning of its keys. The range is radix-sorted by them,
 * and each group of equal prefixes is sorted further in the same way. Small ranges are
 * insertion-sorted, and ranges whose keys share more than MOST_RADIX_BYTES are merge-sorted: with
 * keys of 65,535 bytes the steps could go too deep for the stack.
 */
#include "order/entry_sort.h"

enum {
    SMALL_RANGE = 24,           /* below this, insertion sort beats counting 8 x 256 digits */
    MOST_RADIX_BYTES = 512,     /* more than every key by name has */
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

/* Counts every digit of every prefix; returns true if the prefixes are in order already. */
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

/* Sorts by prefix, stably; the result is in e. */
static void radix_sort_prefix(struct sort_entry *e, size_t n, struct sort_entry *spare)
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

static const struct keyed_record *keyed(const struct sort_entry *entry)
{
    return entry->ref;
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

/* Sorts entries whose first `depth` bytes are equal, stably. */
static void merge_sort_keyed(struct sort_entry *e, size_t n, struct sort_entry *spare,
                             size_t depth)
{
    if (n < 2) return;
    size_t n_left = n / 2, left = 0, right = n_left, at = 0;
    merge_sort_keyed(e, n_left, spare, depth);
    merge_sort_keyed(e + n_left, n - n_left, spare, depth);
    if (keyed_record_compare(keyed(&e[right - 1]), keyed(&e[right]), depth) <= 0) return;
    memcpy(spare, e, n_left * sizeof *e);
    while (left < n_left && right < n) {
        bool take_right = keyed_record_compare(keyed(&e[right]), keyed(&spare[left]), depth) < 0;
        e[at++] = take_right ? e[right++] : spare[left++];
    }
    memcpy(e + at, spare + left, (n_left - left) * sizeof *e);
}

/* Length of the common beginning of all keys of a range, whose first `depth` bytes are equal. */
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
    if (depth >= MOST_RADIX_BYTES) {
        merge_sort_keyed(e, n, spare, depth);
        return;
    }
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
