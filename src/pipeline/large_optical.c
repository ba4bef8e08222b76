/*
 * large_optical.c -- see large_optical.h.
 *
 * Items are sorted by chain, tile and cell. One reader finds the best duplicate of each cell, and
 * another one, which follows, gives all duplicates of the cell to the taker: all but the best are
 * near to a better one. The best is compared with the duplicates in the eight cells around it. When
 * one goes from cell to cell, each of the eight is a cell that goes through all of them, too, in
 * the same order. So each has a reader of its own, which never goes back.
 */
#include "pipeline/large_optical.h"

#include "duplicates/chain_rules.h"
#include "util/byte_order.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

enum {
    KEY_BYTES = 16,
    KIND_AT = KEY_BYTES,        /* IS_CHAIN or IS_DUPLICATE */
    TILE_AT = KIND_AT + 1,
    X_AT = TILE_AT + 16,
    Y_AT = X_AT + 8,
    CELL_BYTES = Y_AT + 8,
    N_AROUND = 8,
};

enum { IS_CHAIN, IS_DUPLICATE };

/* A duplicate, as its item says. */
struct point {
    struct item_read read;
    struct item_found found;
    int64_t x, y;
    uint8_t name_of_found[256];         /* of one that was kept */
};

struct large_optical {
    const struct duplicate_rules *rules;
    struct chain_taker taker;
    struct temp_sort *sort;
    struct item_writer writer;
    struct item_reader first, second, around[N_AROUND];
    uint8_t cell[CELL_BYTES];   /* that is looked at */
    struct point point, best;   /* the one read last, and the best of the cell */
    uint8_t best_name[256];     /* of the chain */
    size_t best_name_bytes;
};

struct large_optical *large_optical_create(const struct duplicate_rules *rules,
                                           const struct temp_sort_settings *memory,
                                           struct chain_taker taker)
{
    struct large_optical *o = xcalloc(1, sizeof *o);
    o->rules = rules;
    o->taker = taker;
    o->sort = temp_sort_create(memory);
    return o;
}

void large_optical_destroy(struct large_optical *o)
{
    if (!o) return;
    item_reader_release(&o->first);
    item_reader_release(&o->second);
    for (size_t i = 0; i < N_AROUND; i++) item_reader_release(&o->around[i]);
    temp_sort_destroy(o->sort);
    free(o);
}

/* ---- items ---- */

int large_optical_begin_chain(struct large_optical *o, struct duplicate_key chain,
                              const struct duplicate_view *best)
{
    const uint8_t head[] = {IS_CHAIN, best->name_bytes};
    item_begin(&o->writer);
    item_put_key(&o->writer, chain);
    item_put_bytes(&o->writer, head, sizeof head);
    item_put_bytes(&o->writer, best->name, best->name_bytes);
    return item_add(&o->writer, o->sort);
}

int large_optical_add(struct large_optical *o, struct duplicate_key chain, struct item_read *read,
                      const struct item_found *found)
{
    const uint8_t kind = IS_DUPLICATE;
    const struct read_coords *coords = item_coords(o->rules, read);
    item_begin(&o->writer);
    item_put_key(&o->writer, chain);
    item_put_bytes(&o->writer, &kind, 1);
    item_put_key(&o->writer, duplicate_key_of_name(read->view.name + coords->begin,
                                                   (size_t)(coords->end - coords->begin)));
    item_put_number(&o->writer, chain_cell(o->rules, coords->x));
    item_put_number(&o->writer, chain_cell(o->rules, coords->y));
    item_put_order(&o->writer, &read->order);
    item_put_number(&o->writer, coords->x);
    item_put_number(&o->writer, coords->y);
    item_put_found(&o->writer, found);
    item_put_view(&o->writer, &read->view);
    return item_add(&o->writer, o->sort);
}

static void get_point(struct item_reader *reader, struct point *point)
{
    (void)item_get_bytes(reader, CELL_BYTES);
    const uint8_t *order = item_get_bytes(reader, sizeof(struct item_order));
    point->x = item_get_number(reader);
    point->y = item_get_number(reader);
    item_get_found(reader);
    item_get_view(reader, order);
    point->found = reader->found;
    point->read.view = reader->read.view;
    point->read.run = reader->read.run;
    point->read.order = reader->read.order;
}

static void keep_point(struct point *kept, const struct point *point)
{
    item_read_keep(&kept->read, &point->read);
    kept->found = point->found;
    kept->x = point->x;
    kept->y = point->y;
    if (!point->found.has_name) return;
    memcpy(kept->name_of_found, point->found.name, point->found.name_bytes);
    kept->found.name = kept->name_of_found;
}

/* ---- comparing ---- */

static const struct item_order *marked_at(const struct point *point)
{
    const struct item_order *own = &point->read.order, *by = &point->found.by;
    return item_order_compare(own, by) > 0 ? own : by;
}

static bool is_better(const struct point *a, const struct point *b)
{
    int r = chain_compare_duplicates(&a->read.view, &b->read.view);
    return r != 0 ? r < 0 : item_order_compare(marked_at(a), marked_at(b)) > 0;
}

static bool is_within(int64_t a, int64_t b, int64_t distance)
{
    uint64_t difference = a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
    return difference <= (uint64_t)distance;
}

/* Of points on one tile. */
static bool are_near(const struct large_optical *o, const struct point *a, const struct point *b)
{
    return is_within(a->x, b->x, o->rules->optical_distance) &&
           is_within(a->y, b->y, o->rules->optical_distance);
}

/* Looks for a better duplicate near to the best one of the cell in another cell. Returns 1 if there
   is one, 0 if not, or -1 after a message. */
static int look_in_cell(struct large_optical *o, struct item_reader *reader, const uint8_t *cell)
{
    int r = 1;
    if (!reader->at) r = item_reader_next(reader);
    while (r > 0 && memcmp(reader->items.item, cell,
                           reader->items.n_bytes < CELL_BYTES ? KIND_AT + 1 : CELL_BYTES) < 0)
        r = item_reader_next(reader);
    for (; r > 0 && item_begins(reader, cell, CELL_BYTES); r = item_reader_next(reader)) {
        get_point(reader, &o->point);
        if (is_better(&o->point, &o->best) && are_near(o, &o->point, &o->best)) {
            reader->at = reader->items.item;
            return 1;
        }
    }
    return r < 0 ? -1 : 0;
}

/* The same in all cells around this one. */
static int look_around(struct large_optical *o)
{
    /* Items have numbers with their sign bit turned over: these are not signed. */
    uint64_t x = get_big_endian(o->cell + X_AT, 8), y = get_big_endian(o->cell + Y_AT, 8);
    size_t n = 0;
    int r = 0;
    for (int dx = -1; dx <= 1 && r == 0; dx++)
        for (int dy = -1; dy <= 1 && r == 0; dy++) {
            uint8_t cell[CELL_BYTES];
            if (dx == 0 && dy == 0) continue;
            memcpy(cell, o->cell, sizeof cell);
            (void)put_big_endian(cell + X_AT, x + (uint64_t)dx, 8);
            (void)put_big_endian(cell + Y_AT, y + (uint64_t)dy, 8);
            r = look_in_cell(o, &o->around[n++], cell);
        }
    return r;
}

/* Finds the best duplicate of the cell at which the first reader is. Returns how many there are, or
   -1 after a message. */
static int64_t find_best(struct large_optical *o)
{
    int64_t n = 0;
    memcpy(o->cell, o->first.items.item, CELL_BYTES);
    while (item_begins(&o->first, o->cell, CELL_BYTES)) {
        get_point(&o->first, &o->point);
        if (n++ == 0 || is_better(&o->point, &o->best)) keep_point(&o->best, &o->point);
        if (item_reader_next(&o->first) < 0) return -1;
    }
    return n;
}

static int decide_cell(struct large_optical *o)
{
    int64_t n = find_best(o);
    if (n < 0) return -1;
    if (!o->best.found.is_optical) {
        int r = look_around(o);
        if (r < 0) return -1;
        o->best.found.is_optical = r > 0;
    }
    for (int64_t i = 0; i < n; i++) {
        struct point *point = &o->point;
        get_point(&o->second, point);
        bool is_best = item_order_compare(&point->read.order, &o->best.read.order) == 0;
        point->found.is_optical = !is_best || o->best.found.is_optical;
        if (item_give_duplicate(&o->taker, &point->read, &point->found, o->best_name,
                                o->best_name_bytes) < 0 ||
            item_reader_next(&o->second) < 0)
            return -1;
    }
    return 0;
}

static int begin_chain(struct large_optical *o)
{
    const uint8_t *head = o->first.items.item + KIND_AT + 1;
    o->best_name_bytes = *head;
    memcpy(o->best_name, head + 1, o->best_name_bytes);
    return item_reader_next(&o->first) < 0 || item_reader_next(&o->second) < 0 ? -1 : 0;
}

int large_optical_decide(struct large_optical *o)
{
    if (item_readers_begin(&o->first, &o->second, o->sort) < 0) return -1;
    for (size_t i = 0; i < N_AROUND; i++) item_reader_begin(&o->around[i], o->sort);
    while (o->first.at)
        if ((o->first.at[KIND_AT] == IS_CHAIN ? begin_chain(o) : decide_cell(o)) < 0) return -1;
    return 0;
}
