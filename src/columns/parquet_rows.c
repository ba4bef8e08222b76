/*
 * parquet_rows.c -- see parquet_rows.h.
 *
 * A column of one value a row has a definition level for each row. In a list or map, a value whose
 * repetition level is 0 begins a row; its definition level says whether the row is null (below that
 * of the element before), empty, or has elements.
 */
#include "columns/parquet_rows.h"

#include "util/byte_order.h"

/* What of the rows was made so far. */
struct rows_maker {
    struct parquet_chunk_reader *chunk;
    const struct parquet_rows *rows;
    enum column_type value;
    uint64_t n_rows;
    struct parquet_text name;   /* of a reference, and its number */
    uint32_t reference;
};

/* Appends n bytes to a buffer, or returns NULL if there is no room for them. */
static uint8_t *append(const struct rows_maker *maker, struct column_bytes *to, uint64_t n)
{
    uint64_t *room = maker->rows->room;
    if (n > *room) return NULL;
    *room -= n;
    return column_bytes_append(to, (size_t)n);
}

static const char too_large[] = "its rows are too large: write it again with smaller row groups";
/* Problems of a column's values. */
enum { NO_FIT, NO_REFERENCE, NULL_ELEMENT, N_VALUE_PROBLEMS };
static const char *const of_values[N_VALUE_PROBLEMS] = {
    [NO_FIT] = "has a value that does not fit",
    [NO_REFERENCE] = "names a reference that the header does not have",
    [NULL_ELEMENT] = "has a null in a list or a map",
};

/* Marks the next row as null or not. */
static bool put_validity(struct rows_maker *maker, bool is_valid)
{
    struct column_bytes *bits = maker->rows->validity;
    if (maker->n_rows % 8 == 0) {
        uint8_t *at = append(maker, bits, 1);
        if (!at) return false;
        *at = 0;
    }
    if (is_valid) bits->bytes[maker->n_rows / 8] |= (uint8_t)(1u << maker->n_rows % 8);
    maker->n_rows++;
    return true;
}

/* ---- values ---- */

/* Makes a number with a fraction of 64 bits one of 32, if it is one. */
static bool narrow_fraction(int64_t *number)
{
    double value;
    memcpy(&value, number, sizeof value);
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    *number = bits;
    return (double)narrow == value || value != value;
}

/* Checks n numbers and makes them what the column has. */
static bool fit_numbers(const struct rows_maker *maker, int64_t *numbers, size_t n)
{
    const struct parquet_stored_leaf *leaf = maker->chunk->leaf;
    const struct column_number number = column_type_number(maker->value);
    bool fits = true;
    if (leaf->type == PARQUET_DOUBLE)
        for (size_t i = 0; i < n; i++) fits &= narrow_fraction(&numbers[i]);
    if (number.is_float) return fits;
    if (leaf->is_unsigned && leaf->type == PARQUET_INT32)
        for (size_t i = 0; i < n; i++) numbers[i] = (int64_t)((uint64_t)numbers[i] & UINT32_MAX);
    unsigned n_bits = 8u * number.n_bytes - number.is_signed;
    int64_t most = n_bits >= 63 ? INT64_MAX : ((int64_t)1 << n_bits) - 1;
    int64_t least = number.is_signed && !leaf->is_unsigned ? -most - 1 : 0;
    for (size_t i = 0; i < n; i++) fits &= numbers[i] >= least && numbers[i] <= most;
    return fits;
}

static inline void put_number(uint8_t *to, int64_t number, unsigned n_bytes)
{
    switch (n_bytes) {
    case 1: *to = (uint8_t)number; break;
    case 2: (void)put_u16(to, (uint64_t)number); break;
    case 4: (void)put_u32(to, (uint64_t)number); break;
    default: (void)put_u64(to, (uint64_t)number);
    }
}

/* The places of values among those of a piece: null where there is none. */
struct places {
    const uint32_t *definition; /* NULL: all are there */
    unsigned n, n_present;
};

static bool is_present(const struct rows_maker *maker, const struct places *places, unsigned i)
{
    return !places->definition || places->definition[i] == maker->chunk->leaf->max_definition;
}

static const char *append_numbers(struct rows_maker *maker, const struct places *places)
{
    int64_t numbers[PARQUET_PIECE];
    unsigned n_bytes = column_type_number(maker->value).n_bytes, next = 0;
    const char *problem = parquet_read_numbers(&maker->chunk->values, numbers, places->n_present);
    if (problem) return problem;
    if (!fit_numbers(maker, numbers, places->n_present)) return of_values[NO_FIT];
    uint8_t *to = append(maker, maker->rows->values, (uint64_t)n_bytes * places->n);
    if (!to) return too_large;
    for (unsigned i = 0; i < places->n; i++, to += n_bytes)
        put_number(to, is_present(maker, places, i) ? numbers[next++] : 0, n_bytes);
    return NULL;
}

static const char *append_texts(struct rows_maker *maker, const struct places *places)
{
    struct parquet_text texts[PARQUET_PIECE];
    const char *problem = parquet_read_texts(&maker->chunk->values, texts, places->n_present);
    if (problem) return problem;
    uint64_t n_bytes = 0;
    for (unsigned i = 0; i < places->n_present; i++) n_bytes += texts[i].n;
    struct column_bytes *values = maker->rows->values;
    size_t end = values->n_bytes;
    uint8_t *offset = append(maker, maker->rows->text_offsets, 4 * (uint64_t)places->n);
    uint8_t *to = append(maker, values, n_bytes);
    if ((places->n > 0 && !offset) || (n_bytes > 0 && !to) || values->n_bytes > INT32_MAX)
        return too_large;
    for (unsigned i = 0, next = 0; i < places->n; i++) {
        if (is_present(maker, places, i)) {
            const struct parquet_text *text = &texts[next++];
            if (text->n > 0) memcpy(values->bytes + end, text->at, text->n);
            end += text->n;
        }
        offset = put_u32(offset, end);
    }
    return NULL;
}

/* Finds the number of a name. Most names are that of the row before. */
static bool find_reference(struct rows_maker *maker, const struct parquet_text *name)
{
    const struct parquet_text *last = &maker->name;
    if (name->n == 0) return false;
    if (last->at && name->n == last->n && memcmp(name->at, last->at, name->n) == 0) return true;
    maker->reference = parquet_dictionary_add_text(maker->rows->references, name->at, name->n);
    maker->name = *name;
    return maker->reference < maker->rows->n_references;
}

static const char *append_references(struct rows_maker *maker, const struct places *places)
{
    struct parquet_text texts[PARQUET_PIECE];
    const char *problem = parquet_read_texts(&maker->chunk->values, texts, places->n_present);
    if (problem) return problem;
    uint8_t *to = append(maker, maker->rows->values, 4 * (uint64_t)places->n);
    if (!to) return too_large;
    maker->name.at = NULL;      /* the page may be another one */
    for (unsigned i = 0, next = 0; i < places->n; i++) {
        uint32_t number = 0;
        if (is_present(maker, places, i)) {
            if (!find_reference(maker, &texts[next++])) return of_values[NO_REFERENCE];
            number = maker->reference;
        }
        to = put_u32(to, number);
    }
    return NULL;
}

static const char *append_values(struct rows_maker *maker, const struct places *places)
{
    if (maker->value == COLUMN_REFERENCE) return append_references(maker, places);
    return column_type_is_text(maker->value) ? append_texts(maker, places)
                                             : append_numbers(maker, places);
}

/* ---- rows ---- */

/* Appends rows of one value each, of the levels that are there. */
static const char *append_flat(struct rows_maker *maker, unsigned n)
{
    struct parquet_levels *levels = &maker->chunk->levels;
    struct places places = {.definition = levels->definition + levels->at, .n = n};
    for (unsigned i = 0; i < n; i++) {
        bool is_there = is_present(maker, &places, i);
        if (!put_validity(maker, is_there)) return too_large;
        places.n_present += is_there;
    }
    levels->at += n;
    return append_values(maker, &places);
}

/* How many elements the rows have so far. */
static size_t n_elements(const struct rows_maker *maker)
{
    if (column_type_is_text(maker->value)) return maker->rows->text_offsets->n_bytes / 4 - 1;
    return maker->rows->values->n_bytes / column_type_number(maker->value).n_bytes;
}

/* Appends rows of lists, until n_rows are begun and the next one would be, or there are no more
   levels here. */
static const char *append_nested(struct rows_maker *maker, uint64_t n_rows, bool *is_done)
{
    struct parquet_levels *levels = &maker->chunk->levels;
    const struct parquet_stored_leaf *leaf = maker->chunk->leaf;
    struct places places = {0};
    size_t first = n_elements(maker);
    for (; levels->at < levels->n; levels->at++) {
        unsigned definition = levels->definition[levels->at];
        bool has_element = definition >= leaf->item_definition;
        if (levels->repetition[levels->at] == 0) {
            *is_done = maker->n_rows == n_rows;
            if (*is_done) break;
            uint8_t *offset = append(maker, maker->rows->offsets, 4);
            if (!offset || !put_validity(maker, definition + 1 >= leaf->item_definition))
                return too_large;
            (void)put_u32(offset, first + places.n);
        } else if (maker->n_rows == 0 || !has_element) {
            return parquet_damaged;
        }
        if (has_element && definition < leaf->max_definition) return of_values[NULL_ELEMENT];
        places.n += has_element;
    }
    places.n_present = places.n;
    if (places.n == 0) return NULL;
    return first + places.n > INT32_MAX ? too_large : append_values(maker, &places);
}

bool parquet_rows_is_of_column(const char *problem)
{
    for (unsigned i = 0; i < N_VALUE_PROBLEMS; i++)
        if (problem == of_values[i]) return true;
    return false;
}

const char *parquet_rows_read(struct parquet_chunk_reader *chunk, uint64_t n,
                              const struct parquet_rows *rows)
{
    struct rows_maker maker = {.chunk = chunk, .rows = rows, .value = chunk->leaf->value};
    if (column_type_is_text(maker.value)) {
        uint8_t *first = append(&maker, rows->text_offsets, 4);
        if (!first) return too_large;
        (void)put_u32(first, 0);
    }
    for (bool is_done = n == 0; !is_done;) {
        const char *problem = parquet_chunk_levels(chunk);
        if (problem) return problem;
        unsigned n_levels = chunk->levels.n - chunk->levels.at;
        if (n_levels == 0) break;
        if (chunk->leaf->is_repeated) {
            problem = append_nested(&maker, n, &is_done);
        } else {
            problem = append_flat(&maker, n - maker.n_rows < n_levels ? (unsigned)(n - maker.n_rows)
                                                                      : n_levels);
            is_done = maker.n_rows == n;
        }
        if (problem) return problem;
    }
    if (maker.n_rows < n) return parquet_damaged;
    if (!rows->offsets) return NULL;
    uint8_t *last = append(&maker, rows->offsets, 4);
    if (!last) return too_large;
    (void)put_u32(last, n_elements(&maker));
    return NULL;
}
