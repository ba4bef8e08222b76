/* chain_items.c -- see chain_items.h. */
#include "pipeline/chain_items.h"

#include "util/byte_order.h"

/* In an order. */
enum { RUN_AT = 9, ORDINAL_AT = 13, ORDINAL_BYTES = DUPLICATE_ORDINAL_BITS / 8 };

static uint8_t *put_signed(uint8_t *at, int64_t number)
{
    return put_big_endian(at, (uint64_t)number ^ UINT64_C(1) << 63, 8);
}

static int64_t get_signed(const uint8_t *at)
{
    return (int64_t)(get_big_endian(at, 8) ^ UINT64_C(1) << 63);
}

/* ---- reads ---- */

struct item_order item_order_of(const struct duplicate_view *view, uint32_t run)
{
    struct item_order order;
    uint8_t *at = put_signed(order.bytes, view->pos);
    *at++ = view->is_reverse;
    at = put_big_endian(at, run, 4);
    (void)put_big_endian(at, view->ordinal, ORDINAL_BYTES);
    return order;
}

void item_read_keep(struct item_read *kept, const struct item_read *read)
{
    kept->view = read->view;
    kept->run = read->run;
    kept->order = read->order;
    kept->has_coords = read->has_coords;
    kept->coords = read->coords;
    if (!read->view.name) return;
    memcpy(kept->name, read->view.name, read->view.name_bytes);
    kept->view.name = kept->name;
}

const struct read_coords *item_coords(const struct duplicate_rules *rules, struct item_read *read)
{
    char name[256];
    if (read->has_coords) return &read->coords;
    memcpy(name, read->view.name, read->view.name_bytes);
    name[read->view.name_bytes] = '\0';
    read->coords = read_coords_of(rules, name);
    read->has_coords = true;
    return &read->coords;
}

bool item_are_near(const struct duplicate_rules *rules, struct item_read *a, struct item_read *b)
{
    return read_coords_near(item_coords(rules, a), (const char *)a->view.name,
                            item_coords(rules, b), (const char *)b->view.name,
                            rules->optical_distance);
}

struct item_found item_found_by(const struct duplicate_rules *rules, struct item_read *read,
                                struct item_read *by)
{
    struct item_found found = {.is_known = true, .by = by->order};
    if (rules->optical_distance > 0)
        found.is_optical = found.was_optical = item_are_near(rules, read, by);
    if (rules->names_original && (!rules->checks_chains || read->view.has_others)) {
        found.has_name = true;
        found.name = by->view.name;
        found.name_bytes = by->view.name_bytes;
    }
    return found;
}

/* The view of a read of which only the order is known, and its name. */
static struct duplicate_view view_of_order(const struct item_order *order, int32_t ref)
{
    return (struct duplicate_view){
        .ref = ref, .pos = get_signed(order->bytes), .is_reverse = order->bytes[8],
        .ordinal = get_big_endian(order->bytes + ORDINAL_AT, ORDINAL_BYTES) &
                   DUPLICATE_ORDINAL_MASK,
    };
}

int item_give_duplicate(const struct chain_taker *taker, const struct item_read *read,
                        const struct item_found *found, const uint8_t *original,
                        size_t original_bytes)
{
    struct chain_member better = {.view = {.name = original}};
    struct chain_member by = {.view = view_of_order(&found->by, read->view.ref)};
    better.view.name_bytes = (uint8_t)original_bytes;
    by.run = (uint32_t)get_big_endian(found->by.bytes + RUN_AT, 4);
    by.view.name = found->name;
    by.view.name_bytes = (uint8_t)found->name_bytes;
    const struct chain_member member = {
        .view = read->view, .run = read->run, .is_duplicate = true,
        .is_optical = found->is_optical, .was_optical = found->was_optical,
        .original = &better, .found_by = &by,
    };
    return taker->take(taker->arg, &member);
}

/* ---- writing ---- */

void item_put_key(struct item_writer *writer, struct duplicate_key key)
{
    writer->at = put_big_endian(writer->at, key.high, 8);
    writer->at = put_big_endian(writer->at, key.low, 8);
}

void item_put_order(struct item_writer *writer, const struct item_order *order)
{
    item_put_bytes(writer, order->bytes, sizeof order->bytes);
}

void item_put_bytes(struct item_writer *writer, const uint8_t *bytes, size_t n_bytes)
{
    if (n_bytes > 0) memcpy(writer->at, bytes, n_bytes);
    writer->at += n_bytes;
}

void item_put_number(struct item_writer *writer, int64_t number)
{
    writer->at = put_signed(writer->at, number);
}

enum { KNOWN = 1, FOLLOWS_SINGLE = 2, OPTICAL = 4, WAS_OPTICAL = 8, HAS_NAME = 16 };

void item_put_found(struct item_writer *writer, const struct item_found *found)
{
    *writer->at++ = (uint8_t)((found->is_known ? KNOWN : 0) |
                              (found->follows_single ? FOLLOWS_SINGLE : 0) |
                              (found->is_optical ? OPTICAL : 0) |
                              (found->was_optical ? WAS_OPTICAL : 0) |
                              (found->has_name ? HAS_NAME : 0));
    if (!found->is_known) return;
    item_put_order(writer, &found->by);
    if (!found->has_name) return;
    *writer->at++ = (uint8_t)found->name_bytes;
    item_put_bytes(writer, found->name, found->name_bytes);
}

void item_put_view(struct item_writer *writer, const struct duplicate_view *view)
{
    view_coder_begin(&writer->coder);
    writer->at = view_encode(&writer->coder, view, writer->at);
    memset(writer->at, 0, VIEW_CODE_SLACK_BYTES);
    writer->at += VIEW_CODE_SLACK_BYTES;
}

int item_add(const struct item_writer *writer, struct temp_sort *sort)
{
    return temp_sort_add(sort, writer->bytes, (size_t)(writer->at - writer->bytes));
}

/* ---- reading ---- */

void item_reader_begin(struct item_reader *reader, const struct temp_sort *sort)
{
    temp_sort_read(&reader->items, sort);
    reader->at = NULL;
}

void item_reader_release(struct item_reader *reader)
{
    temp_sort_reader_release(&reader->items);
}

int item_reader_next(struct item_reader *reader)
{
    int r = temp_sort_next(&reader->items);
    reader->at = reader->items.item;
    return r;
}

int item_readers_begin(struct item_reader *lead, struct item_reader *follow,
                       struct temp_sort *sort)
{
    if (temp_sort_finish(sort) < 0) return -1;
    item_reader_begin(lead, sort);
    item_reader_begin(follow, sort);
    return item_reader_next(lead) < 0 || item_reader_next(follow) < 0 ? -1 : 0;
}

void item_readers_end(struct item_reader *lead, struct item_reader *follow,
                      struct temp_sort **sort)
{
    item_reader_release(lead);
    item_reader_release(follow);
    temp_sort_destroy(*sort);
    *sort = NULL;
}

bool item_begins(const struct item_reader *reader, const uint8_t *bytes, size_t n_bytes)
{
    return reader->items.n_bytes >= n_bytes && memcmp(reader->items.item, bytes, n_bytes) == 0;
}

const uint8_t *item_get_bytes(struct item_reader *reader, size_t n_bytes)
{
    const uint8_t *bytes = reader->at;
    reader->at += n_bytes;
    return bytes;
}

struct duplicate_key item_key(const uint8_t *bytes)
{
    return (struct duplicate_key){
        .high = get_big_endian(bytes, 8), .low = get_big_endian(bytes + 8, 8),
    };
}

struct duplicate_key item_get_key(struct item_reader *reader)
{
    return item_key(item_get_bytes(reader, 16));
}

int64_t item_get_number(struct item_reader *reader)
{
    return get_signed(item_get_bytes(reader, 8));
}

void item_get_found(struct item_reader *reader)
{
    unsigned flags = *reader->at++;
    struct item_found *found = &reader->found;
    *found = (struct item_found){
        .is_known = flags & KNOWN, .follows_single = flags & FOLLOWS_SINGLE,
        .is_optical = flags & OPTICAL, .was_optical = flags & WAS_OPTICAL,
        .has_name = flags & HAS_NAME,
    };
    if (!found->is_known) return;
    memcpy(found->by.bytes, item_get_bytes(reader, sizeof found->by.bytes),
           sizeof found->by.bytes);
    if (!found->has_name) return;
    found->name_bytes = *reader->at++;
    found->name = item_get_bytes(reader, found->name_bytes);
}

void item_get_view(struct item_reader *reader, const uint8_t *order)
{
    struct item_read *read = &reader->read;
    memcpy(read->order.bytes, order, sizeof read->order.bytes);
    read->run = (uint32_t)get_big_endian(order + RUN_AT, 4);
    read->has_coords = false;
    view_coder_begin(&reader->coder);
    view_decode(&reader->coder, &reader->at, &read->view);
    reader->at += VIEW_CODE_SLACK_BYTES;
}
