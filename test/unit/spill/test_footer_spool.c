/*
 * test_footer_spool.c -- the end of a file of columns is the same whether the metadata of its
 * batches fit into memory or have gone to a file; and that file has no name.
 */
#include "test_place.h"
#include "unit_test.h"

#include "columns/arrow_message.h"
#include "columns/column_file.h"
#include "util/path.h"

#include <dirent.h>

enum { BATCHES = 3000, BATCHES_AT_A_TIME = 7 };

static bool put_bytes(void *arg, const uint8_t *bytes, size_t n_bytes)
{
    byte_buffer_copy(arg, bytes, n_bytes);
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

/* Writes the end of a file of Arrow whose spool has this memory. */
static void write_end(size_t memory_bytes, struct byte_buffer *end)
{
    const char *prefix = ".";
    const struct column_request request = {.format = COLUMN_FORMAT_ARROW, .level = 1};
    const struct column_output output = {
        .request = &request,
        .schema = column_schema_create("pos", NULL)};
    const struct temp_places places = {&prefix, 1, NULL};
    const struct column_sink sink = {put_bytes, end};
    OWNED_HEADER sam_hdr_t *header = sam_hdr_init();
    struct column_file *file = column_file_create(&output, memory_bytes, &places, "out.arrow");
    struct byte_buffer begin = {0};
    column_file_begin(file, header, &begin);
    for (uint64_t i = 0; i < BATCHES; i += BATCHES_AT_A_TIME) {
        struct byte_buffer metadata = {0};
        for (uint64_t k = i; k < i + BATCHES_AT_A_TIME && k < BATCHES; k++) {
            const struct arrow_place place = {.at = 64 * (k - i), .metadata_bytes = 16,
                                              .body_bytes = 48};
            byte_buffer_copy(&metadata, &place, sizeof place);
        }
        assert_int_equal(column_file_add(file, &metadata, 1000 + 64 * i), 0);
        free(metadata.bytes);
    }
    assert_int_equal(count_files(), 0);
    assert_int_equal(column_file_end(file, header, 1000 + 64 * BATCHES, &sink), 0);
    free(begin.bytes);
    column_file_destroy(file);
    column_schema_destroy(output.schema);
}

TEST_IN_OWN_DIR(test_end_is_the_same_from_memory_and_from_a_file)
{
    struct byte_buffer in_memory = {0}, in_file = {0};
    write_end(1 << 20, &in_memory);
    write_end(4096, &in_file);
    assert_true(in_memory.n_bytes > BATCHES * sizeof(struct arrow_place));
    assert_int_equal(in_file.n_bytes, in_memory.n_bytes);
    assert_memory_equal(in_file.bytes, in_memory.bytes, in_memory.n_bytes);
    free(in_memory.bytes);
    free(in_file.bytes);
}
