/* record_ordinals.c -- see record_ordinals.h. */
#include "pipeline/record_ordinals.h"

#include "util/xalloc.h"

#include <stdlib.h>

/* Two records are further apart than this, so they never have one number. Small numbers are shorter
   when they are stored. */
enum { UNIT_BYTES = 32 };

_Static_assert((int)UNIT_BYTES <= (int)BAM_RECORD_MIN_BYTES, "each record has its own number");

struct numbered_batch {
    const struct batch *batch;
    uint64_t first;             /* no record of it has a smaller number */
};

struct record_ordinals {
    size_t n;
    struct numbered_batch batches[];    /* in the order of their memory */
};

static int compare_memory(const void *a, const void *b)
{
    const struct numbered_batch *x = a, *y = b;
    uintptr_t p = (uintptr_t)x->batch->mem, q = (uintptr_t)y->batch->mem;
    return p < q ? -1 : p > q;
}

struct record_ordinals *record_ordinals_create(struct batch *const *batches, size_t n)
{
    struct record_ordinals *ordinals =
        xmalloc(sizeof *ordinals + n * sizeof ordinals->batches[0]);
    uint64_t first = 0;
    ordinals->n = n;
    for (size_t i = 0; i < n; i++) {
        ordinals->batches[i] = (struct numbered_batch){batches[i], first};
        first += batches[i]->mem_bytes / UNIT_BYTES + 1;
    }
    qsort(ordinals->batches, n, sizeof ordinals->batches[0], compare_memory);
    return ordinals;
}

void record_ordinals_destroy(struct record_ordinals *ordinals)
{
    free(ordinals);
}

uint64_t record_ordinal_in_batch(const struct batch *batch, const uint8_t *rec)
{
    return (uint64_t)(rec - batch->mem) / UNIT_BYTES;
}

/* The last batch that does not begin after the record. */
uint64_t record_ordinals_find(const struct record_ordinals *ordinals, const uint8_t *rec)
{
    size_t low = 0, high = ordinals->n;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)ordinals->batches[middle].batch->mem <= (uintptr_t)rec)
            low = middle;
        else
            high = middle;
    }
    const struct numbered_batch *found = &ordinals->batches[low];
    return found->first + record_ordinal_in_batch(found->batch, rec);
}
