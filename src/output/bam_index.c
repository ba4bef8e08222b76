/*
 * bam_index.c -- see bam_index.h. index_bins.c makes the bytes about one reference; this file puts
 * them together into the index file.
 */
#include "output/bam_index.h"

#include "bam/bgzf_block.h"
#include "machine/disk_space.h"
#include "output/index_bins.h"
#include "util/byte_order.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct bam_index {
    /* fixed after bam_index_create */
    enum bam_index_format format;
    struct bam_index_shape shape;
    int32_t n_refs;
    /* the index file so far: its head, and the references that are finished. In a CSI, bytes that
       fill a BGZF block are compressed and moved to `packed`. */
    struct index_bytes out, packed;
    struct bgzf_coder coder;
    int32_t n_finished;
    uint64_t n_unplaced;
    uint64_t end;                       /* of the last segment */
    /* the current reference, number n_finished */
    bool ref_open;
    struct index_bins *bins;
};

/* ---- shape ---- */

static int64_t shape_limit(const struct bam_index_shape *shape)
{
    return INT64_C(1) << (shape->min_shift + 3 * shape->depth);
}

/* Returns a shape with enough levels for the longest reference plus the 256 bases that htslib
   adds. */
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

static void put_file_head(struct bam_index *index)
{
    uint8_t *at = index_bytes_reserve(&index->out, 20);
    memcpy(at, index->format == BAM_INDEX_BAI ? "BAI\1" : "CSI\1", 4);
    at += 4;
    if (index->format == BAM_INDEX_CSI) {
        at = put_u32(at, (uint32_t)index->shape.min_shift);
        at = put_u32(at, (uint32_t)index->shape.depth);
        at = put_u32(at, 0);            /* number of bytes of further data */
    }
    at = put_u32(at, (uint32_t)index->n_refs);
    index->out.n = (size_t)(at - index->out.bytes);
}

/* Writes the references before number up_to that have no records: they have no bins and, in a BAI,
   no windows. */
static void put_empty_refs(struct bam_index *index, int32_t up_to)
{
    size_t n = (size_t)(up_to - index->n_finished) * (index->format == BAM_INDEX_BAI ? 8 : 4);
    if (n == 0) return;
    memset(index_bytes_reserve(&index->out, n), 0, n);
    index->out.n += n;
    index->n_finished = up_to;
}

/* Compresses bytes of a CSI into BGZF blocks: all bytes, or only those that fill whole blocks.
   Returns 0, or -1 after a message. */
static int pack_blocks(struct bam_index *index, bool all)
{
    static const struct bgzf_method method = {.level = -1, .is_text = true};
    struct index_bytes *out = &index->out, *packed = &index->packed;
    size_t done = 0, left;
    while ((left = out->n - done) >= (all ? 1 : BGZF_PAYLOAD_BYTES)) {
        size_t n = left < BGZF_PAYLOAD_BYTES ? left : BGZF_PAYLOAD_BYTES;
        uint8_t *to = index_bytes_reserve(packed, BGZF_MAX_BYTES);
        ssize_t size = bgzf_block_deflate(&index->coder, method, out->bytes + done, n, to);
        if (size < 0) {
            diag_error("a block of the index cannot be compressed; please report this");
            return -1;
        }
        packed->n += (size_t)size;
        done += n;
    }
    if (done > 0) memmove(out->bytes, out->bytes + done, left);
    out->n = left;
    return 0;
}

/* Ends the current reference, if there is one, at `end` in the file. Returns 0, or -1 after a
   message. */
static int finish_ref(struct bam_index *index, uint64_t end)
{
    if (!index->ref_open) return 0;
    index->ref_open = false;
    index_bins_finish(index->bins, end, &index->out);
    index->n_finished++;
    return index->format == BAM_INDEX_CSI ? pack_blocks(index, false) : 0;
}

/* Returns what finish_ref returns. */
static int begin_ref(struct bam_index *index, int32_t tid, uint64_t begin)
{
    if (finish_ref(index, begin) < 0) return -1;
    put_empty_refs(index, tid);
    index->ref_open = true;
    index_bins_begin(index->bins, begin);
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
    index->bins = index_bins_create(&index->shape, format == BAM_INDEX_CSI);
    put_file_head(index);
    return index;
}

void bam_index_destroy(struct bam_index *index)
{
    if (!index) return;
    bgzf_coder_release(&index->coder);
    index_bins_destroy(index->bins);
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
        index_bins_add_counts(index->bins, ref->n_mapped, ref->n_unmapped);
        for (size_t k = 0; k < ref->n_chunks; k++)
            index_bins_add_chunk(index->bins, chunk++, base);
        for (size_t k = 0; k < ref->n_windows; k++)
            index_bins_add_windows(index->bins, windows++, base);
    }
    if (part->n_unplaced > 0 && finish_ref(index, base + part->unplaced_begin) < 0) return -1;
    index->n_unplaced += part->n_unplaced;
    index->end = base + part->end;
    return 0;
}

/* ---- writing ---- */

static int end_file(struct bam_index *index)
{
    if (finish_ref(index, index->end) < 0) return -1;
    put_empty_refs(index, index->n_refs);
    (void)put_u64(index_bytes_reserve(&index->out, 8), index->n_unplaced);
    index->out.n += 8;
    return index->format == BAM_INDEX_CSI ? pack_blocks(index, true) : 0;
}

static int write_bytes(hFILE *file, const uint8_t *bytes, size_t n)
{
    return n == 0 || hwrite(file, bytes, n) == (ssize_t)n ? 0 : -1;
}

/* Returns 0, or -1 with errno set. */
static int write_file(const struct bam_index *index, struct output_path *path)
{
    hFILE *file = output_path_open(path);
    if (!file) return -1;
    int r = write_bytes(file, index->packed.bytes, index->packed.n);
    if (r == 0) r = write_bytes(file, index->out.bytes, index->out.n);
    if (r == 0 && index->format == BAM_INDEX_CSI)
        r = write_bytes(file, bgzf_end_block, BGZF_END_BYTES);
    r = output_path_end(path, file, r);
    int error = errno;
    if (r < 0) output_path_drop(path);
    errno = error;
    return r;
}

int bam_index_write(struct bam_index *index, struct output_path *path)
{
    if (end_file(index) < 0) return -1;
    errno = 0;
    if (write_file(index, path) == 0) return output_path_commit(path);
    disk_space_print_output_error(path->name, errno, path->final,
                                  index->packed.n + index->out.n);
    return -1;
}
