/* duplicate_table.c -- see duplicate_table.h. */
#include "duplicates/duplicate_table.h"

#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

struct best {
    struct duplicate_key key;
    int64_t score, place;
    uint32_t run, index;
    uint32_t group;
    uint32_t name_at;
    uint8_t name_bytes, name_room;
    bool is_used, failed_qc, has_others, has_name, lacks_score, was_marked;
    bool met_pair;              /* a single read: it is a duplicate of a pair */
    bool was_optical, turned_optical;   /* of a name */
    uint64_t ordinal : DUPLICATE_ORDINAL_BITS;
};

_Static_assert(sizeof(struct best) == 64, "an entry is a line of the cache");

struct duplicate_table {
    size_t limit_bytes;
    struct best *slots;         /* aligned to their size */
    size_t n_slots, n_used;     /* n_slots is a power of two */
    uint8_t *names;
    size_t names_bytes, names_room;
    uint8_t lost_name[256];     /* of the record that was returned last */
};

enum {
    MIN_SLOTS = 64,
    MIN_BYTES = 64 << 10,       /* less than some hundred reads at a time would take forever */
};

struct duplicate_table *duplicate_table_create(size_t limit_bytes)
{
    struct duplicate_table *table = xcalloc(1, sizeof *table);
    table->limit_bytes = limit_bytes > MIN_BYTES ? limit_bytes : MIN_BYTES;
    return table;
}

void duplicate_table_destroy(struct duplicate_table *table)
{
    if (!table) return;
    free(table->slots);
    free(table->names);
    free(table);
}

static size_t slots_for(const struct duplicate_table *table, uint64_t n_views)
{
    size_t n = MIN_SLOTS;
    /* Half of the limit is left for names. */
    while (n * 3 / 4 < n_views && 2 * n * sizeof(struct best) <= table->limit_bytes / 2) n *= 2;
    return n;
}

static struct best *create_slots(size_t n)
{
    void *slots = NULL;
    xalloc_require(posix_memalign(&slots, sizeof(struct best), n * sizeof(struct best)) == 0);
    memset(slots, 0, n * sizeof(struct best));
    return slots;
}

void duplicate_table_reset(struct duplicate_table *table, uint64_t n_views)
{
    size_t n = slots_for(table, n_views);
    if (n > table->n_slots || n < table->n_slots / 4) {
        free(table->slots);
        table->slots = create_slots(n);
        table->n_slots = n;
    } else if (table->n_used > 0) {
        memset(table->slots, 0, table->n_slots * sizeof *table->slots);
    }
    table->n_used = table->names_bytes = 0;
}

bool duplicate_table_is_empty(const struct duplicate_table *table)
{
    return table->n_used == 0;
}

/* ---- keys ---- */

static struct duplicate_key hash_words(const uint64_t *words, size_t n_bytes)
{
    XXH128_hash_t hash = XXH3_128bits(words, n_bytes);
    return (struct duplicate_key){hash.low64, hash.high64};
}

struct duplicate_key duplicate_key_of_pair(const struct duplicate_rules *rules,
                                           const struct duplicate_view *view)
{
    uint64_t group = duplicate_rules_keep_groups_apart(rules) ? view->group : 0;
    const uint64_t words[] = {
        (uint64_t)view->here, (uint64_t)view->there,
        (uint64_t)(uint32_t)view->ref << 32 | (uint32_t)view->mate_ref,
        group << 8 | (uint64_t)view->orientation << 1 | view->is_left,
        view->barcode,
    };
    return hash_words(words, sizeof words);
}

/* Hashes other numbers of words than the key of a pair has: both may be keys of chains. */
struct duplicate_key duplicate_key_of_single(const struct duplicate_rules *rules,
                                             const struct duplicate_view *view)
{
    int64_t here = view->here, other = view->other_place;
    uint64_t ref = (uint64_t)(uint32_t)view->ref << 1;
    uint64_t group = duplicate_rules_keep_groups_apart(rules) ? view->group : 0;
    if (rules->ignores_strand) {
        bool is_end = here > other;
        const uint64_t words[] = {
            (uint64_t)(is_end ? other : here), (uint64_t)(is_end ? here : other), ref, group,
            view->barcode, 0,
        };
        return hash_words(words, sizeof words);
    }
    const uint64_t words[] = {
        (uint64_t)(view->kind == VIEW_PAIR ? other : here), ref | view->is_reverse, group,
        view->barcode,
    };
    return hash_words(words, sizeof words);
}

struct duplicate_key duplicate_key_of_name(const uint8_t *name, size_t n_bytes)
{
    XXH128_hash_t hash = XXH3_128bits(name, n_bytes);
    return (struct duplicate_key){hash.low64, hash.high64};
}

/* ---- entries ---- */

/* The entry of a key, or the free one where it belongs. */
static struct best *find(const struct duplicate_table *table, struct duplicate_key key)
{
    size_t mask = table->n_slots - 1, at = (size_t)key.low & mask;
    for (;; at = (at + 1) & mask) {
        struct best *best = &table->slots[at];
        if (!best->is_used || (best->key.low == key.low && best->key.high == key.high)) return best;
    }
}

/* The free entry for a new key; free_slot: where find has ended. Doubles the slots if 3 of 4 are
   used. NULL: there is no room. */
static struct best *reserve_slot(struct duplicate_table *table, struct duplicate_key key,
                                 struct best *free_slot)
{
    size_t n_before = table->n_slots;
    if (table->n_used < n_before / 4 * 3) return free_slot;
    if (3 * n_before * sizeof(struct best) + table->names_bytes > table->limit_bytes) return NULL;
    struct best *before = table->slots;
    table->slots = create_slots(2 * n_before);
    table->n_slots = 2 * n_before;
    for (size_t i = 0; i < n_before; i++)
        if (before[i].is_used) *find(table, before[i].key) = before[i];
    free(before);
    return find(table, key);
}

/* Stores the name of a best read. Returns false if there is no room. */
static bool set_name(struct duplicate_table *table, struct best *best,
                     const struct duplicate_view *view)
{
    best->has_name = view->name != NULL;
    if (!view->name) return true;
    if (view->name_bytes > best->name_room || best->name_room == 0) {
        size_t room = view->name_bytes + 1, end = table->names_bytes + room;
        if (table->n_slots * sizeof(struct best) + end > table->limit_bytes || end > UINT32_MAX)
            return false;
        xgrow(&table->names, &table->names_room, end, end / 4, 1);
        best->name_at = (uint32_t)table->names_bytes;
        best->name_room = (uint8_t)view->name_bytes;
        table->names_bytes = end;
    }
    memcpy(table->names + best->name_at, view->name, view->name_bytes);
    best->name_bytes = (uint8_t)view->name_bytes;
    return true;
}

static bool fill(struct duplicate_table *table, struct best *best, struct duplicate_key key,
                 const struct duplicate_view *view, int64_t place, uint32_t run)
{
    struct best filled = *best;
    if (!set_name(table, &filled, view)) return false;
    filled.key = key;
    filled.score = view->score;
    filled.place = place;
    filled.run = run;
    filled.index = view->index;
    filled.ordinal = view->ordinal;
    filled.group = view->group;
    filled.is_used = true;
    filled.failed_qc = view->failed_qc;
    filled.has_others = view->has_others;
    filled.lacks_score = view->lacks_score;
    filled.was_marked = view->was_marked;
    *best = filled;
    return true;
}

/* Describes a best read that is one no more. */
static void tell_best(struct duplicate_table *table, const struct best *best,
                      struct duplicate_record *record)
{
    *record = (struct duplicate_record){
        .place = best->place, .run = best->run, .index = best->index, .ordinal = best->ordinal,
        .has_others = best->has_others, .was_marked = best->was_marked, .group = best->group,
    };
    if (!best->has_name) return;
    memcpy(table->lost_name, table->names + best->name_at, best->name_bytes);
    record->name = table->lost_name;
    record->name_bytes = best->name_bytes;
}

static void tell_view(const struct duplicate_view *view, uint32_t run,
                      struct duplicate_record *record)
{
    *record = (struct duplicate_record){
        .place = duplicate_view_place(view), .run = run, .index = view->index,
        .ordinal = view->ordinal,
        .has_others = view->has_others, .was_marked = view->was_marked, .group = view->group,
        .name = view->name, .name_bytes = view->name_bytes,
    };
}

/* ---- comparing ---- */

static int compare_names(const struct duplicate_table *table, const struct best *best,
                         const struct duplicate_view *view)
{
    size_t a = best->name_bytes, b = view->name_bytes, n = a < b ? a : b;
    int r = memcmp(table->names + best->name_at, view->name, n);
    return r != 0 ? r : a < b ? -1 : a > b;
}

/* True if a record comes before the best read in the sorted file. */
static bool is_earlier(int64_t place, uint32_t run, uint64_t ordinal, const struct best *best)
{
    if (place != best->place) return place < best->place;
    return run != best->run ? run < best->run : ordinal < best->ordinal;
}

static bool is_better(const struct duplicate_table *table, const struct duplicate_view *view,
                      uint32_t run, const struct best *best)
{
    if (view->failed_qc != best->failed_qc && view->kind == VIEW_PAIR) return best->failed_qc;
    if (view->score != best->score) return view->score > best->score;
    int by_name = view->kind == VIEW_PAIR ? compare_names(table, best, view) : 0;
    if (by_name != 0) return by_name > 0;
    return is_earlier(duplicate_view_place(view), run, view->ordinal, best);
}

enum table_result duplicate_table_add(struct duplicate_table *table, struct duplicate_key key,
                                      const struct duplicate_view *view, uint32_t run,
                                      struct duplicate_record *record)
{
    struct best *best = find(table, key);
    if (!best->is_used) {
        best = reserve_slot(table, key, best);
        if (!best || !fill(table, best, key, view, duplicate_view_place(view), run))
            return TABLE_FULL;
        table->n_used++;
        return TABLE_NO_DUPLICATE;
    }
    if (view->kind == VIEW_PAIR && view->failed_qc == best->failed_qc &&
        (view->lacks_score || best->lacks_score)) {
        if (view->lacks_score)
            tell_view(view, run, record);
        else
            tell_best(table, best, record);
        return TABLE_LACKS_SCORE;
    }
    if (!is_better(table, view, run, best)) {
        tell_view(view, run, record);
        return TABLE_DUPLICATE;
    }
    struct duplicate_record lost;
    tell_best(table, best, &lost);
    if (!fill(table, best, key, view, duplicate_view_place(view), run)) return TABLE_FULL;
    *record = lost;
    return TABLE_DUPLICATE;
}

/* The best "read" of a name is the first duplicate in the file. */
enum table_result duplicate_table_add_name(struct duplicate_table *table, struct duplicate_key key,
                                           const struct duplicate_name *name)
{
    struct best *best = find(table, key);
    const struct duplicate_view view = {
        .ordinal = name->ordinal & DUPLICATE_ORDINAL_MASK, .group = name->group,
        .name = name->original, .name_bytes = (uint8_t)name->original_bytes,
    };
    bool is_new = !best->is_used, turned_optical = best->turned_optical || name->turned_optical;
    if (is_new && !(best = reserve_slot(table, key, best))) return TABLE_FULL;
    if (is_new || is_earlier(name->place, name->run, name->ordinal, best)) {
        if (!fill(table, best, key, &view, name->place, name->run)) return TABLE_FULL;
        best->was_optical = name->was_optical;
        table->n_used += is_new;
    }
    best->turned_optical = turned_optical;
    return TABLE_NO_DUPLICATE;
}

bool duplicate_table_find_name(const struct duplicate_table *table, struct duplicate_key key,
                               struct duplicate_name *name)
{
    const struct best *best = find(table, key);
    *name = (struct duplicate_name){
        .place = best->place, .run = best->run, .ordinal = best->ordinal, .group = best->group,
        .was_optical = best->was_optical, .turned_optical = best->turned_optical,
        .original = best->has_name ? table->names + best->name_at : NULL,
        .original_bytes = best->name_bytes,
    };
    return best->is_used;
}

enum table_result duplicate_table_meet_pair(struct duplicate_table *table,
                                            struct duplicate_key key,
                                            struct duplicate_record *record)
{
    struct best *best = find(table, key);
    if (!best->is_used || best->met_pair) return TABLE_NO_DUPLICATE;
    best->met_pair = true;
    tell_best(table, best, record);
    return TABLE_DUPLICATE;
}
