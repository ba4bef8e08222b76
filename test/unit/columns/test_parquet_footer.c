/*
 * test_parquet_footer.c -- the end of a file of many groups is written bit by bit; a sink that
 * fails is not called again, and then the end is not complete. Groups that do not fit into a footer
 * are refused when they are added.
 */
#include "unit_test.h"

#include "columns/parquet_footer.h"

enum { GROUPS = 20000 };

/* Takes bytes until it fails. */
struct taker {
    struct byte_buffer bytes;
    unsigned n_writes, fails_at;        /* 0: never */
};

static bool take(void *arg, const uint8_t *bytes, size_t n_bytes)
{
    struct taker *taker = arg;
    assert_true(n_bytes > 0);
    if (++taker->n_writes == taker->fails_at) return false;
    byte_buffer_copy(&taker->bytes, bytes, n_bytes);
    return true;
}

/* Puts the metadata of a group of 40 bytes at byte 40 * i. */
static void put_group(struct byte_buffer *metadata, uint64_t i)
{
    const struct parquet_group group = {.at = i * 40, .n_rows = 9};
    struct parquet_page page = {.n_rows = 9, .n_bytes = 40};
    page.bounds = (struct parquet_bounds){.are_known = true, .least.n_bytes = 4,
                                          .most.n_bytes = 4};
    (void)put_u32(page.bounds.least.bytes, i);
    (void)put_u32(page.bounds.most.bytes, i + 5);
    const struct parquet_chunk chunk = {
        .encoding = PARQUET_DELTA, .n_values = 9, .raw_bytes = 50, .n_bytes = 40,
        .bounds = page.bounds, .has_page_bounds = true, .n_pages = 1,
    };
    byte_buffer_copy(metadata, &group, sizeof group);
    byte_buffer_copy(metadata, &chunk, sizeof chunk);
    byte_buffer_copy(metadata, &page, sizeof page);
}

static struct parquet_footer make_file(uint64_t most_footer_bytes)
{
    const struct temp_places places = {NULL, 0, NULL};
    struct parquet_footer file = {
        .name = "out.parquet", .schema = column_schema_create("pos", NULL),
        .spool = tape_set_create(PARQUET_N_STREAMS, 64 << 20, &places),
        .most_footer_bytes = most_footer_bytes};
    file.leaves = parquet_leaves(file.schema, &file.n_leaves);
    return file;
}

static void release_file(struct parquet_footer *file)
{
    tape_set_destroy(file->spool);
    free(file->leaves);
    column_schema_destroy((struct column_schema *)(uintptr_t)file->schema);
}

/* Writes the end of a file whose groups begin at byte 4. Returns what the function does. */
static int end_file(struct taker *taker)
{
    struct byte_buffer metadata = {0};
    OWNED_HEADER sam_hdr_t *header = sam_hdr_init();
    RELEASED(release_file) struct parquet_footer file = make_file(1 << 30);
    for (uint64_t i = 0; i < GROUPS; i++) put_group(&metadata, i);
    assert_int_equal(parquet_footer_add(&file, &metadata, 4), 0);
    free(metadata.bytes);
    assert_int_equal(file.n_groups, GROUPS);
    assert_int_equal(file.n_rows, GROUPS * 9);
    const struct column_sink sink = {take, taker};
    return parquet_footer_end(&file, header, 4 + GROUPS * 40, &sink);
}

TEST(test_end_of_many_groups_is_written_in_parts)
{
    struct taker taker = {0};
    assert_int_equal(end_file(&taker), 0);
    const struct byte_buffer *end = &taker.bytes;
    assert_true(taker.n_writes >= 2);
    assert_memory_equal(end->bytes + end->n_bytes - 4, "PAR1", 4);
    size_t footer_bytes = get_u32(end->bytes + end->n_bytes - 8);
    assert_true(footer_bytes > GROUPS * 40 && footer_bytes < end->n_bytes - 8);
    /* Before the footer, only indexes: of bounds 22 bytes at least a page, of places 9. */
    size_t index_bytes = end->n_bytes - 8 - footer_bytes;
    assert_true(index_bytes > GROUPS * (22 + 9) && index_bytes < GROUPS * 60);
    const uint8_t version[] = {0x15, 4};
    assert_memory_equal(end->bytes + index_bytes, version, 2);
    free(taker.bytes.bytes);
}

TEST(test_sink_that_fails_is_not_called_again)
{
    struct taker all = {0};
    assert_int_equal(end_file(&all), 0);
    for (unsigned i = 1; i <= all.n_writes; i++) {
        struct taker some = {.fails_at = i};
        assert_int_equal(end_file(&some), -1);
        assert_int_equal(some.n_writes, i);
        assert_true(some.bytes.n_bytes < all.bytes.n_bytes);
        if (some.bytes.n_bytes > 0)
            assert_memory_equal(some.bytes.bytes, all.bytes.bytes, some.bytes.n_bytes);
        free(some.bytes.bytes);
    }
    free(all.bytes.bytes);
}

TEST(test_groups_beyond_a_footer_are_refused)
{
    enum { MOST_BYTES = 1 << 20 };
    RELEASED(release_file) struct parquet_footer file = make_file(MOST_BYTES);
    struct byte_buffer metadata = {0};
    put_group(&metadata, 0);
    while (parquet_footer_add(&file, &metadata, 4) == 0) assert_true(file.n_groups <= GROUPS);
    /* Each group takes 60 to 130 bytes of the footer. */
    assert_true(file.n_groups > MOST_BYTES / 130 && file.n_groups < MOST_BYTES / 60);
    free(metadata.bytes);
}
