/*
 * pile.c -- see pile.h.
 *
 * If few passes over the pile are enough, pile_window.h reads it. If not:
 *
 * The blocks of one run are in order, so this module merges the runs. The next block of a run is
 * its *head*. To keep the heads of all runs in memory may take too much if records are large. So
 * heads are dropped from memory when they exceed the limit. Of each head a print of the key of its
 * first record (key_print.h) is kept, and prints are compared instead of records. A dropped head is
 * read again when its turn comes, or in the rare case that two prints do not decide the order.
 *
 * The runs play a tournament. The smallest head wins. The others are losers, each at the place of
 * its last match, and the base of its print is the head to which it lost. When the winner leaves,
 * the next head of its run plays against the losers on its way up. All of these lost to the winner,
 * and the new head is not below it. So all of them have the same base.
 *
 * The first head of each run is found and read in one walk over the pile. If many blocks of a run
 * follow the first one, the walk seeks the next run. A later block is found by its key, which
 * contains the index of its first record: one more than that of the last record of the block
 * before.
 */
#include "pipeline/pile.h"

#include "order/key_print.h"
#include "pipeline/pile_window.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct cursor {                 /* a run of the pile */
    struct run_scan *scan;      /* the scan of its database */
    uint32_t run;
    bool has_ended;
    uint64_t index;             /* index in the run of the first record of its head */
    uint64_t last_index;        /* of the first record of its last block; UINT64_MAX: not known */
    struct key_print print;     /* print of that record's key */
    struct open_block *head;    /* NULL: dropped from memory */
};

struct whole_key {
    uint8_t *bytes;
    size_t n_bytes, room;
};

struct pile {
    struct pile_walk walk;
    struct pile_window *window; /* NULL: the pile is too large for it */
    struct cursor *cursors;
    size_t n_cursors, cursors_room;
    size_t *losers;             /* of the match at each place of the tournament, from 1 on: a number
                                   of a cursor. Below place i are the places 2i and 2i + 1; cursor i
                                   begins at place n_cursors + i */
    size_t winner;
    bool is_ready;              /* the first tournament was played: the base is a winner */
    size_t head_bytes;          /* memory of the heads that are not dropped */
    struct whole_key base;      /* key of the first record of the last winner; before there is one,
                                   of the first head of all, which is a pivot */
    struct whole_key keys[2];   /* of records that are compared */
};

struct pile *pile_open(const struct pile_settings *settings, const uint8_t *key)
{
    struct pile *pile = xcalloc(1, sizeof *pile);
    pile_walk_init(&pile->walk, settings, key);
    pile->window = pile_window_open(&pile->walk);
    settings->counts->n_piles++;
    return pile;
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
    if (cursor->head && pile->head_bytes > pile->walk.settings.most_bytes)
        pile_walk_drop(&pile->walk, take_head(pile, cursor));
}

void pile_close(struct pile *pile)
{
    if (!pile) return;
    for (size_t i = 0; i < pile->n_cursors; i++)
        if (pile->cursors[i].head) pile_walk_drop(&pile->walk, pile->cursors[i].head);
    pile_window_close(pile->window);
    pile_walk_release(&pile->walk);
    free(pile->keys[0].bytes);
    free(pile->keys[1].bytes);
    free(pile->base.bytes);
    free(pile->losers);
    free(pile->cursors);
    free(pile);
}

/* ---- heads ---- */

/* Reads and opens the head, unless it is in memory. Returns 1, 0 if the pile has no more blocks of
   this run, or -1 after a message. */
static int read_head(struct pile *pile, struct cursor *cursor)
{
    if (cursor->head) return 1;
    int r = pile_walk_get(&pile->walk, cursor->scan, cursor->run, cursor->index, &cursor->head);
    if (r > 0) pile->head_bytes += cursor->head->n_bytes;
    return r;
}

/* Reads a head that must exist in the store. Returns 0, or -1 after a message. */
static int need_head(struct pile *pile, struct cursor *cursor)
{
    int r = read_head(pile, cursor);
    if (r == 0)
        diag_error_of(DIAG_DAMAGE, "the temporary data in '%s' are damaged: run %" PRIu32 " lacks a "
                      "block; sort again on another disk", run_scan_dir(cursor->scan), cursor->run);
    return r > 0 ? 0 : -1;
}

/* Makes the whole key of the first record of a head that is in memory. */
static void take_key(const struct pile *pile, const struct cursor *cursor, struct whole_key *key)
{
    const struct sort_rules *rules = pile->walk.settings.rules;
    const uint8_t *rec = sort_entry_record(rules->order, cursor->head->source.entries);
    const char *problem;        /* unused: a record that was sorted has a key */
    key->n_bytes = sort_key_bytes(rules, rec, &problem);
    xgrow(&key->bytes, &key->room, key->n_bytes, 0, 1);
    (void)sort_key_encode(rules, rec, key->bytes);
}

/* Takes the print of a head that was just read, and drops the head if memory is short. */
static void take_print(struct pile *pile, struct cursor *cursor)
{
    const struct whole_key *base = &pile->base, *key = &pile->keys[0];
    take_key(pile, cursor, &pile->keys[0]);
    key_print_take(base->bytes, base->n_bytes, key->bytes, key->n_bytes, &cursor->print);
    trim_head(pile, cursor);
}

/* ---- the tournament ---- */

/* Like comes_first, by whole keys. */
static int comes_first_by_keys(struct pile *pile, struct cursor *a, struct cursor *b)
{
    const struct whole_key *base = &pile->base, *low = &pile->keys[0], *high = &pile->keys[1];
    if (need_head(pile, a) < 0 || need_head(pile, b) < 0) return -1;
    take_key(pile, a, &pile->keys[0]);
    take_key(pile, b, &pile->keys[1]);
    size_t n = low->n_bytes < high->n_bytes ? low->n_bytes : high->n_bytes;
    int c = memcmp(low->bytes, high->bytes, n);
    bool a_first = c ? c < 0 : a->run < b->run;
    if (!a_first) {
        const struct whole_key *swap = low;
        low = high;
        high = swap;
    }
    if (pile->is_ready)
        key_print_take(base->bytes, base->n_bytes, low->bytes, low->n_bytes,
                       a_first ? &a->print : &b->print);
    key_print_take(low->bytes, low->n_bytes, high->bytes, high->n_bytes,
                   a_first ? &b->print : &a->print);
    trim_head(pile, a);
    trim_head(pile, b);
    return a_first;
}

/* Compares the heads of two runs, whose prints have the same base. The first one becomes the base
   of the other. Returns 1 if a's head comes first, 0 if b's does, or -1 after a message. */
static int comes_first(struct pile *pile, struct cursor *a, struct cursor *b)
{
    const uint8_t *pivot = pile->is_ready ? NULL : pile->base.bytes;
    int c;
    if (a->has_ended || b->has_ended) return b->has_ended;
    bool decided = pivot ? key_print_compare_around(pivot, &a->print, &b->print, &c)
                         : key_print_compare(&a->print, &b->print, &c);
    if (!decided) return comes_first_by_keys(pile, a, b);
    bool a_first = c ? c < 0 : a->run < b->run;
    const struct key_print *low = a_first ? &a->print : &b->print;
    struct key_print *high = a_first ? &b->print : &a->print;
    if (pivot)
        key_print_rebase_around(pivot, low, high);
    else
        key_print_rebase(low, high);
    return a_first;
}

/* Plays the match at a place. *winner, the number of a cursor, plays against another one, and is
   set to the winner; the loser stays. Returns 0 or -1. */
static int play(struct pile *pile, size_t place, size_t *winner, size_t other)
{
    int r = comes_first(pile, &pile->cursors[*winner], &pile->cursors[other]);
    pile->losers[place] = r == 0 ? *winner : other;
    if (r == 0) *winner = other;
    return r < 0 ? -1 : 0;
}

/* Plays all matches. Returns 0 or -1. */
static int play_all(struct pile *pile)
{
    size_t n = pile->n_cursors;
    size_t *winners = xcalloc(2 * n, sizeof *winners);
    pile->losers = xcalloc(n, sizeof *pile->losers);
    for (size_t i = 0; i < n; i++) winners[n + i] = i;
    int r = 0;
    for (size_t place = n - 1; r == 0 && place > 0; place--) {
        winners[place] = winners[2 * place];
        r = play(pile, place, &winners[place], winners[2 * place + 1]);
    }
    pile->winner = winners[1];
    free(winners);
    return r;
}

/* Plays the matches of the last winner's run, which has another head. Returns 0 or -1. */
static int play_again(struct pile *pile)
{
    for (size_t place = (pile->n_cursors + pile->winner) / 2; place > 0; place /= 2)
        if (play(pile, place, &pile->winner, pile->losers[place]) < 0) return -1;
    return 0;
}

/* ---- the runs of the pile ---- */

/* Adds the run whose first block is at the walk's position, and reads that block. Returns 0 or
   -1. */
static int add_run(struct pile *pile)
{
    struct pile_walk *walk = &pile->walk;
    const struct cursor cursor = {.scan = walk->scan, .run = walk->run, .index = walk->index,
                                  .last_index = UINT64_MAX};
    struct open_block *head = pile_walk_fetch(walk);
    if (!head) return -1;
    xgrow(&pile->cursors, &pile->cursors_room, pile->n_cursors + 1, pile->n_cursors + 63,
          sizeof *pile->cursors);
    struct cursor *added = &pile->cursors[pile->n_cursors++];
    *added = cursor;
    added->head = head;
    pile->head_bytes += head->n_bytes;
    if (pile->n_cursors == 1) take_key(pile, added, &pile->base);
    take_print(pile, added);
    return 0;
}

/* Moves the walk from a run's first block to the next run: with a few steps, or by a seek. Returns
   0 or -1. */
static int leave_run(struct pile *pile, struct cursor *cursor, unsigned most_steps)
{
    struct pile_walk *walk = &pile->walk;
    uint64_t last_index = cursor->index;
    int r;
    while ((r = pile_walk_look(walk)) > 0 && walk->run == cursor->run) {
        if (most_steps-- == 0) return pile_walk_skip_run(walk);
        last_index = walk->index;
        pile_walk_step(walk);
    }
    cursor->last_index = last_index;
    return r < 0 ? -1 : 0;
}

/* Adds the runs of the pile in one database, and reads the first block of each. Returns 0 or -1. */
static int add_runs(struct pile *pile, struct run_scan *scan)
{
    struct pile_walk *walk = &pile->walk;
    /* A step reads a block. A seek asks all files, but most of them stay where they are. */
    unsigned most_steps = run_scan_n_files(scan) / 4;
    int r = pile_walk_begin(walk, scan);
    while (r == 0 && (r = pile_walk_look(walk)) > 0) {
        if (crew_failed(walk->settings.crew)) return -1;
        r = add_run(pile);
        if (r == 0) r = leave_run(pile, &pile->cursors[pile->n_cursors - 1], most_steps);
    }
    return r;
}

/* Reads the first block of each run, and plays the tournament. Returns 0 or -1. */
static int begin(struct pile *pile)
{
    const struct pile_settings *s = &pile->walk.settings;
    for (size_t i = 0; i < s->n_scans; i++)
        if (add_runs(pile, s->scans[i]) < 0) return -1;
    int r = pile->n_cursors > 0 ? play_all(pile) : 0;
    pile->is_ready = true;
    return r;
}

/* True if a run goes on in the pile after this block, as far as is known. */
static bool may_go_on(const struct pile *pile, const struct cursor *cursor,
                      const struct open_block *block)
{
    return cursor->index <= cursor->last_index && merge_bound_is_cut(block->last.n_bytes) &&
           memcmp(block->last.key, pile->walk.key, SORT_KEY_STORED_BYTES) == 0;
}

/* Moves the winner's run past its head, `block`, to the next one. Returns 0 or -1. */
static int advance_winner(struct pile *pile, const struct open_block *block)
{
    struct cursor *cursor = &pile->cursors[pile->winner];
    cursor->index += block->source.n_entries;
    int r = may_go_on(pile, cursor, block) ? read_head(pile, cursor) : 0;
    if (r < 0) return -1;
    if (r > 0)
        take_print(pile, cursor);
    else
        cursor->has_ended = true;
    return play_again(pile);
}

/* Sets *block to the next block of the tournament. Returns what pile_next returns. */
static int next_winner(struct pile *pile, struct open_block **block)
{
    if (!pile->is_ready && begin(pile) < 0) return -1;
    if (pile->n_cursors == 0 || pile->cursors[pile->winner].has_ended) return 0;
    struct cursor *winner = &pile->cursors[pile->winner];
    if (need_head(pile, winner) < 0) return -1;
    take_key(pile, winner, &pile->base);
    struct open_block *first = take_head(pile, winner);
    if (advance_winner(pile, first) < 0) {
        pile_walk_drop(&pile->walk, first);
        return -1;
    }
    *block = first;
    return 1;
}

int pile_next(struct pile *pile, struct open_block **block)
{
    if (crew_failed(pile->walk.settings.crew)) return -1;
    int r = pile->window ? pile_window_next(pile->window, block) : PILE_TOO_LARGE;
    if (r == PILE_TOO_LARGE) {
        pile_window_close(pile->window);
        pile->window = NULL;
        r = next_winner(pile, block);
    }
    pile->walk.settings.counts->n_blocks += r > 0;
    return r;
}
