/*
 * pile.c -- see pile.h.
 *
 * The blocks of one run are in order, so this module merges the runs. The next block of a run is
 * its *head*. To keep the heads of all runs in memory may take too much if records are large. So
 * heads are dropped from memory when they exceed the limit. Of each head a print of the key of its
 * first record (key_print.h) is kept, and prints are compared instead of records. A dropped head is
 * read again when its turn comes, or in the rare case that two prints do not decide the order.
 *
 * A heap holds the runs, ordered by their heads. The next block of a run is found by its key, which
 * contains the index of its first record: one more than that of the last record of the block
 * before.
 */
#include "pipeline/pile.h"

#include "order/key_print.h"
#include "util/byte_order.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct cursor {                 /* a run of the pile */
    struct run_scan *scan;      /* the scan of its database */
    uint32_t run;
    uint64_t index;             /* index in the run of the first record of its head */
    struct key_print print;     /* print of that record's key */
    struct open_block *head;    /* NULL: dropped from memory */
};

struct pile {
    struct pile_settings settings;
    uint8_t key[SORT_KEY_STORED_BYTES];
    struct temp_coder coder;
    struct run_scan **scans;
    size_t n_scans;
    struct cursor *heap;        /* smallest head first; runs that have ended are removed */
    size_t n_heap, heap_room;
    bool is_ready;              /* the heap was built */
    size_t head_bytes;          /* memory of the heads that are not dropped */
    uint8_t *pivot;             /* whole key of the first record that was read */
    size_t pivot_bytes;
    uint8_t *whole;             /* buffer for the whole key of another record */
    size_t whole_room;
};

struct pile *pile_open(const struct pile_settings *settings, const uint8_t *key)
{
    struct pile *pile = xcalloc(1, sizeof *pile);
    pile->settings = *settings;
    memcpy(pile->key, key, sizeof pile->key);
    pile->n_scans = run_store_scan(settings->store, &pile->scans);
    return pile;
}

static void drop_block(struct pile *pile, struct open_block *block)
{
    crew_lock(pile->settings.crew);
    segmenter_drop_block(block);
    crew_unlock(pile->settings.crew);
}

/* Takes the head away from its cursor. The head must be in memory. */
static struct open_block *take_head(struct pile *pile, struct cursor *cursor)
{
    struct open_block *block = cursor->head;
    cursor->head = NULL;
    pile->head_bytes -= block->n_bytes;
    return block;
}

/* Drops this head from memory if all heads together take too much. */
static void trim_head(struct pile *pile, struct cursor *cursor)
{
    if (cursor->head && pile->head_bytes > pile->settings.most_bytes)
        drop_block(pile, take_head(pile, cursor));
}

void pile_close(struct pile *pile)
{
    if (!pile) return;
    for (size_t i = 0; i < pile->n_heap; i++)
        if (pile->heap[i].head) drop_block(pile, pile->heap[i].head);
    for (size_t i = 0; i < pile->n_scans; i++) run_scan_close(pile->scans[i]);
    temp_coder_release(&pile->coder);
    free(pile->whole);
    free(pile->pivot);
    free(pile->heap);
    free(pile->scans);
    free(pile);
}

/* ---- heads ---- */

/* Writes into `bound` the key of the pile's block that begins with this record. */
static void put_key(const struct pile *pile, uint32_t run, uint64_t index,
                    uint8_t bound[MERGE_BOUND_MOST_BYTES])
{
    memcpy(bound, pile->key, sizeof pile->key);
    (void)put_big_endian(put_big_endian(bound + sizeof pile->key, run, 4), index, 8);
}

/* Reads and opens the head, unless it is in memory. Returns 1, 0 if the pile has no more blocks of
   this run, or -1 after a message. */
static int read_head(struct pile *pile, struct cursor *cursor)
{
    uint8_t key[MERGE_BOUND_MOST_BYTES];
    struct fed_block *fed;
    if (cursor->head) return 1;
    put_key(pile, cursor->run, cursor->index, key);
    int r = fed_block_get(cursor->scan, key, sizeof key, &fed);
    if (r <= 0) return r;
    cursor->head = segmenter_load_block(pile->settings.segmenter, fed, &pile->coder);
    fed_block_free(fed);
    if (!cursor->head) return -1;
    pile->head_bytes += cursor->head->n_bytes;
    return 1;
}

/* Reads a head that must exist in the store. Returns 0, or -1 after a message. */
static int need_head(struct pile *pile, struct cursor *cursor)
{
    int r = read_head(pile, cursor);
    if (r == 0)
        diag_damaged("the temporary data in '%s' are damaged: run %" PRIu32 " lacks a block; sort "
                     "again on another disk", run_scan_dir(cursor->scan), cursor->run);
    return r > 0 ? 0 : -1;
}

static const uint8_t *first_record(const struct pile *pile, const struct cursor *cursor)
{
    return sort_entry_record(pile->settings.rules->order, cursor->head->source.entries);
}

static struct key_pivot pivot_of(const struct pile *pile)
{
    return (struct key_pivot){pile->pivot, pile->pivot_bytes};
}

/* Makes the print of a head that is in memory. The first key of all becomes the pivot. */
static void take_print(struct pile *pile, struct cursor *cursor)
{
    const struct sort_rules *rules = pile->settings.rules;
    const uint8_t *rec = first_record(pile, cursor);
    const char *problem;        /* unused: a record that was sorted has a key */
    size_t n = sort_key_bytes(rules, rec, &problem);
    xgrow(&pile->whole, &pile->whole_room, n, 0, 1);
    (void)sort_key_encode(rules, rec, pile->whole);
    if (!pile->pivot) {
        pile->pivot = xmemdup(pile->whole, n);
        pile->pivot_bytes = n;
    }
    const struct key_pivot pivot = pivot_of(pile);
    key_print_take(&pivot, pile->whole, n, &cursor->print);
}

/* Compares the heads of two runs. Returns 0 and sets *c, or -1 after a message. */
static int compare_heads(struct pile *pile, struct cursor *a, struct cursor *b, int *c)
{
    const struct key_pivot pivot = pivot_of(pile);
    if (!key_print_compare(&pivot, &a->print, &b->print, c)) {
        if (need_head(pile, a) < 0 || need_head(pile, b) < 0) return -1;
        *c = sort_key_compare(pile->settings.rules, first_record(pile, a), first_record(pile, b));
        trim_head(pile, a);
        trim_head(pile, b);
    }
    if (*c == 0) *c = a->run < b->run ? -1 : 1;
    return 0;
}

/* ---- the heap ---- */

/* Moves the cursor at `at` down the heap until no child has a smaller head. Returns 0 or -1. */
static int sink(struct pile *pile, size_t at)
{
    for (;;) {
        struct cursor *heap = pile->heap;
        size_t child = 2 * at + 1;
        int c;
        if (child >= pile->n_heap) return 0;
        if (child + 1 < pile->n_heap) {
            if (compare_heads(pile, &heap[child + 1], &heap[child], &c) < 0) return -1;
            if (c < 0) child++;
        }
        if (compare_heads(pile, &heap[at], &heap[child], &c) < 0) return -1;
        if (c < 0) return 0;
        struct cursor sinking = heap[at];
        heap[at] = heap[child];
        heap[child] = sinking;
        at = child;
    }
}

static bool is_dropped(const struct pile *pile, uint32_t run)
{
    for (size_t i = 0; i < pile->settings.n_dropped; i++)
        if (pile->settings.dropped_runs[i] == run) return true;
    return false;
}

/* Finds, in one database, the pile's first block whose run is *run or a later one. Sets *run and
   *index to those of the block. Returns 1, 0 if there is none, or -1 after a message. */
static int find_run(const struct pile *pile, struct run_scan *scan, uint32_t *run, uint64_t *index)
{
    uint8_t bound[MERGE_BOUND_MOST_BYTES];
    const uint8_t *key;
    size_t key_bytes;
    put_key(pile, *run, 0, bound);
    int r = run_scan_seek(scan, bound, sizeof bound);
    if (r == 0) r = run_scan_key(scan, &key, &key_bytes);
    if (r <= 0) return r;
    if (!merge_bound_is_cut(key_bytes) || memcmp(key, pile->key, sizeof pile->key) != 0) return 0;
    merge_bound_position(key, key_bytes, run, index);
    return 1;
}

/* Adds to the heap's array the runs of the pile in one database. Returns 0 or -1. */
static int list_runs(struct pile *pile, struct run_scan *scan)
{
    struct cursor cursor = {.scan = scan};
    int r = 0;
    do {
        r = find_run(pile, scan, &cursor.run, &cursor.index);
        if (r <= 0) return r;
        if (is_dropped(pile, cursor.run)) continue;
        xgrow(&pile->heap, &pile->heap_room, pile->n_heap + 1, pile->n_heap + 63,
              sizeof *pile->heap);
        pile->heap[pile->n_heap++] = cursor;
    } while (cursor.run++ < UINT32_MAX);
    return 0;
}

/* Builds the heap of all runs of the pile. Returns 0 or -1. */
static int make_heap(struct pile *pile)
{
    pile->is_ready = true;
    for (size_t i = 0; i < pile->n_scans; i++)
        if (list_runs(pile, pile->scans[i]) < 0) return -1;
    for (size_t i = 0; i < pile->n_heap; i++) {
        if (need_head(pile, &pile->heap[i]) < 0) return -1;
        take_print(pile, &pile->heap[i]);
        trim_head(pile, &pile->heap[i]);
    }
    for (size_t i = pile->n_heap / 2; i-- > 0;)
        if (sink(pile, i) < 0) return -1;
    return 0;
}

/* Moves the first cursor past the n_records of its head, to the next block. Returns 0 or -1. */
static int advance_first(struct pile *pile, uint64_t n_records)
{
    struct cursor *first = &pile->heap[0];
    first->index += n_records;
    int r = read_head(pile, first);
    if (r < 0) return -1;
    if (r > 0) {
        take_print(pile, first);
        trim_head(pile, first);
    } else {
        *first = pile->heap[--pile->n_heap];
    }
    return sink(pile, 0);
}

int pile_next(struct pile *pile, struct open_block **block)
{
    if (crew_failed(pile->settings.crew) || (!pile->is_ready && make_heap(pile) < 0)) return -1;
    if (pile->n_heap == 0) return 0;
    if (need_head(pile, &pile->heap[0]) < 0) return -1;
    struct open_block *first = take_head(pile, &pile->heap[0]);
    if (advance_first(pile, first->source.n_entries) < 0) {
        drop_block(pile, first);
        return -1;
    }
    *block = first;
    return 1;
}
