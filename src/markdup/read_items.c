/* read_items.c -- see read_items.h. */
#include "markdup/read_items.h"

#include "util/byte_order.h"

#include <stddef.h>

/* ---- moments ---- */

static uint8_t *put_signed(uint8_t *at, int64_t number)
{
    return put_big_endian(at, (uint64_t)number ^ UINT64_C(1) << 63, 8);
}

static struct read_moment read_moment_of(const struct read_ends *ends, uint32_t run)
{
    struct read_moment moment;
    uint8_t *at = put_big_endian(moment.bytes, (uint32_t)ends->ref ^ UINT32_C(1) << 31, 4);
    at = put_signed(at, ends->pos);
    *at++ = ends->is_reverse;
    at = put_big_endian(at, run, 4);
    (void)put_big_endian(at, ends->ordinal, DUPLICATE_ORDINAL_BITS / 8);
    return moment;
}

int32_t read_moment_reference(const struct read_moment *moment)
{
    return (int32_t)((uint32_t)get_big_endian(moment->bytes, 4) ^ UINT32_C(1) << 31);
}

int64_t read_moment_position(const struct read_moment *moment)
{
    return (int64_t)(get_big_endian(moment->bytes + 4, 8) ^ UINT64_C(1) << 63);
}

/* ---- reads ---- */

void item_read_ends(const struct read_ends *ends, uint32_t run, struct item_read *read)
{
    read->run = run;
    read->index = ends->index;
    read->group = ends->group;
    read->is_paired = ends->kind != READ_ENDS_SINGLE;
    read->failed_qc = ends->failed_qc;
    read->has_others = ends->has_others;
    read->lacks_score = ends->lacks_score;
    read->was_marked = ends->was_marked;
    read->score = ends->score;
    read->name = (struct read_name){ends->name, ends->name ? ends->name_bytes : 0};
    read->moment = read_moment_of(ends, run);
    read->is_found = read->is_optical = read->was_optical = false;
    read->has_local = read->has_coords = false;
}

static void keep_text(uint8_t *to, struct read_name *text)
{
    if (!text->text) return;
    memcpy(to, text->text, text->n_bytes);
    text->text = to;
}

void item_read_keep(struct kept_read *kept, const struct item_read *read)
{
    kept->read = *read;
    keep_text(kept->texts[0], &kept->read.name);
    if (read->is_found) keep_text(kept->texts[1], &kept->read.by_name);
    if (read->has_local) keep_text(kept->texts[2], &kept->read.local.barcode);
}

const struct read_coords *item_read_coords(const struct markdup_rules *rules,
                                           struct item_read *read)
{
    char name[256];
    if (read->has_coords) return &read->coords;
    if (read->name.n_bytes > 0) memcpy(name, read->name.text, read->name.n_bytes);
    name[read->name.n_bytes] = '\0';
    read->coords = read_coords_of(rules, name);
    read->has_coords = true;
    return &read->coords;
}

bool item_reads_are_near(const struct markdup_rules *rules, struct item_read *a,
                         struct item_read *b)
{
    return read_coords_near(item_read_coords(rules, a), (const char *)a->name.text,
                            item_read_coords(rules, b), (const char *)b->name.text,
                            rules->optical_distance);
}

/* ---- writing ---- */

void item_put_bytes(struct item_writer *writer, const void *bytes, size_t n_bytes)
{
    if (n_bytes > 0) memcpy(writer->at, bytes, n_bytes);
    writer->at += n_bytes;
}

void item_put_key(struct item_writer *writer, struct duplicate_key key)
{
    writer->at = put_big_endian(writer->at, key.high, 8);
    writer->at = put_big_endian(writer->at, key.low, 8);
}

void item_put_number(struct item_writer *writer, int64_t number)
{
    writer->at = put_signed(writer->at, number);
}

void item_put_text(struct item_writer *writer, const uint8_t *text, size_t n_bytes)
{
    *writer->at++ = (uint8_t)n_bytes;
    item_put_bytes(writer, text, n_bytes);
}

/* The fields that are copied as bytes. */
enum {
    FACTS_AT = offsetof(struct item_read, score),
    FACTS_BYTES = sizeof(int64_t) + 3 * sizeof(uint32_t) + 1,
};

_Static_assert(offsetof(struct item_read, group) + sizeof(uint32_t) + 1 == FACTS_AT + FACTS_BYTES,
               "the flags follow, in one byte");

void item_put_read(struct item_writer *writer, const struct item_read *read)
{
    bool has_coords = read->has_coords && read->coords.known;
    item_put_bytes(writer, read->moment.bytes, sizeof read->moment.bytes);
    *writer->at++ = (uint8_t)(read->is_found | has_coords << 1);
    item_put_bytes(writer, (const uint8_t *)read + FACTS_AT, FACTS_BYTES);
    item_put_text(writer, read->name.text, read->name.n_bytes);
    if (read->is_found) {
        item_put_bytes(writer, read->by.bytes, sizeof read->by.bytes);
        item_put_text(writer, read->by_name.text, read->by_name.n_bytes);
    }
    if (has_coords) item_put_bytes(writer, &read->coords, READ_COORDS_BYTES);
    if (!read->has_local) return;
    item_put_key(writer, read->local.key);
    item_put_number(writer, read->local.here);
    item_put_text(writer, read->local.barcode.text, read->local.barcode.n_bytes);
}

/* ---- reading ---- */

static const uint8_t *item_get_bytes(const uint8_t **at, size_t n_bytes)
{
    const uint8_t *bytes = *at;
    *at += n_bytes;
    return bytes;
}

struct duplicate_key item_get_key(const uint8_t **at)
{
    const uint8_t *bytes = item_get_bytes(at, ITEM_KEY_BYTES);
    return (struct duplicate_key){
        .high = get_big_endian(bytes, 8),
        .low = get_big_endian(bytes + 8, 8),
    };
}

struct read_name item_get_text(const uint8_t **at)
{
    size_t n_bytes = *(*at)++;
    const uint8_t *text = item_get_bytes(at, n_bytes);
    return (struct read_name){n_bytes > 0 ? text : NULL, n_bytes};
}

void item_get_read(const uint8_t **at, struct item_read *read)
{
    memcpy(read->moment.bytes, item_get_bytes(at, sizeof read->moment.bytes),
           sizeof read->moment.bytes);
    unsigned flags = *(*at)++;
    read->is_found = flags & 1;
    read->has_coords = flags & 2;
    memcpy((uint8_t *)read + FACTS_AT, item_get_bytes(at, FACTS_BYTES), FACTS_BYTES);
    read->name = item_get_text(at);
    if (read->is_found) {
        memcpy(read->by.bytes, item_get_bytes(at, sizeof read->by.bytes), sizeof read->by.bytes);
        read->by_name = item_get_text(at);
    }
    if (read->has_coords)
        memcpy(&read->coords, item_get_bytes(at, READ_COORDS_BYTES), READ_COORDS_BYTES);
    if (!read->has_local) return;
    read->local.key = item_get_key(at);
    read->local.here =
        (int64_t)(get_big_endian(item_get_bytes(at, 8), 8) ^ UINT64_C(1) << 63);
    read->local.barcode = item_get_text(at);
}

/* ---- groups ---- */

/* Shows the group that begins at `lead` to the visitor. Returns 1 if another group follows, 0 if
   none does, or -1. */
static int look_at_group(const struct item_visitor *v, void *arg,
                         struct external_sort_reader *lead, size_t *n)
{
    uint8_t key[MOST_GROUP_KEY_BYTES];
    int r = 1;
    memcpy(key, lead->item, v->key_bytes);
    for (*n = 0; r > 0 && item_begins(lead, key, v->key_bytes); ++*n)
        r = v->look(arg, lead->item, *n == 0) < 0 ? -1 : external_sort_next(lead);
    return r;
}

static int take_group(const struct item_visitor *v, void *arg,
                      struct external_sort_reader *follow, size_t n)
{
    if (v->decide(arg) < 0) return -1;
    for (; n > 0; n--)
        if (external_sort_next(follow) < 0 ||
            v->take(arg, follow->item, follow->n_bytes) < 0)
            return -1;
    return 0;
}

int item_groups_visit(struct external_sort *sort, const struct item_visitor *v, void *arg)
{
    struct external_sort_reader lead = {0}, follow = {0};
    int r = external_sort_finish(sort);
    external_sort_read(&lead, sort);
    external_sort_read(&follow, sort);
    if (r == 0) r = external_sort_next(&lead);
    while (r > 0) {
        size_t n;
        if (v->skips_alone && external_sort_is_alone(&lead)) {
            r = external_sort_next(&follow) < 0 ? -1 : external_sort_next(&lead);
            continue;
        }
        r = look_at_group(v, arg, &lead, &n);
        if (r >= 0 && take_group(v, arg, &follow, n) < 0) r = -1;
    }
    external_sort_reader_release(&lead);
    external_sort_reader_release(&follow);
    return r;
}
