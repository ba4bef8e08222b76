/*
 * bam_index_reader.c -- see bam_index_reader.h. The SAM specification (section 5.2) describes BAI,
 * and the CSI specification CSI.
 *
 * The lists of a part are in file order. An index file lists chunks by bin; here they are sorted by
 * start. BAI has an offset for each window. CSI has one for each bin, that of the bin's first
 * window. Offsets ascend, so a window without one gets that of the window before, which is never
 * too large. CSI does not record how far reads extend, except that they end within their bins. Up
 * to there windows get the last offset; otherwise they would get one of the next file, whose reads
 * start further right.
 */
#include "output/bam_index_reader.h"

#include "output/index_names.h"
#include "util/byte_buffer.h"
#include "util/byte_order.h"

#include <htslib/bgzf.h>
#include <htslib/hts_log.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The unread bytes; `failed`: a read went beyond the end. */
struct cursor {
    const uint8_t *at, *end;
    bool failed;
};

static const uint8_t *take(struct cursor *from, uint64_t n)
{
    static const uint8_t zeros[16];
    if (from->failed || n > (uint64_t)(from->end - from->at)) {
        from->failed = true;
        return zeros;
    }
    from->at += n;
    return from->at - n;
}

static uint32_t take_u32(struct cursor *from)
{
    return get_u32(take(from, 4));
}

static uint64_t take_u64(struct cursor *from)
{
    return get_u64(take(from, 8));
}

/* Reads a whole file, compressed or not. Returns 0 or -1. */
static int read_file(const char *path, struct byte_buffer *bytes)
{
    enum { STEP = 1 << 16 };
    enum htsLogLevel level = hts_get_log_level();
    ssize_t n = -1;
    hts_set_log_level(HTS_LOG_OFF);     /* a damaged index is ignored, not an error */
    BGZF *file = bgzf_open(path, "r");
    if (file) {
        do {
            n = bgzf_read(file, byte_buffer_reserve(bytes, STEP), STEP);
            if (n > 0) bytes->n_bytes += (size_t)n;
        } while (n > 0);
        if (bgzf_close(file) < 0) n = -1;
    }
    hts_set_log_level(level);
    return n < 0 ? -1 : 0;
}

/* ---- one reference ---- */

static int compare_chunks(const void *a, const void *b)
{
    const struct bam_index_chunk *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->level - y->level;
}

static int compare_windows(const void *a, const void *b)
{
    const struct bam_index_windows *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

static int level_of(const struct bam_index_shape *shape, uint32_t bin)
{
    int level = shape->depth;
    while (level > 0 && bin < bam_index_first_bin(level)) level--;
    return level;
}

static void add_window(struct bam_index_part *part, struct bam_index_ref *ref, uint64_t begin,
                       uint64_t first)
{
    xgrow(&part->windows, &part->windows_room, part->n_windows + 1, part->n_windows,
          sizeof *part->windows);
    part->windows[part->n_windows++] =
        (struct bam_index_windows){begin, (uint32_t)first, (uint32_t)first};
    ref->n_windows++;
}

/* Reads the pseudo-bin: the start and end of the reference, and its counts. */
static bool take_counts(struct cursor *from, uint32_t n_chunks, struct bam_index_ref *ref,
                        uint64_t *end)
{
    if (n_chunks != 2) return false;
    ref->begin = take_u64(from);
    *end = take_u64(from);
    ref->n_mapped = take_u64(from);
    ref->n_unmapped = take_u64(from);
    return true;
}

static void take_chunks(struct cursor *from, uint32_t bin, uint32_t n_chunks,
                        struct bam_index_part *part, struct bam_index_ref *ref)
{
    for (uint32_t i = 0; i < n_chunks && !from->failed; i++) {
        uint64_t begin = take_u64(from), end = take_u64(from);
        xgrow(&part->chunks, &part->chunks_room, part->n_chunks + 1, part->n_chunks,
              sizeof *part->chunks);
        part->chunks[part->n_chunks++] =
            (struct bam_index_chunk){begin, end, bin, level_of(&part->shape, bin)};
        ref->n_chunks++;
    }
}

/* Reads the windows of a BAI. 0: no offset. */
static void take_windows(struct cursor *from, struct bam_index_part *part,
                         struct bam_index_ref *ref)
{
    uint32_t n = take_u32(from);
    for (uint32_t i = 0; i < n && !from->failed; i++) {
        uint64_t begin = take_u64(from);
        if (begin > 0) add_window(part, ref, begin, i);
    }
}

/* Extends each window to the next one with an offset. Several at the start of a list may have the
   same first window and offset. The last one extends to `reach`, if that is further. */
static void join_windows(struct bam_index_part *part, struct bam_index_ref *ref, uint32_t reach)
{
    struct bam_index_windows *list = part->windows + part->n_windows - ref->n_windows;
    size_t n = 0;
    if (ref->n_windows > 1) qsort(list, ref->n_windows, sizeof *list, compare_windows);
    for (size_t i = 0; i < ref->n_windows; i++) {
        if (n > 0 && list[i].first == list[n - 1].first) continue;
        if (n > 0) list[n - 1].last = list[i].first - 1;
        list[n++] = list[i];
    }
    if (n > 0 && list[n - 1].last < reach) list[n - 1].last = reach;
    part->n_windows -= ref->n_windows - n;
    ref->n_windows = n;
}

/* The last window that records of the last added reference may overlap. */
static uint32_t find_reach(const struct bam_index_part *part, const struct bam_index_ref *ref)
{
    uint32_t reach = 0;
    for (size_t i = part->n_chunks - ref->n_chunks; i < part->n_chunks; i++) {
        const struct bam_index_chunk *chunk = &part->chunks[i];
        uint32_t last =
            (uint32_t)bam_index_end_window(&part->shape, chunk->bin, chunk->level) - 1;
        if (last > reach) reach = last;
    }
    return reach;
}

/* Returns false if the index is damaged, or lacks the counts of a reference with records. Some
   programs write a pseudo-bin for references without records. */
static bool take_ref(struct cursor *from, int32_t tid, bool is_csi, struct bam_index_part *part)
{
    struct bam_index_ref ref = {.tid = tid};
    uint32_t pseudo_bin = bam_index_pseudo_bin(&part->shape), n_bins = take_u32(from);
    bool has_counts = false;
    uint64_t end = 0;
    for (uint32_t i = 0; i < n_bins && !from->failed; i++) {
        uint32_t bin = take_u32(from);
        uint64_t loffset = is_csi ? take_u64(from) : 0;
        uint32_t n_chunks = take_u32(from);
        if (bin == pseudo_bin) {
            has_counts = take_counts(from, n_chunks, &ref, &end);
            continue;
        }
        if (bin >= pseudo_bin - 1) return false;
        take_chunks(from, bin, n_chunks, part, &ref);
        uint64_t first = bam_index_first_window(&part->shape, bin, level_of(&part->shape, bin));
        if (loffset > 0) add_window(part, &ref, loffset, first);
    }
    if (!is_csi) take_windows(from, part, &ref);
    if (from->failed || (n_bins > 0 && !has_counts)) return false;
    bool has_records = ref.n_mapped + ref.n_unmapped > 0;
    if (has_records != (ref.n_chunks > 0) || has_records != (ref.n_windows > 0)) return false;
    if (!has_records) return true;
    part->unplaced_begin = end;
    if (ref.n_chunks > 1)
        qsort(part->chunks + part->n_chunks - ref.n_chunks, ref.n_chunks, sizeof *part->chunks,
              compare_chunks);
    join_windows(part, &ref, is_csi ? find_reach(part, &ref) : 0);
    xgrow(&part->refs, &part->refs_room, part->n_refs + 1, part->n_refs, sizeof *part->refs);
    part->refs[part->n_refs++] = ref;
    return true;
}

/* ---- the file ---- */

/* Reads the head. Returns the number of references, or -1. */
static int32_t take_head(struct cursor *from, bool *is_csi, struct bam_index_shape *shape)
{
    const uint8_t *magic = take(from, 4);
    *is_csi = memcmp(magic, "CSI\1", 4) == 0;
    *shape = (struct bam_index_shape){BAM_INDEX_BAI_MIN_SHIFT, BAM_INDEX_BAI_DEPTH};
    if (*is_csi) {
        uint32_t min_shift = take_u32(from), depth = take_u32(from);
        (void)take(from, take_u32(from));
        if (min_shift > 62 || depth > BAM_INDEX_MAX_DEPTH) return -1;
        *shape = (struct bam_index_shape){(int)min_shift, (int)depth};
    } else if (memcmp(magic, "BAI\1", 4) != 0) {
        return -1;
    }
    uint32_t n_refs = take_u32(from);
    return from->failed || n_refs > INT32_MAX ? -1 : (int32_t)n_refs;
}

/* True if chunks and windows are in file order, as in a sorted file. */
static bool is_in_order(const struct bam_index_part *part)
{
    for (size_t i = 1; i < part->n_chunks; i++)
        if (part->chunks[i].begin < part->chunks[i - 1].begin) return false;
    for (size_t i = 1; i < part->n_windows; i++)
        if (part->windows[i].begin < part->windows[i - 1].begin) return false;
    return true;
}

static bool take_index(struct cursor *from, struct bam_read_index *index)
{
    struct bam_index_part *part = &index->part;
    struct bam_index_shape shape;
    bool is_csi;
    index->n_refs = take_head(from, &is_csi, &shape);
    if (index->n_refs < 0) return false;
    bam_index_part_init(part, &shape);
    for (int32_t i = 0; i < index->n_refs; i++)
        if (!take_ref(from, i, is_csi, part)) return false;
    if (from->at == from->end) return false;    /* no count of unplaced reads */
    part->n_unplaced = take_u64(from);
    index->n_records = part->n_unplaced;
    for (size_t i = 0; i < part->n_refs; i++)
        index->n_records += part->refs[i].n_mapped + part->refs[i].n_unmapped;
    if (part->n_chunks > 0) index->last_begin = part->chunks[part->n_chunks - 1].begin;
    if (part->n_windows > 0 && part->windows[part->n_windows - 1].begin > index->last_begin)
        index->last_begin = part->windows[part->n_windows - 1].begin;
    return !from->failed && from->at == from->end && is_in_order(part);
}

/* Reads the index at `name`. Returns 1, 0 if there is none, or -1. */
static int read_index(const char *name, const struct stat *bam, struct bam_read_index *index)
{
    struct stat st;
    struct byte_buffer bytes = {0};
    if (stat(name, &st) < 0 || !S_ISREG(st.st_mode)) return 0;
    if (st.st_mtim.tv_sec < bam->st_mtim.tv_sec) return -1;
    bool is_sound = read_file(name, &bytes) == 0;
    struct cursor from = {bytes.bytes, bytes.bytes + bytes.n_bytes, false};
    is_sound = is_sound && take_index(&from, index);
    free(bytes.bytes);
    if (is_sound) return 1;
    bam_index_part_release(&index->part);
    return -1;
}

int bam_index_read(const char *path, struct bam_read_index *index)
{
    struct stat bam;
    int r = 0;
    *index = (struct bam_read_index){0};
    if (stat(path, &bam) < 0) return -1;
    char **names = index_names_of(path, false);
    for (char **name = names; *name && r == 0; name++) r = read_index(*name, &bam, index);
    index_names_free(names);
    return r > 0 ? 0 : -1;
}
