/*
 * fuzz_columns.c -- columns: records become Arrow or Parquet and records again; what is damaged, or
 * what nobody wrote, is refused or gives records that can be checked.
 *
 * The first byte of the input says how the file is made: it is the rest of the input; or records
 * are made from the input and written as columns, of which some bytes are then changed. A file without
 * changes must give its records again. (Pages of Parquet have checksums, so that changes in them go
 * no further: fuzz_parquet.c makes pages without.)
 */
#include "fuzz_record.h"

#include "bam/bam_check.h"
#include "columns/arrow_reader.h"
#include "columns/column_file.h"
#include "columns/column_record.h"
#include "columns/parquet_reader.h"
#include "pipeline/output_notes.h"

enum { MAX_RECORDS = 40 };

static sam_hdr_t *header;

struct file_bytes {
    const uint8_t *bytes;
    size_t n_bytes, at;
    bool is_pipe;
};

static ssize_t take_bytes(void *arg, uint8_t *to, size_t n)
{
    struct file_bytes *file = arg;
    size_t n_left = file->at < file->n_bytes ? file->n_bytes - file->at : 0;
    if (n > n_left) n = n_left;
    if (n > 0) memcpy(to, file->bytes + file->at, n);
    file->at += n;
    return (ssize_t)n;
}

static int64_t seek_bytes(void *arg, int64_t offset, int whence)
{
    struct file_bytes *file = arg;
    int64_t from = whence == SEEK_END ? (int64_t)file->n_bytes : 0;
    if (file->is_pipe || offset < -from) return -1;
    file->at = (size_t)(from + offset);
    return (int64_t)file->at;
}

static ssize_t take_bytes_at(void *arg, uint64_t at, uint8_t *to, size_t n)
{
    struct file_bytes *file = arg;
    FUZZ_CHECK(at <= file->n_bytes);
    file->at = (size_t)at;
    return take_bytes(file, to, n);
}

/* Appends the records of some rows to `out`, and frees the columns. Returns whether they were
   sound. */
static bool put_rows(const struct column_schema *schema, struct column_values *columns,
                     uint64_t n_rows, struct column_bytes *out)
{
    bool is_sound = true;
    for (uint64_t row = 0; row < n_rows && is_sound; row++) {
        size_t begin = out->n_bytes;
        is_sound = !column_record_put(schema, columns, row, out) && out->n_bytes <= (64 << 20);
        if (!is_sound) break;
        FUZZ_CHECK(bam_record_bytes(out->bytes + begin) == out->n_bytes - begin);
        (void)bam_record_check(out->bytes + begin, FUZZ_N_REFS);
    }
    column_values_free(columns, schema->n_columns);
    return is_sound;
}

static const char *const names[FUZZ_N_REFS] = {"a", "b", "c"};

/* Appends the records of all batches to `out`. Returns whether the whole stream was sound. */
static bool read_arrow(struct file_bytes *file, struct column_bytes *out)
{
    const struct arrow_input input = {take_bytes, seek_bytes, file};
    struct arrow_reader *reader = arrow_reader_create(&input);
    struct column_values *columns;
    uint64_t n_rows;
    int r = arrow_reader_open(reader);
    bool is_sound = r == 0;
    if (is_sound) arrow_reader_set_references(reader, names, FUZZ_N_REFS);
    while (is_sound && (r = arrow_reader_next(reader, &columns, &n_rows)) > 0)
        is_sound = put_rows(arrow_reader_schema(reader), columns, n_rows, out);
    FUZZ_CHECK(r >= 0 || arrow_reader_problem(reader));
    arrow_reader_destroy(reader);
    return is_sound && r == 0;
}

static bool read_parquet(struct file_bytes *file, struct column_bytes *out)
{
    struct parquet_reader *reader = parquet_reader_create(take_bytes_at, file, file->n_bytes);
    struct column_values *columns;
    uint64_t n_rows;
    int r = parquet_reader_open(reader);
    bool is_sound = r == 0;
    if (is_sound) parquet_reader_set_references(reader, names, FUZZ_N_REFS);
    while (is_sound && (r = parquet_reader_next(reader, &columns, &n_rows)) > 0)
        is_sound = put_rows(parquet_reader_schema(reader), columns, n_rows, out);
    FUZZ_CHECK(r >= 0 || parquet_reader_problem(reader));
    parquet_reader_destroy(reader);
    return is_sound && r == 0;
}

static bool read_file(const uint8_t *bytes, size_t n_bytes, bool is_pipe, struct column_bytes *out)
{
    struct file_bytes file = {bytes, n_bytes, 0, is_pipe};
    out->n_bytes = 0;
    bool is_parquet = n_bytes >= PARQUET_START_BYTES && parquet_reader_knows(bytes);
    return is_parquet ? read_parquet(&file, out) : read_arrow(&file, out);
}

static bool put_bytes(void *arg, const uint8_t *bytes, size_t n_bytes)
{
    column_bytes_copy(arg, bytes, n_bytes);
    return true;
}

/* Makes a file of records from the input. `records` gets the records that it holds; reading it must
   give them again. */
static void make_file(struct fuzz_input *in, unsigned mode, struct column_bytes *written,
                      struct column_bytes *records)
{
    const char *problem, *part;
    size_t part_bytes;
    struct column_request request = {
        .format = mode & 32 ? COLUMN_FORMAT_PARQUET
                            : mode & 16 ? COLUMN_FORMAT_ARROW_STREAM : COLUMN_FORMAT_ARROW,
        .codec = (enum column_codec)(mode >> 2 & 3) % 3, .level = 1};
    /* LZ4 is for Arrow only. */
    if (request.format == COLUMN_FORMAT_PARQUET && request.codec == COLUMN_CODEC_LZ4)
        request.codec = COLUMN_CODEC_ZSTD;
    const struct column_output output = {
        .request = &request, .schema = column_schema_create(NULL, NULL, &problem, &part,
                                                            &part_bytes)};
    const struct temp_places places = {NULL, 0, NULL};
    struct output_notes kept = {.streams = NULL};
    output_notes_begin(&kept, OUTPUT_NOTES_PIECE_BYTES, &places);
    struct column_file *file = column_file_create(&output, &kept.notes, "out");
    struct column_encoder *encoder = column_encoder_create(&output, header);
    uint8_t *rec = fuzz_alloc(FUZZ_MAX_RECORD);
    struct column_bytes notes = {0};
    const struct column_sink sink = {put_bytes, written};
    column_file_begin(file, header, written);
    for (unsigned i = 0; i < MAX_RECORDS && fuzz_left(in) > 0; i++) {
        size_t n = fuzz_make_record(in, rec);
        if (bam_record_check(rec, FUZZ_N_REFS) || column_encoder_add(encoder, rec)) {
            /* A batch with a record that is refused is of no use. */
            column_encoder_destroy(encoder);
            encoder = column_encoder_create(&output, header);
            records->n_bytes = 0;
            continue;
        }
        column_bytes_copy(records, rec, n);
    }
    FUZZ_CHECK(!column_encoder_put(encoder, 0, written, &notes));
    FUZZ_CHECK(column_file_note(file, &notes, 0) == 0);
    FUZZ_CHECK(column_file_end(file, header, written->n_bytes, &sink) == 0);
    free(notes.bytes);
    column_encoder_destroy(encoder);
    column_file_destroy(file);
    output_notes_release(&kept);
    column_schema_destroy(output.schema);
    free(rec);
}

/* Compares records but for the bin and for qualities after a first one of 255. */
static void check_same(const struct column_bytes *got, const struct column_bytes *want)
{
    FUZZ_CHECK(got->n_bytes == want->n_bytes);
    for (size_t at = 0; at < got->n_bytes; at += bam_record_bytes(want->bytes + at)) {
        uint8_t *a = got->bytes + at, *b = want->bytes + at;
        size_t n_bases = (size_t)bam_record_n_bases(b);
        memcpy(b + BAM_BIN_AT, a + BAM_BIN_AT, 2);
        uint8_t *quals = b + (bam_record_quals(b) - b);
        if (n_bases > 0 && quals[0] == 0xff) memset(quals, 0xff, n_bases);
        if (n_bases % 2) quals[-1] &= 0xf0;     /* half a byte that no base uses */
        FUZZ_CHECK(memcmp(a, b, bam_record_bytes(b)) == 0);
    }
}

void fuzz_begin(void)
{
    header = sam_hdr_parse(strlen(fuzz_header_text), fuzz_header_text);
    FUZZ_CHECK(header && sam_hdr_nref(header) == FUZZ_N_REFS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct fuzz_input in = {data, data + n_bytes};
    struct column_bytes written = {0}, records = {0}, got = {0};
    unsigned mode = fuzz_u8(&in);
    unsigned n_flips = fuzz_below(&in, 8);
    uint32_t flips[8];
    for (unsigned i = 0; i < n_flips; i++) flips[i] = fuzz_u32(&in);
    if (mode & 1) {
        (void)read_file(in.at, fuzz_left(&in), mode & 2, &got);
    } else {
        make_file(&in, mode, &written, &records);
        FUZZ_CHECK(read_file(written.bytes, written.n_bytes, mode & 2, &got));
        check_same(&got, &records);
        for (unsigned i = 0; i < n_flips; i++)
            written.bytes[(flips[i] >> 8) % written.n_bytes] ^= (uint8_t)flips[i];
        (void)read_file(written.bytes, written.n_bytes, mode & 2, &got);
    }
    free(written.bytes);
    free(records.bytes);
    free(got.bytes);
    return 0;
}
