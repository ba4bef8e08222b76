/* view_chunks.c -- see view_chunks.h. */
#include "pipeline/view_chunks.h"

#include "util/diag.h"

#include <string.h>

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
    return view_chunk_open(chunk, bytes, n_bytes) ? 1 : report_damage();
}
