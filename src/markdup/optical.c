/*
 * optical.c -- see optical.h.
 *
 * Tiles are divided into square cells with sides of the optical distance plus one, so all reads in
 * a cell are near each other. Items are sorted by set, tile and cell. A first visit finds the best
 * duplicate of a cell; a second one passes all duplicates to the taker. All except the best are
 * near a better one; the best is compared with the duplicates in the eight neighbouring cells. As
 * the visit moves from cell to cell, each of the eight neighbours also moves through all cells in
 * order, so each has its own reader, which never moves back.
 */
#include "markdup/optical.h"

#include "util/byte_order.h"
#include "util/xalloc.h"

#include <stdlib.h>

/* An item begins with the key of the set and those of tile and cell. */
enum {
    X_AT = 2 * ITEM_KEY_BYTES,
    Y_AT = X_AT + 8,
    CELL_BYTES = Y_AT + 8,
    N_AROUND = 8,
};

struct optical {
    const struct markdup_rules *rules;
    struct duplicate_taker taker;
    struct external_sort *sort;
    struct item_writer writer;
    struct external_sort_reader around[N_AROUND];
    uint8_t cell[CELL_BYTES]; /* the current cell */
    struct kept_read best;    /* of the cell */
};

struct optical *optical_create(const struct markdup_rules *rules, struct external_sort *sort,
                               struct duplicate_taker taker)
{
    struct optical *o = xcalloc(1, sizeof *o);
    o->rules = rules;
    o->taker = taker;
    o->sort = sort;
    return o;
}

void optical_destroy(struct optical *o)
{
    if (!o) return;
    external_sort_destroy(o->sort);
    free(o);
}

/* ---- items ---- */

static int64_t cell_of(const struct markdup_rules *rules, int64_t coordinate)
{
    int64_t side = rules->optical_distance + 1;
    return coordinate / side - (coordinate % side < 0);
}

int optical_add(struct optical *o, struct duplicate_key set, struct item_read *read,
                struct read_name original)
{
    const struct read_coords *coords = item_read_coords(o->rules, read);
    size_t tile_bytes = (size_t)(coords->end - coords->begin);
    item_begin(&o->writer);
    item_put_key(&o->writer, set);
    item_put_key(&o->writer, duplicate_key_of_text(read->name.text + coords->begin, tile_bytes));
    item_put_number(&o->writer, cell_of(o->rules, coords->x));
    item_put_number(&o->writer, cell_of(o->rules, coords->y));
    item_put_read(&o->writer, read);
    item_put_text(&o->writer, original.text, original.n_bytes);
    return item_add(&o->writer, o->sort);
}

/* Decodes an item and returns the name of the original. */
static struct read_name get_duplicate(const uint8_t *item, struct item_read *read)
{
    const uint8_t *at = item + CELL_BYTES;
    item_get_read(&at, read);
    return item_get_text(&at);
}

/* ---- comparing ---- */

/* Searches another cell for a better duplicate near the best one of this cell. Returns 1 if there
   is one, 0 if not, or -1 after a message. */
static int look_in_cell(struct optical *o, struct external_sort_reader *reader,
                        const uint8_t *cell)
{
    if (!reader->sort) {
        external_sort_read(reader, o->sort);
        if (external_sort_next(reader) < 0) return -1;
    }
    while (reader->item && memcmp(reader->item, cell, CELL_BYTES) < 0)
        if (external_sort_next(reader) < 0) return -1;
    while (item_begins(reader, cell, CELL_BYTES)) {
        struct item_read read;
        (void)get_duplicate(reader->item, &read);
        if (duplicate_rank_is_better(&read, &o->best.read) &&
            item_reads_are_near(o->rules, &read, &o->best.read))
            return 1;
        if (external_sort_next(reader) < 0) return -1;
    }
    return 0;
}

/* The same in all neighbouring cells. */
static int look_around(struct optical *o)
{
    /* Numbers in items are unsigned, with an inverted sign bit. */
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

/* ---- visits ---- */

static int find_best(void *arg, const uint8_t *item, bool is_first)
{
    struct optical *o = arg;
    struct item_read read;
    (void)get_duplicate(item, &read);
    if (is_first) memcpy(o->cell, item, CELL_BYTES);
    if (is_first || duplicate_rank_is_better(&read, &o->best.read)) item_read_keep(&o->best, &read);
    return 0;
}

static int decide_best(void *arg)
{
    struct optical *o = arg;
    struct item_read *best = &o->best.read;
    if (best->is_optical) return 0;
    int r = look_around(o);
    best->is_optical = r > 0;
    return r < 0 ? -1 : 0;
}

static int take_duplicate(void *arg, const uint8_t *item, size_t n_bytes)
{
    struct optical *o = arg;
    const struct item_read *best = &o->best.read;
    struct item_read read;
    struct read_name original = get_duplicate(item, &read);
    (void)n_bytes;
    bool is_best = read.run == best->run && read.index == best->index;
    read.is_optical = !is_best || best->is_optical;
    return o->taker.take(o->taker.arg, &read, original);
}

int optical_resolve(struct optical *o)
{
    static const struct item_visitor visitor = {
        .key_bytes = CELL_BYTES, .look = find_best, .decide = decide_best, .take = take_duplicate};
    int r = item_groups_visit(o->sort, &visitor, o);
    for (size_t i = 0; i < N_AROUND; i++)
        external_sort_reader_release(&o->around[i]);
    external_sort_clear(o->sort);
    return r;
}
