/*
 * test_footer_spool.c -- the end of a file of columns is the same whether the notes of its sort
 * buffers fit into memory or have gone to a file; and that file has no name.
 */
#include "test_place.h"
#include "unit_test.h"

#include "columns/arrow_message.h"
#include "columns/column_file.h"
#include "output/output_file.h"

#include <dirent.h>

enum { BATCHES = 3000, BATCHES_AT_A_TIME = 7 };

static bool put_bytes(void *arg, const uint8_t *bytes, size_t n_bytes)
{
    column_bytes_copy(arg, bytes, n_bytes);
    return true;
}

/* The number of files in the working directory. */
static int count_files(void)
{
    struct dirent **entries;
    int n = scandir(".", &entries, NULL, NULL);
    for (int i = 0; i < n; i++) free(entries[i]);
    if (n >= 0) free(entries);
    return n - 2;               /* without "." and ".." */
}

/* Writes the end of a file of Arrow whose notes have this memory. Returns how many bytes of them
   are in a file. */
static uint64_t write_end(size_t memory_bytes, struct column_bytes *end)
{
    const char *prefix = ".";
    const struct column_request request = {.format = COLUMN_FORMAT_ARROW, .level = 1};
    const struct column_output output = {
        .request = &request,
        .schema = column_schema_create("pos", NULL)};
    const struct temp_places places = {&prefix, 1, NULL};
    const struct column_sink sink = {put_bytes, end};
    OWNED_HEADER sam_hdr_t *header = sam_hdr_init();
    RELEASED(output_notes_release) struct output_notes kept = {.streams = NULL};
    output_notes_begin(&kept, memory_bytes, &places);
    struct column_file *file = column_file_create(&output, &kept.notes, "out.arrow");
    struct column_bytes begin = {0};
    column_file_begin(file, header, &begin);
    for (uint64_t i = 0; i < BATCHES; i += BATCHES_AT_A_TIME) {
        struct column_bytes notes = {0};
        for (uint64_t k = i; k < i + BATCHES_AT_A_TIME && k < BATCHES; k++) {
            const struct arrow_place place = {.at = 64 * (k - i), .metadata_bytes = 16,
                                              .body_bytes = 48};
            arrow_put_place(column_bytes_append(&notes, ARROW_PLACE_BYTES), &place);
        }
        assert_int_equal(column_file_note(file, &notes, 1000 + 64 * i), 0);
        free(notes.bytes);
    }
    uint64_t n_bytes = tape_set_file_bytes(kept.streams);
    assert_int_equal(count_files(), 0);
    assert_int_equal(column_file_end(file, header, 1000 + 64 * BATCHES, &sink), 0);
    free(begin.bytes);
    column_file_destroy(file);
    column_schema_destroy(output.schema);
    return n_bytes;
}

TEST_IN_OWN_DIR(test_notes_in_a_file)
{
    struct column_bytes in_memory = {0}, in_file = {0};
    assert_int_equal(write_end(OUTPUT_NOTES_BYTES, &in_memory), 0);
    assert_true(write_end(4096, &in_file) > BATCHES * ARROW_PLACE_BYTES / 2);
    assert_true(in_memory.n_bytes > BATCHES * ARROW_PLACE_BYTES);
    assert_int_equal(in_file.n_bytes, in_memory.n_bytes);
    assert_memory_equal(in_file.bytes, in_memory.bytes, in_memory.n_bytes);
    free(in_memory.bytes);
    free(in_file.bytes);
}
