/*
 * fuzz_columns.c -- records become Arrow or Parquet, or are refused: test/cli reads what was
 * written, this target only writes.
 *
 * The first byte of the input says which format and codec; records are made from the rest.
 */
#include "fuzz_record.h"

#include "bam/bam_check.h"
#include "columns/column_file.h"
#include "output/output_file.h"

enum { MAX_RECORDS = 40 };

static sam_hdr_t *header;

static bool put_bytes(void *arg, const uint8_t *bytes, size_t n_bytes)
{
    byte_buffer_copy(arg, bytes, n_bytes);
    return true;
}

void fuzz_begin(void)
{
    header = sam_hdr_parse(strlen(fuzz_header_text), fuzz_header_text);
    FUZZ_CHECK(header && sam_hdr_nref(header) == FUZZ_N_REFS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct fuzz_input in = {data, data + n_bytes};
    unsigned mode = fuzz_u8(&in);
    struct column_request request = {
        .format = mode & 32 ? COLUMN_FORMAT_PARQUET
                            : mode & 16 ? COLUMN_FORMAT_ARROW_STREAM : COLUMN_FORMAT_ARROW,
        .codec = (enum column_codec)(mode >> 2 & 3) % 3, .level = 1};
    /* LZ4 is for Arrow only. */
    if (request.format == COLUMN_FORMAT_PARQUET && request.codec == COLUMN_CODEC_LZ4)
        request.codec = COLUMN_CODEC_ZSTD;
    const struct column_output output = {
        .request = &request, .schema = column_schema_create(NULL, NULL)};
    const struct temp_places places = {NULL, 0, NULL};
    struct column_file *file =
        column_file_create(&output, OUTPUT_SPOOL_GROUP_BYTES, &places, "out");
    struct column_encoder *encoder = column_encoder_create(&output, header);
    OWNED uint8_t *rec = fuzz_alloc(FUZZ_MAX_RECORD);
    struct byte_buffer written = {0}, metadata = {0};
    const struct column_sink sink = {put_bytes, &written};
    column_file_begin(file, header, &written);
    for (unsigned i = 0; i < MAX_RECORDS && fuzz_left(&in) > 0; i++) {
        (void)fuzz_make_record(&in, rec);
        struct column_batch *batch = column_encoder_batch(encoder);
        if (!bam_record_check(rec, FUZZ_N_REFS) && !column_batch_add(batch, rec)) continue;
        /* A batch with a record that is refused is of no use. */
        column_encoder_destroy(encoder);
        encoder = column_encoder_create(&output, header);
    }
    FUZZ_CHECK(!column_encoder_put(encoder, 0, &written, &metadata));
    FUZZ_CHECK(column_file_add(file, &metadata, 0) == 0);
    FUZZ_CHECK(column_file_end(file, header, written.n_bytes, &sink) == 0);
    free(written.bytes);
    free(metadata.bytes);
    column_encoder_destroy(encoder);
    column_file_destroy(file);
    column_schema_destroy(output.schema);
    return 0;
}
