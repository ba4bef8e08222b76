/* barcode_table.c -- see barcode_table.h. */
#include "duplicates/barcode_table.h"

#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

struct named {
    struct duplicate_key name;
    uint64_t barcode;           /* 0: the entry is free */
    uint32_t text_at;
    uint8_t text_bytes;
    bool has_text;
    bool is_ambiguous;          /* there are several */
};

struct barcode_table {
    size_t limit_bytes;
    struct named *slots;
    size_t n_slots, n_used;     /* n_slots is a power of two */
    uint8_t *texts;
    size_t texts_bytes, texts_room;
};

enum { MIN_SLOTS = 64, MIN_BYTES = 64 << 10 };

struct barcode_table *barcode_table_create(size_t limit_bytes)
{
    struct barcode_table *table = xcalloc(1, sizeof *table);
    table->limit_bytes = limit_bytes > MIN_BYTES ? limit_bytes : MIN_BYTES;
    return table;
}

void barcode_table_destroy(struct barcode_table *table)
{
    if (!table) return;
    free(table->slots);
    free(table->texts);
    free(table);
}

void barcode_table_reset(struct barcode_table *table, uint64_t n_names)
{
    /* A third of the limit, at least, is left for texts. */
    size_t n = MIN_SLOTS, most = table->limit_bytes / 3 * 2 / sizeof(struct named);
    while (n * 3 / 4 < n_names && 2 * n <= most) n *= 2;
    if (n != table->n_slots) {
        free(table->slots);
        table->slots = xcalloc(n, sizeof *table->slots);
        table->n_slots = n;
    } else if (table->n_used > 0) {
        memset(table->slots, 0, n * sizeof *table->slots);
    }
    table->n_used = table->texts_bytes = 0;
}

/* The entry of a name, or the free one where it belongs. */
static struct named *find(const struct barcode_table *table, struct duplicate_key name)
{
    size_t mask = table->n_slots - 1, at = (size_t)name.low & mask;
    for (;; at = (at + 1) & mask) {
        struct named *named = &table->slots[at];
        if (named->barcode == 0 || (named->name.low == name.low && named->name.high == name.high))
            return named;
    }
}

bool barcode_table_add(struct barcode_table *table, struct duplicate_key name,
                       const struct duplicate_view *giver)
{
    struct named *named = find(table, name);
    if (named->barcode != 0) {
        named->is_ambiguous |= named->barcode != giver->barcode;
        return true;
    }
    size_t end = table->texts_bytes + (giver->barcode_text ? giver->barcode_bytes : 0);
    /* The array of texts grows by a half, and is there twice while it is copied. */
    if (table->n_used >= table->n_slots * 3 / 4 || end > UINT32_MAX ||
        table->n_slots * sizeof *named + end / 2 * 5 > table->limit_bytes)
        return false;
    *named = (struct named){
        .name = name, .barcode = giver->barcode, .text_at = (uint32_t)table->texts_bytes,
        .text_bytes = giver->barcode_bytes, .has_text = giver->barcode_text != NULL,
    };
    table->n_used++;
    if (!giver->barcode_text) return true;
    xgrow(&table->texts, &table->texts_room, end, end / 2, 1);
    memcpy(table->texts + table->texts_bytes, giver->barcode_text, giver->barcode_bytes);
    table->texts_bytes = end;
    return true;
}

void barcode_table_give(const struct barcode_table *table, struct duplicate_key name,
                        struct duplicate_view *seeker)
{
    const struct named *named = find(table, name);
    if (named->barcode == 0 || named->is_ambiguous) return;
    seeker->barcode = named->barcode;
    if (!named->has_text) return;
    seeker->barcode_text = table->texts + named->text_at;
    seeker->barcode_bytes = named->text_bytes;
}
