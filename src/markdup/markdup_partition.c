/*
 * markdup_partition.c -- see markdup_partition.h.
 *
 * Few pairs meet single reads, and few other records (-S) belong to duplicates. So a filter with
 * some bits for each key keeps most pairs out of the sort of single reads, and most other records
 * out of the sort of names.
 *
 * If the read ends of a partition do not fit in memory, its streams are read several times, each
 * time for a part of the places. Up to about eight times this is cheaper than an external sort.
 * Parts that still do not fit, such as millions of reads at one place, are sorted on disk.
 */
#include "markdup/markdup_partition.h"

#include "markdup/read_ends_store.h"
#include "markdup/resolve_sets.h"
#include "util/byte_order.h"
#include "util/xalloc.h"

#include <stdlib.h>

enum {
    ITEM_BYTES_PER_READ_ENDS_BYTE = 5, /* in memory, of pairs with names of 25 characters */
    MAX_PARTS = 8,
    FILTER_READ_ENDS_BYTES = 2, /* for each byte of a filter: about 12 bits for each item */
    MIN_FILTER_BYTES = 64,
    MIN_BARCODE_BYTES = 1 << 20, /* for 20,000 barcodes of one key */
};

struct resolution;

/* What a pass does. With sets, all single reads must be sent before the first pair is resolved. */
struct steps {
    bool singles, pairs, others;
};

/* State of one job. */
struct resolver {
    struct thread_pool_slot slot;
    struct resolution *resolution;
    unsigned partition, part, n_parts; /* parts are by place */
    bool has_singles;                  /* the current part has single reads */
    struct resolve_sets *sets;
    struct external_sort *names; /* with -S */
    struct item_writer writer;
    struct tape_reader reader;
    struct group_counts counts;
    uint64_t file_bytes;
    uint8_t *filter;                  /* of keys */
    size_t filter_bytes, filter_room; /* a power of two */
};

/* State of all jobs. */
struct resolution {
    const struct resolve_settings *settings;
    struct resolver *resolvers; /* one for each concurrent job */
    struct steps steps;         /* of this pass over all partitions */
    pthread_mutex_t lock;       /* only for appending to names and sent */
    struct resolve_shares shares;
    struct barcode_room barcode_room;
};

static const struct resolve_settings *settings_of(const struct resolver *resolver)
{
    return resolver->resolution->settings;
}

struct resolve_shares resolve_share(size_t memory_bytes, unsigned n_threads, bool joins_barcodes)
{
    size_t of_job = memory_bytes / n_threads, part = of_job / 16;
    struct resolve_shares shares = {.job_bytes = of_job, .filter_bytes = part,
                                    .sort_bytes = of_job - part};
    if (!joins_barcodes) return shares;
    shares.small_bytes = part;
    shares.sort_bytes = 7 * part;
    shares.barcode_bytes = 7 * part * n_threads;
    if (shares.barcode_bytes < MIN_BARCODE_BYTES) shares.barcode_bytes = MIN_BARCODE_BYTES;
    return shares;
}

static struct duplicate_counts *counts_of(struct resolver *resolver, size_t group)
{
    return group_counts_of(&resolver->counts, settings_of(resolver)->counts, group);
}

/* ---- the filter ---- */

/* Clears the filter, with a size for the keys of a stream of read_ends_bytes. */
static void filter_begin(struct resolver *resolver, uint64_t read_ends_bytes)
{
    size_t n_bytes = MIN_FILTER_BYTES, most = resolver->resolution->shares.filter_bytes;
    while (n_bytes < read_ends_bytes / FILTER_READ_ENDS_BYTES && 2 * n_bytes <= most)
        n_bytes *= 2;
    xgrow(&resolver->filter, &resolver->filter_room, n_bytes, 0, 1);
    memset(resolver->filter, 0, n_bytes);
    resolver->filter_bytes = n_bytes;
}

static void filter_add(struct resolver *resolver, struct duplicate_key key)
{
    resolver->filter[key.low / 8 % resolver->filter_bytes] |= (uint8_t)(1u << key.low % 8);
}

static bool filter_may_have(const struct resolver *resolver, struct duplicate_key key)
{
    return resolver->filter[key.low / 8 % resolver->filter_bytes] >> key.low % 8 & 1;
}

/* ---- results ---- */

/* Appends an item to a tape that all jobs share. */
static int append_item(struct resolver *resolver, struct tape_set *to, unsigned tape,
                       const uint8_t *item, size_t n_bytes)
{
    (void)pthread_mutex_lock(&resolver->resolution->lock);
    int r = tape_append_item(to, tape, item, n_bytes);
    (void)pthread_mutex_unlock(&resolver->resolution->lock);
    return r;
}

/* Items of names: duplicates, in the order in which they were found, precede other records. */
enum { NAME_OF_DUPLICATE, NAME_OF_OTHER };

static void put_named(struct item_writer *writer, struct duplicate_key name, uint8_t kind,
                      struct item_read read)
{
    read.name.n_bytes = 0;
    item_begin(writer);
    item_put_key(writer, name);
    item_put_bytes(writer, &kind, 1);
    item_put_read(writer, &read);
}

/* Stores the name of a duplicate, whose other records will be marked, too. */
static int remember_name(struct resolver *resolver, const struct item_read *read)
{
    struct item_writer *writer = &resolver->writer;
    struct duplicate_key name = duplicate_key_of_text(read->name.text, read->name.n_bytes);
    put_named(writer, name, NAME_OF_DUPLICATE, *read);
    return append_item(resolver, settings_of(resolver)->names, read_ends_name_partition(name),
                       writer->bytes, item_bytes(writer));
}

/* Marks a record; with tags if it gets tags and is not removed. */
static int mark(const struct resolve_settings *s, const struct duplicate_note *note)
{
    if (s->rules->removes || !markdup_rules_set_tags(s->rules))
        return duplicate_marks_set(s->marks, note->run, note->index);
    return duplicate_marks_put(s->marks, note);
}

/* Marks a duplicate and stores its tags. */
static int take_duplicate(void *arg, const struct item_read *read, struct read_name original)
{
    struct resolver *resolver = arg;
    const struct resolve_settings *s = settings_of(resolver);
    const struct markdup_rules *rules = s->rules;
    struct duplicate_counts *counts = counts_of(resolver, read->group);
    counts->paired_duplicates += read->is_paired;
    counts->single_duplicates += !read->is_paired;
    if (rules->only_optical && !read->is_optical) return 0;
    if (rules->removes && !read->was_marked) counts->written--;
    counts->paired_optical += read->is_optical && read->is_paired;
    counts->single_optical += read->is_optical && !read->is_paired;
    const struct duplicate_note note = {
        .run = read->run,
        .index = read->index,
        .is_optical = read->is_optical,
        .original = rules->names_original ? original.text : NULL,
        .original_bytes = rules->names_original ? original.n_bytes : 0,
    };
    if (mark(s, &note) < 0) return -1;
    return read->has_others ? remember_name(resolver, read) : 0;
}

static int take_count(void *arg, const struct item_read *best, uint64_t count)
{
    struct resolver *resolver = arg;
    const struct duplicate_note note = {
        .run = best->run, .index = best->index, .count = (uint32_t)count};
    return duplicate_marks_put(settings_of(resolver)->marks, &note);
}

/* Writes the item, preceded by its part. */
static int send_item(void *arg, int32_t ref, int64_t here, const uint8_t *item, size_t n_bytes)
{
    struct resolver *resolver = arg;
    const struct read_ends local = {.ref = ref, .here = here};
    uint8_t sent[1 + sizeof resolver->writer.bytes];
    sent[0] = (uint8_t)read_ends_place_part(&local, MAX_PARTS);
    memcpy(sent + 1, item, n_bytes);
    return append_item(resolver, settings_of(resolver)->sent, read_ends_partition(&local), sent,
                       1 + n_bytes);
}

/* ---- read ends ---- */

/* Adds a READ_ENDS_OTHER if its name may be that of a duplicate. */
static int add_other(struct resolver *resolver, const struct read_ends *ends, uint32_t run)
{
    struct duplicate_key name = duplicate_key_of_text(ends->name, ends->name_bytes);
    struct item_read read;
    if (!filter_may_have(resolver, name)) return 0;
    item_read_ends(ends, run, &read);
    put_named(&resolver->writer, name, NAME_OF_OTHER, read);
    return item_add(&resolver->writer, resolver->names);
}

static bool is_undone(const struct undone_runs *undone, uint64_t label)
{
    size_t i = 0;
    while (i < undone->n && undone->labels[i] != label) i++;
    return i < undone->n;
}

static int visit(struct resolver *resolver, const struct read_ends *ends, uint32_t run)
{
    const struct markdup_rules *rules = settings_of(resolver)->rules;
    if (ends->kind == READ_ENDS_OTHER) return add_other(resolver, ends, run);
    if (ends->kind == READ_ENDS_SINGLE) {
        filter_add(resolver, duplicate_key_of_single(rules, ends));
        return resolve_sets_add(resolver->sets, ROLE_SINGLE, ends, run);
    }
    bool is_pair = ends->kind == READ_ENDS_PAIR;
    if (resolver->has_singles && (!is_pair || read_ends_meets_singles(rules, ends)) &&
        filter_may_have(resolver, duplicate_key_of_single(rules, ends)) &&
        resolve_sets_add(resolver->sets, ROLE_END, ends, run) < 0)
        return -1;
    if (!is_pair || !resolver->resolution->steps.pairs) return 0;
    return resolve_sets_add(resolver->sets, ROLE_PAIR, ends, run);
}

/* Visits the read ends of a stream; in streams by place, only those of the current part. Returns 0,
   or -1 after a message. */
static int visit_stream(struct resolver *resolver, unsigned stream)
{
    struct read_ends_chunk chunk;
    struct read_ends ends;
    int r = 0, got;
    tape_reader_begin(&resolver->reader, settings_of(resolver)->ends_tapes, stream);
    while (r == 0 && (got = read_ends_chunks_next(&resolver->reader, &chunk)) != 0) {
        if (got < 0) return -1;
        if (is_undone(&settings_of(resolver)->undone, chunk.label)) continue;
        while (r == 0 && read_ends_chunk_next(&chunk, &ends))
            if (resolver->n_parts == 1 ||
                read_ends_place_part(&ends, resolver->n_parts) == resolver->part)
                r = visit(resolver, &ends, (uint32_t)chunk.label);
    }
    return r;
}

/* Adds the single reads that were sent to sets of this part. */
static int add_sent(struct resolver *resolver)
{
    const uint8_t *item;
    size_t n_bytes;
    int r;
    tape_reader_begin(&resolver->reader, settings_of(resolver)->sent, resolver->partition);
    while ((r = tape_read_item(&resolver->reader, &item, &n_bytes)) == 0 && item)
        if (*item / (MAX_PARTS / resolver->n_parts) == resolver->part &&
            resolve_sets_add_sent(resolver->sets, item + 1) < 0)
            return -1;
    return r;
}

static int resolve_part(struct resolver *resolver)
{
    const struct steps steps = resolver->resolution->steps;
    const struct resolve_settings *s = settings_of(resolver);
    unsigned singles = READ_ENDS_STREAM_SINGLES + resolver->partition;
    unsigned pairs = READ_ENDS_STREAM_PAIRS + resolver->partition;
    resolver->has_singles = steps.singles && tape_set_bytes(s->ends_tapes, singles) > 0;
    if (!resolver->has_singles && !steps.pairs) return 0;
    if (resolver->has_singles) {
        filter_begin(resolver, tape_set_bytes(s->ends_tapes, singles) / resolver->n_parts);
        if (visit_stream(resolver, singles) < 0) return -1;
    }
    if (visit_stream(resolver, pairs) < 0) return -1;
    if (resolver->has_singles && resolve_sets_end(resolver->sets, true) < 0) return -1;
    if (!steps.pairs) return 0;
    if (s->sent && add_sent(resolver) < 0) return -1;
    return resolve_sets_end(resolver->sets, false);
}

static int resolve_places(struct resolver *resolver)
{
    const struct resolve_settings *s = settings_of(resolver);
    unsigned partition = resolver->partition;
    uint64_t n_bytes = tape_set_bytes(s->ends_tapes, READ_ENDS_STREAM_PAIRS + partition) +
                       tape_set_bytes(s->ends_tapes, READ_ENDS_STREAM_SINGLES + partition);
    resolver->n_parts = 1;
    while (resolver->n_parts < MAX_PARTS &&
           n_bytes * ITEM_BYTES_PER_READ_ENDS_BYTE / resolver->n_parts >
               resolver->resolution->shares.job_bytes / 4)
        resolver->n_parts *= 2;
    for (resolver->part = 0; resolver->part < resolver->n_parts; resolver->part++)
        if (resolve_part(resolver) < 0) return -1;
    return 0;
}

/* ---- other records of duplicates ---- */

static int add_names(struct resolver *resolver)
{
    struct tape_set *names = settings_of(resolver)->names;
    const uint8_t *item;
    size_t n_bytes;
    int r;
    filter_begin(resolver, tape_set_bytes(names, resolver->partition));
    tape_reader_begin(&resolver->reader, names, resolver->partition);
    while ((r = tape_read_item(&resolver->reader, &item, &n_bytes)) == 0 && item) {
        const uint8_t *at = item;
        filter_add(resolver, item_get_key(&at));
        if (external_sort_add(resolver->names, item, n_bytes) < 0) return -1;
    }
    return r;
}

/* What other records get from the duplicates with their name. */
struct duplicate_name {
    uint8_t key[ITEM_KEY_BYTES];
    bool is_known;
    struct kept_read first; /* the duplicate that was found first */
    bool turned_optical;    /* any */
};

static void take_name(struct duplicate_name *name, const struct item_read *read)
{
    name->turned_optical |= read->is_optical && !read->was_optical;
    if (!name->is_known) item_read_keep(&name->first, read);
    name->is_known = true;
}

static int mark_other(struct resolver *resolver, const struct duplicate_name *name,
                      const struct item_read *read)
{
    const struct resolve_settings *s = settings_of(resolver);
    const struct item_read *first = &name->first.read;
    const struct duplicate_note note = {
        .run = read->run,
        .index = read->index,
        .is_optical = first->was_optical || name->turned_optical,
        .original = first->by_name.text,
        .original_bytes = first->by_name.n_bytes,
    };
    /* As in samtools, records marked in the input are removed before other records are searched. */
    bool is_counted = !s->rules->removes || !read->was_marked;
    if (is_counted) counts_of(resolver, first->group)->other_duplicates++;
    if (is_counted && note.is_optical) counts_of(resolver, first->group)->other_optical++;
    return mark(s, &note);
}

static int mark_others(struct resolver *resolver)
{
    struct external_sort_reader reader = {0};
    struct duplicate_name name = {.is_known = false};
    int r = external_sort_finish(resolver->names);
    external_sort_read(&reader, resolver->names);
    while (r == 0 && (r = external_sort_next(&reader)) > 0) {
        const uint8_t *at = reader.item + ITEM_KEY_BYTES + 1;
        struct item_read read;
        item_get_read(&at, &read);
        if (!item_begins(&reader, name.key, sizeof name.key)) {
            name.is_known = name.turned_optical = false;
            memcpy(name.key, reader.item, sizeof name.key);
        }
        r = 0;
        if (reader.item[ITEM_KEY_BYTES] == NAME_OF_DUPLICATE)
            take_name(&name, &read);
        else if (name.is_known)
            r = mark_other(resolver, &name, &read);
    }
    external_sort_reader_release(&reader);
    external_sort_clear(resolver->names);
    return r;
}

static int resolve_others(struct resolver *resolver)
{
    resolver->n_parts = 1;
    if (tape_set_bytes(settings_of(resolver)->names, resolver->partition) == 0) return 0;
    if (add_names(resolver) < 0 ||
        visit_stream(resolver, READ_ENDS_STREAM_OTHERS + resolver->partition) < 0)
        return -1;
    return mark_others(resolver);
}

/* ---- jobs ---- */

/* Starts to read the streams of a partition ahead, so that jobs need not wait for a disk. */
static void advise(const struct resolve_settings *s, unsigned partition)
{
    if (partition >= READ_ENDS_N_PARTITIONS) return;
    tape_set_advise(s->ends_tapes, READ_ENDS_STREAM_SINGLES + partition);
    tape_set_advise(s->ends_tapes, READ_ENDS_STREAM_PAIRS + partition);
}

static int resolve_numbered(struct worker *worker, void *item)
{
    (void)worker;
    struct resolver *resolver = item;
    const struct resolve_settings *s = settings_of(resolver);
    resolver->partition = resolver->slot.number;
    advise(s, resolver->partition + s->n_threads);
    return resolver->resolution->steps.others ? resolve_others(resolver) : resolve_places(resolver);
}

/* Resolves all partitions with jobs. Returns 0, or -1 if the thread pool has failed. */
static int resolve_partitions(struct resolution *resolution, struct steps steps)
{
    const struct resolve_settings *s = resolution->settings;
    resolution->steps = steps;
    return thread_pool_for_each(s->threads, READ_ENDS_N_PARTITIONS, resolution->resolvers,
                                s->n_threads, sizeof *resolution->resolvers, resolve_numbered);
}

static struct external_sort_settings sort_settings(struct resolver *resolver)
{
    return (struct external_sort_settings){
        .memory_bytes = resolver->resolution->shares.sort_bytes,
        .places = settings_of(resolver)->places,
        .file_bytes = &resolver->file_bytes,
    };
}

static void create_sets(struct resolver *resolver)
{
    const struct resolve_sets_settings sets = {
        .rules = settings_of(resolver)->rules,
        .sort = sort_settings(resolver),
        .barcode_room = &resolver->resolution->barcode_room,
        .take = take_duplicate,
        .take_count = take_count,
        .send = send_item,
        .arg = resolver,
    };
    resolver->sets = resolve_sets_create(&sets);
}

static int resolve_reads(struct resolution *resolution)
{
    const struct resolve_settings *s = resolution->settings;
    for (unsigned i = 0; i < s->n_threads; i++)
        create_sets(&resolution->resolvers[i]);
    bool at_once = !markdup_rules_need_sets(s->rules);
    int r = resolve_partitions(resolution, (struct steps){.singles = true, .pairs = at_once});
    if (r == 0 && !at_once) r = resolve_partitions(resolution, (struct steps){.pairs = true});
    for (unsigned i = 0; i < s->n_threads; i++)
        resolve_sets_destroy(resolution->resolvers[i].sets);
    return r;
}

int resolve_duplicates(const struct resolve_settings *s, uint64_t *file_bytes)
{
    struct resolution resolution = {
        .settings = s,
        .shares = resolve_share(s->memory_bytes, s->n_threads, s->rules->barcode_mismatches > 0),
    };
    resolution.barcode_room = (struct barcode_room){.threads = s->threads,
                                                    .small_bytes = resolution.shares.small_bytes,
                                                    .most_bytes = resolution.shares.barcode_bytes};
    (void)pthread_mutex_init(&resolution.lock, NULL);
    (void)pthread_mutex_init(&resolution.barcode_room.lock, NULL);
    resolution.resolvers = xcalloc(s->n_threads, sizeof *resolution.resolvers);
    for (unsigned i = 0; i < s->n_threads; i++)
        resolution.resolvers[i].resolution = &resolution;
    int r = resolve_reads(&resolution);
    for (unsigned i = 0; i < s->n_threads && s->names; i++) {
        const struct external_sort_settings names = sort_settings(&resolution.resolvers[i]);
        resolution.resolvers[i].names = external_sort_create(&names);
    }
    if (r == 0 && s->names) r = resolve_partitions(&resolution, (struct steps){.others = true});
    for (unsigned i = 0; i < s->n_threads; i++) {
        struct resolver *resolver = &resolution.resolvers[i];
        group_counts_end(&resolver->counts, s->counts);
        external_sort_destroy(resolver->names);
        *file_bytes += resolver->file_bytes;
        tape_reader_release(&resolver->reader);
        free(resolver->filter);
    }
    free(resolution.resolvers);
    (void)pthread_mutex_destroy(&resolution.lock);
    (void)pthread_mutex_destroy(&resolution.barcode_room.lock);
    return r;
}
