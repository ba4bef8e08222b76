/* read_ends_store.c -- see read_ends_store.h. */
#include "markdup/read_ends_store.h"

#include "util/byte_order.h"
#include "util/varint.h"
#include "util/xalloc.h"

#include <stdlib.h>

enum { PARTITION_SHIFT = 56, AHEAD = 4 };

/* ---- one item ---- */

/* The flags of an item: kind (2 bits), orientation (2 bits) and these. */
enum {
    IS_LEFT = 0x10, IS_REVERSE = 0x20, FAILED_QC = 0x40, HAS_OTHERS = 0x80, LACKS_SCORE = 0x100,
    WAS_MARKED = 0x200, NEW_REF = 0x400, OTHER_MATE_REF = 0x800, OTHER_ORDINAL = 0x1000,
    HAS_GROUP = 0x2000, HAS_BARCODE = 0x4000, HAS_NAME = 0x8000,
};

static bool is_pair(const struct read_ends *ends)
{
    return ends->kind == READ_ENDS_PAIR || ends->kind == READ_ENDS_END;
}

/* True if other_place is not `here`: in a pair, only if both reads have the same strand. */
static bool has_other_place(const struct read_ends *ends)
{
    return ends->kind == READ_ENDS_SINGLE || ends->orientation == PAIR_FF ||
           ends->orientation == PAIR_RR;
}

static uint8_t *put_text(uint8_t *out, const uint8_t *text, size_t n_bytes)
{
    *out++ = (uint8_t)n_bytes;
    return copy_bytes(out, text, n_bytes);
}

/* Writes the length of the prefix that the name shares with the previous one, and the rest. */
static uint8_t *put_name(struct read_ends_coder *coder, const struct read_ends *ends, uint8_t *out)
{
    size_t n = 0, n_bytes = ends->name_bytes;
    size_t least = n_bytes < coder->name_bytes ? n_bytes : coder->name_bytes;
    while (n < least && ends->name[n] == coder->name[n]) n++;
    *out++ = (uint8_t)n;
    memcpy(coder->name + n, ends->name + n, n_bytes - n);
    coder->name_bytes = n_bytes;
    return put_text(out, ends->name + n, n_bytes - n);
}

uint8_t *read_ends_encode(struct read_ends_coder *coder, const struct read_ends *ends, uint8_t *out)
{
    bool other_mate_ref = is_pair(ends) && ends->mate_ref != ends->ref;
    bool other_ordinal = ends->ordinal != ends->index;
    out = put_u16(out, (unsigned)ends->kind | (unsigned)ends->orientation << 2 |
                       (ends->is_left ? IS_LEFT : 0) | (ends->is_reverse ? IS_REVERSE : 0) |
                       (ends->failed_qc ? FAILED_QC : 0) | (ends->has_others ? HAS_OTHERS : 0) |
                       (ends->lacks_score ? LACKS_SCORE : 0) |
                       (ends->was_marked ? WAS_MARKED : 0) |
                       (ends->ref != coder->ref ? NEW_REF : 0) |
                       (other_mate_ref ? OTHER_MATE_REF : 0) |
                       (other_ordinal ? OTHER_ORDINAL : 0) | (ends->group ? HAS_GROUP : 0) |
                       (ends->barcode ? HAS_BARCODE : 0) | (ends->name ? HAS_NAME : 0));
    out = put_varint(out, ends->index - coder->index);
    if (other_ordinal) out = put_varint(out, ends->ordinal);
    if (ends->ref != coder->ref) out = put_signed_varint(out, ends->ref);
    if (ends->kind != READ_ENDS_OTHER) {
        out = put_signed_varint(out, ends->pos - coder->pos);
        out = put_signed_varint(out, ends->here - ends->pos);
        out = put_signed_varint(out, ends->score);
        if (has_other_place(ends)) out = put_signed_varint(out, ends->other_place - ends->here);
        coder->pos = ends->pos;
    }
    if (is_pair(ends)) out = put_signed_varint(out, ends->there - ends->here);
    if (other_mate_ref) out = put_signed_varint(out, ends->mate_ref);
    if (ends->group) out = put_varint(out, ends->group);
    if (ends->barcode) {
        out = put_u64(out, ends->barcode);
        out = put_text(out, ends->barcode_text, ends->barcode_bytes);
    }
    if (ends->name) out = put_name(coder, ends, out);
    coder->index = ends->index;
    coder->ref = ends->ref;
    return out;
}

static const uint8_t *get_text(const uint8_t **at, uint8_t *n_bytes)
{
    *n_bytes = *(*at)++;
    *at += *n_bytes;
    return *at - *n_bytes;
}

static void get_name(struct read_ends_coder *coder, const uint8_t **at)
{
    uint8_t n = *(*at)++, n_more;
    const uint8_t *more = get_text(at, &n_more);
    if (n + n_more > UINT8_MAX) n_more = (uint8_t)(UINT8_MAX - n);
    memcpy(coder->name + n, more, n_more);
    coder->name_bytes = (size_t)n + n_more;
}

void read_ends_decode(struct read_ends_coder *coder, const uint8_t **at, struct read_ends *ends)
{
    unsigned flags = get_u16(*at);
    *at += 2;
    *ends = (struct read_ends){
        .kind = flags & 3,
        .orientation = flags >> 2 & 3,
        .is_left = flags & IS_LEFT,
        .is_reverse = flags & IS_REVERSE,
        .failed_qc = flags & FAILED_QC,
        .has_others = flags & HAS_OTHERS,
        .lacks_score = flags & LACKS_SCORE,
        .was_marked = flags & WAS_MARKED,
        .ref = coder->ref,
    };
    ends->index = coder->index + (uint32_t)get_varint(at);
    ends->ordinal = (flags & OTHER_ORDINAL ? get_varint(at) : ends->index) & DUPLICATE_ORDINAL_MASK;
    if (flags & NEW_REF) ends->ref = (int32_t)get_signed_varint(at);
    if (ends->kind != READ_ENDS_OTHER) {
        ends->pos = coder->pos += get_signed_varint(at);
        ends->here = ends->pos + get_signed_varint(at);
        ends->score = get_signed_varint(at);
        ends->other_place = ends->here + (has_other_place(ends) ? get_signed_varint(at) : 0);
    }
    if (is_pair(ends)) {
        ends->there = ends->here + get_signed_varint(at);
        ends->mate_ref = flags & OTHER_MATE_REF ? (int32_t)get_signed_varint(at) : ends->ref;
    }
    if (flags & HAS_GROUP) ends->group = (uint32_t)get_varint(at);
    if (flags & HAS_BARCODE) {
        ends->barcode = get_u64(*at);
        *at += 8;
        ends->barcode_text = get_text(at, &ends->barcode_bytes);
        if (ends->barcode_bytes == 0) ends->barcode_text = NULL;
    }
    if (flags & HAS_NAME) {
        get_name(coder, at);
        ends->name = coder->name;
        ends->name_bytes = (uint8_t)coder->name_bytes;
    }
    coder->index = ends->index;
    coder->ref = ends->ref;
}

/* ---- partitions ---- */

unsigned read_ends_name_partition(struct duplicate_key name)
{
    return (unsigned)(name.high >> PARTITION_SHIFT);
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

static unsigned stream_of(const struct read_ends *ends)
{
    if (ends->kind == READ_ENDS_SINGLE) return READ_ENDS_STREAM_SINGLES + read_ends_partition(ends);
    if (ends->kind != READ_ENDS_OTHER) return READ_ENDS_STREAM_PAIRS + read_ends_partition(ends);
    return READ_ENDS_STREAM_OTHERS +
           read_ends_name_partition(duplicate_key_of_text(ends->name, ends->name_bytes));
}

/* ---- gathering ---- */

void read_ends_gather_add(struct read_ends_gather *gather, const struct read_ends *ends)
{
    size_t n = gather->n + 1;
    xgrow(&gather->items, &gather->room, n, READ_ENDS_GATHER_ENOUGH, sizeof *gather->items);
    xgrow(&gather->streams, &gather->streams_room, n, READ_ENDS_GATHER_ENOUGH,
          sizeof *gather->streams);
    struct read_ends *added = &gather->items[gather->n];
    *added = *ends;
    gather->streams[gather->n] = (uint16_t)stream_of(ends);
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

enum { SIZE_BYTES = sizeof(uint32_t), HEAD_BYTES = sizeof(uint16_t) + SIZE_BYTES };

/* Encodes the chunk that begins at number `from` of the order, after the *n_bytes of the chunks
   before it, preceded by its stream and size. Returns where the next chunk begins. */
static size_t encode_chunk(struct read_ends_gather *gather, size_t from, uint64_t label,
                           size_t *n_bytes)
{
    uint16_t stream = gather->streams[gather->order[from]];
    struct read_ends_coder coder = {0};
    size_t begin = *n_bytes, end = begin + HEAD_BYTES, i;
    xgrow(&gather->chunks, &gather->chunks_room, end + VARINT_MAX_BYTES, end, 1);
    end = (size_t)(put_varint(gather->chunks + end, label) - gather->chunks);
    for (i = from; i < gather->n && gather->streams[gather->order[i]] == stream; i++) {
        xgrow(&gather->chunks, &gather->chunks_room, end + READ_ENDS_MAX_BYTES, end, 1);
        if (i + AHEAD < gather->n) __builtin_prefetch(&gather->items[gather->order[i + AHEAD]]);
        struct read_ends *ends = &gather->items[gather->order[i]];
        if (ends->name) ends->name = gather->names + (uintptr_t)ends->name - 1;
        end = (size_t)(read_ends_encode(&coder, ends, gather->chunks + end) - gather->chunks);
    }
    (void)put_u32(put_u16(gather->chunks + begin, stream), end - begin - HEAD_BYTES);
    *n_bytes = end;
    return i;
}

static int append_chunks(const uint8_t *at, const uint8_t *end, struct tape_set *to)
{
    int r = 0;
    while (r == 0 && at < end) {
        unsigned stream = get_u16(at);
        const uint8_t *chunk = at + HEAD_BYTES - SIZE_BYTES; /* a tape has the size, too */
        size_t n_bytes = SIZE_BYTES + get_u32(chunk);
        r = tape_set_append(to, stream, chunk, n_bytes);
        at = chunk + n_bytes;
    }
    return r;
}

/* All chunks are encoded first, because one lock for each of these few reads would be slow. */
int read_ends_gather_end(struct read_ends_gather *gather, uint64_t label, struct tape_set *to,
                         pthread_mutex_t *lock)
{
    size_t n_bytes = 0;
    if (gather->n == 0) return 0;
    sort_by_stream(gather);
    for (size_t i = 0; i < gather->n;) i = encode_chunk(gather, i, label, &n_bytes);
    gather->n = gather->names_bytes = 0;
    (void)pthread_mutex_lock(lock);
    int r = append_chunks(gather->chunks, gather->chunks + n_bytes, to);
    (void)pthread_mutex_unlock(lock);
    return r;
}

void read_ends_gather_release(struct read_ends_gather *gather)
{
    free(gather->items);
    free(gather->streams);
    free(gather->order);
    free(gather->names);
    free(gather->chunks);
    *gather = (struct read_ends_gather){0};
}

int read_ends_chunks_next(struct tape_reader *reader, struct read_ends_chunk *chunk)
{
    *chunk = (struct read_ends_chunk){.at = NULL};
    if (tape_left(reader) == 0) return 0;
    const uint8_t *bytes = tape_read(reader, sizeof(uint32_t));
    size_t n_bytes = bytes ? get_u32(bytes) : 0;
    if (!bytes || !(bytes = tape_read(reader, n_bytes))) return -1;
    chunk->at = bytes;
    chunk->end = bytes + n_bytes;
    chunk->label = get_varint(&chunk->at);
    return 1;
}
