/*
 * index_bins.c -- see index_bins.h. The SAM specification (section 5.2) describes BAI, and the CSI
 * specification describes CSI. Where the specifications leave a choice, this file does what
 * htslib's index files show.
 *
 * In the index file each bin has a list of chunks. A bin whose chunks all lie within 64 KB of the
 * file is given to its parent, level by level from the lowest, because a reader would inflate those
 * bytes for the parent anyway. The parent must exist: it has records of its own, or received other
 * bins. Whether a bin is small depends only on its first begin and its last end. So these two
 * numbers are given to the parent, and no lists are moved. At the end each chunk goes to the bin to
 * which its own bin was given. Chunks are kept in the order in which they begin. Because they are
 * handed out in this order, the list of each bin is sorted. Two chunks of a bin are joined if one
 * begins in the block in which the other ends.
 *
 * For each window (BAI), or for the first window of each bin (CSI), the linear index says where the
 * first record that touches the window begins. A window that no record touches gets the value of
 * the next window.
 *
 * A pseudo-bin, whose number is one more than there are bins, has the begin and end of the
 * reference in the file, and its numbers of mapped and unmapped reads.
 *
 * Bins are in the file in the order of a hash table: htslib's khash, filled in the order in which
 * bins are first seen. Readers do not need that order; its purpose is that the bytes are equal to
 * those of htslib. The table also finds parents.
 */
#include "output/index_bins.h"

#include "util/byte_order.h"
#include "util/xalloc.h"

#include <stdlib.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wunused-function"
#include <htslib/khash.h>
KHASH_MAP_INIT_INT(bin, uint32_t)       /* number of a bin to its place in bins->bins */
#pragma GCC diagnostic pop

enum { SMALL_BIN_BYTES = 0x10000 };     /* of the file; a smaller bin is given to its parent */

struct bin {
    uint32_t number;
    int level;
    uint64_t begin, end;                /* of its chunks, and of the chunks of bins that were given
                                           to it */
    size_t last_chunk;                  /* place in bins->chunks of its own last chunk */
    uint32_t goes_to;                   /* place of the bin that it is given to; or its own place */
    /* its list in the file */
    uint32_t first, n_chunks;
};

struct chunk {
    uint64_t begin, end;
    uint32_t bin;                       /* place in bins->bins */
};

struct pair {                           /* a chunk in the file */
    uint64_t begin, end;
};

struct index_bins {
    /* fixed after index_bins_create */
    struct bam_index_shape shape;
    bool is_csi;
    /* the current reference */
    uint64_t begin;
    uint64_t n_mapped, n_unmapped;
    struct bin *bins;                   /* in the order in which they are first seen */
    size_t n_bins, bins_room;
    struct chunk *chunks;               /* in the order in which they begin */
    size_t n_chunks, chunks_room;
    uint64_t *windows;
    size_t n_windows, windows_room;
    int64_t level_bin[BAM_INDEX_MAX_DEPTH + 1];         /* place of each level's last bin, or -1 */
    /* index_bins_finish */
    struct pair *pairs;
    size_t pairs_room;
};

static const uint64_t untouched = UINT64_MAX;           /* a window that no record touches */

uint8_t *index_bytes_reserve(struct index_bytes *to, size_t n_more)
{
    bam_index_reserve(&to->bytes, &to->room, to->n + n_more, 1);
    return to->bytes + to->n;
}

struct index_bins *index_bins_create(const struct bam_index_shape *shape, bool is_csi)
{
    struct index_bins *bins = xcalloc(1, sizeof *bins);
    bins->shape = *shape;
    bins->is_csi = is_csi;
    return bins;
}

void index_bins_destroy(struct index_bins *bins)
{
    if (!bins) return;
    free(bins->bins);
    free(bins->chunks);
    free(bins->windows);
    free(bins->pairs);
    free(bins);
}

void index_bins_begin(struct index_bins *bins, uint64_t begin)
{
    bins->begin = begin;
    bins->n_mapped = bins->n_unmapped = 0;
    bins->n_bins = bins->n_chunks = bins->n_windows = 0;
    for (int i = 0; i <= bins->shape.depth; i++) bins->level_bin[i] = -1;
}

void index_bins_add_counts(struct index_bins *bins, uint64_t n_mapped, uint64_t n_unmapped)
{
    bins->n_mapped += n_mapped;
    bins->n_unmapped += n_unmapped;
}

/* ---- adding ---- */

/* Returns the last bin of a level, or makes a new bin if the last one has another number. */
static struct bin *take_bin(struct index_bins *bins, const struct bam_index_chunk *from,
                            uint64_t begin)
{
    int64_t at = bins->level_bin[from->level];
    if (at >= 0 && bins->bins[at].number == from->bin) return &bins->bins[at];
    bam_index_reserve(&bins->bins, &bins->bins_room, bins->n_bins + 1, sizeof *bins->bins);
    at = bins->level_bin[from->level] = (int64_t)bins->n_bins++;
    bins->bins[at] = (struct bin){.number = from->bin, .level = from->level, .begin = begin,
                                  .last_chunk = SIZE_MAX, .goes_to = (uint32_t)at};
    return &bins->bins[at];
}

void index_bins_add_chunk(struct index_bins *bins, const struct bam_index_chunk *from,
                          uint64_t base)
{
    uint64_t begin = base + from->begin, end = base + from->end;
    struct bin *bin = take_bin(bins, from, begin);
    if (end > bin->end) bin->end = end;
    struct chunk *last = bin->last_chunk != SIZE_MAX ? &bins->chunks[bin->last_chunk] : NULL;
    if (last && last->end >> 16 >= begin >> 16) {       /* they meet in a block */
        if (end > last->end) last->end = end;
        return;
    }
    bam_index_reserve(&bins->chunks, &bins->chunks_room, bins->n_chunks + 1, sizeof *bins->chunks);
    bin->last_chunk = bins->n_chunks;
    bins->chunks[bins->n_chunks++] = (struct chunk){begin, end, (uint32_t)(bin - bins->bins)};
}

void index_bins_add_windows(struct index_bins *bins, const struct bam_index_windows *from,
                            uint64_t base)
{
    size_t n = bins->n_windows;
    bam_index_reserve(&bins->windows, &bins->windows_room, (size_t)from->last + 1,
                      sizeof *bins->windows);
    /* If a record of an earlier part reaches further, nothing is added. */
    for (; n < from->first; n++) bins->windows[n] = untouched;
    for (; n <= from->last; n++) bins->windows[n] = base + from->begin;
    bins->n_windows = n;
}

/* ---- finishing ---- */

static khash_t(bin) *make_table(const struct index_bins *bins)
{
    khash_t(bin) *table = kh_init(bin);
    xalloc_require(table != NULL);
    int r;
    for (size_t i = 0; i < bins->n_bins; i++) {
        khint_t at = kh_put(bin, table, bins->bins[i].number, &r);
        xalloc_require(r >= 0);
        kh_val(table, at) = (uint32_t)i;
    }
    /* htslib puts the pseudo-bin twice, once for each of its two chunks. A full table grows even if
       the bin that is put is in it already. */
    for (int i = 0; i < 2; i++) {
        (void)kh_put(bin, table, bam_index_pseudo_bin(&bins->shape), &r);
        xalloc_require(r >= 0);
    }
    return table;
}

static void fill_windows(struct index_bins *bins)
{
    for (size_t i = bins->n_windows - 1; i > 0; i--)
        if (bins->windows[i - 1] == untouched) bins->windows[i - 1] = bins->windows[i];
}

static bool is_small(const struct bin *bin)
{
    return (bin->end >> 16) - (bin->begin >> 16) < SMALL_BIN_BYTES;
}

/* Decides which bins are given to their parents, and removes them from the table. */
static void join_small_bins(struct index_bins *bins, khash_t(bin) *table)
{
    for (int level = bins->shape.depth; level > 0; level--) {
        for (size_t i = 0; i < bins->n_bins; i++) {
            struct bin *bin = &bins->bins[i];
            if (bin->level != level || !is_small(bin)) continue;
            uint32_t parent_number = (bin->number - 1) >> 3;
            khint_t at = kh_get(bin, table, parent_number);
            if (at == kh_end(table)) continue;
            struct bin *parent = &bins->bins[kh_val(table, at)];
            bin->goes_to = kh_val(table, at);
            if (bin->begin < parent->begin) parent->begin = bin->begin;
            if (bin->end > parent->end) parent->end = bin->end;
            kh_del(bin, table, kh_get(bin, table, bin->number));
        }
    }
}

static uint32_t final_bin(const struct index_bins *bins, uint32_t bin)
{
    while (bins->bins[bin].goes_to != bin) bin = bins->bins[bin].goes_to;
    return bin;
}

/* Makes the chunk lists of the remaining bins in bins->pairs. Returns the number of chunks. */
static size_t group_chunks(struct index_bins *bins)
{
    bam_index_reserve(&bins->pairs, &bins->pairs_room, bins->n_chunks, sizeof *bins->pairs);
    /* Each list gets as much room as if no chunks were joined. */
    for (size_t i = 0; i < bins->n_chunks; i++) {
        bins->chunks[i].bin = final_bin(bins, bins->chunks[i].bin);
        bins->bins[bins->chunks[i].bin].n_chunks++;
    }
    uint32_t first = 0;
    for (size_t i = 0; i < bins->n_bins; i++) {
        bins->bins[i].first = first;
        first += bins->bins[i].n_chunks;
        bins->bins[i].n_chunks = 0;
    }
    size_t n = 0;
    for (size_t i = 0; i < bins->n_chunks; i++) {
        const struct chunk *chunk = &bins->chunks[i];
        struct bin *bin = &bins->bins[chunk->bin];
        struct pair *list = &bins->pairs[bin->first];
        struct pair *last = bin->n_chunks > 0 ? &list[bin->n_chunks - 1] : NULL;
        if (last && last->end >> 16 >= chunk->begin >> 16) {
            if (chunk->end > last->end) last->end = chunk->end;
            continue;
        }
        list[bin->n_chunks++] = (struct pair){chunk->begin, chunk->end};
        n++;
    }
    return n;
}

/* The place of the first record that touches the first window of a bin. */
static uint64_t bin_loff(const struct index_bins *bins, const struct bin *bin)
{
    uint64_t window = bam_index_first_window(&bins->shape, bin->number, bin->level);
    return window < bins->n_windows ? bins->windows[window] : 0;
}

static uint8_t *put_bin(const struct index_bins *bins, const struct bin *bin, uint8_t *at)
{
    at = put_u32(at, bin->number);
    if (bins->is_csi) at = put_u64(at, bin_loff(bins, bin));
    at = put_u32(at, bin->n_chunks);
    for (uint32_t i = 0; i < bin->n_chunks; i++) {
        at = put_u64(at, bins->pairs[bin->first + i].begin);
        at = put_u64(at, bins->pairs[bin->first + i].end);
    }
    return at;
}

static uint8_t *put_pseudo_bin(const struct index_bins *bins, uint64_t end, uint8_t *at)
{
    at = put_u32(at, bam_index_pseudo_bin(&bins->shape));
    if (bins->is_csi) at = put_u64(at, 0);
    at = put_u32(at, 2);
    at = put_u64(at, bins->begin);
    at = put_u64(at, end);
    at = put_u64(at, bins->n_mapped);
    return put_u64(at, bins->n_unmapped);
}

void index_bins_finish(struct index_bins *bins, uint64_t end, struct index_bytes *to)
{
    khash_t(bin) *table = make_table(bins);
    fill_windows(bins);
    join_small_bins(bins, table);
    size_t n_chunks = group_chunks(bins) + 2;
    size_t most = 8 + 16 * (size_t)kh_size(table) + 16 * n_chunks + 8 * bins->n_windows;
    uint8_t *at = put_u32(index_bytes_reserve(to, most), kh_size(table));
    for (khint_t i = kh_begin(table); i != kh_end(table); i++) {
        if (!kh_exist(table, i)) continue;
        if (kh_key(table, i) == bam_index_pseudo_bin(&bins->shape))
            at = put_pseudo_bin(bins, end, at);
        else
            at = put_bin(bins, &bins->bins[kh_val(table, i)], at);
    }
    if (!bins->is_csi) {
        at = put_u32(at, bins->n_windows);
        for (size_t i = 0; i < bins->n_windows; i++) at = put_u64(at, bins->windows[i]);
    }
    to->n = (size_t)(at - to->bytes);
    kh_destroy(bin, table);
}
