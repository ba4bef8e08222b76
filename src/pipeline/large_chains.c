/*
 * large_chains.c -- see large_chains.h.
 *
 * Reads go through several sorts (store/temp_sort.h), each of which puts together those that have
 * to do with each other, in the order of the sorted file. So each step needs the best read so far,
 * and nothing else. A group is read twice where its end must be known first: by a reader that
 * leads, and by one that follows.
 *
 *   1. If there are VIEW_ENDs: by single key. Single reads that belong elsewhere are left out.
 *   2. If barcodes may have errors: by key and barcode (large_barcodes.h).
 *   3. If there are single reads and pairs: by single key. A single read belongs to the chain of
 *      the first pair of its key, if there is one. That pair never leaves its place in samtools'
 *      table of single reads. So it is known now of which read each of the single reads becomes a
 *      duplicate.
 *   4. By chain. Its key is that of its pairs, or that of its single reads if it has no pair. All
 *      pairs of a key are in one chain, and the best of them is the best read of the chain: single
 *      reads are never better than pairs, and pairs are no duplicates of single reads.
 *   5. With -d: by chain, tile and cell (large_optical.h).
 *
 * Counts need the order of the file: a single read counts for the first pair of its key, and that
 * pair hands its count on when a better pair comes. So singles that follow that pair stand in its
 * chain with a note of which pair they count for.
 */
#include "pipeline/large_chains.h"

#include "duplicates/chain_rules.h"
#include "pipeline/decider.h"
#include "pipeline/large_barcodes.h"
#include "pipeline/large_optical.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

enum {
    MIN_BYTES = 2 << 20,
    N_SORTS = 2,                /* that are filled at a time */
    N_SHARES = 4,               /* of memory with barcodes: of these sorts, and two for barcodes */
    KEY_BYTES = 16,
};

struct large_chains {
    struct large_chains_settings settings;
    struct temp_sort_settings sort;
    struct temp_sort *routed, *singles, *chains;
    struct large_barcodes *barcodes;
    struct large_optical *optical;
    struct item_writer writer;
    struct item_reader lead, follow;
    uint8_t key[KEY_BYTES];     /* of the group that is looked at */
    struct item_read first, best, lost, root;
    bool has_best;
    uint64_t count;             /* of the best read */
};

struct large_chains *large_chains_create(const struct large_chains_settings *settings)
{
    struct large_chains *c = xcalloc(1, sizeof *c);
    const struct duplicate_rules *rules = settings->rules;
    bool joins = rules->barcode_mismatches > 0;
    size_t n_bytes = settings->memory_bytes > MIN_BYTES ? settings->memory_bytes : MIN_BYTES;
    c->settings = *settings;
    c->sort = (struct temp_sort_settings){
        .memory_bytes = n_bytes / (joins ? N_SHARES : N_SORTS),
        .places = settings->places, .file_bytes = settings->file_bytes,
    };
    if (settings->has_ends) c->routed = temp_sort_create(&c->sort);
    if (settings->has_singles && settings->has_pairs) c->singles = temp_sort_create(&c->sort);
    c->chains = temp_sort_create(&c->sort);
    if (joins) c->barcodes = large_barcodes_create(rules, &c->sort, n_bytes / N_SHARES * 2);
    if (rules->optical_distance > 0 && rules->checks_chains)
        c->optical = large_optical_create(rules, &c->sort, settings->taker);
    return c;
}

void large_chains_destroy(struct large_chains *c)
{
    if (!c) return;
    item_reader_release(&c->lead);
    item_reader_release(&c->follow);
    temp_sort_destroy(c->routed);
    temp_sort_destroy(c->singles);
    temp_sort_destroy(c->chains);
    large_barcodes_destroy(c->barcodes);
    large_optical_destroy(c->optical);
    free(c);
}

/* ---- groups ---- */

static int begin_groups(struct large_chains *c, struct temp_sort *sort)
{
    return item_readers_begin(&c->lead, &c->follow, sort);
}

static void end_groups(struct large_chains *c, struct temp_sort **sort)
{
    item_readers_end(&c->lead, &c->follow, sort);
}

/* True if there is a group, whose key is in c->key now. */
static bool begin_group(struct large_chains *c)
{
    c->has_best = false;
    if (!c->lead.items.item) return false;
    memcpy(c->key, c->lead.items.item, KEY_BYTES);
    return true;
}

static bool is_in_group(const struct large_chains *c, const struct item_reader *reader)
{
    return item_begins(reader, c->key, KEY_BYTES);
}

static void keep_best(struct large_chains *c, const struct item_read *read)
{
    item_read_keep(&c->best, read);
    c->has_best = true;
}

/* ---- 4. chains ---- */

/* Adds a read to its chain. found: what is known of it. */
static int add_to_chain(struct large_chains *c, struct duplicate_key chain,
                        const struct item_read *read, const struct item_found *found)
{
    struct duplicate_view view = read->view;
    view.barcode = 0;           /* it is in the key */
    view.barcode_text = NULL;
    item_begin(&c->writer);
    item_put_key(&c->writer, chain);
    item_put_order(&c->writer, &read->order);
    item_put_found(&c->writer, found);
    item_put_view(&c->writer, &view);
    return item_add(&c->writer, c->chains);
}

static void get_chain_read(struct item_reader *reader)
{
    (void)item_get_bytes(reader, KEY_BYTES);
    const uint8_t *order = item_get_bytes(reader, sizeof(struct item_order));
    item_get_found(reader);
    item_get_view(reader, order);
}

/* What happens when a read meets the best one of its chain. */
enum meeting {
    MEETING_NONE,               /* it is the first one, or was decided before */
    READ_LOSES,                 /* it becomes a duplicate of c->best */
    BEST_LOSES,                 /* c->lost becomes a duplicate of it, and it is c->best now */
    MEETING_LACKS_SCORE,        /* after a message */
};

static enum meeting meet(struct large_chains *c, const struct item_reader *reader)
{
    const struct item_read *read = &reader->read;
    const struct duplicate_view *view = &read->view, *best = &c->best.view;
    if (reader->found.is_known) {
        if (c->has_best && item_order_compare(&reader->found.by, &c->best.order) == 0) c->count++;
        return MEETING_NONE;
    }
    uint64_t own = 1 + (uint64_t)reader->found.follows_single;
    bool loses = false;
    if (!c->has_best) {
        c->count = own;
        keep_best(c, read);
        return MEETING_NONE;
    }
    if (chain_is_paired(view)) {
        const struct duplicate_view *lacks_score = chain_lacks_score(view, best);
        if (lacks_score) {
            report_lack_of_score(lacks_score->name, lacks_score->name_bytes);
            return MEETING_LACKS_SCORE;
        }
        loses = chain_compare_reads(view, best) >= 0;
    } else {
        loses = chain_single_loses(view, best);
    }
    if (loses) {
        c->count++;
        return READ_LOSES;
    }
    c->count += own;
    item_read_keep(&c->lost, &c->best);
    keep_best(c, read);
    return BEST_LOSES;
}

/* Gives the result of a duplicate, or lets it be compared with others. c->root is the best read of
   the chain. */
static int take_duplicate(struct large_chains *c, struct duplicate_key chain,
                          struct item_read *read, struct item_found *found)
{
    const struct duplicate_rules *rules = c->settings.rules;
    if (c->optical) {
        if (!found->is_optical) found->is_optical = item_are_near(rules, read, &c->root);
        if (item_coords(rules, &c->root)->known && item_coords(rules, read)->known)
            return large_optical_add(c->optical, chain, read, found);
    }
    if (!rules->checks_chains)
        return item_give_duplicate(&c->settings.taker, read, found, found->name,
                                   found->name_bytes);
    return item_give_duplicate(&c->settings.taker, read, found, c->root.view.name,
                               c->root.view.name_bytes);
}

/* The same for the read that was read last. */
static int take_from_chain(struct large_chains *c, struct duplicate_key chain)
{
    struct item_found found;
    struct item_reader *reader = &c->follow;
    if (reader->found.is_known) {
        (void)meet(c, reader);
        return take_duplicate(c, chain, &reader->read, &reader->found);
    }
    switch (meet(c, reader)) {
    case READ_LOSES:
        found = item_found_by(c->settings.rules, &reader->read, &c->best);
        return take_duplicate(c, chain, &reader->read, &found);
    case BEST_LOSES:
        found = item_found_by(c->settings.rules, &c->lost, &c->best);
        return take_duplicate(c, chain, &c->lost, &found);
    default: return 0;
    }
}

/* Gives the result of the best read, and opens the chain for the comparison of its duplicates. */
static int take_root(struct large_chains *c, struct duplicate_key chain, bool has_duplicates)
{
    const struct chain_taker *taker = &c->settings.taker;
    item_read_keep(&c->root, &c->best);
    if (!has_duplicates) return 0;
    if (c->optical && large_optical_begin_chain(c->optical, chain, &c->root.view) < 0) return -1;
    if (c->count <= 1) return 0;
    const struct chain_member member = {.view = c->root.view, .run = c->root.run,
                                        .count = (uint32_t)c->count};
    return taker->take(taker->arg, &member);
}

static int decide_chain(struct large_chains *c)
{
    size_t n = 0;
    struct duplicate_key chain = item_key(c->key);
    for (; is_in_group(c, &c->lead); n++) {
        struct item_reader *lead = &c->lead;
        get_chain_read(lead);
        if (meet(c, lead) == MEETING_LACKS_SCORE || item_reader_next(lead) < 0) return -1;
    }
    if (take_root(c, chain, n > 1) < 0) return -1;
    c->has_best = false;
    for (; n > 0; n--) {
        get_chain_read(&c->follow);
        if (take_from_chain(c, chain) < 0 || item_reader_next(&c->follow) < 0) return -1;
    }
    return 0;
}

static int decide_chains_of_place(struct large_chains *c)
{
    if (begin_groups(c, c->chains) < 0) return -1;
    while (begin_group(c))
        if (decide_chain(c) < 0) return -1;
    end_groups(c, &c->chains);
    return 0;
}

/* ---- 3. single reads, and the pairs that they meet ---- */

/* A read whose barcodes are those of their clusters. */
static int take_read(void *arg, const struct duplicate_view *view, uint32_t run,
                     uint64_t single_barcode, uint64_t pair_barcode)
{
    struct large_chains *c = arg;
    const struct duplicate_rules *rules = c->settings.rules;
    struct duplicate_view with_barcode = *view;
    with_barcode.barcode = pair_barcode;
    struct duplicate_key pair = duplicate_key_of_pair(rules, &with_barcode);
    with_barcode.barcode = single_barcode;
    struct duplicate_key single = duplicate_key_of_single(rules, &with_barcode);
    with_barcode.barcode_text = NULL;
    with_barcode.barcode = 0;
    bool is_paired = chain_is_paired(view);
    struct item_order order = item_order_of(view, run);
    if (!c->singles) {
        const struct item_found unknown = {0};
        const struct item_read read = {.view = with_barcode, .run = run, .order = order};
        return add_to_chain(c, is_paired ? pair : single, &read, &unknown);
    }
    item_begin(&c->writer);
    item_put_key(&c->writer, single);
    item_put_order(&c->writer, &order);
    item_put_view(&c->writer, &with_barcode);
    if (is_paired) item_put_key(&c->writer, pair);
    return item_add(&c->writer, c->singles);
}

/* Adds a single read that became a duplicate of another one, whose chain is known. */
static int add_found(struct large_chains *c, struct duplicate_key chain, struct item_read *read,
                     struct item_read *by)
{
    const struct item_found found = item_found_by(c->settings.rules, read, by);
    return add_to_chain(c, chain, read, &found);
}

/* Sends the read that was read last to its chain. has_pair: c->first is the first pair of the
   group, and first_chain the key of its chain. */
static int send_to_chain(struct large_chains *c, bool has_pair, struct duplicate_key first_chain)
{
    struct item_read *read = &c->follow.read;
    struct item_found unknown = {0};
    if (!has_pair) return add_to_chain(c, item_key(c->key), read, &unknown);
    int place = item_order_compare(&read->order, &c->first.order);
    if (chain_is_paired(&read->view)) {
        struct duplicate_key chain = item_get_key(&c->follow);
        if (place == 0 && c->has_best) {
            unknown.follows_single = true;
            if (add_found(c, first_chain, &c->best, &c->first) < 0) return -1;
        }
        return add_to_chain(c, chain, read, &unknown);
    }
    if (place > 0) return add_found(c, first_chain, read, &c->first);
    if (c->has_best && chain_single_loses(&read->view, &c->best.view))
        return add_found(c, first_chain, read, &c->best);
    if (c->has_best) {
        item_read_keep(&c->lost, &c->best);
        keep_best(c, read);
        return add_found(c, first_chain, &c->lost, &c->best);
    }
    keep_best(c, read);
    return 0;
}

static void get_single_read(struct item_reader *reader)
{
    (void)item_get_bytes(reader, KEY_BYTES);
    item_get_view(reader, item_get_bytes(reader, sizeof(struct item_order)));
}

static int decide_singles_of_key(struct large_chains *c)
{
    struct duplicate_key first_chain = {0};
    bool has_pair = false;
    while (is_in_group(c, &c->lead)) {
        if (!has_pair) {
            get_single_read(&c->lead);
            has_pair = chain_is_paired(&c->lead.read.view);
            if (has_pair) {
                item_read_keep(&c->first, &c->lead.read);
                first_chain = item_get_key(&c->lead);
            }
        }
        if (item_reader_next(&c->lead) < 0) return -1;
    }
    while (is_in_group(c, &c->follow)) {
        get_single_read(&c->follow);
        if (send_to_chain(c, has_pair, first_chain) < 0 || item_reader_next(&c->follow) < 0)
            return -1;
    }
    return 0;
}

static int decide_singles(struct large_chains *c)
{
    if (begin_groups(c, c->singles) < 0) return -1;
    while (begin_group(c))
        if (decide_singles_of_key(c) < 0) return -1;
    end_groups(c, &c->singles);
    return 0;
}

/* ---- 1. single reads that belong elsewhere ---- */

int large_chains_add_guest(struct large_chains *c, const struct duplicate_view *view, uint32_t run)
{
    if (c->barcodes) return large_barcodes_add(c->barcodes, view, run);
    return take_read(c, view, run, view->barcode, view->barcode);
}

int large_chains_add(struct large_chains *c, const struct duplicate_view *view, uint32_t run)
{
    if (!c->routed) return large_chains_add_guest(c, view, run);
    const struct item_order order = item_order_of(view, run);
    item_begin(&c->writer);
    item_put_key(&c->writer, duplicate_key_of_single(c->settings.rules, view));
    item_put_order(&c->writer, &order);
    item_put_view(&c->writer, view);
    return item_add(&c->writer, c->routed);
}

/* Finds the first read of a pair whose 5' end has the key of the group. Returns 1 if it is a
   VIEW_END, which is c->first then; 0 if not; or -1 after a message. */
static int find_first_end(struct large_chains *c)
{
    const struct duplicate_rules *rules = c->settings.rules;
    bool is_found = false;
    while (is_in_group(c, &c->lead)) {
        if (!is_found) {
            const struct duplicate_view *view = &c->lead.read.view;
            get_single_read(&c->lead);
            is_found = view->kind == VIEW_END ||
                       (view->kind == VIEW_PAIR && duplicate_view_meets_singles(rules, view));
            if (is_found) item_read_keep(&c->first, &c->lead.read);
        }
        if (item_reader_next(&c->lead) < 0) return -1;
    }
    return is_found && c->first.view.kind == VIEW_END;
}

/* What becomes of a view: with a first VIEW_END of its key, or NULL. */
typedef int (*routing)(struct large_chains *c, const struct item_read *read,
                       const struct item_read *end, void *arg);

static int route_all(struct large_chains *c, routing route, void *arg)
{
    if (begin_groups(c, c->routed) < 0) return -1;
    while (begin_group(c)) {
        int r = find_first_end(c);
        if (r < 0) return -1;
        while (is_in_group(c, &c->follow)) {
            get_single_read(&c->follow);
            if (route(c, &c->follow.read, r > 0 ? &c->first : NULL, arg) < 0 ||
                item_reader_next(&c->follow) < 0)
                return -1;
        }
    }
    end_groups(c, &c->routed);
    return 0;
}

static int keep_here(struct large_chains *c, const struct item_read *read,
                     const struct item_read *end, void *arg)
{
    (void)arg;
    enum view_kind kind = read->view.kind;
    if (kind == VIEW_END || (kind == VIEW_SINGLE && end)) return 0;
    return large_chains_add_guest(c, &read->view, read->run);
}

struct sender {
    int (*send)(void *arg, const struct duplicate_view *single, uint32_t run,
                const struct duplicate_view *end);
    void *arg;
};

static int send_away(struct large_chains *c, const struct item_read *read,
                     const struct item_read *end, void *arg)
{
    const struct sender *sender = arg;
    (void)c;
    if (read->view.kind != VIEW_SINGLE || !end) return 0;
    return sender->send(sender->arg, &read->view, read->run, &end->view);
}

int large_chains_route(struct large_chains *c,
                       int (*send)(void *arg, const struct duplicate_view *single, uint32_t run,
                                   const struct duplicate_view *end), void *arg)
{
    struct sender sender = {send, arg};
    return c->routed ? route_all(c, send_away, &sender) : 0;
}

/* ---- all of it ---- */

int large_chains_decide(struct large_chains *c)
{
    if (c->routed && route_all(c, keep_here, NULL) < 0) return -1;
    if (c->barcodes && large_barcodes_join(c->barcodes, take_read, c) < 0) return -1;
    large_barcodes_destroy(c->barcodes);
    c->barcodes = NULL;
    if (c->singles && decide_singles(c) < 0) return -1;
    if (decide_chains_of_place(c) < 0) return -1;
    return c->optical ? large_optical_decide(c->optical) : 0;
}
