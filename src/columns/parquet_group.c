/*
 * parquet_group.c -- see parquet_group.h.
 *
 * Encodings, with bytes a record for 1.5 million sorted reads at zstd level 1:
 *
 *     positions: differences 0.36 (pos), plain 1.4, dictionary 3.2
 *     template lengths, CIGARs, tags: dictionary (1.42, 0.97), differences or lengths 1.5, 1.7
 *     names, sequences, qualities: lengths apart from the text, 3 to 6 % below plain
 *
 * A dictionary is made for the whole chunk before its first page, and dropped if it is not worth
 * it. Then integers are stored as deltas, texts with separate lengths, and floats plainly.
 * Reference names always have a dictionary.
 *
 * Dictionary indexes of all values of a chunk are kept, 4 bytes each. For lists with many elements
 * of 1 or 2 bytes they are looked up again for each page.
 */
#include "columns/parquet_group.h"

#include "bam/bgzf_engine.h"
#include "util/byte_order.h"
#include "util/xalloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum {
    KEPT_BYTES = 16 << 20,      /* of a buffer, from group to group */
    MOST_ENTRIES = 1 << 16,     /* of a dictionary */
    MOST_DICTIONARY_BYTES = 1 << 20,
    MOST_BOUND_ENTRIES = 1 << 10,       /* bounds of more are useless and take time */
};

static const char too_large[] = "the values of a record are too long for a page of Parquet";

/* State of making a chunk. */
struct chunk_maker {
    struct parquet_coder *coder;
    const struct encoded_batch *batch;
    const struct parquet_leaf *leaf;
    const struct column_values *column;
    const uint8_t *validity;    /* of rows; NULL: no nulls, or the leaf is repeated */
    const uint8_t *row_offsets; /* repeated: offsets of the values of each row */
    const uint8_t *offsets;     /* texts: offsets of the bytes of each value */
    const uint8_t *values;
    size_t value_bytes;         /* of a number */
    uint64_t n_present;         /* values that are not null */
    uint64_t n_indexed;         /* values in the pages so far */
    struct parquet_chunk chunk;
    bool has_text_bounds;       /* the dictionary allows them */
    struct byte_buffer *out, *metadata;
};

void parquet_coder_release(struct parquet_coder *coder)
{
    (void)ZSTD_freeCCtx(coder->zstd);
    free(coder->page.bytes);
    free(coder->packed.bytes);
    free(coder->numbers);
    parquet_dictionary_release(&coder->dictionary);
    free(coder->indexes);
    *coder = (struct parquet_coder){0};
}

/* ---- values ---- */

static bool is_text(const struct chunk_maker *maker)
{
    return column_type_is_text(maker->leaf->value);
}

static bool is_valid(const uint8_t *validity, uint64_t row)
{
    return validity[row / 8] >> row % 8 & 1;
}

/* The first value of a row; for flat columns, rows and values are the same. */
static uint64_t first_value(const struct chunk_maker *maker, uint64_t row)
{
    return maker->row_offsets ? get_u32(maker->row_offsets + 4 * row) : row;
}

static const uint8_t *text_of(const struct chunk_maker *maker, uint64_t value, size_t *n_bytes)
{
    uint32_t begin = get_u32(maker->offsets + 4 * value);
    *n_bytes = get_u32(maker->offsets + 4 * value + 4) - begin;
    return *n_bytes > 0 ? maker->values + begin : (const uint8_t *)"";
}

/* A value as a number with Parquet's signedness; the bits of a float. */
static int64_t number_of(const struct chunk_maker *maker, uint64_t value)
{
    const uint8_t *at = maker->values + maker->value_bytes * value;
    switch (maker->leaf->value) {
    case COLUMN_INT8: return (int8_t)*at;
    case COLUMN_UINT8: return *at;
    case COLUMN_INT16: return (int16_t)get_u16(at);
    case COLUMN_UINT16: return get_u16(at);
    case COLUMN_INT64: return (int64_t)get_u64(at);
    default: return (int32_t)get_u32(at);
    }
}

/* True if values have 1 or 2 bytes, and a row may have many. */
static bool has_small_elements(const struct chunk_maker *maker)
{
    return maker->leaf->is_repeated && maker->value_bytes > 0 && maker->value_bytes <= 2;
}

/* Stores the numbers of rows [from, to), without nulls, in the coder. */
static void gather_numbers(const struct chunk_maker *maker, uint64_t from, uint64_t to)
{
    struct parquet_coder *coder = maker->coder;
    uint64_t begin = first_value(maker, from), end = first_value(maker, to);
    size_t n = 0;
    xgrow(&coder->numbers, &coder->numbers_room, (size_t)(end - begin), 0, sizeof *coder->numbers);
    for (uint64_t i = begin; i < end; i++)
        if (!maker->validity || is_valid(maker->validity, i))
            coder->numbers[n++] = number_of(maker, i);
}

/* ---- dictionaries ---- */

static bool has_dictionary(const struct chunk_maker *maker)
{
    return maker->chunk.encoding == PARQUET_DICTIONARY;
}

static uint32_t entry_of(const struct chunk_maker *maker, uint64_t value)
{
    struct parquet_dictionary *dictionary = &maker->coder->dictionary;
    size_t n_bytes;
    if (!is_text(maker))
        return parquet_dictionary_add_number(dictionary, (uint64_t)number_of(maker, value));
    const uint8_t *text = text_of(maker, value, &n_bytes);
    return parquet_dictionary_add_text(dictionary, text, n_bytes);
}

/* Makes the dictionary of all values. Returns false if the chunk is smaller without one. */
static bool make_dictionary(struct chunk_maker *maker)
{
    enum { FIRST_LOOK = 4096 };
    struct parquet_coder *coder = maker->coder;
    const struct parquet_dictionary *dictionary = &coder->dictionary;
    bool is_free = maker->leaf->value == COLUMN_REFERENCE, keeps = !has_small_elements(maker);
    uint64_t end = first_value(maker, maker->batch->n_rows), n = 0;
    parquet_dictionary_clear(&coder->dictionary);
    if (keeps)
        xgrow(&coder->indexes, &coder->indexes_room, (size_t)maker->n_present, 0,
              sizeof *coder->indexes);
    for (uint64_t i = 0; i < end; i++) {
        if (maker->validity && !is_valid(maker->validity, i)) continue;
        uint32_t entry = entry_of(maker, i);
        if (keeps) coder->indexes[n] = entry;
        n++;
        if (is_free) continue;
        if (n == FIRST_LOOK && dictionary->n_entries > FIRST_LOOK / 8 * 7) return false;
        if (dictionary->n_entries > MOST_ENTRIES || dictionary->text_bytes > MOST_DICTIONARY_BYTES)
            return false;
    }
    return is_free || dictionary->n_entries <= n / 2;
}

static enum parquet_encoding encoding_without(const struct chunk_maker *maker)
{
    switch (maker->leaf->type) {
    case PARQUET_BYTE_ARRAY: return PARQUET_DELTA_LENGTH;
    case PARQUET_FLOAT: return PARQUET_PLAIN;
    default: return PARQUET_DELTA;
    }
}

static enum parquet_encoding choose_encoding(struct chunk_maker *maker)
{
    bool tries = true;
    switch (maker->leaf->field) {
    case FIELD_QNAME:
    case FIELD_POS:
    case FIELD_END:
    case FIELD_PNEXT:
    case FIELD_SEQ:
    case FIELD_QUAL: tries = false; break;
    default: break;
    }
    /* Lists of larger numbers would need too much memory for their indexes. */
    if (maker->leaf->is_repeated && !is_text(maker) && !has_small_elements(maker)) tries = false;
    if (maker->n_present == 0) tries = false;
    return tries && make_dictionary(maker) ? PARQUET_DICTIONARY : encoding_without(maker);
}

/* The bytes of a text entry. */
static const uint8_t *entry_text(const struct chunk_maker *maker, uint32_t number, size_t *n_bytes)
{
    const struct parquet_entry *entry = &maker->coder->dictionary.entries[number];
    *n_bytes = (size_t)entry->number;
    if (maker->leaf->value != COLUMN_REFERENCE) return entry->text;
    const char *name = sam_hdr_tid2name(maker->batch->header, (int)entry->number);
    if (!name) name = "";
    *n_bytes = strlen(name);
    return (const uint8_t *)name;
}

/* True if pages get bounds: there are few entries, and none is too long for a bound. */
static bool has_text_bounds(const struct chunk_maker *maker)
{
    bool is_reference = maker->leaf->value == COLUMN_REFERENCE;
    uint32_t n = maker->coder->dictionary.n_entries;
    if (n > (is_reference ? MOST_ENTRIES : MOST_BOUND_ENTRIES)) return false;
    for (uint32_t i = 0; i < n; i++) {
        size_t n_bytes;
        (void)entry_text(maker, i, &n_bytes);
        if (n_bytes > PARQUET_BOUND_BYTES) return false;
    }
    return true;
}

/* ---- bounds ---- */

int parquet_bound_compare(enum parquet_type type, const struct parquet_bound *a,
                          const struct parquet_bound *b)
{
    if (type == PARQUET_BYTE_ARRAY)
        return compare_bytes(a->bytes, a->n_bytes, b->bytes, b->n_bytes);
    if (type == PARQUET_FLOAT) {
        float x, y;
        uint32_t x_bits = get_u32(a->bytes), y_bits = get_u32(b->bytes);
        memcpy(&x, &x_bits, sizeof x);
        memcpy(&y, &y_bits, sizeof y);
        return (x > y) - (x < y);
    }
    int64_t x = (int64_t)get_u64(a->bytes), y = (int64_t)get_u64(b->bytes);
    if (type == PARQUET_INT32) {
        x = (int32_t)get_u32(a->bytes);
        y = (int32_t)get_u32(b->bytes);
    }
    return (x > y) - (x < y);
}

static void set_bound(const struct chunk_maker *maker, int64_t number, struct parquet_bound *bound)
{
    bound->n_bytes = maker->leaf->type == PARQUET_INT64 ? 8 : 4;
    (void)put_u64(bound->bytes, (uint64_t)number);
}

static void find_integer_bounds(const struct chunk_maker *maker, size_t n,
                                struct parquet_bounds *bounds)
{
    const int64_t *numbers = maker->coder->numbers;
    int64_t least = numbers[0], most = numbers[0];
    for (size_t i = 1; i < n; i++) {
        least = numbers[i] < least ? numbers[i] : least;
        most = numbers[i] > most ? numbers[i] : most;
    }
    set_bound(maker, least, &bounds->least);
    set_bound(maker, most, &bounds->most);
    bounds->are_known = true;
}

static int64_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (int64_t)bits;
}

/* Bounds are never NaN. A bound of zero has the sign that includes both zeros. */
static void find_float_bounds(const struct chunk_maker *maker, size_t n,
                              struct parquet_bounds *bounds)
{
    float least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        float value;
        uint32_t bits = (uint32_t)maker->coder->numbers[i];
        memcpy(&value, &bits, sizeof value);
        if (isnan(value)) continue;
        least = value < least ? value : least;
        most = value > most ? value : most;
        bounds->are_known = true;
    }
    set_bound(maker, bits_of(least == 0.0f ? -0.0f : least), &bounds->least);
    set_bound(maker, bits_of(most == 0.0f ? 0.0f : most), &bounds->most);
}

/* Extends bounds so that they include others. */
static void widen(struct parquet_bounds *bounds, enum parquet_type type,
                  const struct parquet_bounds *others)
{
    if (!bounds->are_known || parquet_bound_compare(type, &others->least, &bounds->least) < 0)
        bounds->least = others->least;
    if (!bounds->are_known || parquet_bound_compare(type, &others->most, &bounds->most) > 0)
        bounds->most = others->most;
    bounds->are_known = true;
}

/* Finds the bounds of the next n values of the chunk, which are entries of the dictionary. */
static void find_text_bounds(const struct chunk_maker *maker, size_t n,
                             struct parquet_bounds *bounds)
{
    uint32_t n_entries = maker->coder->dictionary.n_entries;
    const uint32_t *indexes = maker->coder->indexes + maker->n_indexed;
    bool *is_here = xcalloc(n_entries, sizeof *is_here);
    for (size_t i = 0; i < n; i++) is_here[indexes[i]] = true;
    for (uint32_t i = 0; i < n_entries; i++) {
        if (!is_here[i]) continue;
        size_t n_bytes;
        const uint8_t *text = entry_text(maker, i, &n_bytes);
        struct parquet_bounds entry = {.least.n_bytes = (uint8_t)n_bytes};
        memcpy(entry.least.bytes, text, n_bytes);
        entry.most = entry.least;
        widen(bounds, PARQUET_BYTE_ARRAY, &entry);
    }
    free(is_here);
}

/* Finds the bounds of a page with n non-null values; extends those of the chunk. */
static void find_bounds(struct chunk_maker *maker, size_t n, struct parquet_page *page)
{
    struct parquet_chunk *chunk = &maker->chunk;
    enum parquet_type type = maker->leaf->type;
    if (n == 0 || maker->leaf->is_repeated) return;
    if (type == PARQUET_FLOAT)
        find_float_bounds(maker, n, &page->bounds);
    else if (type != PARQUET_BYTE_ARRAY)
        find_integer_bounds(maker, n, &page->bounds);
    else if (maker->has_text_bounds)
        find_text_bounds(maker, n, &page->bounds);
    if (!page->bounds.are_known) {
        chunk->has_page_bounds = false;
        return;
    }
    widen(&chunk->bounds, type, &page->bounds);
}

/* ---- pages ---- */

static size_t compress(struct parquet_coder *coder, int level)
{
    const struct byte_buffer *page = &coder->page;
    size_t bound = ZSTD_compressBound(page->n_bytes);
    if (!coder->zstd) coder->zstd = ZSTD_createCCtx();
    xalloc_require(coder->zstd != NULL);
    coder->packed.n_bytes = 0;
    uint8_t *to = byte_buffer_append(&coder->packed, bound);
    size_t size = ZSTD_compressCCtx(coder->zstd, to, bound, page->bytes, page->n_bytes, level);
    /* With this much room, only lack of memory can make it fail. */
    xalloc_require(!ZSTD_isError(size));
    return size;
}

/* Appends the page in the coder, with its header. Returns its size, or 0 if it is too large. */
static size_t put_page(struct chunk_maker *maker, int type, uint64_t n_values)
{
    struct parquet_coder *coder = maker->coder;
    const struct column_request *request = maker->batch->request;
    size_t raw_bytes = coder->page.n_bytes, n_bytes = raw_bytes, begin = maker->out->n_bytes;
    const uint8_t *bytes = coder->page.bytes;
    if (raw_bytes > INT32_MAX || n_values > INT32_MAX) return 0;
    if (request->codec == COLUMN_CODEC_ZSTD) {
        n_bytes = compress(coder, request->level);
        bytes = coder->packed.bytes;
        if (n_bytes > INT32_MAX) return 0;
    }
    struct thrift_writer writer = thrift_begin(maker->out);
    thrift_i32(&writer, HEADER_TYPE, type);
    thrift_i32(&writer, HEADER_RAW_BYTES, (int32_t)raw_bytes);
    thrift_i32(&writer, HEADER_BYTES, (int32_t)n_bytes);
    thrift_i32(&writer, HEADER_CRC, (int32_t)bgzf_engine_crc(0, bytes, n_bytes));
    thrift_struct(&writer, type == PAGE_DATA ? HEADER_DATA : HEADER_DICTIONARY);
    thrift_i32(&writer, DATA_VALUES, (int32_t)n_values);
    thrift_i32(&writer, DATA_ENCODING,
               type == PAGE_DATA ? (int32_t)maker->chunk.encoding : PARQUET_PLAIN);
    if (type == PAGE_DATA) {
        thrift_i32(&writer, DATA_DEFINITIONS, PARQUET_RLE);
        thrift_i32(&writer, DATA_REPETITIONS, PARQUET_RLE);
    }
    thrift_end(&writer);
    thrift_end(&writer);
    size_t header_bytes = maker->out->n_bytes - begin;
    byte_buffer_copy(maker->out, bytes, n_bytes);
    maker->chunk.raw_bytes += header_bytes + raw_bytes;
    maker->chunk.n_bytes += header_bytes + n_bytes;
    return header_bytes + n_bytes;
}

static bool put_dictionary(struct chunk_maker *maker)
{
    struct parquet_coder *coder = maker->coder;
    const struct parquet_dictionary *dictionary = &coder->dictionary;
    struct byte_buffer *page = &coder->page;
    page->n_bytes = 0;
    for (uint32_t i = 0; i < dictionary->n_entries; i++) {
        if (maker->leaf->type != PARQUET_BYTE_ARRAY) {
            size_t n_bytes = maker->leaf->type == PARQUET_INT64 ? 8 : 4;
            uint8_t *at = byte_buffer_reserve(page, 8);
            (void)put_u64(at, dictionary->entries[i].number);
            page->n_bytes += n_bytes;
            continue;
        }
        size_t n_bytes;
        const uint8_t *text = entry_text(maker, i, &n_bytes);
        (void)put_u32(byte_buffer_append(page, 4), n_bytes);
        byte_buffer_copy(page, text, n_bytes);
    }
    maker->chunk.dictionary_bytes = put_page(maker, PAGE_DICTIONARY, dictionary->n_entries);
    return maker->chunk.dictionary_bytes > 0;
}

/* Begins the RLE of levels, which starts with its size in bytes. */
static size_t begin_levels(struct parquet_runs *runs, unsigned most, struct byte_buffer *page)
{
    size_t place = page->n_bytes;
    (void)byte_buffer_append(page, 4);
    parquet_runs_begin(runs, parquet_bit_width(most), page);
    return place;
}

static void end_levels(struct parquet_runs *runs, size_t place)
{
    struct byte_buffer *page = runs->out;
    parquet_runs_end(runs);
    (void)put_u32(page->bytes + place, page->n_bytes - place - 4);
}

/* Writes definition levels. Returns the number of nulls. */
static uint64_t put_flat_levels(const struct chunk_maker *maker, uint64_t from, uint64_t to)
{
    struct parquet_runs runs;
    uint64_t n_valid = 0;
    size_t place = begin_levels(&runs, 1, &maker->coder->page);
    if (!maker->validity || maker->n_present == 0) {
        n_valid = maker->validity ? 0 : to - from;
        parquet_runs_add(&runs, n_valid > 0, to - from);
    } else {
        for (uint64_t row = from; row < to; row++) {
            bool valid = is_valid(maker->validity, row);
            parquet_runs_add(&runs, valid, 1);
            n_valid += valid;
        }
    }
    end_levels(&runs, place);
    return to - from - n_valid;
}

/* Writes both levels. Returns the number of rows that are null or empty. */
static uint64_t put_nested_levels(const struct chunk_maker *maker, uint64_t from, uint64_t to)
{
    struct parquet_runs runs;
    const struct byte_buffer *validity = &maker->column->buffers[BUFFER_VALIDITY];
    uint64_t n_without = 0;
    size_t place = begin_levels(&runs, 1, &maker->coder->page);
    for (uint64_t row = from; row < to; row++) {
        uint64_t n = first_value(maker, row + 1) - first_value(maker, row);
        parquet_runs_add(&runs, 0, 1);
        if (n > 1) parquet_runs_add(&runs, 1, n - 1);
    }
    end_levels(&runs, place);
    place = begin_levels(&runs, maker->leaf->max_definition, &maker->coder->page);
    for (uint64_t row = from; row < to; row++) {
        uint64_t n = first_value(maker, row + 1) - first_value(maker, row);
        if (n > 0) {
            parquet_runs_add(&runs, maker->leaf->max_definition, n);
            continue;
        }
        bool is_empty = maker->column->n_nulls == 0 || is_valid(validity->bytes, row);
        parquet_runs_add(&runs, is_empty, 1);
        n_without++;
    }
    end_levels(&runs, place);
    return n_without;
}

static void put_indexes(struct chunk_maker *maker, uint64_t from, uint64_t to, size_t n)
{
    struct parquet_coder *coder = maker->coder;
    struct parquet_runs runs;
    unsigned width = parquet_bit_width(coder->dictionary.n_entries - 1);
    *byte_buffer_append(&coder->page, 1) = (uint8_t)width;
    parquet_runs_begin(&runs, width, &coder->page);
    if (has_small_elements(maker)) {
        uint64_t end = first_value(maker, to);
        for (uint64_t i = first_value(maker, from); i < end; i++)
            parquet_runs_add(&runs, entry_of(maker, i), 1);
    } else {
        const uint32_t *indexes = coder->indexes + maker->n_indexed;
        for (size_t i = 0; i < n; i++) parquet_runs_add(&runs, indexes[i], 1);
    }
    parquet_runs_end(&runs);
}

static void put_texts(const struct chunk_maker *maker, uint64_t from, uint64_t to)
{
    struct parquet_coder *coder = maker->coder;
    uint64_t begin = first_value(maker, from), end = first_value(maker, to);
    size_t n = 0;
    if (maker->n_present == 0) {        /* also of references, which are not texts here */
        parquet_put_deltas(NULL, 0, 32, &coder->page);
        return;
    }
    xgrow(&coder->numbers, &coder->numbers_room, (size_t)(end - begin), 0, sizeof *coder->numbers);
    for (uint64_t i = begin; i < end; i++) {
        if (maker->validity && !is_valid(maker->validity, i)) continue;
        size_t n_bytes;
        (void)text_of(maker, i, &n_bytes);
        coder->numbers[n++] = (int64_t)n_bytes;
    }
    parquet_put_deltas(coder->numbers, n, 32, &coder->page);
    /* Nulls have no bytes. */
    size_t first = get_u32(maker->offsets + 4 * begin), last = get_u32(maker->offsets + 4 * end);
    if (last > first) byte_buffer_copy(&coder->page, maker->values + first, last - first);
}

/* Makes the page of rows [from, to). Returns false if it is too large. */
static bool make_page(struct chunk_maker *maker, uint64_t from, uint64_t to)
{
    struct parquet_coder *coder = maker->coder;
    struct parquet_chunk *chunk = &maker->chunk;
    bool is_repeated = maker->leaf->is_repeated;
    struct parquet_page page = {.n_rows = to - from};
    coder->page.n_bytes = 0;
    page.n_nulls = is_repeated ? put_nested_levels(maker, from, to)
                               : put_flat_levels(maker, from, to);
    uint64_t n_stored = first_value(maker, to) - first_value(maker, from);
    uint64_t n_values = n_stored + (is_repeated ? page.n_nulls : 0);
    size_t n = (size_t)(n_values - page.n_nulls);
    bool indexes_small = has_dictionary(maker) && has_small_elements(maker);
    if (maker->leaf->type != PARQUET_BYTE_ARRAY && !indexes_small)
        gather_numbers(maker, from, to);
    find_bounds(maker, n, &page);
    switch (chunk->encoding) {
    case PARQUET_DICTIONARY: put_indexes(maker, from, to, n); break;
    case PARQUET_DELTA_LENGTH: put_texts(maker, from, to); break;
    case PARQUET_DELTA:
        parquet_put_deltas(coder->numbers, n, maker->leaf->type == PARQUET_INT64 ? 64 : 32,
                           &coder->page);
        break;
    default:                    /* floats */
        for (size_t i = 0; i < n; i++)
            (void)put_u32(byte_buffer_append(&coder->page, 4), (uint64_t)coder->numbers[i]);
        break;
    }
    maker->n_indexed += n;
    page.n_bytes = put_page(maker, PAGE_DATA, n_values);
    chunk->n_values += n_values;
    chunk->n_nulls += page.n_nulls;
    chunk->n_pages++;
    byte_buffer_copy(maker->metadata, &page, sizeof page);
    return page.n_bytes > 0;
}

/* Estimates the bytes of the values of rows [from, to). */
static uint64_t expect_bytes(const struct chunk_maker *maker, uint64_t from, uint64_t to)
{
    uint64_t begin = first_value(maker, from), end = first_value(maker, to), n = end - begin;
    if (has_dictionary(maker)) return 2 * n;
    if (!is_text(maker)) return maker->value_bytes * n;
    return 2 * n + get_u32(maker->offsets + 4 * end) - get_u32(maker->offsets + 4 * begin);
}

/* The end of the page that begins at row `from`. */
static uint64_t page_end(const struct chunk_maker *maker, uint64_t from)
{
    uint64_t fits = from + 1, most = from + PARQUET_PAGE_ROWS;
    if (most > maker->batch->n_rows) most = maker->batch->n_rows;
    while (fits < most) {
        uint64_t middle = most - (most - fits) / 2;
        if (expect_bytes(maker, from, middle) <= PARQUET_PAGE_BYTES)
            fits = middle;
        else
            most = middle - 1;
    }
    return fits;
}

/* ---- chunks ---- */

static void point_at_values(struct chunk_maker *maker)
{
    const struct byte_buffer *buffers = maker->column->buffers;
    enum column_buffer offsets = BUFFER_OFFSETS, values = BUFFER_VALUES;
    if (maker->leaf->part == PART_KEYS) offsets = BUFFER_KEY_OFFSETS, values = BUFFER_KEYS;
    if (maker->leaf->part == PART_MAPPED) offsets = BUFFER_MAPPED_OFFSETS, values = BUFFER_MAPPED;
    maker->values = buffers[values].bytes;
    maker->value_bytes = column_type_bytes(maker->leaf->value);
    if (is_text(maker)) maker->offsets = buffers[offsets].bytes;
    if (maker->leaf->is_repeated)
        maker->row_offsets = buffers[BUFFER_OFFSETS].bytes;
    else if (maker->column->n_nulls > 0)
        maker->validity = buffers[BUFFER_VALIDITY].bytes;
    maker->n_present = first_value(maker, maker->batch->n_rows);
    if (!maker->leaf->is_repeated) maker->n_present -= maker->column->n_nulls;
}

/* Appends the chunk of a leaf, and its metadata. Returns false if a page is too large. */
static bool put_chunk(struct chunk_maker *maker)
{
    struct parquet_chunk *chunk = &maker->chunk;
    size_t place = maker->metadata->n_bytes;
    (void)byte_buffer_append(maker->metadata, sizeof *chunk);
    chunk->has_page_bounds = !maker->leaf->is_repeated;
    point_at_values(maker);
    chunk->encoding = choose_encoding(maker);
    if (has_dictionary(maker)) {
        maker->has_text_bounds = maker->leaf->type == PARQUET_BYTE_ARRAY && has_text_bounds(maker);
        if (!put_dictionary(maker)) return false;
    }
    for (uint64_t row = 0, end; row < maker->batch->n_rows; row = end) {
        end = page_end(maker, row);
        if (!make_page(maker, row, end)) return false;
    }
    memcpy(maker->metadata->bytes + place, chunk, sizeof *chunk);
    return true;
}

/* ---- groups ---- */

/* True if the rows are sorted by the bytes of rname, then by pos, with nulls after all values. */
static bool is_sorted(const struct encoded_batch *batch)
{
    unsigned rname = batch->schema->by_field[FIELD_RNAME];
    unsigned pos = batch->schema->by_field[FIELD_POS];
    if (rname == NO_COLUMN || pos == NO_COLUMN) return false;
    const struct column_values *rnames = &batch->columns[rname], *places = &batch->columns[pos];
    const uint8_t *tids = rnames->buffers[BUFFER_VALUES].bytes;
    const uint8_t *positions = places->buffers[BUFFER_VALUES].bytes;
    uint32_t last_tid = 0, last_pos = 0;
    for (uint64_t row = 0; row < batch->n_rows; row++) {
        uint32_t tid = UINT32_MAX, position = UINT32_MAX;       /* null */
        if (rnames->n_nulls == 0 || is_valid(rnames->buffers[BUFFER_VALIDITY].bytes, row))
            tid = get_u32(tids + 4 * row);
        if (places->n_nulls == 0 || is_valid(places->buffers[BUFFER_VALIDITY].bytes, row))
            position = get_u32(positions + 4 * row);
        if (row > 0 && tid == last_tid && position < last_pos) return false;
        if (row > 0 && tid != last_tid &&
            (last_tid == UINT32_MAX ||
             (tid != UINT32_MAX && strcmp(sam_hdr_tid2name(batch->header, (int)last_tid),
                                          sam_hdr_tid2name(batch->header, (int)tid)) > 0)))
            return false;
        last_tid = tid;
        last_pos = position;
    }
    return true;
}

/* Frees the scratch memory after a large group: usual groups need little. */
static void trim_coder(struct parquet_coder *coder)
{
    if (coder->page.room > KEPT_BYTES || coder->packed.room > KEPT_BYTES ||
        coder->numbers_room * sizeof *coder->numbers > KEPT_BYTES ||
        coder->indexes_room * sizeof *coder->indexes > KEPT_BYTES)
        parquet_coder_release(coder);
}

const char *parquet_put_group(struct parquet_coder *coder, const struct encoded_batch *batch,
                              size_t begin, struct byte_buffer *out,
                              struct byte_buffer *metadata)
{
    const struct parquet_group group = {
        .at = out->n_bytes - begin, .n_rows = batch->n_rows, .is_sorted = is_sorted(batch),
    };
    unsigned n_leaves;
    struct parquet_leaf *leaves = parquet_leaves(batch->schema, &n_leaves);
    bool fits = true;
    byte_buffer_copy(metadata, &group, sizeof group);
    for (unsigned i = 0; fits && i < n_leaves; i++) {
        struct chunk_maker maker = {
            .coder = coder, .batch = batch, .leaf = &leaves[i],
            .column = &batch->columns[leaves[i].column], .out = out, .metadata = metadata,
        };
        fits = put_chunk(&maker);
    }
    free(leaves);
    trim_coder(coder);
    return fits ? NULL : too_large;
}
