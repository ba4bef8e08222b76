/* parquet_values.c -- see parquet_values.h. The encodings: Parquet format, "Encodings". */
#include "columns/parquet_values.h"

#include "util/byte_order.h"

#include <stdlib.h>

const char parquet_damaged[] = "it is damaged";

#define NOT_READ(name) "its values are encoded by " name ", which is not read"

static const char *encoding_problem(int64_t encoding)
{
    switch (encoding) {
    case PARQUET_PLAIN:
    case PARQUET_PLAIN_DICTIONARY:
    case PARQUET_DICTIONARY:
    case PARQUET_DELTA:
    case PARQUET_DELTA_LENGTH:
    case PARQUET_DELTA_TEXT: return NULL;
    case PARQUET_RLE: return NOT_READ("RLE");
    case 4: return NOT_READ("BIT_PACKED");
    case 9: return NOT_READ("BYTE_STREAM_SPLIT");
    default: return "its values are encoded in a way that rocksort does not know";
    }
}

/* ---- plain values ---- */

static bool read_plain_numbers(enum parquet_type type, const uint8_t **at, const uint8_t *end,
                               int64_t *to, size_t n)
{
    size_t n_bytes = type == PARQUET_INT64 || type == PARQUET_DOUBLE ? 8 : 4;
    if ((size_t)(end - *at) / n_bytes < n) return false;
    for (size_t i = 0; i < n; i++, *at += n_bytes) {
        if (n_bytes == 8)
            to[i] = (int64_t)get_u64(*at);
        else
            to[i] = (int32_t)get_u32(*at);
    }
    return true;
}

static bool read_plain_texts(const uint8_t **at, const uint8_t *end, struct parquet_text *to,
                             size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (end - *at < 4) return false;
        size_t n_bytes = get_u32(*at);
        *at += 4;
        if (n_bytes > (size_t)(end - *at)) return false;
        to[i] = (struct parquet_text){*at, n_bytes};
        *at += n_bytes;
    }
    return true;
}

/* ---- dictionaries ---- */

void parquet_entries_release(struct parquet_entries *entries)
{
    free(entries->numbers);
    free(entries->texts);
    *entries = (struct parquet_entries){0};
}

const char *parquet_entries_read(struct parquet_entries *entries, enum parquet_type type, size_t n,
                                 const uint8_t *at, const uint8_t *end)
{
    bool is_text = type == PARQUET_BYTE_ARRAY;
    entries->n = 0;
    if (n > (size_t)(end - at) / 4) return parquet_damaged;     /* each has 4 bytes at least */
    if (is_text)
        xgrow(&entries->texts, &entries->texts_room, n, 0, sizeof *entries->texts);
    else
        xgrow(&entries->numbers, &entries->numbers_room, n, 0, sizeof *entries->numbers);
    if (!(is_text ? read_plain_texts(&at, end, entries->texts, n)
                  : read_plain_numbers(type, &at, end, entries->numbers, n)))
        return parquet_damaged;
    entries->n = n;
    return NULL;
}

/* Reads the indexes of n entries to the piece. */
static bool read_indexes(struct parquet_values *values, size_t n)
{
    if (!parquet_read_runs(&values->indexes, values->piece, n)) return false;
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) most = values->piece[i] > most ? values->piece[i] : most;
    return n == 0 || most < values->entries->n;
}

/* ---- pages ---- */

void parquet_values_release(struct parquet_values *values)
{
    free(values->last.bytes);
    free(values->made.bytes);
    values->last = values->made = (struct column_bytes){0};
}

size_t parquet_values_forget(struct parquet_values *values, bool is_kept)
{
    return column_bytes_forget(&values->made, is_kept);
}

static bool begin_indexes(struct parquet_values *values)
{
    /* A page of nulls may have no bytes. */
    unsigned width = values->at < values->end ? *values->at++ : 0;
    parquet_run_reader_begin(&values->indexes, values->at, values->end, width);
    return values->entries && width <= 32;
}

/* Begins differences that lie at the begin of the values, which are then after them. */
static bool begin_deltas(struct parquet_values *values, struct parquet_delta_reader *deltas)
{
    if (!parquet_delta_reader_begin(deltas, values->at, values->end, 32)) return false;
    values->at = parquet_deltas_end(deltas);
    return values->at != NULL;
}

/* What the encoding stores before the first value. */
static bool begin_encoding(struct parquet_values *values)
{
    bool is_text = values->type == PARQUET_BYTE_ARRAY;
    bool is_integer = values->type == PARQUET_INT32 || values->type == PARQUET_INT64;
    values->last.n_bytes = 0;
    switch (values->encoding) {
    case PARQUET_PLAIN: return true;
    case PARQUET_DICTIONARY: return begin_indexes(values);
    case PARQUET_DELTA:
        return is_integer && parquet_delta_reader_begin(&values->numbers, values->at, values->end,
                                                        values->type == PARQUET_INT64 ? 64 : 32);
    case PARQUET_DELTA_LENGTH: return is_text && begin_deltas(values, &values->numbers);
    default:
        return is_text && begin_deltas(values, &values->shared) &&
               begin_deltas(values, &values->numbers);
    }
}

const char *parquet_values_begin(struct parquet_values *values, enum parquet_type type,
                                 int64_t encoding, const struct parquet_entries *entries,
                                 const uint8_t *at, const uint8_t *end)
{
    const char *problem = encoding_problem(encoding);
    if (problem) return problem;
    values->type = type;
    values->encoding = encoding == PARQUET_PLAIN_DICTIONARY ? PARQUET_DICTIONARY
                                                            : (enum parquet_encoding)encoding;
    values->entries = entries;
    values->at = at;
    values->end = end;
    values->indexes = (struct parquet_run_reader){0};
    values->numbers = values->shared = (struct parquet_delta_reader){0};
    /* A page of nulls may have nothing at all. */
    return at == end || begin_encoding(values) ? NULL : parquet_damaged;
}

const char *parquet_read_numbers(struct parquet_values *values, int64_t *to, size_t n)
{
    bool is_sound;
    if (n == 0) return NULL;
    if (values->encoding == PARQUET_DICTIONARY) {
        is_sound = values->entries && read_indexes(values, n);
        for (size_t i = 0; is_sound && i < n; i++)
            to[i] = values->entries->numbers[values->piece[i]];
    } else if (values->encoding == PARQUET_DELTA) {
        is_sound = parquet_read_deltas(&values->numbers, to, n);
    } else {
        is_sound = read_plain_numbers(values->type, &values->at, values->end, to, n);
    }
    return is_sound ? NULL : parquet_damaged;
}

/* Texts that follow each other. */
static bool read_text_run(struct parquet_values *values, struct parquet_text *to, size_t n)
{
    int64_t *lengths = values->lengths;
    if (!parquet_read_deltas(&values->numbers, lengths, n)) return false;
    for (size_t i = 0; i < n; i++) {
        if (lengths[i] < 0 || lengths[i] > values->end - values->at) return false;
        to[i] = (struct parquet_text){values->at, (size_t)lengths[i]};
        values->at += lengths[i];
    }
    return true;
}

/* Texts that share their begin with the one before. */
static bool read_shared_texts(struct parquet_values *values, struct parquet_text *to, size_t n)
{
    struct column_bytes *made = &values->made, *last = &values->last;
    int64_t *shared = values->starts;
    if (!parquet_read_deltas(&values->shared, shared, n) || !read_text_run(values, to, n))
        return false;
    made->n_bytes = 0;
    column_bytes_copy(made, last->bytes, last->n_bytes);
    size_t before = 0, before_bytes = last->n_bytes;
    for (size_t i = 0; i < n; i++) {
        if (shared[i] < 0 || (size_t)shared[i] > before_bytes) return false;
        before_bytes = (size_t)shared[i] + to[i].n;
        if (before_bytes > INT32_MAX - made->n_bytes) return false;
        uint8_t *at = column_bytes_append(made, before_bytes);
        if (shared[i] > 0) memcpy(at, made->bytes + before, (size_t)shared[i]);
        if (to[i].n > 0) memcpy(at + shared[i], to[i].at, to[i].n);
        to[i].n = before_bytes;
        before = made->n_bytes - before_bytes;
        shared[i] = (int64_t)before;
    }
    for (size_t i = 0; i < n; i++) to[i].at = made->bytes + shared[i];
    last->n_bytes = 0;
    column_bytes_copy(last, made->bytes + before, before_bytes);
    return true;
}

const char *parquet_read_texts(struct parquet_values *values, struct parquet_text *to, size_t n)
{
    bool is_sound;
    if (n == 0) return NULL;
    switch (values->encoding) {
    case PARQUET_DICTIONARY:
        is_sound = values->entries && read_indexes(values, n);
        for (size_t i = 0; is_sound && i < n; i++)
            to[i] = values->entries->texts[values->piece[i]];
        break;
    case PARQUET_DELTA_LENGTH: is_sound = read_text_run(values, to, n); break;
    case PARQUET_DELTA_TEXT: is_sound = read_shared_texts(values, to, n); break;
    default: is_sound = read_plain_texts(&values->at, values->end, to, n); break;
    }
    return is_sound ? NULL : parquet_damaged;
}
