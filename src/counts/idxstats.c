/* idxstats.c -- see idxstats.h. */
#include "counts/idxstats.h"

#include "util/xalloc.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

struct idxstats {
    int32_t n_refs;
    _Atomic uint64_t (*n)[2];   /* mapped, unmapped; [0] is of records without a reference, and
                                   [tid + 1] of those of tid */
};

struct idxstats *idxstats_create(int32_t n_refs)
{
    struct idxstats *stats = xmalloc(sizeof *stats);
    stats->n_refs = n_refs;
    stats->n = xcalloc((size_t)n_refs + 1, sizeof *stats->n);
    return stats;
}

void idxstats_destroy(struct idxstats *stats)
{
    if (!stats) return;
    free(stats->n);
    free(stats);
}

void idxstats_flush(struct idxstats *stats, struct idxstats_place *place)
{
    for (int i = 0; i < 2; i++) {
        if (place->n[i] > 0)
            atomic_fetch_add_explicit(&stats->n[place->tid + 1][i], place->n[i],
                                      memory_order_relaxed);
        place->n[i] = 0;
    }
}

void idxstats_part_end(struct idxstats *stats, struct idxstats_part *part)
{
    for (int i = 0; i < IDXSTATS_PLACES; i++) idxstats_flush(stats, &part->places[i]);
}

static uint64_t count_of(const struct idxstats *stats, int32_t tid, int is_unmapped)
{
    return atomic_load_explicit(&stats->n[tid + 1][is_unmapped], memory_order_relaxed);
}

void idxstats_print(const struct idxstats *stats, const sam_hdr_t *header, FILE *to)
{
    for (int32_t tid = 0; tid < stats->n_refs; tid++)
        (void)fprintf(to, "%s\t%" PRId64 "\t%" PRIu64 "\t%" PRIu64 "\n",
                      sam_hdr_tid2name(header, tid), (int64_t)sam_hdr_tid2len(header, tid),
                      count_of(stats, tid, 0), count_of(stats, tid, 1));
    /* As an index has it: a record without a reference is unmapped, whatever its flags say. */
    (void)fprintf(to, "*\t0\t0\t%" PRIu64 "\n", count_of(stats, -1, 0) + count_of(stats, -1, 1));
}
