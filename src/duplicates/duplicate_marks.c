/* duplicate_marks.c -- see duplicate_marks.h. */
#include "duplicates/duplicate_marks.h"

#include "util/xalloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct run_marks {
    _Atomic uint8_t *bits;
    uint32_t n_records;
    size_t room;                /* bytes */
};

struct duplicate_marks {
    struct run_marks *runs;     /* by number */
    size_t n_runs, room;
};

struct duplicate_marks *duplicate_marks_create(void)
{
    return xcalloc(1, sizeof(struct duplicate_marks));
}

void duplicate_marks_destroy(struct duplicate_marks *marks)
{
    if (!marks) return;
    for (size_t i = 0; i < marks->n_runs; i++) free((void *)marks->runs[i].bits);
    free(marks->runs);
    free(marks);
}

void duplicate_marks_add_run(struct duplicate_marks *marks, uint32_t run, uint32_t n_records)
{
    size_t n = (size_t)run + 1;
    if (n > marks->n_runs) {
        xgrow(&marks->runs, &marks->room, n, n / 2, sizeof *marks->runs);
        memset(marks->runs + marks->n_runs, 0, (n - marks->n_runs) * sizeof *marks->runs);
        marks->n_runs = n;
    }
    struct run_marks *added = &marks->runs[run];
    if (n_records <= added->n_records) return;
    size_t n_bytes = n_records / 8 + (size_t)1, old_room = added->room;
    uint8_t *bits = (uint8_t *)added->bits;
    /* The first time this is all; the runs of an earlier process grow block by block. */
    xgrow(&bits, &added->room, n_bytes, old_room / 2, 1);
    memset(bits + old_room, 0, added->room - old_room);
    added->bits = (_Atomic uint8_t *)bits;
    added->n_records = n_records;
}

bool duplicate_marks_set(struct duplicate_marks *marks, uint32_t run, uint32_t index)
{
    uint8_t bit = (uint8_t)(1u << (index & 7));
    uint8_t before = atomic_fetch_or_explicit(&marks->runs[run].bits[index >> 3], bit,
                                              memory_order_relaxed);
    return !(before & bit);
}

bool duplicate_marks_get(const struct duplicate_marks *marks, uint32_t run, uint64_t index)
{
    if (run >= marks->n_runs || index >= marks->runs[run].n_records) return false;
    uint8_t byte = atomic_load_explicit(&marks->runs[run].bits[index >> 3], memory_order_relaxed);
    return byte >> (index & 7) & 1;
}
