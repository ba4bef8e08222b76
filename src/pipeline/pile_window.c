/*
 * pile_window.c -- see pile_window.h.
 *
 * While a pass goes on, the blocks of the window are a heap with the largest first. When they take
 * too much memory, the largest one leaves. Its first record is the *end* of the window: from then
 * on no block is kept that is not below it. The blocks of a run are in order, so a run is skipped
 * from its first block that is not kept.
 */
#include "pipeline/pile_window.h"

#include "util/xalloc.h"

#include <stdlib.h>

/*
 * Whether passes are cheaper than finding each block by its key. A pass reads half of the blocks on
 * average. By keys, nearly every block is read twice. A scan reads a block in the time of its bytes
 * and STEP_BYTES more; by a key it takes FILE_BYTES more for each file, too. Measured with 16 to
 * 480 files.
 */
enum { PASSES = 4, STEP_BYTES = 12 << 10, FILE_BYTES = 300 };

struct window_run {
    struct run_scan *scan;
    uint32_t run;
    uint64_t index;             /* of the first record that was not returned yet */
};

struct window_block {
    struct open_block *block;
    size_t run;                 /* in the array of runs */
};

struct pile_window {
    struct pile_walk *walk;
    struct window_run *runs;    /* in the order of the walk */
    size_t n_runs, runs_room;
    struct window_block *blocks;        /* a heap during a pass; then in order */
    size_t n_blocks, blocks_room;
    size_t n_returned;
    size_t n_bytes;             /* of the blocks that were not returned */
    struct open_block *end;     /* NULL: the window has no end yet */
    bool began;
    /* of all passes */
    uint64_t n_seen, n_opened, opened_bytes;
};

struct pile_window *pile_window_open(struct pile_walk *walk)
{
    struct pile_window *w = xcalloc(1, sizeof *w);
    w->walk = walk;
    return w;
}

void pile_window_close(struct pile_window *w)
{
    if (!w) return;
    for (size_t i = w->n_returned; i < w->n_blocks; i++)
        pile_walk_drop(w->walk, w->blocks[i].block);
    if (w->end) pile_walk_drop(w->walk, w->end);
    free(w->blocks);
    free(w->runs);
    free(w);
}

/* ---- order ---- */

/* True if the first record of a comes before that of b. */
static bool is_below(const struct pile_window *w, const struct open_block *a,
                     const struct open_block *b)
{
    const struct sort_rules *rules = w->walk->settings.rules;
    const struct merge_source *x = &a->source, *y = &b->source;
    int c = sort_key_compare(rules, sort_entry_record(rules->order, x->entries),
                             sort_entry_record(rules->order, y->entries));
    if (c) return c < 0;
    return x->run != y->run ? x->run < y->run : x->first_index < y->first_index;
}

/* Moves the block at `at` down the heap, whose largest block is the first one. */
static void sink(const struct pile_window *w, size_t at, size_t n)
{
    struct window_block *heap = w->blocks, sinking = heap[at];
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_below(w, heap[child].block, heap[child + 1].block)) child++;
        if (!is_below(w, sinking.block, heap[child].block)) break;
        heap[at] = heap[child];
    }
    heap[at] = sinking;
}

/* Adds a block to the heap. */
static void push(struct pile_window *w, struct window_block added)
{
    xgrow(&w->blocks, &w->blocks_room, w->n_blocks + 1, w->n_blocks * 2 + 63, sizeof *w->blocks);
    size_t at = w->n_blocks++;
    for (size_t up; at > 0; at = up) {
        up = (at - 1) / 2;
        if (!is_below(w, w->blocks[up].block, added.block)) break;
        w->blocks[at] = w->blocks[up];
    }
    w->blocks[at] = added;
    w->n_bytes += added.block->n_bytes;
}

/* Removes the largest block, which becomes the window's end. */
static void pop(struct pile_window *w)
{
    if (w->end) pile_walk_drop(w->walk, w->end);
    w->end = w->blocks[0].block;
    w->n_bytes -= w->end->n_bytes;
    w->blocks[0] = w->blocks[--w->n_blocks];
    if (w->n_blocks > 0) sink(w, 0, w->n_blocks);
}

/* Puts the blocks of the heap in order. */
static void put_in_order(struct pile_window *w)
{
    for (size_t n = w->n_blocks; n > 1;) {
        struct window_block largest = w->blocks[0];
        w->blocks[0] = w->blocks[--n];
        w->blocks[n] = largest;
        sink(w, 0, n);
    }
}

/* ---- a pass ---- */

/* Reads the block at the walk's position, and keeps it if it belongs to the window. Returns 1 if it
   is kept, 0 if not, or -1. */
static int take_block(struct pile_window *w, size_t run)
{
    struct open_block *block = pile_walk_fetch(w->walk);
    if (!block) return -1;
    w->n_opened++;
    w->opened_bytes += block->n_bytes;
    if (w->end && !is_below(w, block, w->end)) {
        pile_walk_drop(w->walk, block);
        return 0;
    }
    bool is_kept = true;
    push(w, (struct window_block){block, run});
    while (w->n_bytes > w->walk->settings.most_bytes && w->n_blocks > 1) {
        if (w->blocks[0].block == block) is_kept = false;
        pop(w);
    }
    return is_kept;
}

/* Takes the blocks of one run that belong to the window. Returns 1, 0 if the run has more than
   most_blocks, or -1. */
static int take_run(struct pile_window *w, size_t number, uint64_t most_blocks)
{
    struct pile_walk *walk = w->walk;
    const uint32_t run = w->runs[number].run;
    const uint64_t from = w->runs[number].index;
    bool is_over = false;
    uint64_t n_blocks = 0, last = 0;
    int r;
    while ((r = pile_walk_look(walk)) > 0 && walk->run == run) {
        if (n_blocks == 0 || walk->index != last) n_blocks++;   /* it is not a later part */
        if (n_blocks > most_blocks) return 0;
        last = walk->index;
        if (is_over || walk->index < from) {
            pile_walk_step(walk);
            continue;
        }
        int kept = take_block(w, number);
        if (kept < 0) return -1;
        is_over = kept == 0;
    }
    w->n_seen += n_blocks;
    return r < 0 ? -1 : 1;
}

/* The number of the run at the walk's position, which is `from` or a later one. Adds the run in the
   first pass. */
static size_t find_run(struct pile_window *w, size_t from)
{
    const struct pile_walk *walk = w->walk;
    for (size_t i = from; i < w->n_runs; i++)
        if (w->runs[i].scan == walk->scan && w->runs[i].run == walk->run) return i;
    xgrow(&w->runs, &w->runs_room, w->n_runs + 1, w->n_runs * 2 + 63, sizeof *w->runs);
    w->runs[w->n_runs] = (struct window_run){walk->scan, walk->run, 0};
    return w->n_runs++;
}

/* True if what the first pass has seen of the pile would need too many passes. */
static bool is_too_large(const struct pile_window *w, unsigned n_files)
{
    if (!w->end) return false;
    uint64_t block = w->opened_bytes / w->n_opened;
    uint64_t n_passes = block * w->n_seen / w->walk->settings.most_bytes;
    return n_passes * (block + STEP_BYTES) > PASSES * (block + STEP_BYTES + FILE_BYTES * n_files);
}

/* Makes the next window. Returns what pile_window_next returns. */
static int make_window(struct pile_window *w)
{
    const struct pile_settings *s = &w->walk->settings;
    size_t number = 0;
    if (w->end) pile_walk_drop(w->walk, w->end);
    w->end = NULL;
    w->n_blocks = w->n_returned = w->n_bytes = 0;
    for (size_t i = 0; i < s->n_scans; i++) {
        unsigned files = run_scan_n_files(s->scans[i]);
        uint64_t most_blocks = w->began ? UINT64_MAX : files / 4 + 1;
        int r = pile_walk_begin(w->walk, s->scans[i]);
        while (r == 0 && (r = pile_walk_look(w->walk)) > 0) {
            if (crew_failed(s->crew)) return -1;
            number = find_run(w, number);
            r = take_run(w, number, most_blocks);
            if (r < 0) return -1;
            if (r == 0 || (!w->began && is_too_large(w, files))) return PILE_TOO_LARGE;
            r = 0;
        }
        if (r < 0) return -1;
    }
    w->began = true;
    put_in_order(w);
    return w->n_blocks > 0;
}

int pile_window_next(struct pile_window *w, struct open_block **block)
{
    if (w->n_returned == w->n_blocks) {
        int r = w->began && !w->end ? 0 : make_window(w);
        if (r != 1) return r;
    }
    const struct window_block *next = &w->blocks[w->n_returned++];
    const struct merge_source *source = &next->block->source;
    w->runs[next->run].index = source->first_index + source->n_entries;
    *block = next->block;
    return 1;
}
