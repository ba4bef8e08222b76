/*
 * bam_index.c -- see bam_index.h. The formats are in section 5.2 of the SAM specification (BAI) and
 * in the CSI specification; what follows is how htslib fills them, which is seen from its files.
 *
 * A bin of the file has a list of chunks. A bin whose chunks all lie within 64 KB of file is given
 * to its parent, if that exists (has records of its own, or was there to receive others'), level by
 * level from the lowest: a reader would inflate those bytes for the parent anyway. A bin is small
 * by the distance between its first begin and its last end, so whole lists need not be moved to
 * decide this: the two numbers are handed up, and at the end each chunk goes to the bin where its
 * own bin went. Chunks are kept in the order in which they begin; given out in this order, each
 * bin's list is sorted, and joined where one chunk begins in the block in which the one before
 * ends.
 *
 * The linear index says where the first record begins that touches a window (BAI) or the first
 * window of a bin (CSI). A window that none touches has the value of the one behind it.
 *
 * A pseudo-bin, whose number is one more than there are bins, has the reference's stretch of file
 * and its numbers of mapped and unmapped reads.
 *
 * Bins stand in the file in the order of a hash table (htslib's khash, filled in the order in which
 * bins are first seen). Readers do not care; this is only for equal bytes, and the table also finds
 * parents.
 */
#include "output/bam_index.h"

#include "bam/bgzf_block.h"
#include "machine/disk_space.h"
#include "util/byte_order.h"
#include "util/diag.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wunused-function"
#include <htslib/khash.h>
KHASH_MAP_INIT_INT(bin, uint32_t)       /* bin number to place in index->bins */
#pragma GCC diagnostic pop

enum {
    BAI_MIN_SHIFT = 14,
    BAI_DEPTH = 5,
    SMALL_BIN_BYTES = 0x10000,          /* of file; below, a bin is given to its parent */
};

struct bin {
    uint32_t number;
    int level;
    uint64_t begin, end;                /* of all its chunks, and of those of bins given to it */
    size_t last_chunk;                  /* its own last one */
    uint32_t goes_to;                   /* place in index->bins of the bin it is given to, or own */
    /* its list in the file */
    uint32_t first, n_chunks;
};

struct chunk {
    uint64_t begin, end;
    uint32_t bin;                       /* place in index->bins */
};

struct pair {                           /* a chunk in the file */
    uint64_t begin, end;
};

struct bam_index {
    /* fixed */
    enum bam_index_format format;
    struct bam_index_shape shape;
    int32_t n_refs;
    /* the file's head and finished references, as they will stand in the file; of a CSI what fills
       BGZF blocks is already in blocks, in `packed` */
    uint8_t *out, *packed;
    size_t out_bytes, out_room, packed_bytes, packed_room;
    struct bgzf_coder coder;
    int32_t n_finished;
    uint64_t n_unplaced;
    uint64_t end;                       /* of the last segment */
    /* the reference at hand; it is number n_finished */
    bool ref_open;
    uint64_t ref_begin;
    uint64_t n_mapped, n_unmapped;
    struct bin *bins;                   /* in the order in which they are first seen */
    size_t n_bins, bins_room;
    struct chunk *chunks;               /* in the order in which they begin */
    size_t n_chunks, chunks_room;
    uint64_t *windows;
    size_t n_windows, windows_room;
    int64_t level_bin[BAM_INDEX_MAX_DEPTH + 1];         /* the last bin of each level, or -1 */
    /* while a reference is finished */
    struct pair *pairs;
    size_t pairs_room;
};

static const uint64_t untouched = UINT64_MAX;           /* a window */

/* ---- shape ---- */

static int64_t shape_limit(const struct bam_index_shape *shape)
{
    return INT64_C(1) << (shape->min_shift + 3 * shape->depth);
}

static uint32_t pseudo_bin(const struct bam_index *index)
{
    return bam_index_first_bin(index->shape.depth + 1) + 1;
}

/* As many levels as the longest reference needs, and 256 bases that htslib adds to it. */
static struct bam_index_shape csi_shape(int64_t longest)
{
    struct bam_index_shape shape = {.min_shift = BAI_MIN_SHIFT, .depth = 0};
    /* Positions have 62 bits at most, which a header's LN may exceed. */
    while (shape.min_shift + 3 * shape.depth < 62 && longest > shape_limit(&shape) - 256) {
        if (shape.depth < BAM_INDEX_MAX_DEPTH)
            shape.depth++;
        else
            shape.min_shift++;
    }
    return shape;
}

/* ---- bytes of the file ---- */

static int reserve_out(struct bam_index *index, size_t n_bytes)
{
    return bam_index_reserve(&index->out, &index->out_room, index->out_bytes + n_bytes, 1);
}

/* References without records: no bins and, in a BAI, no windows. */
static int put_empty_refs(struct bam_index *index, int32_t up_to)
{
    size_t n = (size_t)(up_to - index->n_finished) * (index->format == BAM_INDEX_BAI ? 8 : 4);
    if (n == 0) return 0;
    if (reserve_out(index, n) < 0) return -1;
    memset(index->out + index->out_bytes, 0, n);
    index->out_bytes += n;
    index->n_finished = up_to;
    return 0;
}

static int put_file_head(struct bam_index *index)
{
    if (reserve_out(index, 20) < 0) return -1;
    memcpy(index->out, index->format == BAM_INDEX_BAI ? "BAI\1" : "CSI\1", 4);
    uint8_t *at = index->out + 4;
    if (index->format == BAM_INDEX_CSI) {
        at = put_u32(at, (uint32_t)index->shape.min_shift);
        at = put_u32(at, (uint32_t)index->shape.depth);
        at = put_u32(at, 0);            /* bytes of further data */
    }
    at = put_u32(at, (uint32_t)index->n_refs);
    index->out_bytes = (size_t)(at - index->out);
    return 0;
}

/* Turns bytes of a CSI into blocks: all, or as many as fill blocks. */
static int pack_blocks(struct bam_index *index, bool all)
{
    size_t done = 0, left;
    while ((left = index->out_bytes - done) >= (all ? 1 : BGZF_PAYLOAD_BYTES)) {
        size_t n = left < BGZF_PAYLOAD_BYTES ? left : BGZF_PAYLOAD_BYTES;
        if (bam_index_reserve(&index->packed, &index->packed_room,
                              index->packed_bytes + BGZF_MAX_BYTES, 1) < 0)
            return -1;
        ssize_t size = bgzf_block_deflate(&index->coder, -1, index->out + done, n,
                                          index->packed + index->packed_bytes);
        if (size < 0) return -1;
        index->packed_bytes += (size_t)size;
        done += n;
    }
    if (done > 0) memmove(index->out, index->out + done, left);
    index->out_bytes = left;
    return 0;
}

/* ---- creating and destroying ---- */

struct bam_index *bam_index_create(enum bam_index_format format, const sam_hdr_t *header)
{
    struct bam_index *index = calloc(1, sizeof *index);
    if (!index) {
        diag_no_memory();
        return NULL;
    }
    int64_t longest = 0;
    index->format = format;
    index->n_refs = sam_hdr_nref(header);
    index->shape = (struct bam_index_shape){BAI_MIN_SHIFT, BAI_DEPTH};
    for (int i = 0; i < index->n_refs; i++) {
        int64_t length = sam_hdr_tid2len(header, i);
        if (length > longest) longest = length;
        if (format != BAM_INDEX_BAI || length <= shape_limit(&index->shape)) continue;
        diag_error("reference '%s' has %" PRId64 " bases, and a BAI index ends at %" PRId64
                   ": name the index FILE.csi",
                   sam_hdr_tid2name(header, i), length, shape_limit(&index->shape));
        bam_index_destroy(index);
        return NULL;
    }
    if (format == BAM_INDEX_CSI) index->shape = csi_shape(longest);
    if (put_file_head(index) < 0) {
        diag_no_memory();
        bam_index_destroy(index);
        return NULL;
    }
    return index;
}

const struct bam_index_shape *bam_index_shape(const struct bam_index *index)
{
    return &index->shape;
}

void bam_index_destroy(struct bam_index *index)
{
    if (!index) return;
    bgzf_coder_release(&index->coder);
    free(index->out);
    free(index->packed);
    free(index->bins);
    free(index->chunks);
    free(index->windows);
    free(index->pairs);
    free(index);
}

/* ---- finishing a reference ---- */

static void fill_windows(struct bam_index *index)
{
    for (size_t i = index->n_windows - 1; i > 0; i--)
        if (index->windows[i - 1] == untouched) index->windows[i - 1] = index->windows[i];
}

static bool is_small(const struct bin *bin)
{
    return (bin->end >> 16) - (bin->begin >> 16) < SMALL_BIN_BYTES;
}

/* Decides which bins are given to their parents, and removes them from the table. */
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

/* Makes the chunk lists of the bins that remain, in index->pairs. Returns the number of chunks. */
static size_t group_chunks(struct bam_index *index)
{
    /* Room for each list as if nothing was to be joined. */
    for (size_t i = 0; i < index->n_chunks; i++) {
        index->chunks[i].bin = final_bin(index, index->chunks[i].bin);
        index->bins[index->chunks[i].bin].n_chunks++;
    }
    uint32_t first = 0;
    for (size_t i = 0; i < index->n_bins; i++) {
        index->bins[i].first = first;
        first += index->bins[i].n_chunks;
        index->bins[i].n_chunks = 0;
    }
    size_t n = 0;
    for (size_t i = 0; i < index->n_chunks; i++) {
        const struct chunk *chunk = &index->chunks[i];
        struct bin *bin = &index->bins[chunk->bin];
        struct pair *list = &index->pairs[bin->first];
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

/* Where the first record begins that touches the first window of a bin. */
static uint64_t bin_loff(const struct bam_index *index, const struct bin *bin)
{
    uint64_t in_level = bin->number - bam_index_first_bin(bin->level);
    uint64_t window = in_level << 3 * (index->shape.depth - bin->level);
    return window < index->n_windows ? index->windows[window] : 0;
}

static uint8_t *put_bin(const struct bam_index *index, const struct bin *bin, uint8_t *at)
{
    at = put_u32(at, bin->number);
    if (index->format == BAM_INDEX_CSI) at = put_u64(at, bin_loff(index, bin));
    at = put_u32(at, bin->n_chunks);
    for (uint32_t i = 0; i < bin->n_chunks; i++) {
        at = put_u64(at, index->pairs[bin->first + i].begin);
        at = put_u64(at, index->pairs[bin->first + i].end);
    }
    return at;
}

static uint8_t *put_pseudo_bin(const struct bam_index *index, uint64_t end, uint8_t *at)
{
    at = put_u32(at, pseudo_bin(index));
    if (index->format == BAM_INDEX_CSI) at = put_u64(at, 0);
    at = put_u32(at, 2);
    at = put_u64(at, index->ref_begin);
    at = put_u64(at, end);
    at = put_u64(at, index->n_mapped);
    return put_u64(at, index->n_unmapped);
}

/* Appends the reference to the bytes of the file, bins in the order of the table. */
static int put_ref(struct bam_index *index, const khash_t(bin) *table, uint64_t end)
{
    size_t n_chunks = group_chunks(index) + 2;
    size_t most = 8 + 16 * (size_t)kh_size(table) + 16 * n_chunks + 8 * index->n_windows;
    if (reserve_out(index, most) < 0) return -1;
    uint8_t *at = put_u32(index->out + index->out_bytes, kh_size(table));
    for (khint_t i = kh_begin(table); i != kh_end(table); i++) {
        if (!kh_exist(table, i)) continue;
        if (kh_key(table, i) == pseudo_bin(index))
            at = put_pseudo_bin(index, end, at);
        else
            at = put_bin(index, &index->bins[kh_val(table, i)], at);
    }
    if (index->format == BAM_INDEX_BAI) {
        at = put_u32(at, index->n_windows);
        for (size_t i = 0; i < index->n_windows; i++) at = put_u64(at, index->windows[i]);
    }
    index->out_bytes = (size_t)(at - index->out);
    return 0;
}

static int fill_table(const struct bam_index *index, khash_t(bin) *table)
{
    int r;
    for (size_t i = 0; i < index->n_bins; i++) {
        khint_t at = kh_put(bin, table, index->bins[i].number, &r);
        if (r < 0) return -1;
        kh_val(table, at) = (uint32_t)i;
    }
    /* Twice, like its two chunks: a full table grows also when what is put is there already. */
    for (int i = 0; i < 2; i++) {
        (void)kh_put(bin, table, pseudo_bin(index), &r);
        if (r < 0) return -1;
    }
    return 0;
}

/* The reference at hand, if there is one, ends here in the file. */
static int finish_ref(struct bam_index *index, uint64_t end)
{
    if (!index->ref_open) return 0;
    index->ref_open = false;
    if (bam_index_reserve(&index->pairs, &index->pairs_room, index->n_chunks,
                          sizeof *index->pairs) < 0)
        return -1;
    khash_t(bin) *table = kh_init(bin);
    int r = table ? fill_table(index, table) : -1;
    if (r == 0) {
        fill_windows(index);
        join_small_bins(index, table);
        r = put_ref(index, table, end);
    }
    kh_destroy(bin, table);
    index->n_finished++;
    if (r == 0 && index->format == BAM_INDEX_CSI) r = pack_blocks(index, false);
    return r;
}

/* ---- appending ---- */

static int begin_ref(struct bam_index *index, int32_t tid, uint64_t begin)
{
    if (finish_ref(index, begin) < 0 || put_empty_refs(index, tid) < 0) return -1;
    index->ref_open = true;
    index->ref_begin = begin;
    index->n_mapped = index->n_unmapped = 0;
    index->n_bins = index->n_chunks = index->n_windows = 0;
    for (int i = 0; i <= index->shape.depth; i++) index->level_bin[i] = -1;
    return 0;
}

/* Adds a chunk to the bin that its level had last, joining it to the bin's last one if they meet in
   a block, or to a new bin. */
static int add_chunk(struct bam_index *index, const struct bam_index_chunk *from, uint64_t base)
{
    uint64_t begin = base + from->begin, end = base + from->end;
    int64_t at = index->level_bin[from->level];
    bool known = at >= 0 && index->bins[at].number == from->bin;
    if (known) {
        struct bin *bin = &index->bins[at];
        struct chunk *last = &index->chunks[bin->last_chunk];
        if (end > bin->end) bin->end = end;
        if (last->end >> 16 >= begin >> 16) {
            if (end > last->end) last->end = end;
            return 0;
        }
    }
    if (bam_index_reserve(&index->chunks, &index->chunks_room, index->n_chunks + 1,
                          sizeof *index->chunks) < 0 ||
        bam_index_reserve(&index->bins, &index->bins_room, index->n_bins + 1,
                          sizeof *index->bins) < 0)
        return -1;
    if (!known) {
        at = index->level_bin[from->level] = (int64_t)index->n_bins++;
        index->bins[at] = (struct bin){.number = from->bin, .level = from->level, .begin = begin,
                                       .end = end, .goes_to = (uint32_t)at};
    }
    index->bins[at].last_chunk = index->n_chunks;
    index->chunks[index->n_chunks++] = (struct chunk){begin, end, (uint32_t)at};
    return 0;
}

static int add_windows(struct bam_index *index, const struct bam_index_windows *from, uint64_t base)
{
    size_t n = index->n_windows;
    if (bam_index_reserve(&index->windows, &index->windows_room, (size_t)from->last + 1,
                          sizeof *index->windows) < 0)
        return -1;
    /* Nothing happens where a record of an earlier part reaches as far. */
    for (; n < from->first; n++) index->windows[n] = untouched;
    for (; n <= from->last; n++) index->windows[n] = base + from->begin;
    index->n_windows = n;
    return 0;
}

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
        for (size_t k = 0; k < ref->n_chunks; k++, chunk++)
            if (add_chunk(index, chunk, base) < 0) return -1;
        for (size_t k = 0; k < ref->n_windows; k++, windows++)
            if (add_windows(index, windows, base) < 0) return -1;
    }
    if (part->n_unplaced > 0 && finish_ref(index, base + part->unplaced_begin) < 0) return -1;
    index->n_unplaced += part->n_unplaced;
    index->end = base + part->end;
    return 0;
}

/* ---- writing ---- */

static int end_file(struct bam_index *index)
{
    if (finish_ref(index, index->end) < 0 || put_empty_refs(index, index->n_refs) < 0 ||
        reserve_out(index, 8) < 0)
        return -1;
    (void)put_u64(index->out + index->out_bytes, index->n_unplaced);
    index->out_bytes += 8;
    return index->format == BAM_INDEX_CSI ? pack_blocks(index, true) : 0;
}

static int write_bytes(hFILE *file, const uint8_t *bytes, size_t n)
{
    return n == 0 || hwrite(file, bytes, n) == (ssize_t)n ? 0 : -1;
}

static int write_file(const struct bam_index *index, const struct output_path *path)
{
    hFILE *file = output_path_open(path);
    if (!file) return -1;
    int r = write_bytes(file, index->packed, index->packed_bytes);
    if (r == 0) r = write_bytes(file, index->out, index->out_bytes);
    if (r == 0 && index->format == BAM_INDEX_CSI)
        r = write_bytes(file, bgzf_end_block, sizeof bgzf_end_block);
    int error = errno;
    if (hclose(file) < 0 && r == 0) {
        error = errno;
        r = -1;
    }
    if (r < 0) output_path_drop(path);
    errno = error;
    return r;
}

int bam_index_write(struct bam_index *index, const struct output_path *path)
{
    if (end_file(index) < 0) {
        diag_no_memory();
        return -1;
    }
    errno = 0;
    if (write_file(index, path) == 0) return output_path_commit(path);
    disk_space_print_output_error(path->name, errno, path->final,
                                  index->packed_bytes + index->out_bytes);
    return -1;
}
