/* read_ends_store.c -- see read_ends_store.h. */
#include "markdup/read_ends_store.h"

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

uint64_t read_ends_name_hash(const uint8_t *name, size_t n_bytes)
{
    return XXH3_64bits(name, n_bytes);
}

unsigned read_ends_name_partition(uint64_t name_hash)
{
    return (unsigned)(name_hash >> PARTITION_SHIFT);
}

/* Hashes only ref and here, because barcodes and groups need not be equal. */
static uint64_t hash_place(const struct read_ends *ends)
{
    uint64_t hash = (uint64_t)ends->here * UINT64_C(0x9e3779b97f4a7c15) +
                    (uint64_t)(uint32_t)ends->ref * UINT64_C(0xc2b2ae3d27d4eb4f);
    hash ^= hash >> 32;
    return hash * UINT64_C(0xd6e8feb86659fd93);
}

unsigned read_ends_partition(const struct read_ends *ends)
{
    return (unsigned)(hash_place(ends) >> PARTITION_SHIFT);
}

unsigned read_ends_place_part(const struct read_ends *ends, unsigned n_parts)
{
    uint64_t below = hash_place(ends) << (64 - PARTITION_SHIFT) >> 32;
    return (unsigned)(below * n_parts >> 32);
}

static uint16_t stream_by_name(const struct read_ends *ends)
{
    uint64_t hash = read_ends_name_hash(ends->name, ends->name_bytes);
    return (uint16_t)(READ_ENDS_STREAM_OTHERS + read_ends_name_partition(hash));
}

static uint16_t stream_of(const struct read_ends *ends)
{
    switch (ends->kind) {
    case READ_ENDS_SINGLE: return (uint16_t)(READ_ENDS_STREAM_SINGLES + read_ends_partition(ends));
    case READ_ENDS_OTHER: return stream_by_name(ends);
    default: return (uint16_t)(READ_ENDS_STREAM_PAIRS + read_ends_partition(ends));
    }
}

void read_ends_gather_add(struct read_ends_gather *gather, const struct read_ends *ends)
{
    size_t n = gather->n + 1;
    xgrow(&gather->all_ends, &gather->room, n, READ_ENDS_GATHER_ENOUGH, sizeof *gather->all_ends);
    xgrow(&gather->streams, &gather->streams_room, n, READ_ENDS_GATHER_ENOUGH,
          sizeof *gather->streams);
    struct read_ends *added = &gather->all_ends[gather->n];
    *added = *ends;
    gather->streams[gather->n] = stream_of(ends);
    gather->n = n;
    if (!ends->name) return;
    /* Copied now because the record is in the cache. */
    size_t end = gather->names_bytes + ends->name_bytes;
    xgrow(&gather->names, &gather->names_room, end, 32 * READ_ENDS_GATHER_ENOUGH, 1);
    memcpy(gather->names + gather->names_bytes, ends->name, ends->name_bytes);
    added->name = (const uint8_t *)(uintptr_t)(gather->names_bytes + 1);
    gather->names_bytes = end;
}

/* Sorts the read ends by stream; the sort is stable. */
static void sort_by_stream(struct read_ends_gather *gather)
{
    uint32_t ends[READ_ENDS_N_STREAMS + 1] = {0};
    xgrow(&gather->order, &gather->order_room, gather->n, READ_ENDS_GATHER_ENOUGH,
          sizeof *gather->order);
    for (size_t i = 0; i < gather->n; i++) ends[gather->streams[i] + 1]++;
    for (size_t i = 1; i <= READ_ENDS_N_STREAMS; i++) ends[i] += ends[i - 1];
    for (size_t i = 0; i < gather->n; i++)
        gather->order[ends[gather->streams[i]]++] = (uint32_t)i;
}

void read_ends_gather_end(struct read_ends_gather *gather, uint64_t label, uint8_t **out,
                          size_t *n_bytes, size_t *room)
{
    sort_by_stream(gather);
    for (size_t from = 0, to; from < gather->n; from = to) {
        uint16_t stream = gather->streams[gather->order[from]];
        struct read_ends_coder coder;
        read_ends_coder_begin(&coder);
        size_t head_at = *n_bytes, sum_at = head_at + sizeof(struct read_ends_chunk_head);
        size_t at = sum_at + CHECKSUM_BYTES;
        xgrow(out, room, at + VARINT_MAX_BYTES, *room / 2, 1);
        at = (size_t)(put_varint(*out + at, label) - *out);
        for (to = from; to < gather->n && gather->streams[gather->order[to]] == stream; to++) {
            xgrow(out, room, at + READ_ENDS_CODE_MAX_BYTES, *room / 2, 1);
            if (to + AHEAD < gather->n)
                __builtin_prefetch(&gather->all_ends[gather->order[to + AHEAD]]);
            struct read_ends *ends = &gather->all_ends[gather->order[to]];
            if (ends->name) ends->name = gather->names + (uintptr_t)ends->name - 1;
            at = (size_t)(read_ends_encode(&coder, ends, *out + at) - *out);
        }
        xgrow(out, room, at + READ_ENDS_CODE_SLACK_BYTES, *room / 2, 1);
        memset(*out + at, 0, READ_ENDS_CODE_SLACK_BYTES);
        at += READ_ENDS_CODE_SLACK_BYTES;
        size_t from_at = sum_at + CHECKSUM_BYTES;
        (void)put_u32(*out + sum_at, long_hash(*out + from_at, at - from_at));
        const struct read_ends_chunk_head head = {stream, (uint32_t)(at - sum_at)};
        memcpy(*out + head_at, &head, sizeof head);
        *n_bytes = at;
    }
    gather->n = gather->names_bytes = 0;
}

void read_ends_gather_release(struct read_ends_gather *gather)
{
    free(gather->all_ends);
    free(gather->streams);
    free(gather->order);
    free(gather->names);
    *gather = (struct read_ends_gather){0};
}

/* ---- tapes ---- */

int read_ends_chunks_append(struct tape_set *all_ends, const uint8_t *chunks, size_t n_bytes)
{
    const uint8_t *at = chunks, *end = chunks + n_bytes;
    struct read_ends_chunk_head head;
    while (at < end) {
        memcpy(&head, at, sizeof head);
        at += sizeof head;
        if (tape_set_append(all_ends, head.stream, &head.n_bytes, sizeof head.n_bytes) < 0 ||
            tape_set_append(all_ends, head.stream, at, head.n_bytes) < 0)
            return -1;
        at += head.n_bytes;
    }
    return 0;
}

/* Begins to read a chunk. Returns false if its checksum is wrong. */
static bool open_chunk(struct read_ends_chunk *chunk, const uint8_t *bytes, size_t n_bytes)
{
    read_ends_coder_begin(&chunk->coder);
    chunk->at = bytes + CHECKSUM_BYTES;
    if (n_bytes <= CHECKSUM_BYTES + READ_ENDS_CODE_SLACK_BYTES ||
        get_u32(bytes) != (uint32_t)long_hash(chunk->at, n_bytes - CHECKSUM_BYTES))
        return false;
    chunk->end = bytes + n_bytes - READ_ENDS_CODE_SLACK_BYTES;
    chunk->label = get_varint(&chunk->at);
    return true;
}

static int report_damage(void)
{
    diag_error_of(DIAG_DAMAGE, "the temporary data of --markdup are damaged: sort again on another "
                  "disk");
    return -1;
}

int read_ends_chunks_next(struct tape_reader *reader, struct read_ends_chunk *chunk)
{
    uint32_t n_bytes;
    if (tape_left(reader) == 0) return 0;
    const uint8_t *bytes = tape_read(reader, sizeof n_bytes);
    if (!bytes) return -1;
    memcpy(&n_bytes, bytes, sizeof n_bytes);
    if (n_bytes > tape_left(reader)) return report_damage();
    bytes = tape_read(reader, n_bytes);
    if (!bytes) return -1;
    return open_chunk(chunk, bytes, n_bytes) ? 1 : report_damage();
}
