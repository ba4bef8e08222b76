/*
 * column_sink.h -- the interface of a sink, to which the end of a columnar file is written.
 */
#ifndef ROCKSORT_COLUMNS_COLUMN_SINK_H
#define ROCKSORT_COLUMNS_COLUMN_SINK_H

#include "os/tape.h"

/* Receives bytes piece by piece. `write` returns false on failure; then it is not called again. */
struct column_sink {
    bool (*write)(void *arg, const uint8_t *bytes, size_t n_bytes);
    void *arg;
};

/* Writes a stream of tapes to a sink. Returns 0, or -1 after a message. */
static inline int column_sink_copy(const struct column_sink *sink, struct tape_set *tapes,
                                   unsigned stream)
{
    enum { COPY_BYTES = 64 << 10 };     /* at a time */
    struct tape_reader reader = {.at = 0};
    bool is_written = true;
    tape_reader_begin(&reader, tapes, stream);
    for (uint64_t left; is_written && (left = tape_left(&reader)) > 0;) {
        size_t n = left < COPY_BYTES ? (size_t)left : COPY_BYTES;
        const uint8_t *bytes = tape_read(&reader, n);
        is_written = bytes && sink->write(sink->arg, bytes, n);
    }
    tape_reader_release(&reader);
    return is_written ? 0 : -1;
}

#endif
