/*
 * test_parquet_file.c -- the end of a file of many groups is written bit by bit; a sink that fails is
 * not called again, nor are notes, and then the end is not complete. More groups than a footer may
 * have are refused when they are noted.
 */
#include "unit_test.h"

#include "columns/column_file.h"
#include "columns/parquet_file.h"

enum { GROUPS = 20000 };

/* Takes bytes until it fails. */
struct taker {
    struct column_bytes bytes;
    unsigned n_writes, fails_at;        /* 0: never */
};

static bool take(void *arg, const uint8_t *bytes, size_t n_bytes)
{
    struct taker *taker = arg;
    assert_true(n_bytes > 0);
    if (++taker->n_writes == taker->fails_at) return false;
    column_bytes_copy(&taker->bytes, bytes, n_bytes);
    return true;
}

static void note_groups(struct column_bytes *notes)
{
    struct parquet_page page = {.n_rows = 9, .n_bytes = 40};
    for (uint64_t i = 0; i < GROUPS; i++) {
        const struct parquet_group group = {.at = i * 40, .n_rows = 9};
        page.bounds = (struct parquet_bounds){.are_known = true, .least.n_bytes = 4,
                                              .most.n_bytes = 4};
        (void)put_u32(page.bounds.least.bytes, i);
        (void)put_u32(page.bounds.most.bytes, i + 5);
        struct parquet_chunk chunk = {
            .encoding = PARQUET_DELTA, .n_values = 9, .raw_bytes = 50, .n_bytes = 40,
            .bounds = page.bounds, .has_page_bounds = true, .pages = &page, .n_pages = 1,
        };
        size_t place = row_group_metadata_begin(notes, &group);
        row_group_metadata_chunk(notes, &chunk);
        row_group_metadata_end(notes, place);
    }
}

/* Notes that fail at some call. */
struct kept_notes {
    struct column_bytes bytes;
    size_t at;
    unsigned n_reads, fails_at;         /* 0: never */
};

static void rewind_notes(void *arg)
{
    struct kept_notes *kept = arg;
    kept->at = 0;
}

static const uint8_t *read_notes(void *arg, size_t n_bytes)
{
    struct kept_notes *kept = arg;
    assert_true(n_bytes <= kept->bytes.n_bytes - kept->at);
    if (++kept->n_reads == kept->fails_at) return NULL;
    kept->at += n_bytes;
    return kept->bytes.bytes + kept->at - n_bytes;
}

/* Writes the end of a file whose groups begin at byte 4. Returns what the function does. */
static int end_file(struct taker *taker, struct kept_notes *kept)
{
    uint64_t n_rows = 0;
    struct column_schema *schema = column_schema_create("pos", NULL);
    OWNED_HEADER sam_hdr_t *header = sam_hdr_init();
    note_groups(&kept->bytes);
    size_t n_groups = row_group_metadata_move(kept->bytes.bytes, kept->bytes.n_bytes, 4, &n_rows);
    const struct footer_spool notes = {NULL, rewind_notes, read_notes, kept};
    const struct parquet_file file = {.name = "out.parquet", .schema = schema,
                                      .header = header, .notes = &notes, .n_groups = n_groups,
                                      .n_rows = n_rows};
    const struct column_sink sink = {take, taker};
    int r = parquet_put_file_end(&file, 4 + GROUPS * 40, &sink);
    assert_int_equal(n_rows, GROUPS * 9);
    column_schema_destroy(schema);
    free(kept->bytes.bytes);
    return r;
}

TEST(test_end_of_many_groups_is_written_in_parts)
{
    struct taker taker = {0};
    struct kept_notes kept = {0};
    assert_int_equal(end_file(&taker, &kept), 0);
    const struct column_bytes *end = &taker.bytes;
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
    struct kept_notes kept = {0};
    assert_int_equal(end_file(&all, &kept), 0);
    for (unsigned i = 1; i <= all.n_writes; i++) {
        struct taker some = {.fails_at = i};
        kept = (struct kept_notes){0};
        assert_int_equal(end_file(&some, &kept), -1);
        assert_int_equal(some.n_writes, i);
        assert_true(some.bytes.n_bytes < all.bytes.n_bytes);
        if (some.bytes.n_bytes > 0)
            assert_memory_equal(some.bytes.bytes, all.bytes.bytes, some.bytes.n_bytes);
        free(some.bytes.bytes);
    }
    free(all.bytes.bytes);
}

TEST(test_notes_that_fail_are_not_read_again)
{
    struct taker all = {0};
    struct kept_notes kept = {0};
    assert_int_equal(end_file(&all, &kept), 0);
    for (unsigned i = 1; i <= kept.n_reads; i += i < 4 ? 1 : GROUPS / 3) {
        struct taker some = {0};
        struct kept_notes failing = {.fails_at = i};
        assert_int_equal(end_file(&some, &failing), -1);
        assert_int_equal(failing.n_reads, i);
        assert_true(some.bytes.n_bytes < all.bytes.n_bytes);
        if (some.bytes.n_bytes > 0)
            assert_memory_equal(some.bytes.bytes, all.bytes.bytes, some.bytes.n_bytes);
        free(some.bytes.bytes);
    }
    free(all.bytes.bytes);
}

enum { MOST_NOTES = 200000 };

static int drop_note(void *arg, const uint8_t *bytes, size_t n_bytes)
{
    (void)arg;
    (void)bytes;
    (void)n_bytes;
    return 0;
}

/* Notes groups of 200 columns until they are too many. Returns how many were accepted, at most
   MOST_NOTES. */
static size_t note_until_refused(enum column_format format, size_t note_bytes)
{
    size_t n = 0;
    char list[200 * 5 + 1] = "";
    for (unsigned i = 0; i < 200; i++)
        (void)sprintf(list + 5 * i, "%c%c:i,", 'a' + (char)(i / 10), '0' + (char)(i % 10));
    list[sizeof list - 2] = '\0';
    const struct column_request request = {.format = format, .level = 1};
    const struct column_output output = {
        .request = &request,
        .schema = column_schema_create(list, NULL)};
    const struct footer_spool notes = {drop_note, NULL, NULL, NULL};
    struct column_file *file = column_file_create(&output, &notes, "out.parquet");
    for (int r = 0; r == 0 && n < MOST_NOTES; n += r == 0) {
        struct column_bytes note = {0};
        const struct parquet_group group = {.n_rows = 1};
        if (format == COLUMN_FORMAT_PARQUET)
            row_group_metadata_end(&note, row_group_metadata_begin(&note, &group));
        else
            memset(column_bytes_append(&note, note_bytes), 0, note_bytes);
        r = column_file_note(file, &note, 0);
        free(note.bytes);
    }
    column_file_destroy(file);
    column_schema_destroy(output.schema);
    return n;
}

TEST(test_groups_beyond_a_footer_are_refused)
{
    enum { ARROW_PLACE = 24 };
    /* At 44 to 115 bytes a column, 1 GiB has 46,000 to 122,000 groups of 200. */
    size_t n = note_until_refused(COLUMN_FORMAT_PARQUET, 0);
    assert_true(n >= 46000 && n <= 122100);
    assert_int_equal(note_until_refused(COLUMN_FORMAT_ARROW, ARROW_PLACE), MOST_NOTES);
}
