/*
 * view_chunks.h -- sorts the views of records into streams, so that those that may have to do with
 * each other are in the same one, and each stream can be decided by itself.
 *
 * Views of records that follow one another in a run are gathered, and then written as *chunks*, one
 * for each stream that got some. A chunk is self-contained, so the chunks of a stream may come in
 * any order: which reads are duplicates does not depend on it.
 *
 * Order of calls: any number of view_gather_add, then view_gather_end; again for the next records;
 * view_gather_release. Ownership: names are copied, so records need not stay; but texts of barcodes
 * must stay until view_gather_end. Threads: one at a time for each gatherer.
 */
#ifndef ROCKSORT_PIPELINE_VIEW_CHUNKS_H
#define ROCKSORT_PIPELINE_VIEW_CHUNKS_H

#include "duplicates/view_code.h"
#include "store/temp_streams.h"

/* Streams of single reads and of pairs, by place, and of other records, by name. */
enum {
    VIEW_N_PARTITIONS = 256,
    VIEW_STREAM_SINGLES = 0,
    VIEW_STREAM_PAIRS = VIEW_N_PARTITIONS,
    VIEW_STREAM_OTHERS = 2 * VIEW_N_PARTITIONS,
    VIEW_N_STREAMS = 3 * VIEW_N_PARTITIONS,
};

/* So many views make a good slice: more would leave the cache. */
enum { VIEW_GATHER_ENOUGH = 4096 };

struct view_gather {
    struct duplicate_view *views;
    uint16_t *streams;          /* of each view */
    uint32_t *order;
    uint8_t *names;             /* of the views; their `name` is an offset from 1, as a pointer */
    size_t n, room, streams_room, order_room;
    size_t names_bytes, names_room;
};

/* Adds a view, whose index and ordinal are set. */
void view_gather_add(struct view_gather *gather, const struct duplicate_view *view);

/* Stands before each chunk in the output. */
struct view_chunk_head {
    uint32_t stream;
    uint32_t n_bytes;           /* of the chunk, which follows */
};

/* Appends the chunks of all views that were gathered to an array of *n_bytes (xgrow) and forgets
   the views. The label says which run they are of. */
void view_gather_end(struct view_gather *gather, uint64_t label, uint8_t **out, size_t *n_bytes,
                     size_t *room);

void view_gather_release(struct view_gather *gather);

/* Appends chunks, each with its head, to temporary streams, one thread at a time. Returns 0, or -1
   after a message. */
int view_chunks_append(struct temp_streams *views, const uint8_t *chunks, size_t n_bytes);

/* ---- reading a chunk ---- */

struct view_chunk {
    struct view_coder coder;
    const uint8_t *at, *end;
    uint64_t label;
};

/* Begins to read the next chunk of a stream; it is there until the next call. Returns 1, 0 if there
   is none, or -1 after a message. */
int view_chunks_next(struct temp_stream_reader *reader, struct view_chunk *chunk);

/* Reads the next view; its name is there until the next call. Returns false at the end. */
static inline bool view_chunk_next(struct view_chunk *chunk, struct duplicate_view *view)
{
    if (chunk->at >= chunk->end) return false;
    view_decode(&chunk->coder, &chunk->at, view);
    return true;
}

/* The partition of a view, by ref and here. */
unsigned duplicate_view_partition(const struct duplicate_view *view);

/* In which of n_parts parts a view is, by ref and here. Views of one partition are in all parts.
   The parts of n * k parts from p * k on are part p of n. */
unsigned duplicate_view_place_part(const struct duplicate_view *view, unsigned n_parts);

/* A hash of a name, by which others are sorted into partitions. */
uint64_t view_name_hash(const uint8_t *name, size_t n_bytes);
unsigned view_name_partition(uint64_t name_hash);

#endif
