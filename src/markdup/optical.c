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

enum {
    KIND_AT = ITEM_KEY_BYTES, /* IS_SET or IS_DUPLICATE */
    TILE_AT = KIND_AT + 1,
    X_AT = TILE_AT + ITEM_KEY_BYTES,
    Y_AT = X_AT + 8,
    CELL_BYTES = Y_AT + 8,
    N_AROUND = 8,
};

enum { IS_SET, IS_DUPLICATE };

/* A decoded item of a duplicate. */
struct point {
    struct item_read read;
    int64_t x, y;
};

struct optical {
    const struct markdup_rules *rules;
    struct duplicate_taker taker;
    struct external_sort *sort;
    struct item_writer writer;
    struct external_sort_reader around[N_AROUND];
    uint8_t cell[CELL_BYTES]; /* the current cell */
    struct kept_read best;    /* of the cell */
    int64_t best_x, best_y;
    uint8_t best_name[256]; /* of the set */
    size_t best_name_bytes;
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

int optical_begin_set(struct optical *o, struct duplicate_key set, struct read_name best)
{
    item_begin(&o->writer);
    item_put_key(&o->writer, set);
    item_put_bytes(&o->writer, &(uint8_t){IS_SET}, 1);
    item_put_bytes(&o->writer, (uint8_t[CELL_BYTES - TILE_AT]){0}, CELL_BYTES - TILE_AT);
    item_put_text(&o->writer, best.text, best.n_bytes);
    return item_add(&o->writer, o->sort);
}

static int64_t cell_of(const struct markdup_rules *rules, int64_t coordinate)
{
    int64_t side = rules->optical_distance + 1;
    return coordinate / side - (coordinate % side < 0);
}

int optical_add(struct optical *o, struct duplicate_key set, struct item_read *read)
{
    const struct read_coords *coords = item_read_coords(o->rules, read);
    size_t tile_bytes = (size_t)(coords->end - coords->begin);
    item_begin(&o->writer);
    item_put_key(&o->writer, set);
    item_put_bytes(&o->writer, &(uint8_t){IS_DUPLICATE}, 1);
    item_put_key(&o->writer, duplicate_key_of_text(read->name.text + coords->begin, tile_bytes));
    item_put_number(&o->writer, cell_of(o->rules, coords->x));
    item_put_number(&o->writer, cell_of(o->rules, coords->y));
    item_put_read(&o->writer, read);
    item_put_number(&o->writer, coords->x);
    item_put_number(&o->writer, coords->y);
    return item_add(&o->writer, o->sort);
}

static void get_point(const uint8_t *item, struct point *point)
{
    const uint8_t *at = item + CELL_BYTES;
    item_get_read(&at, &point->read);
    point->x = item_get_number(&at);
    point->y = item_get_number(&at);
}

/* ---- comparing ---- */

/* True if a point is near the best one of the cell; both are on the same tile. */
static bool is_near_to_best(const struct optical *o, const struct point *point)
{
    return read_coords_within(point->x, o->best_x, o->rules->optical_distance) &&
           read_coords_within(point->y, o->best_y, o->rules->optical_distance);
}

/* Searches another cell for a better duplicate near the best one of this cell. Returns 1 if there
   is one, 0 if not, or -1 after a message. */
static int look_in_cell(const struct optical *o, struct external_sort_reader *reader,
                        const uint8_t *cell)
{
    if (!reader->sort) {
        external_sort_read(reader, o->sort);
        if (external_sort_next(reader) < 0) return -1;
    }
    while (reader->item && memcmp(reader->item, cell, CELL_BYTES) < 0)
        if (external_sort_next(reader) < 0) return -1;
    while (item_begins(reader, cell, CELL_BYTES)) {
        struct point point;
        get_point(reader->item, &point);
        if (duplicate_rank_is_better(&point.read, &o->best.read) && is_near_to_best(o, &point))
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
    struct point point;
    if (is_first) memcpy(o->cell, item, CELL_BYTES);
    if (item[KIND_AT] == IS_SET) {
        const uint8_t *at = item + CELL_BYTES;
        struct read_name best = item_get_text(&at);
        if (best.n_bytes > 0) memcpy(o->best_name, best.text, best.n_bytes);
        o->best_name_bytes = best.n_bytes;
        return 0;
    }
    get_point(item, &point);
    if (is_first || duplicate_rank_is_better(&point.read, &o->best.read)) {
        item_read_keep(&o->best, &point.read);
        o->best_x = point.x;
        o->best_y = point.y;
    }
    return 0;
}

static int decide_best(void *arg)
{
    struct optical *o = arg;
    struct item_read *best = &o->best.read;
    if (o->cell[KIND_AT] == IS_SET || best->is_optical) return 0;
    int r = look_around(o);
    best->is_optical = r > 0;
    return r < 0 ? -1 : 0;
}

static int take_point(void *arg, const uint8_t *item, size_t n_bytes)
{
    struct optical *o = arg;
    const struct item_read *best = &o->best.read;
    struct point point;
    (void)n_bytes;
    if (item[KIND_AT] == IS_SET) return 0;
    get_point(item, &point);
    bool is_best = point.read.run == best->run && point.read.index == best->index;
    point.read.is_optical = !is_best || best->is_optical;
    return o->taker.take(o->taker.arg, &point.read,
                         (struct read_name){o->best_name, o->best_name_bytes});
}

int optical_resolve(struct optical *o)
{
    static const struct item_visitor visitor = {
        .key_bytes = CELL_BYTES, .look = find_best, .decide = decide_best, .take = take_point};
    int r = item_groups_visit(o->sort, &visitor, o);
    for (size_t i = 0; i < N_AROUND; i++)
        external_sort_reader_release(&o->around[i]);
    external_sort_clear(o->sort);
    return r;
}
