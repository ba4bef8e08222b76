/*
 * idxstats.c -- counts mapped and unmapped records of each reference, and prints the counts as
 * `samtools idxstats` 1.24 does for an indexed BAM file: idxstats_kind (stats_kinds.h).
 *
 * All threads share one array of counts, 16 bytes for each reference. Each part has a small cache
 * of counts. It adds the count of a reference to the array when another reference needs the place,
 * and at the end. This causes little contention: in coordinate order a worker gets the same
 * reference many times in a row; in other orders either the references are few and stay in the
 * cache, or two workers rarely get the same one at the same time.
 */
#include "stats/stats_kinds.h"

#include "util/xalloc.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { N_PLACES = 256 };        /* 4 KiB */

struct observer {
    struct record_observer base;        /* must be the first member */
    const sam_hdr_t *header;
    int32_t n_refs;
    _Atomic uint64_t (*n)[2];   /* mapped, unmapped; [0]: without a reference, [tid + 1]: tid */
};

struct place {
    int32_t tid;
    uint32_t n[2];              /* mapped, unmapped */
};

static void *begin(const struct record_observer *observer)
{
    (void)observer;
    return xcalloc(N_PLACES, sizeof(struct place));
}

/* Adds the counts of a place to the shared ones and empties it. */
static void flush(struct record_observer *observer, struct place *place)
{
    struct observer *stats = (struct observer *)observer;
    for (int i = 0; i < 2; i++) {
        if (place->n[i] > 0)
            atomic_fetch_add_explicit(&stats->n[place->tid + 1][i], place->n[i],
                                      memory_order_relaxed);
        place->n[i] = 0;
    }
}

static int add_records(struct record_observer *observer, void *part,
                       const struct observed_records *observed)
{
    struct place *places = part;
    struct bam_records records = observed->all;
    for (const uint8_t *rec; (rec = bam_records_next(&records));) {
        int32_t tid = bam_record_tid(rec);
        struct place *place = &places[(uint32_t)tid % N_PLACES];
        if (place->tid != tid) {
            flush(observer, place);
            place->tid = tid;
        }
        place->n[(bam_record_flag(rec) & BAM_FUNMAP) != 0]++;
    }
    return 0;
}

static void end(struct record_observer *observer, void *part)
{
    struct place *places = part;
    for (int i = 0; i < N_PLACES; i++) flush(observer, &places[i]);
}

static int combine(struct record_observer *observer, void *part)
{
    (void)observer;             /* end has added it already */
    free(part);
    return 0;
}

static uint64_t count_of(const struct observer *stats, int32_t tid, int is_unmapped)
{
    return atomic_load_explicit(&stats->n[tid + 1][is_unmapped], memory_order_relaxed);
}

static int print(const struct record_observer *observer, unsigned file, FILE *to)
{
    (void)file;
    const struct observer *stats = (const struct observer *)observer;
    for (int32_t tid = 0; tid < stats->n_refs; tid++)
        (void)fprintf(to, "%s\t%" PRId64 "\t%" PRIu64 "\t%" PRIu64 "\n",
                      sam_hdr_tid2name(stats->header, tid),
                      (int64_t)sam_hdr_tid2len(stats->header, tid), count_of(stats, tid, 0),
                      count_of(stats, tid, 1));
    /* As in an index, a record without a reference counts as unmapped, whatever its flags are. */
    (void)fprintf(to, "*\t0\t0\t%" PRIu64 "\n", count_of(stats, -1, 0) + count_of(stats, -1, 1));
    return 0;
}

static void destroy(struct record_observer *observer)
{
    free(((struct observer *)observer)->n);
    free(observer);
}

static struct record_observer *observe(const struct count_setup *setup)
{
    static const struct observer_kind kind = {
        .begin = begin, .add_records = add_records, .end = end, .combine = combine,
        .discard = free, .print = print, .destroy = destroy};
    struct observer *stats = xcalloc(1, sizeof *stats);
    stats->base.kind = &kind;
    stats->header = setup->header;
    stats->n_refs = sam_hdr_nref(setup->header);
    stats->n = xcalloc((size_t)stats->n_refs + 1, sizeof *stats->n);
    return &stats->base;
}

const struct count_kind idxstats_kind = {.observe = observe};
