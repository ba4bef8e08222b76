/*
 * bam_index_part.c -- see bam_index_part.h.
 *
 * Records are in coordinate order, and only one bin of a level contains a position. So a record
 * belongs either to the last bin of its level or to a new bin further right. At the end, htslib
 * joins two chunks of a bin if the second starts in the BGZF block in which the first ends. Here
 * they are joined at once, which keeps fewer chunks where long and short alignments mix. Every
 * window from the start of a record up to the furthest end so far is covered by an earlier record:
 * only the windows after that are new.
 */
#include "output/bam_index_part.h"

#include "bam/bam_long.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>

static const uint32_t no_bin = UINT32_MAX;
static const size_t no_chunk = SIZE_MAX;

void bam_index_part_init(struct bam_index_part *part, const struct bam_index_shape *shape)
{
    *part = (struct bam_index_part){.shape = *shape, .tid = -1, .open_chunk = no_chunk};
}

void bam_index_part_release(struct bam_index_part *part)
{
    free(part->refs);
    free(part->chunks);
    free(part->windows);
    *part = (struct bam_index_part){0};
}

/* The position where the alignment ends on its reference. */
static int64_t alignment_end(const uint8_t *rec)
{
    int64_t pos = bam_record_true_pos(rec);
    if (bam_record_flag(rec) & BAM_FUNMAP) return pos + 1;
    /* The placeholder of a long CIGAR has the same reference length. */
    const struct bam_cigar field = {bam_record_ops(rec), bam_record_n_ops(rec)};
    int64_t length = bam_cigar_reference_bases(field);
    return pos + (length > 0 ? length : 1);
}

/* The smallest bin that contains [begin, end), and its level. */
static uint32_t choose_bin(const struct bam_index_shape *shape, int64_t begin, int64_t end,
                           int *level)
{
    int64_t first = begin >> shape->min_shift, last = (end - 1) >> shape->min_shift;
    int at = shape->depth;
    for (; first != last; first >>= 3, last >>= 3) at--;
    *level = at;
    return bam_index_first_bin(at) + (uint32_t)first;
}

static void close_chunk(struct bam_index_part *part, uint64_t end)
{
    if (part->open_chunk != no_chunk) part->chunks[part->open_chunk].end = end;
    part->open_chunk = no_chunk;
}

static void begin_ref(struct bam_index_part *part, int32_t tid, uint64_t begin)
{
    close_chunk(part, begin);
    xgrow(&part->refs, &part->refs_room, part->n_refs + 1, part->n_refs, sizeof *part->refs);
    part->refs[part->n_refs++] = (struct bam_index_ref){.tid = tid, .begin = begin};
    part->tid = tid;
    part->bin = no_bin;
    part->last_window = -1;
    for (int i = 0; i <= part->shape.depth; i++) part->level_chunk[i] = no_chunk;
}

/* For a record whose bin is not that of the record before: continues the last chunk of its bin,
   or begins a new chunk. */
static void begin_chunk(struct bam_index_part *part, uint32_t bin, int level, uint64_t begin)
{
    close_chunk(part, begin);
    size_t at = part->level_chunk[level];
    if (at == no_chunk || part->chunks[at].bin != bin ||
        part->chunks[at].end >> 16 < begin >> 16) {
        at = part->n_chunks;
        xgrow(&part->chunks, &part->chunks_room, at + 1, at, sizeof *part->chunks);
        part->chunks[part->n_chunks++] = (struct bam_index_chunk){begin, begin, bin, level};
        part->refs[part->n_refs - 1].n_chunks++;
        part->level_chunk[level] = at;
    }
    part->open_chunk = at;
    part->bin = bin;
}

static void add_windows(struct bam_index_part *part, int64_t first, int64_t last, uint64_t begin)
{
    xgrow(&part->windows, &part->windows_room, part->n_windows + 1, part->n_windows,
          sizeof *part->windows);
    if (first <= part->last_window) first = part->last_window + 1;
    part->windows[part->n_windows++] =
        (struct bam_index_windows){begin, (uint32_t)first, (uint32_t)last};
    part->refs[part->n_refs - 1].n_windows++;
    part->last_window = last;
}

static int too_far(const uint8_t *rec, int64_t end, int64_t limit)
{
    diag_error("cannot index read '%s': it ends at %" PRId64 ", the index at %" PRId64
               "; correct LN, or write no index: -O sam has none",
               (const char *)bam_record_name(rec), end, limit);
    return -1;
}

int bam_index_part_add(struct bam_index_part *part, const uint8_t *rec, uint64_t begin)
{
    int32_t tid = bam_record_tid(rec);
    if (tid < 0) {
        close_chunk(part, begin);
        if (part->n_unplaced++ == 0) part->unplaced_begin = begin;
        part->tid = -1;
        return 0;
    }
    if (tid != part->tid) begin_ref(part, tid, begin);
    int64_t from = bam_record_true_pos(rec), to = alignment_end(rec);
    int64_t limit = INT64_C(1) << (part->shape.min_shift + 3 * part->shape.depth);
    if (to > limit) return too_far(rec, to, limit);
    if (from < 0) from = 0;
    if (to < 1) to = 1;
    struct bam_index_ref *ref = &part->refs[part->n_refs - 1];
    if (bam_record_flag(rec) & BAM_FUNMAP)
        ref->n_unmapped++;
    else
        ref->n_mapped++;
    int64_t last_window = (to - 1) >> part->shape.min_shift;
    if (last_window > part->last_window)
        add_windows(part, from >> part->shape.min_shift, last_window, begin);
    int level;
    uint32_t bin = choose_bin(&part->shape, from, to, &level);
    if (bin != part->bin) begin_chunk(part, bin, level, begin);
    return 0;
}

void bam_index_part_end(struct bam_index_part *part, uint64_t end)
{
    close_chunk(part, end);
    part->end = end;
}
