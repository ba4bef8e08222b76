/*
 * test_parquet_reader.c -- records become a Parquet file of several groups, and records again; a
 * file that cannot be read, or that is shorter than it says, is told from one that is damaged.
 */
#include "random_records.h"

#include "columns/column_file.h"
#include "columns/column_record.h"
#include "columns/parquet_reader.h"
#include "pipeline/output_notes.h"

enum { GROUPS = 3, GROUP_RECORDS = 40000, REFERENCES = 2 };

static const char header_text[] = "@SQ\tSN:c\tLN:100000\n@SQ\tSN:d\tLN:100000\n";

/* A file in memory. */
struct disk {
    struct column_bytes bytes;
    uint64_t n_bytes;           /* that there are */
    unsigned n_reads, fails_at; /* 0: never */
};

static ssize_t read_at(void *arg, uint64_t at, uint8_t *to, size_t n)
{
    struct disk *disk = arg;
    if (++disk->n_reads == disk->fails_at) return -1;
    if (at >= disk->n_bytes) return 0;
    if (n > disk->n_bytes - at) n = (size_t)(disk->n_bytes - at);
    memcpy(to, disk->bytes.bytes + at, n);
    return (ssize_t)n;
}

static bool put_bytes(void *arg, const uint8_t *bytes, size_t n_bytes)
{
    column_bytes_copy(arg, bytes, n_bytes);
    return true;
}

static size_t make_record(struct rng *rng, uint8_t *rec)
{
    char name[TEST_MAX_NAME + 1];
    struct record_fields fields = {.name = name, .l_seq = 2 * (int32_t)rng_below(rng, 15)};
    (void)snprintf(name, sizeof name, "r%zu", rng_below(rng, 1000000));
    fields.n_cigar = fields.l_seq > 0;
    random_place(rng, REFERENCES, &fields);
    fields.flag = random_flag(rng);
    if (fields.tid < 0) fields.flag |= BAM_FUNMAP;
    if (fields.pos > 90000) fields.pos = 90000;
    return put_record(rec, &fields, 0x11);
}

/* Makes the file; `records` gets the records. */
static void make_file(struct disk *disk, struct column_bytes *records)
{
    struct rng rng = rng_start(1);
    const char *problem, *part;
    size_t part_bytes;
    const struct column_request request = {
        .format = COLUMN_FORMAT_PARQUET, .codec = COLUMN_CODEC_ZSTD, .level = 1};
    const struct column_output output = {
        .request = &request,
        .schema = column_schema_create(NULL, NULL, &problem, &part, &part_bytes)};
    sam_hdr_t *header = sam_hdr_parse(strlen(header_text), header_text);
    const struct temp_places places = {NULL, 0, NULL};
    struct output_notes kept = {.streams = NULL};
    output_notes_begin(&kept, OUTPUT_NOTES_BYTES, &places);
    struct column_file *file = column_file_create(&output, &kept.notes, "out");
    struct column_encoder *encoder = column_encoder_create(&output, header);
    const struct column_sink sink = {put_bytes, &disk->bytes};
    column_file_begin(file, header, &disk->bytes);
    for (unsigned group = 0; group < GROUPS; group++) {
        struct column_bytes notes = {0};
        size_t begin = disk->bytes.n_bytes;
        for (unsigned i = 0; i < GROUP_RECORDS; i++) {
            uint8_t rec[1000];
            size_t n = make_record(&rng, rec);
            assert_null(column_encoder_add(encoder, rec));
            column_bytes_copy(records, rec, n);
        }
        assert_null(column_encoder_put(encoder, begin, &disk->bytes, &notes));
        assert_int_equal(column_file_note(file, &notes, begin), 0);
        free(notes.bytes);
    }
    assert_int_equal(column_file_end(file, header, disk->bytes.n_bytes, &sink), 0);
    disk->n_bytes = disk->bytes.n_bytes;
    column_encoder_destroy(encoder);
    column_file_destroy(file);
    output_notes_release(&kept);
    column_schema_destroy(output.schema);
    sam_hdr_destroy(header);
}

/* Reads the file, which says that it has n_bytes, and compares its records. Returns what the last
   call does; *problem is then what the reader says. */
static int read_file(struct disk *disk, uint64_t n_bytes, const struct column_bytes *want,
                     const char **problem)
{
    static const char *const names[REFERENCES] = {"c", "d"};
    struct parquet_reader *reader = parquet_reader_create(read_at, disk, n_bytes);
    struct column_values *columns;
    struct column_bytes got = {0};
    uint64_t n_rows;
    disk->n_reads = 0;
    int r = parquet_reader_open(reader);
    if (r == 0) {
        assert_string_equal(parquet_reader_header(reader), header_text);
        parquet_reader_set_references(reader, names, REFERENCES);
        while ((r = parquet_reader_next(reader, &columns, &n_rows)) > 0) {
            assert_true(n_rows > 0 && n_rows <= GROUP_RECORDS);
            for (uint64_t row = 0; row < n_rows; row++)
                assert_null(column_record_put(parquet_reader_schema(reader), columns, row, &got));
            column_values_free(columns, parquet_reader_schema(reader)->n_columns);
        }
        assert_true(got.n_bytes <= want->n_bytes);
        assert_memory_equal(got.bytes, want->bytes, got.n_bytes);
        assert_true(r < 0 || got.n_bytes == want->n_bytes);
    }
    *problem = parquet_reader_problem(reader);
    free(got.bytes);
    parquet_reader_destroy(reader);
    return r;
}

static void test_files(void **state)
{
    (void)state;
    struct disk disk = {0};
    struct column_bytes records = {0};
    const char *problem;
    make_file(&disk, &records);
    assert_int_equal(read_file(&disk, disk.n_bytes, &records, &problem), 0);
    assert_null(problem);
    unsigned n_reads = disk.n_reads;
    assert_true(n_reads > GROUPS);
    for (unsigned i = 1; i <= n_reads; i += 1 + n_reads / 20) {
        disk.fails_at = i;
        assert_int_equal(read_file(&disk, disk.n_bytes, &records, &problem), -1);
        assert_null(problem);
    }
    disk.fails_at = 0;
    /* It was longer when somebody looked. */
    uint64_t n_bytes = disk.n_bytes;
    disk.n_bytes = n_bytes - 10;
    assert_int_equal(read_file(&disk, n_bytes, &records, &problem), -1);
    assert_string_equal(problem, "it is truncated");
    disk.n_bytes = n_bytes;
    for (uint64_t n = 0; n < n_bytes; n += n < 30 ? 1 : n_bytes / 30) {
        assert_int_equal(read_file(&disk, n, &records, &problem), -1);
        assert_non_null(problem);
    }
    free(disk.bytes.bytes);
    free(records.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
