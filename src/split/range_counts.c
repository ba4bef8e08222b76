/* range_counts.c -- see range_counts.h. */
#include "split/range_counts.h"

#include "bam/bam_long.h"
#include "util/xalloc.h"

#include <stdatomic.h>
#include <stdlib.h>

struct range_counts {
    struct record_observer base;        /* must be the first member */
    int64_t window_bases;
    int32_t n_refs;
    size_t *first_window;       /* of each reference, and the total at the end */
    _Atomic uint64_t *bytes;    /* of records that begin in each window */
};

static int64_t windows_of(const struct range_counts *counts, int64_t n_bases)
{
    int64_t n = n_bases / counts->window_bases + (n_bases % counts->window_bases > 0);
    return n > 0 ? n : 1;
}

static size_t window_of(const struct range_counts *counts, int32_t tid, int64_t pos)
{
    size_t first = counts->first_window[tid], last = counts->first_window[tid + 1] - 1;
    size_t window = first + (size_t)((pos > 0 ? pos : 0) / counts->window_bases);
    return window < last ? window : last;
}

static int add_records(struct record_observer *observer, void *part,
                       const struct observed_records *observed)
{
    struct range_counts *counts = (struct range_counts *)observer;
    struct bam_records records = observed->all;
    size_t window = 0, n_bytes = 0;
    (void)part;
    for (const uint8_t *rec; (rec = bam_records_next(&records));) {
        int32_t tid = bam_record_tid(rec);
        if (tid < 0) continue;
        size_t now = window_of(counts, tid, bam_record_true_pos(rec));
        if (now != window && n_bytes > 0) {
            (void)atomic_fetch_add_explicit(&counts->bytes[window], n_bytes, memory_order_relaxed);
            n_bytes = 0;
        }
        window = now;
        n_bytes += bam_record_bytes(rec);
    }
    (void)atomic_fetch_add_explicit(&counts->bytes[window], n_bytes, memory_order_relaxed);
    return 0;
}

static void destroy(struct record_observer *observer)
{
    struct range_counts *counts = (struct range_counts *)observer;
    free(counts->first_window);
    free(counts->bytes);
    free(counts);
}

struct range_counts *range_counts_create(const sam_hdr_t *header)
{
    static const struct observer_kind kind = {.add_records = add_records, .destroy = destroy};
    struct range_counts *counts = xcalloc(1, sizeof *counts);
    double n_bases = 0;
    counts->base.kind = &kind;
    counts->n_refs = sam_hdr_nref(header);
    for (int32_t tid = 0; tid < counts->n_refs; tid++)
        n_bases += (double)sam_hdr_tid2len(header, tid);
    counts->window_bases = (int64_t)(n_bases / RANGE_COUNTS_WINDOWS) + 1;
    counts->first_window = xcalloc((size_t)counts->n_refs + 1, sizeof *counts->first_window);
    for (int32_t tid = 0; tid < counts->n_refs; tid++)
        counts->first_window[tid + 1] =
            counts->first_window[tid] + (size_t)windows_of(counts, sam_hdr_tid2len(header, tid));
    counts->bytes = xcalloc(counts->first_window[counts->n_refs] + 1, sizeof *counts->bytes);
    return counts;
}

struct record_observer *range_counts_observer(struct range_counts *counts)
{
    return &counts->base;
}

void range_counts_divide(const struct range_counts *counts, unsigned n,
                         struct range_place *begins)
{
    uint64_t all = 0, before = 0;
    for (size_t i = 0; i < counts->first_window[counts->n_refs]; i++)
        all += atomic_load_explicit(&counts->bytes[i], memory_order_relaxed);
    unsigned next = 0;
    for (int32_t tid = 0; tid < counts->n_refs; tid++) {
        size_t first = counts->first_window[tid], end = counts->first_window[tid + 1];
        for (size_t i = first; i < end; i++) {
            /* A window belongs to the range that contains the middle of its bytes. */
            uint64_t here = atomic_load_explicit(&counts->bytes[i], memory_order_relaxed);
            double middle = (double)before + (double)here / 2;
            for (; next < n && (next == 0 || middle > (double)all / n * next); next++)
                begins[next] = (struct range_place){tid, (int64_t)(i - first) *
                                                             counts->window_bases};
            before += here;
        }
    }
    for (; next < n; next++) begins[next] = (struct range_place){counts->n_refs, 0};
}
