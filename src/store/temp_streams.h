/*
 * temp_streams.h -- many streams of bytes that are written first and read later: in memory, and
 * when that is full in one temporary file.
 *
 * Memory and file are divided into pages of one size. The page at the end of a stream is in memory;
 * when no memory is left, all full pages are written to the file. The file has no name: nothing is
 * left of it when the process ends. When its disk is full, pages go to a file in the next
 * directory. Each page in a file has a checksum, which is verified when it is read.
 *
 * Order of calls: create; append; read, when nothing is appended to that stream any more; destroy.
 * Threads: one at a time appends, and while nobody reads any stream, because appending moves pages
 * of all. Any number of threads may read, each with a reader of its own.
 */
#ifndef ROCKSORT_STORE_TEMP_STREAMS_H
#define ROCKSORT_STORE_TEMP_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct temp_streams;

/* Where files are made: at each -T, or, where that is NULL, beside the output, which may be NULL,
   too (temp_dir.h). 0 to 256; 0 only if all fits in memory. What it points to stays. */
struct temp_places {
    const char *const *prefixes;
    size_t n_prefixes;
    const char *output;
};

/* memory_bytes: that pages may take; tables of those in the file take up to an eighth more, or at
   most a page for each stream. */
struct temp_streams *temp_streams_create(unsigned n_streams, size_t memory_bytes,
                                         const struct temp_places *places);

/* NULL is accepted. */
void temp_streams_destroy(struct temp_streams *streams);

/* Appends bytes to a stream. Returns 0, or -1 after a message. */
int temp_streams_append(struct temp_streams *streams, unsigned stream, const void *bytes,
                        size_t n_bytes);

uint64_t temp_streams_bytes(const struct temp_streams *streams, unsigned stream);

/* Bytes of all streams, and how many of them are in the file. */
uint64_t temp_streams_all_bytes(const struct temp_streams *streams);
uint64_t temp_streams_file_bytes(const struct temp_streams *streams);

/* ---- reading ---- */

struct fetched_page {           /* that was read last */
    uint8_t *bytes;
    size_t room;
    uint64_t place;             /* which one, from 1; 0: none */
};

struct temp_stream_reader {
    struct temp_streams *streams;
    unsigned stream;
    uint64_t at;
    uint8_t *bytes;             /* what was read last, if it lay in several pages */
    size_t room;
    struct fetched_page page, leaf;
};

/* Has the kernel read ahead what is in the file. */
void temp_streams_advise(struct temp_streams *streams, unsigned stream);

/* Begins to read a stream from its start. The reader starts as {0}; it may be used for one stream
   after another. */
void temp_stream_reader_begin(struct temp_stream_reader *reader, struct temp_streams *streams,
                              unsigned stream);

/* Reads the next n_bytes, all of which the stream must have. Returns where they are until the next
   call, or NULL after a message. */
const uint8_t *temp_stream_read(struct temp_stream_reader *reader, size_t n_bytes);

/* How many bytes are left. */
uint64_t temp_stream_left(const struct temp_stream_reader *reader);
bool temp_stream_is_at_end(const struct temp_stream_reader *reader);

void temp_stream_reader_release(struct temp_stream_reader *reader);

#endif
