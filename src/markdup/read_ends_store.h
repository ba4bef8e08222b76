/*
 * read_ends_store.h -- partitions read ends into streams, and compresses them: a usual pair takes
 * about 35 bytes. Read ends that must be compared are in the same partition, so each partition can
 * be resolved by itself.
 *
 * Read ends of consecutive records of a run are gathered, and then appended to tapes as *chunks*,
 * at most one for each stream. In a chunk each item is stored as the difference from the item
 * before it. The order of the chunks in a stream does not change the result.
 *
 * Order of calls: any number of read_ends_gather_add, then read_ends_gather_end; again for the next
 * records; read_ends_gather_release. Ownership: names are copied; texts of barcodes must stay valid
 * until read_ends_gather_end. Threads: one at a time for each read_ends_gather and chunk.
 */
#ifndef ROCKSORT_MARKDUP_READ_ENDS_STORE_H
#define ROCKSORT_MARKDUP_READ_ENDS_STORE_H

#include "markdup/read_ends.h"
#include "os/tape.h"

#include <pthread.h>

/* Streams: single reads and pairs by place; other records by name. */
enum {
    READ_ENDS_N_PARTITIONS = 256,
    READ_ENDS_STREAM_SINGLES = 0,
    READ_ENDS_STREAM_PAIRS = READ_ENDS_N_PARTITIONS,
    READ_ENDS_STREAM_OTHERS = 2 * READ_ENDS_N_PARTITIONS,
    READ_ENDS_N_STREAMS = 3 * READ_ENDS_N_PARTITIONS,
};

/* How many read ends to gather before read_ends_gather_end: more would not fit in the cache. */
enum { READ_ENDS_GATHER_ENOUGH = 4096 };

/* Maximum size of an item in a chunk: flags, ten varints, a hash and two texts. */
enum { READ_ENDS_MAX_BYTES = 2 + 10 * 10 + 8 + 2 * (2 + UINT8_MAX) };

struct read_ends_gather {
    struct read_ends *items;
    uint16_t *streams;          /* one for each item */
    uint32_t *order;
    uint8_t *names; /* `name` is an offset here, from 1, as a pointer */
    uint8_t *chunks;
    size_t n, room, streams_room, order_room, chunks_room;
    size_t names_bytes, names_room;
};

/* Adds read ends, whose index and ordinal are set. */
void read_ends_gather_add(struct read_ends_gather *gather, const struct read_ends *ends);

/* Appends the gathered read ends as chunks to READ_ENDS_N_STREAMS tapes, taking the lock once, and
   empties `gather`. The label identifies their run. Returns 0, or -1 after a message. */
int read_ends_gather_end(struct read_ends_gather *gather, uint64_t label, struct tape_set *to,
                         pthread_mutex_t *lock);

void read_ends_gather_release(struct read_ends_gather *gather);

/* ---- reading a chunk ---- */

struct read_ends_coder {        /* the previous item of a chunk; starts as {0} */
    uint32_t index;
    int32_t ref;
    int64_t pos;
    size_t name_bytes;
    uint8_t name[UINT8_MAX];    /* only the first name_bytes are set */
};

struct read_ends_chunk {
    struct read_ends_coder coder;
    const uint8_t *at, *end;
    uint64_t label;
};

/* Writes an item, of at most READ_ENDS_MAX_BYTES, and returns its end. */
uint8_t *read_ends_encode(struct read_ends_coder *coder, const struct read_ends *ends,
                          uint8_t *out);

/* Reads an item and moves *at to its end. The name points into the coder and is valid until the
   next call; the text of the barcode points into the bytes. */
void read_ends_decode(struct read_ends_coder *coder, const uint8_t **at, struct read_ends *ends);

/* Begins to read the next chunk of a stream; it is valid until the next call. Returns 1, 0 if there
   is none, or -1 after a message. */
int read_ends_chunks_next(struct tape_reader *reader, struct read_ends_chunk *chunk);

/* Reads the next item; its name is valid until the next call. Returns false at the end. */
static inline bool read_ends_chunk_next(struct read_ends_chunk *chunk, struct read_ends *ends)
{
    if (chunk->at >= chunk->end) return false;
    read_ends_decode(&chunk->coder, &chunk->at, ends);
    return true;
}

/* The partition of an item, by ref and here. */
unsigned read_ends_partition(const struct read_ends *ends);

/* Divides a partition further: returns which of n_parts the item belongs to, by ref and here.
   Dividing by n * k cuts part p of n into parts p * k to p * k + k - 1. */
unsigned read_ends_place_part(const struct read_ends *ends, unsigned n_parts);

/* The partition of other records, by the key of their name. */
unsigned read_ends_name_partition(struct duplicate_key name);

#endif
