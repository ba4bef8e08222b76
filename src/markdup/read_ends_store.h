/*
 * read_ends_store.h -- sorts the read ends of records into streams, so that those that may have to
 * do with each other are in the same one, and each stream can be decided by itself.
 *
 * read ends of records that follow one another in a run are gathered, and then written as *chunks*,
 * one for each stream that got some. A chunk is self-contained, so the chunks of a stream may come
 * in any order: which reads are duplicates does not depend on it.
 *
 * Order of calls: any number of read_ends_gather_add, then read_ends_gather_end; again for the next
 * records; read_ends_gather_release. Ownership: names are copied, so records need not stay; but
 * texts of barcodes must stay until read_ends_gather_end. Threads: one at a time for each gatherer.
 */
#ifndef ROCKSORT_MARKDUP_READ_ENDS_STORE_H
#define ROCKSORT_MARKDUP_READ_ENDS_STORE_H

#include "markdup/read_ends_code.h"
#include "os/tape.h"

/* Streams of single reads and of pairs, by place, and of other records, by name. */
enum {
    READ_ENDS_N_PARTITIONS = 256,
    READ_ENDS_STREAM_SINGLES = 0,
    READ_ENDS_STREAM_PAIRS = READ_ENDS_N_PARTITIONS,
    READ_ENDS_STREAM_OTHERS = 2 * READ_ENDS_N_PARTITIONS,
    READ_ENDS_N_STREAMS = 3 * READ_ENDS_N_PARTITIONS,
};

/* So many read ends make a good slice: more would leave the cache. */
enum { READ_ENDS_GATHER_ENOUGH = 4096 };

struct read_ends_gather {
    struct read_ends *all_ends;
    uint16_t *streams;          /* of each read ends */
    uint32_t *order;
    uint8_t *names; /* of the read ends; their `name` is an offset from 1, as a pointer */
    size_t n, room, streams_room, order_room;
    size_t names_bytes, names_room;
};

/* Adds read ends, whose index and ordinal are set. */
void read_ends_gather_add(struct read_ends_gather *gather, const struct read_ends *ends);

/* Stands before each chunk in the output. */
struct read_ends_chunk_head {
    uint32_t stream;
    uint32_t n_bytes;           /* of the chunk, which follows */
};

/* Appends the chunks of all read ends that were gathered to an array of *n_bytes (xgrow) and
   forgets the read ends. The label says which run they are of. */
void read_ends_gather_end(struct read_ends_gather *gather, uint64_t label, uint8_t **out,
                          size_t *n_bytes, size_t *room);

void read_ends_gather_release(struct read_ends_gather *gather);

/* Appends chunks, each with its head, to temporary streams, one thread at a time. Returns 0, or -1
   after a message. */
int read_ends_chunks_append(struct tape_set *all_ends, const uint8_t *chunks, size_t n_bytes);

/* ---- reading a chunk ---- */

struct read_ends_chunk {
    struct read_ends_coder coder;
    const uint8_t *at, *end;
    uint64_t label;
};

/* Begins to read the next chunk of a stream; it is there until the next call. Returns 1, 0 if there
   is none, or -1 after a message. */
int read_ends_chunks_next(struct tape_reader *reader, struct read_ends_chunk *chunk);

/* Reads the next read ends; its name is there until the next call. Returns false at the end. */
static inline bool read_ends_chunk_next(struct read_ends_chunk *chunk, struct read_ends *ends)
{
    if (chunk->at >= chunk->end) return false;
    read_ends_decode(&chunk->coder, &chunk->at, ends);
    return true;
}

/* The partition of read ends, by ref and here. */
unsigned read_ends_partition(const struct read_ends *ends);

/* In which of n_parts parts read ends is, by ref and here. read ends of one partition are in all
   parts. The parts of n * k parts from p * k on are part p of n. */
unsigned read_ends_place_part(const struct read_ends *ends, unsigned n_parts);

/* A hash of a name, by which others are sorted into partitions. */
uint64_t read_ends_name_hash(const uint8_t *name, size_t n_bytes);
unsigned ends_name_partition(uint64_t name_hash);

#endif
