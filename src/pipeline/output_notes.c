/* output_notes.c -- see output_notes.h. */
#include "pipeline/output_notes.h"

static int append(void *arg, const uint8_t *bytes, size_t n_bytes)
{
    struct output_notes *notes = arg;
    return temp_streams_append(notes->streams, 0, bytes, n_bytes);
}

static void rewind_notes(void *arg)
{
    struct output_notes *notes = arg;
    temp_stream_reader_begin(&notes->reader, notes->streams, 0);
}

static const uint8_t *read_notes(void *arg, size_t n_bytes)
{
    struct output_notes *notes = arg;
    return temp_stream_read(&notes->reader, n_bytes);
}

void output_notes_begin(struct output_notes *notes, size_t memory_bytes,
                        const struct temp_places *places)
{
    notes->streams = temp_streams_create(1, memory_bytes, places);
    notes->notes = (struct column_notes){append, rewind_notes, read_notes, notes};
}

void output_notes_release(struct output_notes *notes)
{
    temp_stream_reader_release(&notes->reader);
    temp_streams_destroy(notes->streams);
    *notes = (struct output_notes){0};
}
