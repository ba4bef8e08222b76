/*
 * optical.c -- see optical.h.
 *
 * The flow cell is divided into square cells of which the sides are one longer than the optical
 * distance, so all reads in a cell are near to each other. Items are sorted by set, tile and cell.
 * One reader finds the best duplicate of each cell, and another one, which follows, gives all
 * duplicates of the cell to the taker: all but the best are near to a better one. The best is
 * compared with the duplicates in the eight cells around it. When one goes from cell to cell, each
 * of the eight is a cell that goes through all of them, too, in the same order. So each has a
 * reader of its own, which never goes back.
 */
#include "pipeline/optical.h"

#include "util/byte_order.h"
#include "util/xalloc.h"

#include <stdlib.h>

enum {
    KIND_AT = ITEM_KEY_BYTES, /* IS_SET or IS_DUPLICATE */
    TILE_AT = KIND_AT + 1,
    X_AT = TILE_AT + ITEM_KEY_BYTES,
    Y_AT = X_AT + 8,
    CELL_BYTES = Y_AT + 8,
    LEAD = 0,
    FOLLOW = 1,
    AROUND = 2,
    N_READERS = AROUND + 8,
};

enum { IS_SET, IS_DUPLICATE };

/* A duplicate, as its item says. */
struct point {
    struct item_read read;
    int64_t x, y;
};

struct optical {
    const struct duplicate_rules *rules;
    struct duplicate_taker taker;
    struct external_sort *sort;
    struct item_writer writer;
    struct external_sort_reader readers[N_READERS];
    uint8_t cell[CELL_BYTES]; /* that is looked at */
    struct kept_read best;    /* of the cell */
    int64_t best_x, best_y;
    uint8_t best_name[256]; /* of the set */
    size_t best_name_bytes;
};

struct optical *optical_create(const struct duplicate_rules *rules,
                               const struct external_sort_settings *settings,
                               struct duplicate_taker taker)
{
    struct optical *o = xcalloc(1, sizeof *o);
    o->rules = rules;
    o->taker = taker;
    o->sort = external_sort_create(settings);
    return o;
}

void optical_destroy(struct optical *o)
{
    if (!o) return;
    item_readers_end(o->sort, o->readers, N_READERS);
    external_sort_destroy(o->sort);
    free(o);
}

/* ---- items ---- */

int optical_begin_set(struct optical *o, struct duplicate_key set, struct read_name best)
{
    item_begin(&o->writer);
    item_put_key(&o->writer, set);
    item_put_bytes(&o->writer, &(uint8_t){IS_SET}, 1);
    item_put_text(&o->writer, best.text, best.n_bytes);
    return item_add(&o->writer, o->sort);
}

static int64_t cell_of(const struct duplicate_rules *rules, int64_t coordinate)
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

static void get_point(const struct external_sort_reader *reader, struct point *point)
{
    const uint8_t *at = reader->item + CELL_BYTES;
    item_get_read(&at, &point->read);
    point->x = item_get_number(&at);
    point->y = item_get_number(&at);
}

/* ---- comparing ---- */

static bool is_within(int64_t a, int64_t b, int64_t distance)
{
    uint64_t difference = a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
    return difference <= (uint64_t)distance;
}

/* Of a point on the tile of the best one of the cell. */
static bool is_near_to_best(const struct optical *o, const struct point *point)
{
    return is_within(point->x, o->best_x, o->rules->optical_distance) &&
           is_within(point->y, o->best_y, o->rules->optical_distance);
}

/* Looks in another cell for a duplicate that is better than the best one of the cell, and near to
   it. Returns 1 if there is one, 0 if not, or -1 after a message. */
static int look_in_cell(struct optical *o, struct external_sort_reader *reader, const uint8_t *cell)
{
    while (reader->item && memcmp(reader->item, cell,
                                  reader->item[KIND_AT] == IS_SET ? KIND_AT + 1 : CELL_BYTES) < 0)
        if (external_sort_next(reader) < 0) return -1;
    while (item_begins(reader, cell, CELL_BYTES)) {
        struct point point;
        get_point(reader, &point);
        if (duplicate_rank_is_better(&point.read, &o->best.read) && is_near_to_best(o, &point))
            return 1;
        if (external_sort_next(reader) < 0) return -1;
    }
    return 0;
}

/* The same in all cells around this one. */
static int look_around(struct optical *o)
{
    /* Items have numbers with their sign bit turned over: these are not signed. */
    uint64_t x = get_big_endian(o->cell + X_AT, 8), y = get_big_endian(o->cell + Y_AT, 8);
    size_t n = AROUND;
    int r = 0;
    for (int dx = -1; dx <= 1 && r == 0; dx++)
        for (int dy = -1; dy <= 1 && r == 0; dy++) {
            uint8_t cell[CELL_BYTES];
            if (dx == 0 && dy == 0) continue;
            memcpy(cell, o->cell, sizeof cell);
            (void)put_big_endian(cell + X_AT, x + (uint64_t)dx, 8);
            (void)put_big_endian(cell + Y_AT, y + (uint64_t)dy, 8);
            r = look_in_cell(o, &o->readers[n++], cell);
        }
    return r;
}

/* Finds the best duplicate of the cell at which the leading reader is. Returns how many there are,
   or -1 after a message. */
static int64_t find_best(struct optical *o)
{
    struct external_sort_reader *lead = &o->readers[LEAD];
    int64_t n = 0;
    memcpy(o->cell, lead->item, CELL_BYTES);
    while (item_begins(lead, o->cell, CELL_BYTES)) {
        struct point point;
        get_point(lead, &point);
        if (n++ == 0 || duplicate_rank_is_better(&point.read, &o->best.read)) {
            item_read_keep(&o->best, &point.read);
            o->best_x = point.x;
            o->best_y = point.y;
        }
        if (external_sort_next(lead) < 0) return -1;
    }
    return n;
}

static int resolve_cell(struct optical *o)
{
    struct external_sort_reader *follow = &o->readers[FOLLOW];
    struct item_read *best = &o->best.read;
    int64_t n = find_best(o);
    if (n < 0) return -1;
    if (!best->is_optical) {
        int r = look_around(o);
        if (r < 0) return -1;
        best->is_optical = r > 0;
    }
    for (int64_t i = 0; i < n; i++) {
        struct point point;
        get_point(follow, &point);
        bool is_best = point.read.run == best->run && point.read.index == best->index;
        point.read.is_optical = !is_best || best->is_optical;
        if (o->taker.take(o->taker.arg, &point.read,
                          (struct read_name){o->best_name, o->best_name_bytes}) < 0 ||
            external_sort_next(follow) < 0)
            return -1;
    }
    return 0;
}

static int begin_set(struct optical *o)
{
    const uint8_t *at = o->readers[LEAD].item + KIND_AT + 1;
    struct read_name best = item_get_text(&at);
    if (best.n_bytes > 0) memcpy(o->best_name, best.text, best.n_bytes);
    o->best_name_bytes = best.n_bytes;
    return external_sort_next(&o->readers[LEAD]) < 0 || external_sort_next(&o->readers[FOLLOW]) < 0
               ? -1
               : 0;
}

int optical_resolve(struct optical *o)
{
    int r = item_readers_begin(o->sort, o->readers, N_READERS);
    while (r == 0 && o->readers[LEAD].item)
        r = o->readers[LEAD].item[KIND_AT] == IS_SET ? begin_set(o) : resolve_cell(o);
    item_readers_end(o->sort, o->readers, N_READERS);
    return r;
}
