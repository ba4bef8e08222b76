/*
 * test_column_input.c -- how much was read of a file of columns, from which progress and the size of
 * the input are estimated: it never goes back, also where batches have few large rows and then many
 * small ones, is never more than the file has, and nearly all of it at the end.
 */
#include "test_place.h"

#include "columns/column_file.h"
#include "input/bam_reader.h"
#include "pipeline/output_notes.h"

#include <stdio.h>
#include <sys/stat.h>

enum { BATCHES = 6, MAX_RECORD = 4096 };

static const char path[] = "columns";
static const char header_text[] = "@SQ\tSN:c\tLN:100000\n@SQ\tSN:d\tLN:100000\n";

static bool put_bytes(void *arg, const uint8_t *bytes, size_t n_bytes)
{
    column_bytes_copy(arg, bytes, n_bytes);
    return true;
}

/* Adds a batch: few long records, or many short ones. Its values are as random as names are. */
static void add_batch(struct rng *rng, unsigned number, struct column_encoder *encoder)
{
    bool is_long = number % 2 == 0;
    for (unsigned i = 0; i < (is_long ? 50u : 3000u); i++) {
        uint8_t rec[MAX_RECORD];
        char name[TEST_MAX_NAME + 1];
        struct record_fields fields = {.name = name, .l_seq = is_long ? 2000 : 4, .n_cigar = 1,
                                       .pos = (int32_t)rng_below(rng, 90000)};
        (void)snprintf(name, sizeof name, "r%zu", rng_below(rng, 100000000));
        (void)put_record(rec, &fields, 0x11);
        assert_null(column_encoder_add(encoder, rec));
    }
}

/* Writes the file. Returns its size. */
static uint64_t write_columns(struct rng *rng, enum column_format format)
{
    const char *problem, *part;
    size_t part_bytes;
    const struct column_request request = {.format = format, .level = 1};
    const struct column_output output = {
        .request = &request,
        .schema = column_schema_create(NULL, NULL, &problem, &part, &part_bytes)};
    const struct temp_places places = {NULL, 0, NULL};
    struct column_bytes out = {0};
    const struct column_sink sink = {put_bytes, &out};
    struct output_notes kept = {.streams = NULL};
    sam_hdr_t *header = sam_hdr_parse(strlen(header_text), header_text);
    output_notes_begin(&kept, OUTPUT_NOTES_BYTES, &places);
    struct column_file *file = column_file_create(&output, &kept.notes, path);
    struct column_encoder *encoder = column_encoder_create(&output, header);
    column_file_begin(file, header, &out);
    for (unsigned i = 0; i < BATCHES; i++) {
        struct column_bytes notes = {0};
        size_t begin = out.n_bytes;
        add_batch(rng, i, encoder);
        assert_null(column_encoder_put(encoder, begin, &out, &notes));
        assert_int_equal(column_file_note(file, &notes, begin), 0);
        free(notes.bytes);
    }
    assert_int_equal(column_file_end(file, header, out.n_bytes, &sink), 0);
    FILE *disk = fopen(path, "wb");
    assert_non_null(disk);
    assert_int_equal(fwrite(out.bytes, 1, out.n_bytes, disk), out.n_bytes);
    assert_int_equal(fclose(disk), 0);
    uint64_t n_bytes = out.n_bytes;
    free(out.bytes);
    column_encoder_destroy(encoder);
    column_file_destroy(file);
    output_notes_release(&kept);
    column_schema_destroy(output.schema);
    sam_hdr_destroy(header);
    return n_bytes;
}

static void test_offsets(void **state)
{
    (void)state;
    struct rng rng = rng_start(17);
    static const enum column_format formats[] = {COLUMN_FORMAT_ARROW, COLUMN_FORMAT_ARROW_STREAM,
                                                 COLUMN_FORMAT_PARQUET};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const htsFormat options = {0};
        uint64_t n_bytes = write_columns(&rng, formats[i]), before = 0;
        struct bam_reader *reader = bam_reader_open(path, &options, NULL, NULL);
        struct bam_piece piece = {0};
        unsigned n_pieces = 0;
        assert_non_null(reader);
        assert_int_equal(bam_reader_offset(reader), 0);
        while (bam_reader_next(reader, &piece, NULL, 2000, 0) == BAM_READER_PIECE) {
            uint64_t offset = bam_reader_offset(reader);
            CHECK(&rng, offset >= before && offset <= n_bytes);
            before = offset;
            n_pieces++;
        }
        assert_true(n_pieces > 10 * BATCHES);
        CHECK(&rng, before > n_bytes / 10 * 9);
        bam_piece_release(&piece);
        bam_reader_close(reader);
    }
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_offsets, enter_place, leave_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
