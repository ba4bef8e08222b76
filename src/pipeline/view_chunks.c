/* view_chunks.c -- see view_chunks.h. */
#include "pipeline/view_chunks.h"

#include "util/byte_order.h"
#include "util/diag.h"
#include "util/long_hash.h"
#include "util/varint.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

enum { CHECKSUM_BYTES = 4, PARTITION_SHIFT = 56, AHEAD = 4 };

uint64_t view_name_hash(const uint8_t *name, size_t n_bytes)
{
    return XXH3_64bits(name, n_bytes);
}

unsigned view_name_partition(uint64_t name_hash)
{
    return (unsigned)(name_hash >> PARTITION_SHIFT);
}

/* Of ref and here only: barcodes and groups may be compared in other ways than for equality. */
static uint64_t hash_place(const struct duplicate_view *view)
{
    uint64_t hash = (uint64_t)view->here * UINT64_C(0x9e3779b97f4a7c15) +
                    (uint64_t)(uint32_t)view->ref * UINT64_C(0xc2b2ae3d27d4eb4f);
    hash ^= hash >> 32;
    return hash * UINT64_C(0xd6e8feb86659fd93);
}

unsigned duplicate_view_partition(const struct duplicate_view *view)
{
    return (unsigned)(hash_place(view) >> PARTITION_SHIFT);
}

unsigned duplicate_view_place_part(const struct duplicate_view *view, unsigned n_parts)
{
    uint64_t below = hash_place(view) << (64 - PARTITION_SHIFT) >> 32;
    return (unsigned)(below * n_parts >> 32);
}

static uint16_t stream_by_name(const struct duplicate_view *view)
{
    uint64_t hash = view_name_hash(view->name, view->name_bytes);
    return (uint16_t)(VIEW_STREAM_OTHERS + view_name_partition(hash));
}

static uint16_t stream_of(const struct duplicate_view *view)
{
    switch (view->kind) {
    case VIEW_SINGLE: return (uint16_t)(VIEW_STREAM_SINGLES + duplicate_view_partition(view));
    case VIEW_OTHER: return stream_by_name(view);
    default: return (uint16_t)(VIEW_STREAM_PAIRS + duplicate_view_partition(view));
    }
}

void view_gather_add(struct view_gather *gather, const struct duplicate_view *view)
{
    size_t n = gather->n + 1;
    xgrow(&gather->views, &gather->room, n, VIEW_GATHER_ENOUGH, sizeof *gather->views);
    xgrow(&gather->streams, &gather->streams_room, n, VIEW_GATHER_ENOUGH,
          sizeof *gather->streams);
    struct duplicate_view *added = &gather->views[gather->n];
    *added = *view;
    gather->streams[gather->n] = stream_of(view);
    gather->n = n;
    if (!view->name) return;
    /* Copied while the record is in the cache: else it would have to be fetched again. */
    size_t end = gather->names_bytes + view->name_bytes;
    xgrow(&gather->names, &gather->names_room, end, 32 * VIEW_GATHER_ENOUGH, 1);
    memcpy(gather->names + gather->names_bytes, view->name, view->name_bytes);
    added->name = (const uint8_t *)(uintptr_t)(gather->names_bytes + 1);
    gather->names_bytes = end;
}

/* Sorts the views by stream; those of one stream stay in their order. */
static void sort_by_stream(struct view_gather *gather)
{
    uint32_t ends[VIEW_N_STREAMS + 1] = {0};
    xgrow(&gather->order, &gather->order_room, gather->n, VIEW_GATHER_ENOUGH,
          sizeof *gather->order);
    for (size_t i = 0; i < gather->n; i++) ends[gather->streams[i] + 1]++;
    for (size_t i = 1; i <= VIEW_N_STREAMS; i++) ends[i] += ends[i - 1];
    for (size_t i = 0; i < gather->n; i++)
        gather->order[ends[gather->streams[i]]++] = (uint32_t)i;
}

void view_gather_end(struct view_gather *gather, uint64_t label, uint8_t **out, size_t *n_bytes,
                     size_t *room)
{
    sort_by_stream(gather);
    for (size_t from = 0, to; from < gather->n; from = to) {
        uint16_t stream = gather->streams[gather->order[from]];
        struct view_coder coder;
        view_coder_begin(&coder);
        size_t head_at = *n_bytes, sum_at = head_at + sizeof(struct view_chunk_head);
        size_t at = sum_at + CHECKSUM_BYTES;
        xgrow(out, room, at + VARINT_MAX_BYTES, *room / 2, 1);
        at = (size_t)(put_varint(*out + at, label) - *out);
        for (to = from; to < gather->n && gather->streams[gather->order[to]] == stream; to++) {
            xgrow(out, room, at + VIEW_CODE_MAX_BYTES, *room / 2, 1);
            if (to + AHEAD < gather->n)
                __builtin_prefetch(&gather->views[gather->order[to + AHEAD]]);
            struct duplicate_view *view = &gather->views[gather->order[to]];
            if (view->name) view->name = gather->names + (uintptr_t)view->name - 1;
            at = (size_t)(view_encode(&coder, view, *out + at) - *out);
        }
        xgrow(out, room, at + VIEW_CODE_SLACK_BYTES, *room / 2, 1);
        memset(*out + at, 0, VIEW_CODE_SLACK_BYTES);
        at += VIEW_CODE_SLACK_BYTES;
        size_t from_at = sum_at + CHECKSUM_BYTES;
        (void)put_u32(*out + sum_at, long_hash(*out + from_at, at - from_at));
        const struct view_chunk_head head = {stream, (uint32_t)(at - sum_at)};
        memcpy(*out + head_at, &head, sizeof head);
        *n_bytes = at;
    }
    gather->n = gather->names_bytes = 0;
}

void view_gather_release(struct view_gather *gather)
{
    free(gather->views);
    free(gather->streams);
    free(gather->order);
    free(gather->names);
    *gather = (struct view_gather){0};
}

/* ---- in temporary streams ---- */

int view_chunks_append(struct temp_streams *views, const uint8_t *chunks, size_t n_bytes)
{
    const uint8_t *at = chunks, *end = chunks + n_bytes;
    struct view_chunk_head head;
    while (at < end) {
        memcpy(&head, at, sizeof head);
        at += sizeof head;
        if (temp_streams_append(views, head.stream, &head.n_bytes, sizeof head.n_bytes) < 0 ||
            temp_streams_append(views, head.stream, at, head.n_bytes) < 0)
            return -1;
        at += head.n_bytes;
    }
    return 0;
}

/* Begins to read a chunk. Returns false if its checksum is wrong. */
static bool open_chunk(struct view_chunk *chunk, const uint8_t *bytes, size_t n_bytes)
{
    view_coder_begin(&chunk->coder);
    chunk->at = bytes + CHECKSUM_BYTES;
    if (n_bytes <= CHECKSUM_BYTES + VIEW_CODE_SLACK_BYTES ||
        get_u32(bytes) != (uint32_t)long_hash(chunk->at, n_bytes - CHECKSUM_BYTES))
        return false;
    chunk->end = bytes + n_bytes - VIEW_CODE_SLACK_BYTES;
    chunk->label = get_varint(&chunk->at);
    return true;
}

static int report_damage(void)
{
    diag_error_of(DIAG_DAMAGE, "the temporary data of --markdup are damaged: sort again on another "
                  "disk");
    return -1;
}

int view_chunks_next(struct temp_stream_reader *reader, struct view_chunk *chunk)
{
    uint32_t n_bytes;
    if (temp_stream_is_at_end(reader)) return 0;
    const uint8_t *bytes = temp_stream_read(reader, sizeof n_bytes);
    if (!bytes) return -1;
    memcpy(&n_bytes, bytes, sizeof n_bytes);
    if (n_bytes > temp_stream_left(reader)) return report_damage();
    bytes = temp_stream_read(reader, n_bytes);
    if (!bytes) return -1;
    return open_chunk(chunk, bytes, n_bytes) ? 1 : report_damage();
}
