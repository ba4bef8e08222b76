/*
 * fuzz_parquet.c -- pages of Parquet that nobody has checked: they are refused, or give records
 * that can be checked.
 *
 * The input says what is in the pages of each column: nulls, values that are stored as they should
 * be by an encoding that rocksort may not write, or bytes that nobody has encoded; the same for
 * levels. Pages have no checksums, which would hide all of it. At last some bytes of the file are
 * changed. If the columns are sound, each record has the size that it says.
 */
#include "fuzz_record.h"

#include "bam/bam_check.h"
#include "columns/column_record.h"
#include "columns/parquet_encode.h"
#include "columns/parquet_format.h"
#include "columns/parquet_reader.h"
#include "columns/parquet_schema.h"
#include "util/byte_order.h"

#include <snappy-c.h>
#include <zstd.h>

enum { MOST_ENTRIES = 400, MOST_LEAVES = 40, MOST_GROUPS = 3 };

static struct column_schema *schema;
static struct parquet_leaf *leaves;
static unsigned n_leaves;

/* What was written of a chunk. */
struct chunk {
    uint64_t at, data_at, n_bytes, n_values;
    int codec;
};

/* A file that is being made. */
struct maker {
    struct fuzz_input *in;
    struct column_bytes file, page, packed;
    struct chunk chunks[MOST_GROUPS][MOST_LEAVES];
    const struct parquet_leaf *leaf;
    bool is_v2;
    unsigned n_levels, n_present;       /* of the page */
    size_t repetition_bytes, definition_bytes;
};

static ssize_t read_at(void *arg, uint64_t at, uint8_t *to, size_t n)
{
    const struct column_bytes *file = arg;
    FUZZ_CHECK(at + n <= file->n_bytes);
    if (n > 0) memcpy(to, file->bytes + at, n);
    return (ssize_t)n;
}

/* ---- pages ---- */

static void put_raw(struct maker *maker)
{
    size_t n = fuzz_below(maker->in, 64);
    fuzz_fill(maker->in, column_bytes_append(&maker->page, n), n);
}

static void put_levels(struct maker *maker, const uint8_t *levels, unsigned n, unsigned most)
{
    struct parquet_runs runs;
    size_t place = maker->page.n_bytes;
    if (!maker->is_v2) (void)column_bytes_append(&maker->page, 4);
    if (fuzz_one_in(maker->in, 16)) {
        put_raw(maker);
    } else {
        parquet_runs_begin(&runs, parquet_bit_width(most), &maker->page);
        for (unsigned i = 0; i < n; i++) parquet_runs_add(&runs, levels[i], 1);
        parquet_runs_end(&runs);
    }
    size_t n_bytes = maker->page.n_bytes - place;
    if (!maker->is_v2) (void)put_u32(maker->page.bytes + place, n_bytes - 4);
    if (most == 1 && maker->leaf->is_repeated)
        maker->repetition_bytes = n_bytes;
    else
        maker->definition_bytes = n_bytes;
}

/* Makes the levels of some rows: of all nulls, all values, or some of each. */
static void make_levels(struct maker *maker, unsigned n_rows, unsigned how)
{
    uint8_t repetition[MOST_ENTRIES], definition[MOST_ENTRIES];
    unsigned n = 0, most = maker->leaf->max_definition;
    maker->n_present = 0;
    for (unsigned row = 0; row < n_rows && n < MOST_ENTRIES; row++) {
        unsigned n_items = how == 0 ? 0 : how == 1 ? 1 : fuzz_below(maker->in, 4);
        if (!maker->leaf->is_repeated) n_items = n_items > 0;
        repetition[n] = 0;
        definition[n++] = (uint8_t)(n_items ? most : how ? fuzz_below(maker->in, most) : 0);
        for (unsigned k = 1; k < n_items && n < MOST_ENTRIES; k++) {
            repetition[n] = 1;
            definition[n++] = (uint8_t)most;
        }
    }
    for (unsigned i = 0; i < n; i++) maker->n_present += definition[i] == most;
    maker->n_levels = n;
    maker->repetition_bytes = maker->definition_bytes = 0;
    if (maker->leaf->is_repeated) put_levels(maker, repetition, n, 1);
    put_levels(maker, definition, n, most);
}

static const char *make_text(struct maker *maker)
{
    static const char *const texts[] = {
        "", "*", "a", "b", "c", "4M", "2S2M1I", "ACGT", "AC", "IIII", "NM:C", "NM:i,ML:B", "XF:f",
        "XS", "XS:Z", "XS:i,NM:C", "12", "1.5", "c,1,2", "nan(0x7fc00000)", "MD:Z,ML:B,XS:B", "ref",
    };
    return texts[fuzz_below(maker->in, sizeof texts / sizeof *texts)];
}

static void put_plain(struct maker *maker, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (maker->leaf->type == PARQUET_BYTE_ARRAY) {
            const char *text = make_text(maker);
            (void)put_u32(column_bytes_append(&maker->page, 4), strlen(text));
            column_bytes_copy(&maker->page, text, strlen(text));
            continue;
        }
        uint64_t number = fuzz_one_in(maker->in, 8) ? fuzz_u32(maker->in) : fuzz_u8(maker->in);
        size_t n_bytes = maker->leaf->type == PARQUET_INT64 ? 8 : 4;
        (void)put_u64(column_bytes_reserve(&maker->page, 8), number);
        maker->page.n_bytes += n_bytes;
    }
}

static void put_deltas(struct maker *maker, unsigned n)
{
    int64_t numbers[MOST_ENTRIES];
    for (unsigned i = 0; i < n; i++)
        numbers[i] = fuzz_one_in(maker->in, 8) ? (int32_t)fuzz_u32(maker->in) : fuzz_u8(maker->in);
    parquet_put_deltas(numbers, n, maker->leaf->type == PARQUET_INT64 ? 64 : 32, &maker->page);
}

/* Texts whose lengths are apart; what they share with the one before may be too much. */
static void put_lengths(struct maker *maker, unsigned n, bool shares)
{
    int64_t shared[MOST_ENTRIES], lengths[MOST_ENTRIES];
    const char *texts[MOST_ENTRIES];
    for (unsigned i = 0; i < n; i++) {
        texts[i] = make_text(maker);
        lengths[i] = (int64_t)strlen(texts[i]);
        shared[i] = fuzz_one_in(maker->in, 3) ? fuzz_below(maker->in, 4) : 0;
    }
    if (shares) parquet_put_deltas(shared, n, 32, &maker->page);
    parquet_put_deltas(lengths, n, 32, &maker->page);
    for (unsigned i = 0; i < n; i++) column_bytes_copy(&maker->page, texts[i], (size_t)lengths[i]);
}

static void put_indexes(struct maker *maker, unsigned n, unsigned n_entries)
{
    struct parquet_runs runs;
    unsigned width = parquet_bit_width(n_entries ? n_entries - 1 : 0);
    *column_bytes_append(&maker->page, 1) = (uint8_t)width;
    parquet_runs_begin(&runs, width, &maker->page);
    for (unsigned i = 0; i < n; i++)
        parquet_runs_add(&runs, fuzz_u8(maker->in) & ((1u << width) - 1), 1);
    parquet_runs_end(&runs);
}

/* Compresses the page after its first bytes, if that is to be, and writes it. */
static void put_page(struct maker *maker, int kind, unsigned n, int encoding, int codec)
{
    struct column_bytes *packed = &maker->packed;
    size_t raw_bytes = maker->page.n_bytes, n_stored = 0;
    if (kind == PAGE_DATA_V2) n_stored = maker->repetition_bytes + maker->definition_bytes;
    const char *from = (const char *)column_bytes_at(&maker->page, n_stored);
    size_t n_from = raw_bytes - n_stored, most = ZSTD_compressBound(n_from) + 64 + n_from;
    packed->n_bytes = 0;
    column_bytes_copy(packed, maker->page.bytes, n_stored);
    uint8_t *to = column_bytes_reserve(packed, most + snappy_max_compressed_length(n_from));
    size_t n_packed = n_from;
    if (codec == PARQUET_CODEC_ZSTD) {
        n_packed = ZSTD_compress(to, most, from, n_from, 1);
    } else if (codec == PARQUET_CODEC_SNAPPY) {
        n_packed = snappy_max_compressed_length(n_from);
        FUZZ_CHECK(snappy_compress(from, n_from, (char *)to, &n_packed) == SNAPPY_OK);
    } else if (n_from > 0) {
        memcpy(to, from, n_from);
    }
    packed->n_bytes += n_packed;
    struct thrift_writer writer = thrift_begin(&maker->file);
    thrift_i32(&writer, HEADER_TYPE, kind);
    thrift_i32(&writer, HEADER_RAW_BYTES, (int32_t)raw_bytes);
    thrift_i32(&writer, HEADER_BYTES, (int32_t)packed->n_bytes);
    thrift_struct(&writer, kind == PAGE_DATA ? HEADER_DATA
                           : kind == PAGE_DATA_V2 ? HEADER_DATA_V2 : HEADER_DICTIONARY);
    thrift_i32(&writer, DATA_VALUES, (int32_t)n);
    if (kind == PAGE_DATA_V2) {
        thrift_i32(&writer, V2_ENCODING, encoding);
        thrift_i32(&writer, V2_DEFINITION_BYTES, (int32_t)maker->definition_bytes);
        thrift_i32(&writer, V2_REPETITION_BYTES, (int32_t)maker->repetition_bytes);
    } else {
        thrift_i32(&writer, DATA_ENCODING, encoding);
    }
    if (kind == PAGE_DATA) {
        thrift_i32(&writer, DATA_DEFINITIONS, PARQUET_RLE);
        thrift_i32(&writer, DATA_REPETITIONS, PARQUET_RLE);
    }
    thrift_end(&writer);
    thrift_end(&writer);
    column_bytes_copy(&maker->file, packed->bytes, packed->n_bytes);
}

static void put_values(struct maker *maker, int encoding, unsigned n_entries)
{
    unsigned n = maker->n_present;
    bool is_text = maker->leaf->type == PARQUET_BYTE_ARRAY;
    if (fuzz_one_in(maker->in, 8)) {
        put_raw(maker);
        return;
    }
    switch (encoding) {
    case PARQUET_PLAIN: put_plain(maker, n); break;
    case PARQUET_PLAIN_DICTIONARY:
    case PARQUET_DICTIONARY: put_indexes(maker, n, n_entries); break;
    case PARQUET_DELTA: put_deltas(maker, n); break;
    case PARQUET_DELTA_LENGTH:
    case PARQUET_DELTA_TEXT:
        if (is_text) put_lengths(maker, n, encoding == PARQUET_DELTA_TEXT);
        break;
    default: put_raw(maker);
    }
}

static int make_encoding(struct maker *maker)
{
    static const int for_texts[] = {0, 2, 8, 6, 7, 0, 6, 7}, for_numbers[] = {0, 2, 8, 5};
    if (fuzz_one_in(maker->in, 32)) return (int)fuzz_below(maker->in, 11);
    return maker->leaf->type == PARQUET_BYTE_ARRAY ? for_texts[fuzz_below(maker->in, 8)]
                                                   : for_numbers[fuzz_below(maker->in, 4)];
}

static void put_chunk(struct maker *maker, unsigned n_rows, struct chunk *chunk)
{
    static const int codecs[] = {PARQUET_CODEC_NONE, PARQUET_CODEC_ZSTD, PARQUET_CODEC_SNAPPY,
                                 PARQUET_CODEC_GZIP, PARQUET_CODEC_LZ4_RAW};
    unsigned kind = fuzz_u8(maker->in), n_entries = 0;
    int codec = kind & 0x80 ? codecs[fuzz_below(maker->in, 5)] : PARQUET_CODEC_NONE;
    *chunk = (struct chunk){.at = maker->file.n_bytes, .codec = codec};
    if (kind & 0x40) {
        maker->page.n_bytes = 0;
        n_entries = fuzz_below(maker->in, 20);
        put_plain(maker, n_entries);
        put_page(maker, PAGE_DICTIONARY, n_entries, PARQUET_PLAIN, codec);
    }
    chunk->data_at = maker->file.n_bytes;
    while (n_rows > 0) {
        unsigned n = kind & 0x20 ? 1 + fuzz_below(maker->in, n_rows) : n_rows;
        int encoding = kind & 3 ? make_encoding(maker) : PARQUET_PLAIN;
        maker->page.n_bytes = 0;
        maker->is_v2 = (kind & 0x10) != 0;
        make_levels(maker, n, kind & 3);
        if (maker->n_present > 0) put_values(maker, encoding, n_entries);
        put_page(maker, maker->is_v2 ? PAGE_DATA_V2 : PAGE_DATA, maker->n_levels, encoding, codec);
        chunk->n_values += maker->n_levels;
        n_rows -= n;
    }
    chunk->n_bytes = maker->file.n_bytes - chunk->at;
}

/* ---- files ---- */

static void put_chunk_metadata(struct thrift_writer *writer, const struct chunk *chunk,
                               const struct parquet_leaf *leaf)
{
    thrift_item_struct(writer);
    thrift_i64(writer, CHUNK_AT, 0);
    thrift_struct(writer, CHUNK_METADATA);
    thrift_i32(writer, COLUMN_PHYSICAL, leaf->type);
    thrift_i32(writer, COLUMN_CODEC, chunk->codec);
    thrift_i64(writer, COLUMN_VALUES, (int64_t)chunk->n_values);
    thrift_i64(writer, COLUMN_RAW_BYTES, (int64_t)chunk->n_bytes);
    thrift_i64(writer, COLUMN_STORED_BYTES, (int64_t)chunk->n_bytes);
    thrift_i64(writer, COLUMN_DATA_AT, (int64_t)chunk->data_at);
    if (chunk->data_at > chunk->at) thrift_i64(writer, COLUMN_DICTIONARY_AT, (int64_t)chunk->at);
    thrift_end(writer);
    thrift_end(writer);
}

static void put_footer(struct maker *maker, const unsigned *n_rows, unsigned n_groups)
{
    static const char *const pairs[][2] = {{"rocksort_columns", "1"}, {"sam_header", "@CO\t-\n"}};
    size_t begin = maker->file.n_bytes;
    struct thrift_writer writer = thrift_begin(&maker->file);
    unsigned n_rows_of_all = 0;
    for (unsigned i = 0; i < n_groups; i++) n_rows_of_all += n_rows[i];
    thrift_i32(&writer, FILE_VERSION, 2);
    parquet_put_schema(&writer, FILE_SCHEMA, schema);
    thrift_i64(&writer, FILE_ROWS, n_rows_of_all);
    thrift_list(&writer, FILE_GROUPS, THRIFT_STRUCT, n_groups);
    for (unsigned i = 0; i < n_groups; i++) {
        thrift_item_struct(&writer);
        thrift_list(&writer, GROUP_CHUNKS, THRIFT_STRUCT, n_leaves);
        for (unsigned k = 0; k < n_leaves; k++)
            put_chunk_metadata(&writer, &maker->chunks[i][k], &leaves[k]);
        thrift_i64(&writer, GROUP_ROWS, n_rows[i]);
        thrift_end(&writer);
    }
    thrift_list(&writer, FILE_METADATA, THRIFT_STRUCT, 2);
    for (unsigned i = 0; i < 2; i++) {
        thrift_item_struct(&writer);
        thrift_text(&writer, PAIR_KEY, pairs[i][0]);
        thrift_text(&writer, PAIR_VALUE, pairs[i][1]);
        thrift_end(&writer);
    }
    thrift_end(&writer);
    size_t n_bytes = maker->file.n_bytes - begin;
    (void)put_u32(column_bytes_append(&maker->file, 4), n_bytes);
    column_bytes_copy(&maker->file, PARQUET_MAGIC, PARQUET_MAGIC_BYTES);
}

static void read_file(struct column_bytes *file)
{
    static const char *const names[FUZZ_N_REFS] = {"a", "b", "c"};
    /* Of exactly its size, so that AddressSanitizer sees an access after it. */
    struct column_bytes exact = {fuzz_copy(file->bytes, file->n_bytes), file->n_bytes, 0};
    struct parquet_reader *reader = parquet_reader_create(read_at, &exact, exact.n_bytes);
    struct column_values *columns;
    struct column_bytes out = {0};
    uint64_t n_rows, n_records = 0;
    int r = parquet_reader_open(reader);
    if (r == 0) parquet_reader_set_references(reader, names, FUZZ_N_REFS);
    while (r == 0 && n_records < 100000 &&
           (r = parquet_reader_next(reader, &columns, &n_rows)) > 0) {
        r = 0;
        for (uint64_t row = 0; row < n_rows; row++, n_records++) {
            out.n_bytes = 0;
            if (column_record_put(parquet_reader_schema(reader), columns, row, &out)) break;
            FUZZ_CHECK(bam_record_bytes(out.bytes) == out.n_bytes);
            (void)bam_record_check(out.bytes, FUZZ_N_REFS);
        }
        column_values_free(columns, parquet_reader_schema(reader)->n_columns);
        if (n_rows == 0) break;
    }
    FUZZ_CHECK(r == 0 || parquet_reader_problem(reader));
    parquet_reader_destroy(reader);
    free(out.bytes);
    free(exact.bytes);
}

void fuzz_begin(void)
{
    const char *problem, *part;
    size_t part_bytes;
    schema = column_schema_create("qname,flag,rname,pos,end,mapq,cigar,rnext,pnext,tlen,seq,qual,"
                                  "NM,ML,MD,XF:f,XG:B:f,tag_types,tags", NULL, &problem, &part,
                                  &part_bytes);
    FUZZ_CHECK(schema);
    leaves = parquet_leaves(schema, &n_leaves);
    FUZZ_CHECK(n_leaves <= MOST_LEAVES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct fuzz_input in = {data, data + n_bytes};
    struct maker maker = {.in = &in};
    unsigned n_groups = 1 + fuzz_below(&in, MOST_GROUPS), n_rows[MOST_GROUPS];
    unsigned n_flips = fuzz_below(&in, 8) & fuzz_below(&in, 8);
    uint32_t flips[8];
    for (unsigned i = 0; i < n_flips; i++) flips[i] = fuzz_u32(&in);
    column_bytes_copy(&maker.file, PARQUET_MAGIC, PARQUET_MAGIC_BYTES);
    for (unsigned i = 0; i < n_groups; i++) {
        n_rows[i] = fuzz_below(&in, 100);
        for (unsigned k = 0; k < n_leaves; k++) {
            maker.leaf = &leaves[k];
            put_chunk(&maker, n_rows[i], &maker.chunks[i][k]);
        }
    }
    put_footer(&maker, n_rows, n_groups);
    for (unsigned i = 0; i < n_flips; i++)
        maker.file.bytes[(flips[i] >> 8) % maker.file.n_bytes] ^= (uint8_t)flips[i];
    read_file(&maker.file);
    free(maker.file.bytes);
    free(maker.page.bytes);
    free(maker.packed.bytes);
    return 0;
}
