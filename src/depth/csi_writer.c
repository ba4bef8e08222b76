/*
 * csi_writer.c -- see csi_writer.h.
 *
 * When a reference is complete, its chunks are sorted by bin and written, so memory does not grow
 * with the number of references.
 */
#include "depth/csi_writer.h"

#include "bam/bgzf_block.h"
#include "util/byte_order.h"
#include "util/diag.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t untouched = UINT64_MAX;           /* a window without lines */

static void put32(struct csi_writer *csi, uint64_t value)
{
    (void)put_u32(byte_buffer_append(&csi->out, 4), (uint32_t)value);
}

static void put64(struct csi_writer *csi, uint64_t value)
{
    (void)put_u64(byte_buffer_append(&csi->out, 8), value);
}

/* Chooses at most 2^20 windows, and levels of bins for the longest reference. */
static void choose_shape(struct csi_writer *csi, const sam_hdr_t *header)
{
    int64_t longest = 0;
    for (int32_t i = 0; i < csi->n_refs; i++) {
        int64_t n_bases = (int64_t)sam_hdr_tid2len(header, i);
        if (n_bases > longest) longest = n_bases;
    }
    csi->min_shift = 14;
    while (longest >> csi->min_shift > 1 << 20) csi->min_shift++;
    while (longest >> (csi->min_shift + 3 * csi->depth) > 0) csi->depth++;
}

/* The columns of BED, as tabix writes them, and the names of the references. */
static void put_columns(struct csi_writer *csi, const sam_hdr_t *header)
{
    enum { ZERO_BASED = 0x10000, N_NUMBERS = 7 };
    size_t names_bytes = 0;
    for (int32_t i = 0; i < csi->n_refs; i++)
        names_bytes += strlen(sam_hdr_tid2name(header, i)) + 1;
    put32(csi, 4 * N_NUMBERS + names_bytes);
    put32(csi, ZERO_BASED);
    for (uint32_t column = 1; column <= 3; column++) put32(csi, column);
    put32(csi, '#');
    put32(csi, 0);              /* lines to skip */
    put32(csi, names_bytes);
    for (int32_t i = 0; i < csi->n_refs; i++) {
        const char *name = sam_hdr_tid2name(header, i);
        byte_buffer_copy(&csi->out, name, strlen(name) + 1);
    }
}

void csi_writer_init(struct csi_writer *csi, const sam_hdr_t *header)
{
    csi->n_refs = sam_hdr_nref(header);
    choose_shape(csi, header);
    byte_buffer_copy(&csi->out, "CSI\1", 4);
    put32(csi, (uint32_t)csi->min_shift);
    put32(csi, (uint32_t)csi->depth);
    put_columns(csi, header);
    put32(csi, (uint32_t)csi->n_refs);
}

/* Compresses bytes of the file: all, or only those that fill whole blocks. */
static void pack(struct csi_writer *csi, bool all)
{
    static const struct bgzf_method method = {.level = -1, .is_text = true};
    struct byte_buffer *out = &csi->out;
    size_t n_left = all ? 0 : out->n_bytes % BGZF_PAYLOAD_BYTES, n = out->n_bytes - n_left;
    if (n == 0) return;
    csi->failed |= bgzf_append(&csi->packed, method, out->bytes, n) < 0;
    memmove(out->bytes, out->bytes + n, n_left);
    out->n_bytes = n_left;
}

static int compare_chunks(const void *a, const void *b)
{
    const struct csi_chunk *x = a, *y = b;
    if (x->bin != y->bin) return x->bin < y->bin ? -1 : 1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Joins the chunks of a bin that meet in a block. Returns their number. */
static size_t join_chunks(struct csi_chunk *chunks, size_t n)
{
    size_t n_joined = 0;
    for (size_t i = 0; i < n; i++) {
        struct csi_chunk *last = n_joined > 0 ? &chunks[n_joined - 1] : NULL;
        if (last && last->bin == chunks[i].bin && last->end >> 16 >= chunks[i].begin >> 16) {
            if (chunks[i].end > last->end) last->end = chunks[i].end;
        } else {
            chunks[n_joined++] = chunks[i];
        }
    }
    return n_joined;
}

static void put_bin(struct csi_writer *csi, const struct csi_chunk *chunks, size_t n)
{
    put32(csi, chunks->bin);
    put64(csi, csi->windows[hts_bin_bot((int)chunks->bin, csi->depth)]);
    put32(csi, n);
    for (size_t i = 0; i < n; i++) {
        put64(csi, chunks[i].begin);
        put64(csi, chunks[i].end);
    }
}

/* Writes the current reference, and goes on to the next one. */
static void end_ref(struct csi_writer *csi)
{
    if (csi->n_chunks > 1)
        qsort(csi->chunks, csi->n_chunks, sizeof *csi->chunks, compare_chunks);
    size_t n = join_chunks(csi->chunks, csi->n_chunks), n_bins = 0;
    for (size_t i = csi->n_windows; i-- > 1;)
        if (csi->windows[i - 1] == untouched) csi->windows[i - 1] = csi->windows[i];
    for (size_t i = 0; i < n; i++) n_bins += i == 0 || csi->chunks[i].bin != csi->chunks[i - 1].bin;
    put32(csi, n_bins);
    for (size_t i = 0, to; i < n; i = to) {
        for (to = i + 1; to < n && csi->chunks[to].bin == csi->chunks[i].bin;) to++;
        put_bin(csi, csi->chunks + i, to - i);
    }
    csi->n_chunks = csi->n_windows = 0;
    csi->tid++;
    pack(csi, false);
}

static void add_windows(struct csi_writer *csi, size_t first, size_t last, uint64_t offset)
{
    size_t n = csi->n_windows;
    if (last < n) return;
    xgrow(&csi->windows, &csi->windows_room, last + 1, last, sizeof *csi->windows);
    for (; n < first; n++) csi->windows[n] = untouched;
    for (; n <= last; n++) csi->windows[n] = offset;
    csi->n_windows = n;
}

void csi_writer_add(struct csi_writer *csi, int32_t tid, int64_t begin, int64_t end,
                    const uint64_t offsets[2])
{
    while (csi->tid < tid) end_ref(csi);
    /* Lines beyond the bins, as of a region beyond the end of its reference, are in the last bin.
       */
    const int64_t most = INT64_C(1) << (csi->min_shift + 3 * csi->depth);
    if (begin >= most) begin = most - 1;
    if (end > most) end = most;
    if (end <= begin) end = begin + 1;
    uint32_t bin = (uint32_t)hts_reg2bin(begin, end, csi->min_shift, csi->depth);
    add_windows(csi, (size_t)(begin >> csi->min_shift), (size_t)((end - 1) >> csi->min_shift),
                offsets[0]);
    struct csi_chunk *last = csi->n_chunks > 0 ? &csi->chunks[csi->n_chunks - 1] : NULL;
    if (last && last->bin == bin) {
        last->end = offsets[1];
        return;
    }
    xgrow(&csi->chunks, &csi->chunks_room, csi->n_chunks + 1, csi->n_chunks, sizeof *csi->chunks);
    csi->chunks[csi->n_chunks++] = (struct csi_chunk){bin, offsets[0], offsets[1]};
}

int csi_writer_print(struct csi_writer *csi, FILE *to)
{
    while (csi->tid < csi->n_refs) end_ref(csi);
    put64(csi, 0);              /* lines without a reference */
    pack(csi, true);
    byte_buffer_copy(&csi->packed, bgzf_end_block, BGZF_END_BYTES);
    if (csi->failed) diag_error("a block of the index cannot be compressed; please report this");
    (void)fwrite(csi->packed.bytes, 1, csi->packed.n_bytes, to);
    return csi->failed ? -1 : 0;
}

void csi_writer_release(struct csi_writer *csi)
{
    free(csi->chunks);
    free(csi->windows);
    free(csi->out.bytes);
    free(csi->packed.bytes);
}
