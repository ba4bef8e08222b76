/*
 * temp_sort.h -- sorts any number of items in bounded memory: byte strings, in the order of memcmp;
 * a shorter one comes before one that begins with it.
 *
 * Items are collected in a buffer. When it is full they are sorted and become one of FAN_IN streams
 * (temp_streams.h); so many streams are merged into one of the next level. At the end all streams
 * are merged into one, which any number of readers may read from its start. Streams that were
 * merged are freed. So an item is written once for each level and once at the end.
 *
 * Order of calls: create; add; finish; readers; destroy. Threads: one at a time.
 */
#ifndef ROCKSORT_STORE_TEMP_SORT_H
#define ROCKSORT_STORE_TEMP_SORT_H

#include "store/temp_streams.h"

struct temp_sort;

enum {
    TEMP_SORT_LEAST_BYTES = 8,          /* of an item */
    TEMP_SORT_MOST_BYTES = UINT16_MAX,
};

struct temp_sort_settings {
    size_t memory_bytes;        /* for all of it but readers, which take a 64th of it each; raised
                                   to 256 KiB */
    struct temp_places places;  /* of temporary files */
    uint64_t *file_bytes;       /* the bytes that go to temporary files are added; or NULL */
};

struct temp_sort *temp_sort_create(const struct temp_sort_settings *settings);

/* NULL is accepted. */
void temp_sort_destroy(struct temp_sort *sort);

/* Return 0, or -1 after a message. */
int temp_sort_add(struct temp_sort *sort, const uint8_t *item, size_t n_bytes);
int temp_sort_finish(struct temp_sort *sort);

struct temp_sort_reader {
    struct temp_stream_reader reader;
    const uint8_t *item;        /* until the next call */
    size_t n_bytes;
};

/* Begins at the first item. The reader starts as {0}. */
void temp_sort_read(struct temp_sort_reader *reader, const struct temp_sort *sort);

/* Reads the next item. Returns 1; 0 at the end, where item is NULL; or -1 after a message. */
int temp_sort_next(struct temp_sort_reader *reader);

void temp_sort_reader_release(struct temp_sort_reader *reader);

#endif
