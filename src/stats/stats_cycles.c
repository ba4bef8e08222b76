/* stats_cycles.c -- see stats_cycles.h. These loops are most of the time of --stats: about one
   increment for each two bases and one for each quality, in tables that fit into the caches. */
#include "stats/stats_cycles.h"

#include "util/xalloc.h"

#include <stddef.h>
#include <stdlib.h>

/* The symbol of a base of four bits, and whether it is G or C. */
#define SYMBOL(code)                                                                               \
    ((code) == 1    ? STATS_A                                                                      \
     : (code) == 2  ? STATS_C                                                                      \
     : (code) == 4  ? STATS_G                                                                      \
     : (code) == 8  ? STATS_T                                                                      \
     : (code) == 15 ? STATS_N                                                                      \
                    : STATS_OTHER)
#define IS_GC(code) ((code) == 2 || (code) == 4)

/* For a byte of two bases: the number of the pair in the low byte, how many are G or C above it. */
#define PAIR(byte)                                                                                 \
    ((SYMBOL((byte) >> 4) * STATS_N_BASES + SYMBOL((byte) & 15)) |                                 \
     (IS_GC((byte) >> 4) + IS_GC((byte) & 15)) << 8)
#define PAIRS_4(byte) PAIR(byte), PAIR((byte) + 1), PAIR((byte) + 2), PAIR((byte) + 3)
#define PAIRS_16(byte) PAIRS_4(byte), PAIRS_4((byte) + 4), PAIRS_4((byte) + 8), PAIRS_4((byte) + 12)
#define PAIRS_64(byte)                                                                             \
    PAIRS_16(byte), PAIRS_16((byte) + 16), PAIRS_16((byte) + 32), PAIRS_16((byte) + 48)

static const uint16_t pair_of_byte[256] = {PAIRS_64(0), PAIRS_64(64), PAIRS_64(128), PAIRS_64(192)};

enum { FEW_COLUMNS = 64, MOST_PAIRED = 8192 };

/* Replaces an array by one of n_new bytes; the new bytes are 0. Pages that are 0 take no memory. */
static void *widen(void *array, size_t n_bytes, size_t n_new)
{
    enum { PAGE_BYTES = 4096 };
    static const uint8_t zeros[PAGE_BYTES];
    char *wide = xcalloc(1, n_new);
    const char *old = array;
    for (size_t at = 0; at < n_bytes; at += PAGE_BYTES) {
        const size_t n = n_bytes - at < PAGE_BYTES ? n_bytes - at : PAGE_BYTES;
        if (memcmp(old + at, zeros, n) != 0) memcpy(wide + at, old + at, n);
    }
    free(array);
    return wide;
}

static void make_pairs(struct fragment_cycles *to, size_t n)
{
    if (n > MOST_PAIRED) n = MOST_PAIRED;
    if (n <= to->n_paired) return;
    const size_t row_bytes = sizeof *to->pairs[0];
    for (int i = 0; i < N_PAIRINGS; i++)
        to->pairs[i] =
            widen(to->pairs[i], to->n_paired / 2 * row_bytes, (n / 2 + 1) * row_bytes);
    to->n_paired = n;
}

static void make_room(struct fragment_cycles *to, size_t n_bases)
{
    const size_t old = to->n_cycles, n = n_bases + (old == 0 ? 0 : n_bases / 8);
    const size_t single_bytes = sizeof *to->single[0], n_lengths = old > 0 ? old + 1 : 0;
    if (to->n_columns == 0) to->n_columns = FEW_COLUMNS;
    make_pairs(to, n);
    for (int i = 0; i < 2; i++)
        to->single[i] = widen(to->single[i], old * single_bytes, n * single_bytes);
    to->quals = widen(to->quals, old * to->n_columns, n * to->n_columns);
    const size_t wrap_bytes = to->n_columns * sizeof *to->qual_wraps;
    to->qual_wraps = widen(to->qual_wraps, old * wrap_bytes, n * wrap_bytes);
    const size_t length_bytes = sizeof *to->without_quals;
    to->without_quals =
        widen(to->without_quals, n_lengths * length_bytes, (n + 1) * length_bytes);
    to->n_cycles = n;
}

/* Counts the bases of a long read one by one: pairs would need too much memory. */
static uint32_t count_long(const struct fragment_cycles *to, const uint8_t *seq, size_t n,
                           bool is_reverse)
{
    uint32_t(*row)[STATS_N_BASES] = to->single[is_reverse] + (is_reverse ? n - 1 : 0);
    uint32_t n_gc = 0;
    for (size_t i = 0; i < n; i++, row += is_reverse ? -1 : 1) {
        const uint32_t pair = pair_of_byte[(i % 2 ? seq[i / 2] << 4 : seq[i / 2]) & 0xf0];
        (*row)[(pair & 255) / STATS_N_BASES]++;
        n_gc += pair >> 8;
    }
    return n_gc;
}

static uint32_t count_bases(const struct fragment_cycles *to, const uint8_t *seq, size_t n,
                            bool is_reverse)
{
    const size_t n_pairs = n / 2;
    uint32_t n_gc = 0;
    if (n > MOST_PAIRED) return count_long(to, seq, n, is_reverse);
    if (is_reverse) {
        uint32_t(*row)[N_BASE_PAIRS] =
            to->pairs[n % 2 ? PAIRS_REVERSE_ODD : PAIRS_REVERSE_EVEN] + n_pairs;
        for (size_t i = 0; i < n_pairs; i++) {
            uint32_t pair = pair_of_byte[seq[i]];
            (*--row)[pair & 255]++;
            n_gc += pair >> 8;
        }
    } else {
        uint32_t(*row)[N_BASE_PAIRS] = to->pairs[PAIRS_FORWARD];
        for (size_t i = 0; i < n_pairs; i++) {
            uint32_t pair = pair_of_byte[seq[i]];
            (*row++)[pair & 255]++;
            n_gc += pair >> 8;
        }
    }
    if (n % 2) {
        uint32_t pair = pair_of_byte[seq[n_pairs] & 0xf0];
        to->single[is_reverse][is_reverse ? 0 : n - 1][(pair & 255) / STATS_N_BASES]++;
        n_gc += pair >> 8;
    }
    return n_gc;
}

/* Returns all bits that are set in any of n bytes. */
static uint8_t or_bytes(const uint8_t *bytes, size_t n)
{
    uint64_t eight, all = 0;
    for (; n >= 8; n -= 8, bytes += 8) {
        memcpy(&eight, bytes, sizeof eight);
        all |= eight;
    }
    while (n-- > 0) all |= *bytes++;
    all |= all >> 32;
    all |= all >> 16;
    return (uint8_t)(all | all >> 8);
}

static bool are_missing(const uint8_t *quals, size_t n)
{
    return quals[0] == 0xff && (n == 1 || memcmp(quals, quals + 1, n - 1) == 0);
}

/* Doubles the number of columns, by copying each row of n_bytes. */
static void *spread(void *rows, size_t n_rows, size_t n_bytes)
{
    char *wide = xcalloc(n_rows, 2 * n_bytes);
    for (size_t i = 0; i < n_rows; i++)
        memcpy(wide + 2 * n_bytes * i, (char *)rows + n_bytes * i, n_bytes);
    free(rows);
    return wide;
}

static void add_columns(struct fragment_cycles *to)
{
    to->quals = spread(to->quals, to->n_cycles, to->n_columns);
    to->qual_wraps =
        spread(to->qual_wraps, to->n_cycles, to->n_columns * sizeof *to->qual_wraps);
    to->n_columns *= 2;
}

static void count_quals(struct fragment_cycles *to, const uint8_t *quals, size_t n, bool is_reverse)
{
    if (are_missing(quals, n)) {
        to->without_quals[n]++;
        return;
    }
    const uint8_t bits = or_bytes(quals, n);
    while (bits >= to->n_columns) add_columns(to);
    const ptrdiff_t step = is_reverse ? -(ptrdiff_t)to->n_columns : (ptrdiff_t)to->n_columns;
    uint8_t *row = to->quals + (is_reverse ? (n - 1) * to->n_columns : 0);
    for (size_t i = 0; i < n; i++, row += step)
        if (++row[quals[i]] == 0) to->qual_wraps[row - to->quals + quals[i]]++;
}

uint32_t stats_cycles_add(struct stats_cycles *cycles, enum stats_fragment fragment,
                          const uint8_t *rec)
{
    struct fragment_cycles *to = &cycles->fragments[fragment];
    const size_t n = (size_t)bam_record_n_bases(rec);
    const bool is_reverse = bam_record_flag(rec) & BAM_FREVERSE;
    if (n > to->n_cycles) make_room(to, n);
    count_quals(to, bam_record_quals(rec), n, is_reverse);
    return count_bases(to, bam_record_seq(rec), n, is_reverse);
}

/* Adds the counts of the first or the second base of a pair. */
static void add_half(const uint32_t row[N_BASE_PAIRS], bool is_second,
                     uint64_t sums[STATS_N_BASES])
{
    for (int i = 0; i < N_BASE_PAIRS; i++)
        sums[is_second ? i % STATS_N_BASES : i / STATS_N_BASES] += row[i];
}

void stats_cycles_bases(const struct fragment_cycles *cycles, int strand, size_t cycle,
                        uint64_t sums[STATS_N_BASES])
{
    if (cycle >= cycles->n_cycles) return;
    for (int i = 0; i < STATS_N_BASES; i++) sums[i] += cycles->single[strand][cycle][i];
    if (cycle >= cycles->n_paired) return;
    if (strand == 0) {
        add_half(cycles->pairs[PAIRS_FORWARD][cycle / 2], cycle % 2, sums);
        return;
    }
    /* The first base of a pair has the later cycle; in reads of odd length, cycle 0 is single. */
    add_half(cycles->pairs[PAIRS_REVERSE_EVEN][cycle / 2], cycle % 2 == 0, sums);
    if (cycle > 0)
        add_half(cycles->pairs[PAIRS_REVERSE_ODD][(cycle - 1) / 2], cycle % 2 == 1, sums);
}

void stats_cycles_quals(const struct fragment_cycles *cycles, size_t cycle,
                        uint64_t sums[STATS_N_QUALS])
{
    if (cycle >= cycles->n_cycles) return;
    const size_t row = cycle * cycles->n_columns;
    for (size_t i = 0; i < cycles->n_columns; i++)
        sums[i] += cycles->quals[row + i] + UINT64_C(256) * cycles->qual_wraps[row + i];
}

void stats_cycles_release(struct stats_cycles *cycles)
{
    for (int i = 0; i < STATS_N_FRAGMENTS; i++) {
        struct fragment_cycles *of = &cycles->fragments[i];
        for (int k = 0; k < N_PAIRINGS; k++) free(of->pairs[k]);
        for (int k = 0; k < 2; k++) free(of->single[k]);
        free(of->quals);
        free(of->qual_wraps);
        free(of->without_quals);
    }
}
