/*
 * bam_index.c -- see bam_index.h. Where the specifications of BAI (SAM specification, section 5.2)
 * and CSI leave a choice, this file does the same as htslib.
 *
 * In the index file each bin has a list of chunks. A bin whose chunks all lie within 64 KB of the
 * file is merged into its parent, level by level from the lowest, because a reader would inflate
 * those bytes for the parent anyway. The parent must exist: it has records of its own, or received
 * other bins. Whether a bin is small depends only on its first start and last end, so the parent
 * gets these two numbers, and no lists are moved. At the end each chunk goes to the bin into which
 * its own bin was merged. Chunks are kept and distributed in order of their starts, so each list is
 * sorted. Two chunks of a bin are joined if one starts in the block in which the other ends.
 *
 * For each window (BAI), or for the first window of each bin (CSI), the linear index has the offset
 * of the first record that overlaps the window. A window without records gets the value of the next
 * window.
 *
 * Bins are in the file in the order of a hash table: htslib's khash, filled in the order in which
 * bins are first seen. Readers do not need that order; it makes the bytes equal to those of htslib.
 * The table also finds parents.
 */
#include "output/bam_index.h"

#include "bam/bgzf_block.h"
#include "util/byte_order.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wunused-function"
#include <htslib/khash.h>
KHASH_MAP_INIT_INT(bin, uint32_t)       /* bin number to index in index->bins */
#pragma GCC diagnostic pop

enum { SMALL_BIN_BYTES = 0x10000 };     /* of the file; a smaller bin is merged into its parent */

struct bin {
    uint32_t number;
    int level;
    uint64_t begin, end;                /* of its chunks, and of the bins merged into it */
    size_t last_chunk;                  /* index in index->chunks of its own last chunk */
    uint32_t goes_to;                   /* index of the bin it is merged into; or its own index */
    uint32_t n_chunks;                  /* of its list in the file, which begins at first_chunk */
    size_t first_chunk;
};

struct chunk {
    uint64_t begin, end;
    uint32_t bin;                       /* index in index->bins */
    size_t next;                        /* in the list of its bin in the file */
};

struct bam_index {
    /* fixed after bam_index_create */
    enum bam_index_format format;
    struct bam_index_shape shape;
    int32_t n_refs;
    /* The file so far: its head and the finished references. In a CSI, the bytes that fill BGZF
       blocks are compressed and moved to `packed`. */
    struct byte_buffer out, packed;
    int32_t n_finished;
    uint64_t n_unplaced;
    uint64_t end;                       /* of the last output chunk */
    /* the current reference, number n_finished; the next one reuses the memory */
    bool ref_open;
    uint64_t begin;
    uint64_t n_mapped, n_unmapped;
    struct bin *bins;                   /* in the order of their first record */
    size_t n_bins, bins_room;
    struct chunk *chunks;               /* in the order of their starts */
    size_t n_chunks, chunks_room;
    uint64_t *windows;
    size_t n_windows, windows_room;
    int64_t level_bin[BAM_INDEX_MAX_DEPTH + 1];         /* index of each level's last bin, or -1 */
};

static const uint64_t untouched = UINT64_MAX;           /* a window without records */

/* ---- shape ---- */

static int64_t shape_limit(const struct bam_index_shape *shape)
{
    return INT64_C(1) << (shape->min_shift + 3 * shape->depth);
}

/* Returns a shape with enough levels for the longest reference plus 256 bases, as in htslib. */
static struct bam_index_shape csi_shape(int64_t longest)
{
    struct bam_index_shape shape = {.min_shift = BAM_INDEX_BAI_MIN_SHIFT, .depth = 0};
    /* Positions have at most 62 bits; LN in a header may be larger. */
    while (shape.min_shift + 3 * shape.depth < 62 && longest > shape_limit(&shape) - 256) {
        if (shape.depth < BAM_INDEX_MAX_DEPTH)
            shape.depth++;
        else
            shape.min_shift++;
    }
    return shape;
}

/* Chooses the shape. Returns -1 after a message if a reference is too long. */
static int choose_shape(struct bam_index *index, const sam_hdr_t *header)
{
    const struct bam_index_shape bai = {BAM_INDEX_BAI_MIN_SHIFT, BAM_INDEX_BAI_DEPTH};
    int64_t longest = 0;
    for (int i = 0; i < index->n_refs; i++) {
        int64_t length = sam_hdr_tid2len(header, i);
        if (length > longest) longest = length;
        if (index->format != BAM_INDEX_BAI || length <= shape_limit(&bai)) continue;
        diag_error("reference '%s' has %" PRId64 " bases, and a BAI index ends at %" PRId64
                   ": name the index FILE.csi",
                   sam_hdr_tid2name(header, i), length, shape_limit(&bai));
        return -1;
    }
    index->shape = index->format == BAM_INDEX_CSI ? csi_shape(longest) : bai;
    return 0;
}

const struct bam_index_shape *bam_index_shape(const struct bam_index *index)
{
    return &index->shape;
}

/* ---- bytes of the file ---- */

static void put32(struct bam_index *index, uint64_t value)
{
    (void)put_u32(byte_buffer_append(&index->out, 4), value);
}

static void put64(struct bam_index *index, uint64_t value)
{
    (void)put_u64(byte_buffer_append(&index->out, 8), value);
}

static void put_file_head(struct bam_index *index)
{
    bool is_csi = index->format == BAM_INDEX_CSI;
    byte_buffer_copy(&index->out, is_csi ? "CSI\1" : "BAI\1", 4);
    if (is_csi) {
        put32(index, (uint32_t)index->shape.min_shift);
        put32(index, (uint32_t)index->shape.depth);
        put32(index, 0);                /* l_aux: no further data */
    }
    put32(index, (uint32_t)index->n_refs);
}

/* Writes the references before number up_to that have no records: they have no bins and, in a BAI,
   no windows. */
static void put_empty_refs(struct bam_index *index, int32_t up_to)
{
    size_t n = (size_t)(up_to - index->n_finished) * (index->format == BAM_INDEX_BAI ? 8 : 4);
    memset(byte_buffer_append(&index->out, n), 0, n);
    index->n_finished = up_to;
}

/* Compresses bytes of a CSI into BGZF blocks: all bytes, or only those that fill whole blocks.
   Returns 0, or -1 after a message. */
static int pack_blocks(struct bam_index *index, bool all)
{
    static const struct bgzf_method method = {.level = -1, .is_text = true};
    struct byte_buffer *out = &index->out;
    size_t n_left = all ? 0 : out->n_bytes % BGZF_PAYLOAD_BYTES, n = out->n_bytes - n_left;
    if (n == 0) return 0;
    if (bgzf_append(&index->packed, method, out->bytes, n) < 0) {
        diag_error("a block of the index cannot be compressed; please report this");
        return -1;
    }
    memmove(out->bytes, out->bytes + n, n_left);
    out->n_bytes = n_left;
    return 0;
}

/* ---- the current reference ---- */

/* Returns the last bin of a level, or makes a new bin if the last one has another number. */
static struct bin *take_bin(struct bam_index *index, const struct bam_index_chunk *from,
                            uint64_t begin)
{
    int64_t at = index->level_bin[from->level];
    if (at >= 0 && index->bins[at].number == from->bin) return &index->bins[at];
    xgrow(&index->bins, &index->bins_room, index->n_bins + 1, index->n_bins, sizeof *index->bins);
    at = index->level_bin[from->level] = (int64_t)index->n_bins++;
    index->bins[at] = (struct bin){.number = from->bin, .level = from->level, .begin = begin,
                                  .last_chunk = SIZE_MAX, .goes_to = (uint32_t)at};
    return &index->bins[at];
}

static void add_chunk(struct bam_index *index, const struct bam_index_chunk *from, uint64_t base)
{
    uint64_t begin = base + from->begin, end = base + from->end;
    struct bin *bin = take_bin(index, from, begin);
    if (end > bin->end) bin->end = end;
    struct chunk *last = bin->last_chunk != SIZE_MAX ? &index->chunks[bin->last_chunk] : NULL;
    if (last && last->end >> 16 >= begin >> 16) {       /* they meet in a block */
        if (end > last->end) last->end = end;
        return;
    }
    xgrow(&index->chunks, &index->chunks_room, index->n_chunks + 1, index->n_chunks,
          sizeof *index->chunks);
    bin->last_chunk = index->n_chunks;
    index->chunks[index->n_chunks++] = (struct chunk){begin, end, (uint32_t)(bin - index->bins), 0};
}

static void add_windows(struct bam_index *index, const struct bam_index_windows *from,
                        uint64_t base)
{
    size_t n = index->n_windows;
    xgrow(&index->windows, &index->windows_room, (size_t)from->last + 1, from->last,
          sizeof *index->windows);
    /* Adds nothing if a record of an earlier part reaches further. */
    for (; n < from->first; n++) index->windows[n] = untouched;
    for (; n <= from->last; n++) index->windows[n] = base + from->begin;
    index->n_windows = n;
}

static khash_t(bin) *make_table(const struct bam_index *index)
{
    khash_t(bin) *table = kh_init(bin);
    xalloc_require(table != NULL);
    int r;
    for (size_t i = 0; i < index->n_bins; i++) {
        khint_t at = kh_put(bin, table, index->bins[i].number, &r);
        xalloc_require(r >= 0);
        kh_val(table, at) = (uint32_t)i;
    }
    /* htslib puts the pseudo-bin twice, once for each of its two chunks. A full table grows even if
       the bin that is put is in it already. */
    for (int i = 0; i < 2; i++) {
        (void)kh_put(bin, table, bam_index_pseudo_bin(&index->shape), &r);
        xalloc_require(r >= 0);
    }
    return table;
}

static void fill_windows(struct bam_index *index)
{
    for (size_t i = index->n_windows - 1; i > 0; i--)
        if (index->windows[i - 1] == untouched) index->windows[i - 1] = index->windows[i];
}

static bool is_small(const struct bin *bin)
{
    return (bin->end >> 16) - (bin->begin >> 16) < SMALL_BIN_BYTES;
}

/* Merges small bins into their parents, and removes them from the table. */
static void join_small_bins(struct bam_index *index, khash_t(bin) *table)
{
    for (int level = index->shape.depth; level > 0; level--) {
        for (size_t i = 0; i < index->n_bins; i++) {
            struct bin *bin = &index->bins[i];
            if (bin->level != level || !is_small(bin)) continue;
            uint32_t parent_number = (bin->number - 1) >> 3;
            khint_t at = kh_get(bin, table, parent_number);
            if (at == kh_end(table)) continue;
            struct bin *parent = &index->bins[kh_val(table, at)];
            bin->goes_to = kh_val(table, at);
            if (bin->begin < parent->begin) parent->begin = bin->begin;
            if (bin->end > parent->end) parent->end = bin->end;
            kh_del(bin, table, kh_get(bin, table, bin->number));
        }
    }
}

static uint32_t final_bin(const struct bam_index *index, uint32_t bin)
{
    while (index->bins[bin].goes_to != bin) bin = index->bins[bin].goes_to;
    return bin;
}

/* Makes the chunk lists of the remaining bins. */
static void list_chunks(struct bam_index *index)
{
    for (size_t i = 0; i < index->n_chunks; i++) {
        struct chunk *chunk = &index->chunks[i];
        struct bin *bin = &index->bins[final_bin(index, chunk->bin)];
        struct chunk *last = bin->n_chunks > 0 ? &index->chunks[bin->last_chunk] : NULL;
        if (last && last->end >> 16 >= chunk->begin >> 16) {
            if (chunk->end > last->end) last->end = chunk->end;
            continue;
        }
        *(last ? &last->next : &bin->first_chunk) = bin->last_chunk = i;
        bin->n_chunks++;
    }
}

/* The offset of the first record that overlaps the first window of a bin. */
static uint64_t bin_loff(const struct bam_index *index, const struct bin *bin)
{
    uint64_t window = bam_index_first_window(&index->shape, bin->number, bin->level);
    return window < index->n_windows ? index->windows[window] : 0;
}

static void put_bin(struct bam_index *index, const struct bin *bin)
{
    put32(index, bin->number);
    if (index->format == BAM_INDEX_CSI) put64(index, bin_loff(index, bin));
    put32(index, bin->n_chunks);
    size_t at = bin->first_chunk;
    for (uint32_t i = 0; i < bin->n_chunks; i++, at = index->chunks[at].next) {
        put64(index, index->chunks[at].begin);
        put64(index, index->chunks[at].end);
    }
}

static void put_pseudo_bin(struct bam_index *index, uint64_t end)
{
    put32(index, bam_index_pseudo_bin(&index->shape));
    if (index->format == BAM_INDEX_CSI) put64(index, 0);
    put32(index, 2);
    put64(index, index->begin);
    put64(index, end);
    put64(index, index->n_mapped);
    put64(index, index->n_unmapped);
}

/* Ends the current reference, if there is one, at `end` in the file: appends it to the index
   file. Returns 0, or -1 after a message. */
static int finish_ref(struct bam_index *index, uint64_t end)
{
    if (!index->ref_open) return 0;
    khash_t(bin) *table = make_table(index);
    fill_windows(index);
    join_small_bins(index, table);
    list_chunks(index);
    put32(index, kh_size(table));
    for (khint_t i = kh_begin(table); i != kh_end(table); i++) {
        if (!kh_exist(table, i)) continue;
        if (kh_key(table, i) == bam_index_pseudo_bin(&index->shape))
            put_pseudo_bin(index, end);
        else
            put_bin(index, &index->bins[kh_val(table, i)]);
    }
    if (index->format == BAM_INDEX_BAI) {
        put32(index, index->n_windows);
        for (size_t i = 0; i < index->n_windows; i++) put64(index, index->windows[i]);
    }
    kh_destroy(bin, table);
    index->ref_open = false;
    index->n_finished++;
    return index->format == BAM_INDEX_CSI ? pack_blocks(index, false) : 0;
}

/* Returns 0, or -1 after a message. */
static int begin_ref(struct bam_index *index, int32_t tid, uint64_t begin)
{
    if (finish_ref(index, begin) < 0) return -1;
    put_empty_refs(index, tid);
    index->ref_open = true;
    index->begin = begin;
    index->n_mapped = index->n_unmapped = 0;
    index->n_bins = index->n_chunks = index->n_windows = 0;
    for (int i = 0; i <= index->shape.depth; i++) index->level_bin[i] = -1;
    return 0;
}

/* ---- creating and destroying ---- */

struct bam_index *bam_index_create(enum bam_index_format format, const sam_hdr_t *header)
{
    struct bam_index *index = xcalloc(1, sizeof *index);
    index->format = format;
    index->n_refs = sam_hdr_nref(header);
    if (choose_shape(index, header) < 0) {
        bam_index_destroy(index);
        return NULL;
    }
    put_file_head(index);
    return index;
}

void bam_index_destroy(struct bam_index *index)
{
    if (!index) return;
    free(index->bins);
    free(index->chunks);
    free(index->windows);
    free(index->out.bytes);
    free(index->packed.bytes);
    free(index);
}

/* ---- appending ---- */

int bam_index_append(struct bam_index *index, const struct bam_index_part *part,
                     uint64_t file_offset)
{
    uint64_t base = bam_index_voffset(file_offset, 0);
    const struct bam_index_chunk *chunk = part->chunks;
    const struct bam_index_windows *windows = part->windows;
    for (size_t i = 0; i < part->n_refs; i++) {
        const struct bam_index_ref *ref = &part->refs[i];
        bool goes_on = i == 0 && index->ref_open && ref->tid == index->n_finished;
        if (index->n_unplaced > 0 || (!goes_on && ref->tid < index->n_finished + index->ref_open)) {
            diag_error("cannot write the index: its records are not in coordinate order; please "
                       "report this");
            return -1;
        }
        if (!goes_on && begin_ref(index, ref->tid, base + ref->begin) < 0) return -1;
        index->n_mapped += ref->n_mapped;
        index->n_unmapped += ref->n_unmapped;
        for (size_t k = 0; k < ref->n_chunks; k++) add_chunk(index, chunk++, base);
        for (size_t k = 0; k < ref->n_windows; k++) add_windows(index, windows++, base);
    }
    if (part->n_unplaced > 0 && finish_ref(index, base + part->unplaced_begin) < 0) return -1;
    index->n_unplaced += part->n_unplaced;
    index->end = base + part->end;
    return 0;
}

/* ---- writing ---- */

int bam_index_write(struct bam_index *index, struct output_path *path)
{
    struct byte_buffer *file = &index->out;
    if (finish_ref(index, index->end) < 0) return -1;
    put_empty_refs(index, index->n_refs);
    put64(index, index->n_unplaced);
    if (index->format == BAM_INDEX_CSI) {
        if (pack_blocks(index, true) < 0) return -1;
        file = &index->packed;
        byte_buffer_copy(file, bgzf_end_block, BGZF_END_BYTES);
    }
    return output_path_save(path, file->bytes, file->n_bytes);
}
