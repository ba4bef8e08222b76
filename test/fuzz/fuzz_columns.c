/*
 * fuzz_columns.c -- columns: records become Arrow and records again; Arrow that is damaged, or that
 * nobody wrote, is refused or gives records that can be checked.
 *
 * The first byte of the input says how the stream of Arrow is made: it is the rest of the input; or
 * records are made from the input and written as columns, of which some bytes are then changed. A
 * stream without changes must give its records again.
 */
#include "fuzz_record.h"

#include "bam/bam_check.h"
#include "columns/arrow_reader.h"
#include "columns/column_file.h"
#include "columns/column_record.h"

enum { MAX_RECORDS = 40 };

static sam_hdr_t *header;

struct bytes_left {
    const uint8_t *at;
    size_t n;
};

static ssize_t take_bytes(void *arg, uint8_t *to, size_t n)
{
    struct bytes_left *left = arg;
    if (n > left->n) n = left->n;
    if (n > 0) memcpy(to, left->at, n);
    left->at += n;
    left->n -= n;
    return (ssize_t)n;
}

/* Appends the records of all batches to `out`. Returns whether the whole stream was sound. */
static bool read_rows(struct arrow_reader *reader, struct column_bytes *out)
{
    const struct column_values *columns;
    uint64_t n_rows;
    int r;
    while ((r = arrow_reader_next(reader, &columns, &n_rows)) > 0) {
        for (uint64_t row = 0; row < n_rows; row++) {
            size_t begin = out->n_bytes;
            if (column_record_put(arrow_reader_schema(reader), columns, row, out)) return false;
            FUZZ_CHECK(bam_record_bytes(out->bytes + begin) == out->n_bytes - begin);
            (void)bam_record_check(out->bytes + begin, FUZZ_N_REFS);
            if (out->n_bytes > (64 << 20)) return false;
        }
    }
    FUZZ_CHECK(r == 0 || arrow_reader_problem(reader));
    return r == 0;
}

static bool read_stream(const uint8_t *bytes, size_t n_bytes, struct column_bytes *out)
{
    static const char *const names[] = {"a", "b", "c"};
    struct bytes_left left = {bytes, n_bytes};
    struct arrow_reader *reader = arrow_reader_create(take_bytes, &left);
    out->n_bytes = 0;
    bool is_open = arrow_reader_open(reader) == 0;
    FUZZ_CHECK(is_open || arrow_reader_problem(reader));
    if (is_open) arrow_reader_set_references(reader, names, FUZZ_N_REFS);
    bool is_sound = is_open && read_rows(reader, out);
    arrow_reader_destroy(reader);
    return is_sound;
}

static bool put_bytes(void *arg, const uint8_t *bytes, size_t n_bytes)
{
    column_bytes_copy(arg, bytes, n_bytes);
    return true;
}

/* Makes a stream of records from the input. `records` gets the records that the stream holds; reading
   the stream must give them again. */
static void make_stream(struct fuzz_input *in, unsigned mode, struct column_bytes *stream,
                        struct column_bytes *records)
{
    const char *problem, *part;
    size_t part_bytes;
    const struct column_request request = {
        .format = mode & 16 ? COLUMN_FORMAT_ARROW_STREAM : COLUMN_FORMAT_ARROW,
        .codec = (enum column_codec)(mode >> 2 & 3) % 3, .level = 1};
    const struct column_output output = {
        .request = &request, .schema = column_schema_create(NULL, NULL, &problem, &part,
                                                            &part_bytes)};
    struct column_file *file = column_file_create(&output);
    struct column_encoder *encoder = column_encoder_create(&output, header);
    uint8_t *rec = fuzz_alloc(FUZZ_MAX_RECORD);
    struct column_bytes notes = {0};
    const struct column_sink sink = {put_bytes, stream};
    column_file_begin(file, header, stream);
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
    FUZZ_CHECK(!column_encoder_put(encoder, 0, stream, &notes));
    column_file_note(file, &notes, 0);
    FUZZ_CHECK(!column_file_end(file, header, stream->n_bytes, &sink));
    free(notes.bytes);
    column_encoder_destroy(encoder);
    column_file_destroy(file);
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
    struct column_bytes stream = {0}, records = {0}, got = {0};
    unsigned mode = fuzz_u8(&in);
    unsigned n_flips = fuzz_below(&in, 8);
    uint32_t flips[8];
    for (unsigned i = 0; i < n_flips; i++) flips[i] = fuzz_u32(&in);
    if (mode & 1) {
        (void)read_stream(in.at, fuzz_left(&in), &got);
    } else {
        make_stream(&in, mode, &stream, &records);
        FUZZ_CHECK(read_stream(stream.bytes, stream.n_bytes, &got));
        check_same(&got, &records);
        for (unsigned i = 0; i < n_flips; i++)
            stream.bytes[(flips[i] >> 8) % stream.n_bytes] ^= (uint8_t)flips[i];
        (void)read_stream(stream.bytes, stream.n_bytes, &got);
    }
    free(stream.bytes);
    free(records.bytes);
    free(got.bytes);
    return 0;
}
