/* flat_reader.c -- see flat_reader.h. */
#include "columns/flat_reader.h"

#include "util/byte_order.h"

static bool damaged(struct flat_view *view)
{
    view->damaged = true;
    return false;
}

/* True if n bytes from `at` on lie in the buffer. */
static bool is_inside(const struct flat_view *view, size_t at, size_t n)
{
    return at <= view->n_bytes && n <= view->n_bytes - at;
}

/* Follows the distance that stands at `at`. Returns false if it leads out of the buffer. */
static bool follow(struct flat_view *view, size_t at, size_t *place)
{
    if (!is_inside(view, at, 4)) return damaged(view);
    uint32_t distance = get_u32(view->bytes + at);
    if (distance == 0 || !is_inside(view, at, distance)) return damaged(view);
    *place = at + distance;
    return true;
}

/* Makes a table of what begins at `at`. */
static bool open_table(struct flat_view *view, size_t at, struct flat_table *table)
{
    if (!is_inside(view, at, 4)) return damaged(view);
    /* The distance to the vtable, which mostly stands before the table, has a sign. */
    int64_t vtable = (int64_t)at - (int32_t)get_u32(view->bytes + at);
    if (vtable < 0 || !is_inside(view, (size_t)vtable, 4)) return damaged(view);
    *table = (struct flat_table){view, at, (size_t)vtable, get_u16(view->bytes + vtable)};
    return is_inside(view, table->vtable, table->vtable_bytes) || damaged(view);
}

bool flat_read_root(struct flat_view *view, struct flat_table *root)
{
    size_t at;
    return follow(view, 0, &at) && open_table(view, at, root);
}

/* Finds a field of n_bytes. Returns false if it is not there. */
static bool find_field(const struct flat_table *table, unsigned field, size_t n_bytes, size_t *at)
{
    size_t entry = 4 + 2 * (size_t)field;
    if (entry + 2 > table->vtable_bytes) return false;
    uint32_t distance = get_u16(table->view->bytes + table->vtable + entry);
    if (distance == 0) return false;
    *at = table->at + distance;
    return is_inside(table->view, *at, n_bytes) || damaged(table->view);
}

uint64_t flat_read_number(const struct flat_table *table, unsigned field, unsigned n_bytes,
                          uint64_t default_value)
{
    size_t at;
    uint64_t value = 0;
    if (!find_field(table, field, n_bytes, &at)) return default_value;
    for (unsigned i = n_bytes; i-- > 0;) value = value << 8 | table->view->bytes[at + i];
    return value;
}

bool flat_read_table(const struct flat_table *table, unsigned field, struct flat_table *inner)
{
    size_t at;
    return find_field(table, field, 4, &at) && follow(table->view, at, &at) &&
           open_table(table->view, at, inner);
}

struct flat_items flat_read_vector(const struct flat_table *table, unsigned field,
                                   size_t item_bytes)
{
    struct flat_view *view = table->view;
    struct flat_items items = {.view = view};
    size_t at;
    if (!find_field(table, field, 4, &at) || !follow(view, at, &at)) return items;
    if (!is_inside(view, at, 4)) {
        (void)damaged(view);
        return items;
    }
    size_t n = get_u32(view->bytes + at);
    items.at = at + 4;
    if (n <= (view->n_bytes - items.at) / item_bytes)
        items.n = n;
    else
        (void)damaged(view);
    return items;
}

const char *flat_read_text(const struct flat_table *table, unsigned field, size_t *n_bytes)
{
    struct flat_items items = flat_read_vector(table, field, 1);
    *n_bytes = items.n;
    return items.at ? (const char *)table->view->bytes + items.at : NULL;
}

bool flat_read_item(const struct flat_items *items, size_t i, struct flat_table *table)
{
    size_t at;
    return follow(items->view, items->at + 4 * i, &at) && open_table(items->view, at, table);
}
