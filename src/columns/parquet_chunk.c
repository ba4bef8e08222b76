/* parquet_chunk.c -- see parquet_chunk.h. */
#include "columns/parquet_chunk.h"

#include "bam/bgzf_engine.h"
#include "columns/parquet_encode.h"
#include "columns/parquet_format.h"
#include "columns/thrift_reader.h"
#include "util/byte_order.h"

#include <stdlib.h>

static const char truncated[] = "it is truncated";

const char *parquet_source_read(struct parquet_source *source, uint64_t at, size_t n,
                                struct column_bytes *to)
{
    uint8_t *place = column_bytes_reserve(to, n);
    ssize_t got = n > 0 ? source->read_at(source->arg, at, place, n) : 0;
    source->failed = got < 0;
    if (got < 0 || (size_t)got < n) return truncated;
    to->n_bytes += n;
    return NULL;
}

void parquet_chunk_begin(struct parquet_chunk_reader *reader,
                         const struct parquet_stored_leaf *leaf,
                         const struct parquet_stored_chunk *chunk, size_t step_bytes)
{
    reader->leaf = leaf;
    reader->codec = chunk->codec;
    reader->at = chunk->at;
    reader->end = chunk->at + chunk->n_bytes;
    reader->step_bytes = step_bytes;
    reader->stored.n_bytes = 0;
    reader->used = 0;
    reader->has_entries = false;
    reader->n_left = chunk->n_values;
    reader->n_left_in_page = 0;
    reader->levels.at = reader->levels.n = 0;
}

size_t parquet_chunk_memory(const struct parquet_chunk_reader *reader)
{
    const struct parquet_entries *entries = &reader->entries;
    const struct parquet_values *values = &reader->values;
    return sizeof *reader + reader->stored.room + reader->page.room + reader->dictionary.room +
           entries->numbers_room * sizeof *entries->numbers +
           entries->texts_room * sizeof *entries->texts + values->last.room + values->made.room;
}

void parquet_chunk_release(struct parquet_chunk_reader *reader)
{
    free(reader->stored.bytes);
    free(reader->page.bytes);
    free(reader->dictionary.bytes);
    parquet_entries_release(&reader->entries);
    parquet_values_release(&reader->values);
}

/* ---- bytes ---- */

static size_t n_stored(const struct parquet_chunk_reader *reader)
{
    return reader->stored.n_bytes - reader->used;
}

/* Makes sure that n bytes are there that were not used. Those that were are gone. */
static const char *need(struct parquet_chunk_reader *reader, size_t n)
{
    size_t have = n_stored(reader);
    if (have >= n) return NULL;
    uint64_t left = reader->end - reader->at;
    if (n - have > left) return parquet_damaged;
    struct column_bytes *stored = &reader->stored;
    if (have > 0) memmove(stored->bytes, stored->bytes + reader->used, have);
    stored->n_bytes = have;
    reader->used = 0;
    size_t more = n - have > reader->step_bytes ? n - have : reader->step_bytes;
    if (more > left) more = (size_t)left;
    const char *problem = parquet_source_read(reader->source, reader->at, more, stored);
    reader->at += more;
    return problem;
}

/* ---- headers ---- */

struct page_header {
    int64_t kind, raw_bytes, n_bytes, crc;
    bool has_crc;
    int64_t n_values, encoding, definitions, repetitions;
    int64_t definition_bytes, repetition_bytes;         /* V2 */
    bool is_compressed;
};

/* DataPageHeader, DictionaryPageHeader, DataPageHeaderV2 */
static void read_kind(struct thrift_reader *thrift, const struct thrift_field *of,
                      struct page_header *header)
{
    struct thrift_field field;
    bool is_v1 = of->number == HEADER_DATA, is_v2 = of->number == HEADER_DATA_V2;
    if (!thrift_enter(thrift, of)) return;
    while (thrift_next(thrift, &field)) {
        int64_t *to = NULL;
        if (field.number == DATA_VALUES) to = &header->n_values;        /* V2_VALUES, too */
        if (field.number == (is_v2 ? (int)V2_ENCODING : (int)DATA_ENCODING)) to = &header->encoding;
        if (is_v1 && field.number == DATA_DEFINITIONS) to = &header->definitions;
        if (is_v1 && field.number == DATA_REPETITIONS) to = &header->repetitions;
        if (is_v2 && field.number == V2_DEFINITION_BYTES) to = &header->definition_bytes;
        if (is_v2 && field.number == V2_REPETITION_BYTES) to = &header->repetition_bytes;
        if (to)
            *to = thrift_read_integer(thrift, &field);
        else if (is_v2 && field.number == V2_IS_COMPRESSED)
            header->is_compressed = thrift_read_bool(thrift, &field);
        else
            thrift_skip(thrift, &field);
    }
}

/* Parses a header at the begin of the bytes. Returns how many it has; 0: they hold none. */
static size_t parse_header(const uint8_t *bytes, size_t n_bytes, struct page_header *header)
{
    static const int of_kind[] = {[PAGE_DATA] = HEADER_DATA, [PAGE_DICTIONARY] = HEADER_DICTIONARY,
                                  [PAGE_DATA_V2] = HEADER_DATA_V2};
    struct thrift_reader thrift = thrift_read(bytes, n_bytes);
    struct thrift_field field;
    *header = (struct page_header){
        .kind = -1, .raw_bytes = -1, .n_bytes = -1, .n_values = -1, .encoding = -1,
        .definitions = PARQUET_RLE, .repetitions = PARQUET_RLE, .is_compressed = true,
    };
    while (thrift_next(&thrift, &field)) {
        bool is_known = header->kind >= 0 && header->kind <= PAGE_DATA_V2;
        if (field.number == HEADER_TYPE) {
            header->kind = thrift_read_integer(&thrift, &field);
        } else if (field.number == HEADER_RAW_BYTES) {
            header->raw_bytes = thrift_read_integer(&thrift, &field);
        } else if (field.number == HEADER_BYTES) {
            header->n_bytes = thrift_read_integer(&thrift, &field);
        } else if (field.number == HEADER_CRC) {
            header->crc = thrift_read_integer(&thrift, &field);
            header->has_crc = true;
        } else if (is_known && field.number == of_kind[header->kind]) {
            read_kind(&thrift, &field, header);
        } else {
            thrift_skip(&thrift, &field);
        }
    }
    return thrift.damaged ? 0 : (size_t)(thrift.at - bytes);
}

/* Reads a header. How long it is, nobody knows before. */
static const char *read_header(struct parquet_chunk_reader *reader, struct page_header *header)
{
    enum { FIRST_LOOK = 256, MOST_HEADER_BYTES = 64 << 20 };
    for (uint64_t n = FIRST_LOOK;; n *= 4) {
        uint64_t most = n_stored(reader) + (reader->end - reader->at);
        if (n > most) n = most;
        const char *problem = need(reader, (size_t)n);
        if (problem) return problem;
        size_t n_used = parse_header(column_bytes_at(&reader->stored, reader->used),
                                     n_stored(reader), header);
        reader->used += n_used;
        if (n_used > 0) break;
        if (n == most || n > MOST_HEADER_BYTES) return parquet_damaged;
    }
    bool is_sound = header->kind >= 0 && header->n_bytes >= 0 && header->n_bytes <= INT32_MAX &&
                    header->raw_bytes >= 0 && header->raw_bytes <= INT32_MAX;
    if (is_sound && header->kind != PAGE_INDEX)
        is_sound = header->n_values >= 0 && header->n_values <= INT32_MAX;
    return is_sound ? NULL : parquet_damaged;
}

/* ---- pages ---- */

struct bytes {
    const uint8_t *at, *end;
};

/* Decompresses a part of a page to `to`, unless it is stored as it is. */
static const char *unpack(struct parquet_chunk_reader *reader, struct bytes from, size_t n_raw,
                          bool is_compressed, struct column_bytes *to, struct bytes *raw)
{
    size_t n_from = (size_t)(from.end - from.at);
    *raw = (struct bytes){from.at, from.at};
    /* Some programs compress nothing to a few bytes, others store nothing. */
    if (n_raw == 0) return NULL;
    int codec = is_compressed ? reader->codec : PARQUET_CODEC_NONE;
    if (!parquet_codec_can_make(codec, n_from, n_raw)) return parquet_damaged;
    *raw = from;
    if (codec == PARQUET_CODEC_NONE) return NULL;
    to->n_bytes = 0;
    raw->at = column_bytes_append(to, n_raw);
    raw->end = raw->at + n_raw;
    return parquet_decompress(reader->decompressor, codec, from.at, n_from, to->bytes, n_raw)
               ? NULL : parquet_damaged;
}

static const char *read_entries(struct parquet_chunk_reader *reader,
                                const struct page_header *header, struct bytes stored)
{
    struct bytes raw;
    if (reader->has_entries ||
        (header->encoding != PARQUET_PLAIN && header->encoding != PARQUET_PLAIN_DICTIONARY))
        return parquet_damaged;
    const char *problem = unpack(reader, stored, (size_t)header->raw_bytes, true,
                                 &reader->dictionary, &raw);
    if (problem) return problem;
    if (raw.at == stored.at && raw.at < raw.end) {      /* what was read is soon forgotten */
        reader->dictionary.n_bytes = 0;
        column_bytes_copy(&reader->dictionary, raw.at, (size_t)(raw.end - raw.at));
        raw = (struct bytes){reader->dictionary.bytes,
                             column_bytes_at(&reader->dictionary, reader->dictionary.n_bytes)};
    }
    reader->has_entries = true;
    return parquet_entries_read(&reader->entries, reader->leaf->type, (size_t)header->n_values,
                                raw.at, raw.end);
}

/* Takes levels off the begin of a page of version 1, where their number of bytes stands first. */
static bool take_levels(struct bytes *page, unsigned most, struct parquet_run_reader *levels)
{
    if (most == 0) return true;
    if (page->end - page->at < 4) return false;
    size_t n = get_u32(page->at);
    page->at += 4;
    if (n > (size_t)(page->end - page->at)) return false;
    parquet_run_reader_begin(levels, page->at, page->at + n, parquet_bit_width(most));
    page->at += n;
    return true;
}

static const char *begin_page(struct parquet_chunk_reader *reader, const struct page_header *header,
                              struct bytes stored)
{
    struct bytes raw;
    unsigned max_repetition = reader->leaf->is_repeated;
    if (header->definitions != PARQUET_RLE || header->repetitions != PARQUET_RLE)
        return "its levels are encoded by BIT_PACKED, which is not read";
    const char *problem = unpack(reader, stored, (size_t)header->raw_bytes, true, &reader->page,
                                 &raw);
    if (problem) return problem;
    if (!take_levels(&raw, max_repetition, &reader->repetitions) ||
        !take_levels(&raw, reader->leaf->max_definition, &reader->definitions))
        return parquet_damaged;
    return parquet_values_begin(&reader->values, reader->leaf->type, header->encoding,
                                reader->has_entries ? &reader->entries : NULL, raw.at, raw.end);
}

/* Levels are not compressed in pages of version 2. */
static const char *begin_page_v2(struct parquet_chunk_reader *reader,
                                 const struct page_header *header, struct bytes stored)
{
    struct bytes raw;
    int64_t n_repetition = header->repetition_bytes, n_definition = header->definition_bytes;
    if (n_repetition < 0 || n_definition < 0 || n_repetition > header->n_bytes ||
        n_definition > header->n_bytes - n_repetition ||
        n_repetition + n_definition > header->raw_bytes)
        return parquet_damaged;
    const uint8_t *definitions = stored.at + n_repetition;
    parquet_run_reader_begin(&reader->repetitions, stored.at, definitions, 1);
    stored.at = definitions + n_definition;
    parquet_run_reader_begin(&reader->definitions, definitions, stored.at,
                             parquet_bit_width(reader->leaf->max_definition));
    size_t n_raw = (size_t)(header->raw_bytes - n_repetition - n_definition);
    const char *problem = unpack(reader, stored, n_raw, header->is_compressed, &reader->page, &raw);
    if (problem) return problem;
    return parquet_values_begin(&reader->values, reader->leaf->type, header->encoding,
                                reader->has_entries ? &reader->entries : NULL, raw.at, raw.end);
}

/* Takes what a page needs off the room of all, unless one as large was here before. */
static bool take_room(struct parquet_chunk_reader *reader, const struct page_header *header)
{
    bool is_dictionary = header->kind == PAGE_DICTIONARY;
    uint64_t n = (uint64_t)header->n_bytes + (uint64_t)header->raw_bytes;
    uint64_t *taken = is_dictionary ? &reader->dictionary_bytes : &reader->page_bytes;
    if (is_dictionary) n += (uint64_t)header->n_values * sizeof(struct parquet_text);
    if (n <= *taken) return true;
    if (n - *taken > *reader->room) return false;
    *reader->room -= n - *taken;
    *taken = n;
    return true;
}

static const char *next_page(struct parquet_chunk_reader *reader)
{
    struct page_header header;
    const char *problem = read_header(reader, &header);
    if (!problem && !take_room(reader, &header))
        problem = "its pages are too large: write it again with smaller pages";
    if (!problem) problem = need(reader, (size_t)header.n_bytes);
    if (problem) return problem;
    const uint8_t *at = reader->stored.bytes + reader->used;
    struct bytes stored = {at, at + header.n_bytes};
    reader->used += (size_t)header.n_bytes;
    if (header.has_crc && (uint32_t)header.crc != bgzf_engine_crc(at, (size_t)header.n_bytes))
        return "a page has another checksum than it says: it is damaged";
    if (header.kind == PAGE_INDEX) return NULL;
    if (header.kind == PAGE_DICTIONARY) return read_entries(reader, &header, stored);
    if (header.kind != PAGE_DATA && header.kind != PAGE_DATA_V2) return parquet_damaged;
    if ((uint64_t)header.n_values > reader->n_left) return parquet_damaged;
    reader->n_left -= (uint64_t)header.n_values;
    reader->n_left_in_page = (uint64_t)header.n_values;
    return header.kind == PAGE_DATA ? begin_page(reader, &header, stored)
                                    : begin_page_v2(reader, &header, stored);
}

const char *parquet_chunk_levels(struct parquet_chunk_reader *reader)
{
    struct parquet_levels *levels = &reader->levels;
    unsigned most = reader->leaf->max_definition;
    if (levels->at < levels->n) return NULL;
    levels->at = levels->n = 0;
    while (reader->n_left_in_page == 0) {
        if (reader->n_left == 0) return NULL;
        const char *problem = next_page(reader);
        if (problem) return problem;
    }
    unsigned n = reader->n_left_in_page < PARQUET_PIECE ? (unsigned)reader->n_left_in_page
                                                        : PARQUET_PIECE;
    if (reader->leaf->is_repeated &&
        !parquet_read_runs(&reader->repetitions, levels->repetition, n))
        return parquet_damaged;
    if (most > 0 && !parquet_read_runs(&reader->definitions, levels->definition, n))
        return parquet_damaged;
    uint32_t highest = 0;
    for (unsigned i = 0; most > 0 && i < n; i++)
        highest = levels->definition[i] > highest ? levels->definition[i] : highest;
    if (highest > most) return parquet_damaged;
    if (most == 0) memset(levels->definition, 0, n * sizeof *levels->definition);
    levels->n = n;
    reader->n_left_in_page -= n;
    return NULL;
}
