/*
 * resolve_sets.c -- see resolve_sets.h.
 *
 * Each group of equal keys is visited twice: first to find its best read and its count.
 *
 * Counts depend on the file order: a single read counts for the first pair of its key, and that
 * pair passes its count on to a better pair. So single reads are sorted into a set by the moment at
 * which they were found. 1.24 counts all single reads before the first pair as one, because the
 * pair finds only the best of them.
 *
 * Optical duplicates are those near a better read of their set on the flow cell. Tiles are divided
 * into square cells with sides of the optical distance plus one, so all reads in a cell are near
 * each other. The duplicates of sets are sorted by set, tile and cell. A first visit finds the best
 * duplicate of a cell; a second one passes all duplicates on. All except the best are near a better
 * one; the best is compared with the duplicates in the eight neighbouring cells. As the visit moves
 * from cell to cell, each of the eight neighbours also moves through all cells in order, so each
 * has its own reader, which never moves back.
 */
#include "markdup/resolve_sets.h"

#include "util/byte_order.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <stdlib.h>

/* An item of an optical duplicate begins with the key of the set and those of tile and cell. */
enum {
    X_AT = 2 * ITEM_KEY_BYTES,
    Y_AT = X_AT + 8,
    CELL_BYTES = Y_AT + 8,
    N_AROUND = 8,
};

struct resolve_sets {
    struct resolve_sets_settings settings;
    bool joins;      /* barcodes */
    bool needs_sets; /* duplicate sets are needed */
    struct external_sort *singles, *pairs;
    struct barcodes *barcodes; /* of single reads, then of pairs; NULL: barcodes must be equal */
    struct external_sort *optical; /* NULL: duplicates are not compared with each other */
    struct item_writer writer;
    /* the current group */
    bool of_singles;
    struct duplicate_key key;
    size_t n;                    /* reads in it */
    struct kept_read best, lost; /* the best so far, and the previous best */
    bool has_best;
    uint64_t count;              /* of the best */
    struct kept_read first_pair; /* among single reads */
    bool has_pair;
    struct kept_read root; /* the best read of the set */
    /* the current cell */
    uint8_t cell[CELL_BYTES];
    struct kept_read cell_best;
    struct external_sort_reader around[N_AROUND];
};

static struct external_sort *create_sort(const struct resolve_sets_settings *s, size_t eighths)
{
    struct external_sort_settings sort = s->sort;
    sort.memory_bytes = sort.memory_bytes / 8 * eighths;
    return external_sort_create(&sort);
}

struct resolve_sets *resolve_sets_create(const struct resolve_sets_settings *settings)
{
    struct resolve_sets *sets = xcalloc(1, sizeof *sets);
    const struct markdup_rules *rules = settings->rules;
    sets->settings = *settings;
    sets->joins = rules->barcode_mismatches > 0;
    sets->needs_sets = markdup_rules_need_sets(rules);
    sets->singles = create_sort(settings, 2);
    sets->pairs = create_sort(settings, sets->joins ? 2 : sets->needs_sets ? 4 : 6);
    if (sets->joins)
        sets->barcodes = barcodes_create(create_sort(settings, 2), settings->barcode_room);
    if (rules->optical_distance > 0 && rules->checks_chains)
        sets->optical = create_sort(settings, 2);
    return sets;
}

void resolve_sets_destroy(struct resolve_sets *sets)
{
    if (!sets) return;
    external_sort_destroy(sets->singles);
    external_sort_destroy(sets->pairs);
    barcodes_destroy(sets->barcodes);
    external_sort_destroy(sets->optical);
    free(sets);
}

/* ---- what is added ---- */

static struct read_name barcode_of(const struct read_ends *ends)
{
    return (struct read_name){ends->barcode_text, ends->barcode_text ? ends->barcode_bytes : 0};
}

static int add(struct resolve_sets *sets, struct external_sort *sort, struct duplicate_key key,
               struct read_name barcode, const struct item_read *read)
{
    if (sets->joins) return barcodes_add(sets->barcodes, key, barcode, read);
    item_begin(&sets->writer);
    item_put_key(&sets->writer, key);
    item_put_read(&sets->writer, read);
    return item_add(&sets->writer, sort);
}

/* The set of a pair, from the read ends of its 5' end. */
static struct local_pair local_of(const struct resolve_sets *sets, const struct read_ends *ends)
{
    struct read_ends pair = *ends;
    if (ends->kind == READ_ENDS_END) {
        pair.here = ends->other_place;
        pair.other_place = ends->here;
    }
    return (struct local_pair){
        .key = duplicate_key_of_pair(sets->settings.rules, &pair),
        .here = pair.here,
        .barcode = sets->joins ? barcode_of(ends) : (struct read_name){NULL, 0},
    };
}

int resolve_sets_add(struct resolve_sets *sets, enum set_role role, const struct read_ends *ends,
                     uint32_t run)
{
    const struct markdup_rules *rules = sets->settings.rules;
    struct item_read read;
    item_read_ends(ends, run, &read);
    if (role == ROLE_PAIR)
        return add(sets, sets->pairs, duplicate_key_of_pair(rules, ends), barcode_of(ends), &read);
    read.has_local = role == ROLE_END && sets->needs_sets;
    if (read.has_local)
        read.local = local_of(sets, ends);
    else if (role == ROLE_END)
        read.name.n_bytes = 0;
    return add(sets, sets->singles, duplicate_key_of_single(rules, ends), barcode_of(ends), &read);
}

int resolve_sets_add_sent(struct resolve_sets *sets, const uint8_t *item)
{
    const uint8_t *at = item;
    struct duplicate_key key = item_get_key(&at);
    struct read_name barcode = item_get_text(&at);
    struct item_read read;
    item_get_read(&at, &read);
    return add(sets, sets->pairs, key, barcode, &read);
}

/* ---- optical duplicates ---- */

static int64_t cell_of(const struct markdup_rules *rules, int64_t coordinate)
{
    int64_t side = rules->optical_distance + 1;
    return coordinate / side - (coordinate % side < 0);
}

/* Adds a duplicate with coordinates of the current set. */
static int add_optical(struct resolve_sets *sets, struct item_read *read, struct read_name original)
{
    const struct markdup_rules *rules = sets->settings.rules;
    const struct read_coords *coords = item_read_coords(rules, read);
    size_t tile_bytes = (size_t)(coords->end - coords->begin);
    item_begin(&sets->writer);
    item_put_key(&sets->writer, sets->key);
    item_put_key(&sets->writer, duplicate_key_of_text(read->name.text + coords->begin, tile_bytes));
    item_put_number(&sets->writer, cell_of(rules, coords->x));
    item_put_number(&sets->writer, cell_of(rules, coords->y));
    item_put_read(&sets->writer, read);
    item_put_text(&sets->writer, original.text, original.n_bytes);
    return item_add(&sets->writer, sets->optical);
}

/* Decodes an item and returns the name of the original. */
static struct read_name get_optical(const uint8_t *item, struct item_read *read)
{
    const uint8_t *at = item + CELL_BYTES;
    item_get_read(&at, read);
    return item_get_text(&at);
}

/* Searches another cell for a better duplicate near the best one of this cell. Returns 1 if there
   is one, 0 if not, or -1 after a message. */
static int look_in_cell(struct resolve_sets *sets, struct external_sort_reader *reader,
                        const uint8_t *cell)
{
    if (!reader->sort) {
        external_sort_read(reader, sets->optical);
        if (external_sort_next(reader) < 0) return -1;
    }
    while (reader->item && memcmp(reader->item, cell, CELL_BYTES) < 0)
        if (external_sort_next(reader) < 0) return -1;
    while (item_begins(reader, cell, CELL_BYTES)) {
        struct item_read read;
        (void)get_optical(reader->item, &read);
        if (duplicate_rank_is_better(&read, &sets->cell_best.read) &&
            item_reads_are_near(sets->settings.rules, &read, &sets->cell_best.read))
            return 1;
        if (external_sort_next(reader) < 0) return -1;
    }
    return 0;
}

/* The same in all neighbouring cells. */
static int look_around(struct resolve_sets *sets)
{
    /* Numbers in items are unsigned, with an inverted sign bit. */
    uint64_t x = get_big_endian(sets->cell + X_AT, 8), y = get_big_endian(sets->cell + Y_AT, 8);
    size_t n = 0;
    int r = 0;
    for (int dx = -1; dx <= 1 && r == 0; dx++)
        for (int dy = -1; dy <= 1 && r == 0; dy++) {
            uint8_t cell[CELL_BYTES];
            if (dx == 0 && dy == 0) continue;
            memcpy(cell, sets->cell, sizeof cell);
            (void)put_big_endian(cell + X_AT, x + (uint64_t)dx, 8);
            (void)put_big_endian(cell + Y_AT, y + (uint64_t)dy, 8);
            r = look_in_cell(sets, &sets->around[n++], cell);
        }
    return r;
}

static int find_cell_best(void *arg, const uint8_t *item, bool is_first)
{
    struct resolve_sets *sets = arg;
    struct item_read read;
    (void)get_optical(item, &read);
    if (is_first) memcpy(sets->cell, item, CELL_BYTES);
    if (is_first || duplicate_rank_is_better(&read, &sets->cell_best.read))
        item_read_keep(&sets->cell_best, &read);
    return 0;
}

static int decide_cell_best(void *arg)
{
    struct resolve_sets *sets = arg;
    struct item_read *best = &sets->cell_best.read;
    if (best->is_optical) return 0;
    int r = look_around(sets);
    best->is_optical = r > 0;
    return r < 0 ? -1 : 0;
}

static int take_optical(void *arg, const uint8_t *item, size_t n_bytes)
{
    struct resolve_sets *sets = arg;
    const struct item_read *best = &sets->cell_best.read;
    struct item_read read;
    struct read_name original = get_optical(item, &read);
    (void)n_bytes;
    bool is_best = read.run == best->run && read.index == best->index;
    read.is_optical = !is_best || best->is_optical;
    return sets->settings.take(sets->settings.arg, &read, original);
}

static int resolve_optical(struct resolve_sets *sets)
{
    static const struct item_visitor visitor = {
        .key_bytes = CELL_BYTES, .look = find_cell_best, .decide = decide_cell_best,
        .take = take_optical};
    int r = item_groups_visit(sets->optical, &visitor, sets);
    for (size_t i = 0; i < N_AROUND; i++)
        external_sort_reader_release(&sets->around[i]);
    external_sort_clear(sets->optical);
    return r;
}

/* ---- duplicates ---- */

/* Marks `read` as found: it has lost to `by`. */
static void find(const struct resolve_sets *sets, struct item_read *read, struct item_read *by)
{
    const struct markdup_rules *rules = sets->settings.rules;
    read->is_found = true;
    read->by = by->moment;
    if (read_moment_compare(&by->moment, &read->moment) > 0) read->moment = by->moment;
    if (rules->optical_distance > 0)
        read->is_optical = read->was_optical = item_reads_are_near(rules, read, by);
    read->by_name = (struct read_name){NULL, 0};
    if (rules->names_original && (!rules->checks_chains || read->has_others))
        read->by_name = by->name;
}

/* Passes a duplicate of sets->root on, or stores it to be compared with others. */
static int take_duplicate(struct resolve_sets *sets, struct item_read *read)
{
    const struct markdup_rules *rules = sets->settings.rules;
    struct item_read *root = &sets->root.read;
    struct read_name original = rules->checks_chains ? root->name : read->by_name;
    if (sets->optical) {
        if (!read->is_optical) read->is_optical = item_reads_are_near(rules, read, root);
        if (item_read_coords(rules, root)->known && item_read_coords(rules, read)->known)
            return add_optical(sets, read, original);
    }
    return sets->settings.take(sets->settings.arg, read, original);
}

/* ---- the best read so far ---- */

/* Returns -1, after a message, if the score of a pair that decides is missing. */
static int check_score(const struct resolve_sets *sets, const struct item_read *read)
{
    const struct item_read *best = &sets->best.read;
    bool decides = sets->has_best && read->is_paired && !read->is_found &&
                   read->failed_qc == best->failed_qc;
    if (!decides || !(read->lacks_score || best->lacks_score)) return 0;
    const struct read_name *name = read->lacks_score ? &read->name : &best->name;
    diag_error_of(DIAG_HOPELESS, "read '%.*s' has no tag ms, by which pairs are compared: add "
                  "--fixmate, or run samtools fixmate -m first",
                  (int)name->n_bytes, (const char *)name->text);
    return -1;
}

/* Compares the next read of a group with the best one so far. Returns the worse of the two, which
   is a duplicate of the other; NULL if it is the first read, or was found before. */
static struct item_read *meet(struct resolve_sets *sets, struct item_read *read)
{
    const struct item_read *best = &sets->best.read;
    bool is_first = !sets->has_best;
    if (read->is_found) {
        if (!is_first && read_moment_compare(&read->by, &best->moment) == 0) sets->count++;
        return NULL;
    }
    sets->count = is_first ? 1 : sets->count + 1;
    if (!is_first && (read->is_paired ? duplicate_rank_compare(read, best) >= 0
                                      : duplicate_rank_single_loses(read, best)))
        return read;
    sets->has_best = true;
    if (!is_first) item_read_keep(&sets->lost, best);
    item_read_keep(&sets->best, read);
    return is_first ? NULL : &sets->lost.read;
}

/* Called when the best read of the group is known. */
static int begin_set(struct resolve_sets *sets)
{
    item_read_keep(&sets->root, &sets->best.read);
    if (!sets->settings.rules->counts || sets->count <= 1) return 0;
    return sets->settings.take_count(sets->settings.arg, &sets->root.read, sets->count);
}

/* Sends a single read, a duplicate, to the set of the pair. */
static int add_to_set_of_pair(struct resolve_sets *sets, const struct item_read *read)
{
    const struct local_pair *local = &sets->first_pair.read.local;
    item_begin(&sets->writer);
    item_put_key(&sets->writer, local->key);
    item_put_text(&sets->writer, local->barcode.text, local->barcode.n_bytes);
    item_put_read(&sets->writer, read);
    return sets->settings.send(sets->settings.arg, read_moment_reference(&read->moment),
                               local->here, sets->writer.bytes, item_bytes(&sets->writer));
}

/* Processes a duplicate that was found by another read. */
static int lose(struct resolve_sets *sets, struct item_read *read, struct item_read *by)
{
    find(sets, read, by);
    return sets->has_pair && sets->needs_sets ? add_to_set_of_pair(sets, read)
                                              : take_duplicate(sets, read);
}

/* Processes the next read of a group. */
static int take_read(struct resolve_sets *sets, struct item_read *read)
{
    struct item_read *pair = &sets->first_pair.read;
    int place = sets->has_pair ? read_moment_compare(&read->moment, &pair->moment) : -1;
    if (read->is_found) return take_duplicate(sets, read);
    if (place == 0 && sets->has_best) return lose(sets, &sets->best.read, pair);
    if (sets->has_pair && read->is_paired) return 0;
    if (place > 0) return lose(sets, read, pair);
    struct item_read *loser = meet(sets, read);
    return loser ? lose(sets, loser, &sets->best.read) : 0;
}

/* ---- groups ---- */

static int look_at_read(void *arg, const uint8_t *item, bool is_first)
{
    struct resolve_sets *sets = arg;
    const uint8_t *at = item;
    struct duplicate_key key = item_get_key(&at);
    struct item_read read;
    item_get_read(&at, &read);
    if (is_first) {
        sets->key = key;
        sets->has_best = sets->has_pair = false;
        sets->n = 0;
    }
    sets->n++;
    if (sets->has_pair) return 0;
    if (sets->of_singles && read.is_paired) {
        item_read_keep(&sets->first_pair, &read);
        sets->has_pair = true;
        return 0;
    }
    int r = check_score(sets, &read);
    (void)meet(sets, &read);
    return r;
}

static int decide_group(void *arg)
{
    struct resolve_sets *sets = arg;
    if (!sets->has_pair && sets->n > 1 && begin_set(sets) < 0) return -1;
    sets->has_best = false;
    return 0;
}

static int resolve_read(void *arg, const uint8_t *item, size_t n_bytes)
{
    struct resolve_sets *sets = arg;
    const uint8_t *at = item + ITEM_KEY_BYTES;
    struct item_read read;
    (void)n_bytes;
    item_get_read(&at, &read);
    return take_read(sets, &read);
}

int resolve_sets_end(struct resolve_sets *sets, bool of_singles)
{
    static const struct item_visitor visitor = {.key_bytes = ITEM_KEY_BYTES, .skips_alone = true,
                                                .look = look_at_read, .decide = decide_group,
                                                .take = resolve_read};
    struct external_sort *sort = of_singles ? sets->singles : sets->pairs;
    sets->of_singles = of_singles;
    if (sets->joins && barcodes_join(sets->barcodes, sort) < 0) return -1;
    if (item_groups_visit(sort, &visitor, sets) < 0) return -1;
    external_sort_clear(sort);
    return sets->optical ? resolve_optical(sets) : 0;
}
