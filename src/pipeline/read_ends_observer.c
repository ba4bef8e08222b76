/* read_ends_observer.c -- see read_ends_observer.h. */
#include "pipeline/read_ends_observer.h"

#include "store/bam_block.h"
#include "util/xalloc.h"

#include <stdlib.h>

struct read_ends_observer {
    struct record_observer base;        /* must be the first member */
    struct duplicates *duplicates;
};

static void *begin(const struct record_observer *observer)
{
    (void)observer;
    return xcalloc(1, sizeof(struct duplicate_looks));
}

static int add_records(struct record_observer *observer, void *looks,
                       const struct observed_records *observed)
{
    const struct duplicates *duplicates = ((struct read_ends_observer *)observer)->duplicates;
    struct view_gather *gather = worker_view_gather(observed->worker);
    struct record_place place = {.run = observed->run, .index = observed->first_record};
    struct bam_records records = observed->all;
    const uint8_t *rec;
    for (uint32_t i = 0; (rec = bam_records_next(&records)); i++, place.index++) {
        place.ordinal = observed->ordinals ? bam_block_ordinal(observed->ordinals, i) : place.index;
        if (duplicate_looks_add(duplicates, gather, looks, rec, &place) < 0) return -1;
    }
    duplicate_looks_end(gather, looks, observed->run);
    return 0;
}

static void discard(void *looks)
{
    duplicate_looks_release(looks);
    free(looks);
}

static int combine(struct record_observer *observer, void *looks)
{
    int r = duplicates_take(((struct read_ends_observer *)observer)->duplicates, looks);
    discard(looks);
    return r;
}

static void destroy(struct record_observer *observer)
{
    free(observer);
}

struct record_observer *read_ends_observer(struct duplicates *duplicates)
{
    static const struct observer_kind kind = {.begin = begin, .add_records = add_records,
                                              .combine = combine, .discard = discard,
                                              .destroy = destroy};
    if (!duplicates) return NULL;
    struct read_ends_observer *observer = xcalloc(1, sizeof *observer);
    observer->base.kind = &kind;
    observer->duplicates = duplicates;
    return &observer->base;
}
