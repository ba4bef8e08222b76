/* share_barcodes.c -- see share_barcodes.h. */
#include "pipeline/share_barcodes.h"

#include "duplicates/barcode_table.h"
#include "duplicates/name_filter.h"
#include "pipeline/key_parts.h"
#include "pipeline/view_chunks.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

enum {
    GIVER_BYTES_AT_LEAST = 14,  /* in its stream, to estimate how many there are: flags, sizes, the
                                   barcode, and the lengths of the name (view_code.c) */
    TEXTS_BYTES = 64 << 10,     /* of barcodes that a job copies before it writes them */
    FILTER_SHARE = 4,           /* of the memory */
};

struct sharer;

/* The work of all jobs. */
struct sharing {
    const struct share_barcodes_settings *settings;
    struct sharer *sharers;     /* one for each job that may run at a time */
    struct name_filter *filter; /* of the names that wait; NULL: not needed any more */
    int (*share)(struct sharer *sharer);        /* a partition; returns 0, or -1 after a message */
    pthread_mutex_t lock;       /* for appending views, and nothing else */
};

/* What one job works with. */
struct sharer {
    struct crew_slot slot;
    struct sharing *sharing;
    unsigned partition;
    struct temp_stream_reader reader;
    struct barcode_table *table;
    struct view_gather *gather; /* of the worker */
    uint32_t run;               /* of the views that are gathered */
    uint8_t *chunks;            /* that are to be appended */
    size_t n_bytes, room;
    uint8_t *texts;             /* of barcodes of views that are gathered */
    size_t texts_bytes;
    uint64_t n_given;           /* reads that got a barcode */
};

static uint64_t hash_name(const struct duplicate_view *view)
{
    return view_name_hash(view->name, view->name_bytes);
}

/* Writes the views that are gathered. Returns 0, or -1 after a message. */
static int end_gather(struct sharer *sharer)
{
    const struct share_barcodes_settings *s = sharer->sharing->settings;
    if (sharer->gather->n == 0) return 0;
    view_gather_end(sharer->gather, sharer->run, &sharer->chunks, &sharer->n_bytes, &sharer->room);
    (void)pthread_mutex_lock(&sharer->sharing->lock);
    int r = view_chunks_append(s->views, s->waiting, sharer->chunks, sharer->n_bytes);
    (void)pthread_mutex_unlock(&sharer->sharing->lock);
    sharer->n_bytes = sharer->texts_bytes = 0;
    return r;
}

/* ---- the steps ---- */

/* Remembers the names that wait. */
static int note_names(struct sharer *sharer)
{
    const struct sharing *sharing = sharer->sharing;
    struct view_chunk chunk;
    struct duplicate_view view;
    int r;
    temp_stream_reader_begin(&sharer->reader, sharing->settings->waiting,
                             VIEW_STREAM_SEEKERS - VIEW_N_STREAMS + sharer->partition);
    while ((r = view_chunks_next(&sharer->reader, &chunk)) > 0)
        while (view_chunk_next(&chunk, &view)) name_filter_add(sharing->filter, hash_name(&view));
    return r;
}

/* Copies name and barcode of a view that may be wanted. A chunk of them is of no run: it does not
   matter whose barcode it is. */
static int add_giver(struct sharer *sharer, struct duplicate_view *view)
{
    if (view->barcode_text) {
        uint8_t *text = sharer->texts + sharer->texts_bytes;
        memcpy(text, view->barcode_text, view->barcode_bytes);
        view->barcode_text = text;
        sharer->texts_bytes += view->barcode_bytes;
    }
    const struct duplicate_view giver = {
        .kind = VIEW_OTHER, .name = view->name, .name_bytes = view->name_bytes,
        .barcode = view->barcode, .barcode_text = view->barcode_text,
        .barcode_bytes = view->barcode_bytes,
    };
    view_gather_add_by_name(sharer->gather, &giver, VIEW_STREAM_GIVERS);
    bool is_full = sharer->gather->n >= VIEW_GATHER_ENOUGH ||
                   sharer->texts_bytes + UINT8_MAX > TEXTS_BYTES;
    return is_full ? end_gather(sharer) : 0;
}

/* Finds barcodes that are wanted among the pairs of a partition by place. */
static int find_givers(struct sharer *sharer)
{
    const struct sharing *sharing = sharer->sharing;
    struct view_chunk chunk;
    struct duplicate_view view;
    int r;
    sharer->run = 0;
    temp_stream_reader_begin(&sharer->reader, sharing->settings->views,
                             VIEW_STREAM_PAIRS + sharer->partition);
    while ((r = view_chunks_next(&sharer->reader, &chunk)) > 0)
        while (view_chunk_next(&chunk, &view))
            if (view.kind == VIEW_PAIR && view.barcode != 0 &&
                name_filter_may_have(sharing->filter, hash_name(&view)) &&
                add_giver(sharer, &view) < 0)
                return -1;
    return r == 0 ? end_gather(sharer) : r;
}

/* Reads the barcodes of a part of the names into the table. Returns 0, 1 if it was full, or -1
   after a message. */
static int read_givers(struct sharer *sharer, struct key_part names)
{
    struct temp_streams *waiting = sharer->sharing->settings->waiting;
    unsigned stream = VIEW_STREAM_GIVERS - VIEW_N_STREAMS + sharer->partition;
    struct view_chunk chunk;
    struct duplicate_view view;
    int r;
    barcode_table_reset(sharer->table, temp_streams_bytes(waiting, stream) / GIVER_BYTES_AT_LEAST);
    temp_stream_reader_begin(&sharer->reader, waiting, stream);
    while ((r = view_chunks_next(&sharer->reader, &chunk)) > 0)
        while (view_chunk_next(&chunk, &view)) {
            struct duplicate_key name = duplicate_key_of_name(view.name, view.name_bytes);
            if (!key_part_has(names, name)) continue;
            if (!barcode_table_add(sharer->table, name, &view)) return 1;
        }
    return r;
}

/* Puts the views with these names where they belong. */
static int release_seekers(struct sharer *sharer, struct key_part names)
{
    struct view_chunk chunk;
    struct duplicate_view view;
    int r;
    temp_stream_reader_begin(&sharer->reader, sharer->sharing->settings->waiting,
                             VIEW_STREAM_SEEKERS - VIEW_N_STREAMS + sharer->partition);
    while ((r = view_chunks_next(&sharer->reader, &chunk)) > 0) {
        if (chunk.run != sharer->run && end_gather(sharer) < 0) return -1;
        sharer->run = chunk.run;
        while (view_chunk_next(&chunk, &view)) {
            struct duplicate_key name = duplicate_key_of_name(view.name, view.name_bytes);
            if (!key_part_has(names, name)) continue;
            barcode_table_give(sharer->table, name, &view);
            sharer->n_given += view.barcode != 0 && view.kind != VIEW_END;
            view_gather_add(sharer->gather, &view);
            if (sharer->gather->n >= VIEW_GATHER_ENOUGH && end_gather(sharer) < 0) return -1;
        }
    }
    return r == 0 ? end_gather(sharer) : r;
}

/* Gives the reads of a partition of the names their barcodes. A part that does not fit into the
   table is divided; none of its views was put anywhere then. */
static int give_barcodes(struct sharer *sharer)
{
    struct key_part names = {0, 1};
    while (names.part < names.n_parts) {
        int r = read_givers(sharer, names);
        if (r == 0) r = release_seekers(sharer, names);
        if (r < 0 || key_part_go_on(&names, r == 0) < 0) return -1;
    }
    return 0;
}

/* ---- jobs ---- */

static int share_partition(struct worker *worker, void *item)
{
    struct sharer *sharer = item;
    const struct sharing *sharing = sharer->sharing;
    sharer->gather = &worker->views;
    sharer->partition = sharer->slot.number;
    unsigned later = sharer->partition + sharing->settings->n_threads;
    if (sharing->share == find_givers && later < VIEW_N_PARTITIONS)
        temp_streams_advise(sharing->settings->views, VIEW_STREAM_PAIRS + later);
    return sharing->share(sharer);
}

/* Has a step done for all partitions. Returns 0, or -1 if the crew has failed. */
static int share_partitions(struct sharing *sharing, int (*share)(struct sharer *))
{
    const struct share_barcodes_settings *s = sharing->settings;
    sharing->share = share;
    return crew_for_each(s->crew, VIEW_N_PARTITIONS, sharing->sharers, s->n_threads,
                         sizeof *sharing->sharers, share_partition);
}

/* The filter and the tables are not there at one time. */
static int share_all(struct sharing *sharing)
{
    const struct share_barcodes_settings *s = sharing->settings;
    if (s->counts->n_givers > 0) {
        sharing->filter =
            name_filter_create(s->counts->n_seekers, s->memory_bytes / FILTER_SHARE);
        int r = share_partitions(sharing, note_names);
        if (r == 0) r = share_partitions(sharing, find_givers);
        name_filter_destroy(sharing->filter);
        sharing->filter = NULL;
        if (r < 0) return -1;
    }
    for (unsigned i = 0; i < s->n_threads; i++)
        sharing->sharers[i].table = barcode_table_create(s->memory_bytes / s->n_threads);
    return share_partitions(sharing, give_barcodes);
}

int share_barcodes(const struct share_barcodes_settings *settings)
{
    struct sharing sharing = {.settings = settings};
    if (settings->counts->n_seekers == 0) return 0;
    (void)pthread_mutex_init(&sharing.lock, NULL);
    sharing.sharers = xcalloc(settings->n_threads, sizeof *sharing.sharers);
    for (unsigned i = 0; i < settings->n_threads; i++) {
        sharing.sharers[i].sharing = &sharing;
        sharing.sharers[i].texts = xmalloc(TEXTS_BYTES);
    }
    int r = share_all(&sharing);
    for (unsigned i = 0; i < settings->n_threads; i++) {
        struct sharer *sharer = &sharing.sharers[i];
        settings->counts->n_lacking -= sharer->n_given;
        temp_stream_reader_release(&sharer->reader);
        barcode_table_destroy(sharer->table);
        free(sharer->chunks);
        free(sharer->texts);
    }
    free(sharing.sharers);
    (void)pthread_mutex_destroy(&sharing.lock);
    return r;
}
