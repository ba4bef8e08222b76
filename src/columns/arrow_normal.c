/*
 * arrow_normal.c -- see arrow_normal.h.
 *
 * Before the values of an array are looked at, its buffers of a fixed size are known to be long
 * enough. Where a text or list lies is checked when it is taken.
 */
#include "columns/arrow_normal.h"

#include "columns/arrow_format.h"
#include "columns/standard_tags.h"
#include "util/byte_order.h"
#include "util/xalloc.h"

#include <stdlib.h>

enum { VIEW_BYTES = 16, MOST_INLINE_BYTES = 12 };

static const char no_fit[] = "has a value that does not fit";
static const char null_inside[] = "has a list or map with a null in it";

/* ---- types ---- */

static bool is_text(const struct arrow_field *field)
{
    return field->type == ARROW_TYPE_UTF8 || field->type == ARROW_TYPE_LARGE_UTF8 ||
           field->type == ARROW_TYPE_UTF8_VIEW;
}

/* Maps are lists, too. */
static bool is_list(const struct arrow_field *field)
{
    return !field->has_dictionary && field->n_children == 1 &&
           (field->type == ARROW_TYPE_LIST || field->type == ARROW_TYPE_LARGE_LIST ||
            field->type == ARROW_TYPE_LIST_VIEW || field->type == ARROW_TYPE_LARGE_LIST_VIEW ||
            field->type == ARROW_TYPE_MAP);
}

static bool is_map(const struct arrow_field *field)
{
    if (!is_list(field)) return false;
    const struct arrow_field *pair = &field->children[0];
    return pair->type == ARROW_TYPE_STRUCT && !pair->has_dictionary && pair->n_children == 2 &&
           is_text(&pair->children[0]) && is_text(&pair->children[1]);
}

static bool number_can(const struct arrow_field *field, enum column_type type)
{
    const struct column_number from = field->number, to = column_type_number(type);
    return !field->has_dictionary && from.n_bytes > 0 && to.n_bytes > 0 &&
           from.is_float == to.is_float;
}

static bool is_same_number(struct column_number a, struct column_number b)
{
    return a.n_bytes == b.n_bytes && a.is_float == b.is_float && a.is_signed == b.is_signed;
}

bool arrow_normal_can(const struct arrow_field *field, enum column_type type)
{
    if (field->type == ARROW_TYPE_NULL) return true;
    if (column_type_is_text(type) || type == COLUMN_REFERENCE) return is_text(field);
    if (type == COLUMN_MAP) return is_map(field);
    if (column_type_is_list(type)) return is_list(field) && number_can(&field->children[0], type);
    return number_can(field, type);
}

bool arrow_normal_tag_type(const struct arrow_field *field, const char *letters,
                           enum column_type *type)
{
    static const enum column_type others[] = {COLUMN_TEXT, COLUMN_INT64, COLUMN_FLOAT32};
    /* The elements of a list say which type the array has in BAM. */
    for (*type = COLUMN_INT8_LIST; *type <= COLUMN_FLOAT32_LIST; ++*type)
        if (is_list(field) && !field->children[0].has_dictionary &&
            is_same_number(field->children[0].number, column_type_number(*type)))
            return true;
    const struct standard_tag *standard = standard_tag_find(letters);
    *type = standard ? standard->type : COLUMN_TEXT;
    if (arrow_normal_can(field, *type)) return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        *type = others[i];
        if (arrow_normal_can(field, *type)) return true;
    }
    return false;
}

/* ---- values as they are in the file ---- */

struct source {
    const struct arrow_field *field;
    const struct arrow_array *array;
    const struct arrow_dictionary *dictionary;          /* NULL: it has none */
};

static bool fail_damaged(struct arrow_normal *normal)
{
    return arrow_body_fail(normal->body, "it is damaged");
}

static bool fail(struct arrow_normal *normal, const char *problem)
{
    normal->problem = problem;
    return false;
}

/* The bytes of a row in the buffer after the validity, or of its offset. */
static size_t row_bytes(const struct arrow_field *field)
{
    if (field->has_dictionary) return field->index.n_bytes;
    switch (field->type) {
    case ARROW_TYPE_UTF8_VIEW: return VIEW_BYTES;
    case ARROW_TYPE_LARGE_UTF8:
    case ARROW_TYPE_LARGE_LIST:
    case ARROW_TYPE_LARGE_LIST_VIEW: return 8;
    case ARROW_TYPE_NULL:
    case ARROW_TYPE_STRUCT: return 0;
    default: return field->number.n_bytes > 0 ? field->number.n_bytes : 4;
    }
}

/* True if each value has an offset, and another offset follows. */
static bool has_end_offset(const struct arrow_field *field)
{
    return !field->has_dictionary &&
           (field->type == ARROW_TYPE_UTF8 || field->type == ARROW_TYPE_LARGE_UTF8 ||
            field->type == ARROW_TYPE_LIST || field->type == ARROW_TYPE_LARGE_LIST ||
            field->type == ARROW_TYPE_MAP);
}

static bool has_sizes(const struct arrow_field *field)
{
    return !field->has_dictionary && (field->type == ARROW_TYPE_LIST_VIEW ||
                                      field->type == ARROW_TYPE_LARGE_LIST_VIEW);
}

static bool open_source(struct arrow_normal *normal, const struct arrow_field *field,
                        const struct arrow_array *array, struct source *source)
{
    uint64_t n = array->n_rows, n_items = n > 0 && has_end_offset(field) ? n + 1 : n;
    const struct column_bytes *buffers = array->buffers;
    *source = (struct source){field, array, NULL};
    if (n > INT32_MAX) return fail_damaged(normal);
    if (buffers[0].n_bytes > 0 && buffers[0].n_bytes < (n + 7) / 8) return fail_damaged(normal);
    size_t n_bytes = row_bytes(field);
    if (buffers[1].n_bytes < n_items * n_bytes) return fail_damaged(normal);
    if (has_sizes(field) && buffers[2].n_bytes < n * n_bytes) return fail_damaged(normal);
    if (!field->has_dictionary) return true;
    source->dictionary = arrow_dictionaries_find(normal->dictionaries, field->dictionary);
    return source->dictionary || fail_damaged(normal);
}

static bool bit_is_set(const struct column_bytes *bits, uint64_t i)
{
    return bits->n_bytes == 0 || (bits->bytes[i / 8] >> i % 8 & 1);
}

static bool row_is_null(const struct source *source, uint64_t row)
{
    return source->field->type == ARROW_TYPE_NULL || !bit_is_set(&source->array->buffers[0], row);
}

static uint64_t get_bits(const uint8_t *at, unsigned n_bytes)
{
    switch (n_bytes) {
    case 1: return *at;
    case 2: return get_u16(at);
    case 4: return get_u32(at);
    default: return get_u64(at);
    }
}

/* Reads an integer. Returns false if it is 2^63 or more. */
static bool get_integer(struct column_number number, const uint8_t *at, int64_t *value)
{
    uint64_t bits = get_bits(at, number.n_bytes);
    uint64_t sign = UINT64_C(1) << (8 * number.n_bytes - 1);
    if (number.is_signed && bits & sign) bits |= ~(sign - 1);
    *value = (int64_t)bits;
    return number.is_signed || *value >= 0;
}

/* Where the value of a row lies among those of the child, or among the bytes of the texts. */
static bool span_of(const struct source *source, uint64_t row, uint64_t n_items, uint64_t *begin,
                    uint64_t *n)
{
    unsigned n_bytes = (unsigned)row_bytes(source->field);
    const uint8_t *at = source->array->buffers[1].bytes + n_bytes * row;
    *begin = get_bits(at, n_bytes);
    if (has_sizes(source->field))
        *n = get_bits(source->array->buffers[2].bytes + n_bytes * row, n_bytes);
    else
        *n = get_bits(at + n_bytes, n_bytes) - *begin;
    return *begin <= n_items && *n <= n_items - *begin;
}

static bool text_of_view(const struct source *source, uint64_t row, struct text *text)
{
    const uint8_t *at = source->array->buffers[1].bytes + VIEW_BYTES * row;
    uint32_t n_bytes = get_u32(at), number = get_u32(at + 8), begin = get_u32(at + 12);
    if (n_bytes <= MOST_INLINE_BYTES) {
        *text = (struct text){(const char *)at + 4, n_bytes};
        return true;
    }
    if (number >= source->array->n_texts) return false;
    const struct column_bytes *texts = &source->array->texts[number];
    if (begin > texts->n_bytes || n_bytes > texts->n_bytes - begin) return false;
    *text = (struct text){(const char *)texts->bytes + begin, n_bytes};
    return true;
}

/* Finds the entry of the dictionary that a row has. */
static bool entry_of(const struct source *source, uint64_t row, size_t *entry)
{
    const struct column_number number = source->field->index;
    int64_t index;
    if (!get_integer(number, source->array->buffers[1].bytes + number.n_bytes * row, &index) ||
        index < 0 || (uint64_t)index >= source->dictionary->n)
        return false;
    *entry = (size_t)index;
    return true;
}

/* Finds the text of a row that is not null. It has no address if the dictionary says null. Returns
   false if it lies nowhere. */
static bool text_of_row(const struct source *source, uint64_t row, struct text *text)
{
    size_t entry;
    uint64_t begin, n;
    if (source->dictionary) {
        if (!entry_of(source, row, &entry)) return false;
        *text = arrow_dictionary_text(source->dictionary, entry);
        return true;
    }
    if (source->field->type == ARROW_TYPE_UTF8_VIEW) return text_of_view(source, row, text);
    const struct column_bytes *texts = &source->array->buffers[2];
    if (!span_of(source, row, texts->n_bytes, &begin, &n)) return false;
    *text = n > 0 ? (struct text){(const char *)texts->bytes + begin, n} : text_of("");
    return true;
}

/* ---- values as they are wanted ---- */

static void move(struct column_bytes *from, struct column_bytes *to)
{
    free(to->bytes);
    *to = *from;
    *from = (struct column_bytes){0};
}

static bool put_offset(struct arrow_normal *normal, struct column_bytes *offsets, size_t offset)
{
    (void)put_u32(column_bytes_append(offsets, 4), offset);
    return offset <= INT32_MAX || arrow_body_take(normal->body, UINT64_MAX);
}

/* Copies which rows are null, and makes room for n_bytes for each of them. */
static bool begin_values(struct arrow_normal *normal, const struct source *source, size_t n_bytes,
                         struct column_values *to)
{
    struct column_bytes *bits = &to->buffers[BUFFER_VALIDITY];
    uint64_t n_rows = source->array->n_rows;
    size_t n_bits = (size_t)(n_rows + 7) / 8;
    to->n_rows = n_rows;
    to->n_nulls = source->array->n_nulls;
    if (!arrow_body_take(normal->body, n_bits + n_bytes * (n_rows + 1))) return false;
    if (source->field->type == ARROW_TYPE_NULL && n_bits > 0)
        memset(column_bytes_append(bits, n_bits), 0, n_bits);
    else if (source->array->buffers[0].n_bytes > 0)
        column_bytes_copy(bits, source->array->buffers[0].bytes, n_bits);
    return true;
}

static void set_null(struct column_values *to, uint64_t row)
{
    struct column_bytes *bits = &to->buffers[BUFFER_VALIDITY];
    size_t n_bits = (size_t)(to->n_rows + 7) / 8;
    if (bits->n_bytes == 0) memset(column_bytes_append(bits, n_bits), 0xff, n_bits);
    bits->bytes[row / 8] &= (uint8_t)~(1u << row % 8);
    to->n_nulls++;
}

static bool put_text(struct arrow_normal *normal, struct text text, struct column_bytes *offsets,
                     struct column_bytes *values)
{
    if (!arrow_body_take(normal->body, text.n)) return false;
    column_bytes_copy(values, text.at, text.n);
    return put_offset(normal, offsets, values->n_bytes);
}

static bool put_texts(struct arrow_normal *normal, const struct source *source,
                      struct column_values *to)
{
    struct column_bytes *offsets = &to->buffers[BUFFER_OFFSETS];
    if (!begin_values(normal, source, 4, to)) return false;
    (void)put_offset(normal, offsets, 0);
    for (uint64_t row = 0; row < to->n_rows; row++) {
        struct text text = {"", 0};
        if (!row_is_null(source, row)) {
            if (!text_of_row(source, row, &text)) return fail_damaged(normal);
            if (!text.at) set_null(to, row);
        }
        if (!put_text(normal, text, offsets, &to->buffers[BUFFER_VALUES])) return false;
    }
    return true;
}

/* Finds the reference that a row names: its number, REFERENCE_NULL or REFERENCE_UNKNOWN. *last is
   the text for which *reference was found before: rows one after another mostly have the same. */
static bool reference_of_row(const struct arrow_normal *normal, const struct source *source,
                             uint64_t row, struct text *last, int32_t *reference)
{
    size_t entry;
    struct text text;
    if (source->dictionary) {
        if (!entry_of(source, row, &entry)) return false;
        *reference = arrow_dictionary_reference(source->dictionary, entry);
        return true;
    }
    if (!text_of_row(source, row, &text)) return false;
    if (last->at && text_equal(*last, text)) return true;
    const size_t *number = text_map_find(normal->references, text);
    *reference = number ? (int32_t)*number : REFERENCE_UNKNOWN;
    *last = text;
    return true;
}

static bool put_references(struct arrow_normal *normal, const struct source *source,
                           struct column_values *to)
{
    struct text last = {NULL, 0};
    int32_t reference = 0;
    if (!begin_values(normal, source, 4, to)) return false;
    for (uint64_t row = 0; row < to->n_rows; row++) {
        bool is_null = row_is_null(source, row);
        if (!is_null && !reference_of_row(normal, source, row, &last, &reference))
            return fail_damaged(normal);
        if (!is_null && reference == REFERENCE_UNKNOWN)
            return fail(normal, "names a reference that the header does not have");
        if (!is_null && reference == REFERENCE_NULL) set_null(to, row);
        bool has_none = is_null || reference < 0;
        (void)put_u32(column_bytes_append(&to->buffers[BUFFER_VALUES], 4),
                      has_none ? 0 : (uint32_t)reference);
    }
    return true;
}

/* Converts a float of 64 bits to one of 32. Returns false if that changes it. */
static bool put_float(const uint8_t *at, struct column_bytes *out)
{
    uint64_t long_bits = get_u64(at);
    double d;
    memcpy(&d, &long_bits, sizeof d);
    float f = (float)d;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    (void)put_u32(column_bytes_append(out, 4), bits);
    return (double)f == d || d != d;
}

/* Converts a number. Returns false if it does not fit. */
static bool put_number(struct column_number from, const uint8_t *at, struct column_number to,
                       struct column_bytes *out)
{
    int64_t value;
    if (is_same_number(from, to)) {
        column_bytes_copy(out, at, to.n_bytes);
        return true;
    }
    if (from.is_float) return put_float(at, out);
    if (!get_integer(from, at, &value)) return false;
    uint8_t *bytes = column_bytes_append(out, to.n_bytes);
    for (unsigned i = 0; i < to.n_bytes; i++) bytes[i] = (uint8_t)((uint64_t)value >> 8 * i);
    int64_t back;
    return get_integer(to, bytes, &back) && back == value;
}

static bool put_numbers(struct arrow_normal *normal, const struct source *source,
                        struct column_number number, struct column_values *to)
{
    struct column_bytes *values = &to->buffers[BUFFER_VALUES];
    const struct column_number from = source->field->number;
    const uint8_t *at = source->array->buffers[1].bytes;
    if (!begin_values(normal, source, number.n_bytes, to)) return false;
    for (uint64_t row = 0; row < to->n_rows; row++) {
        if (row_is_null(source, row))
            memset(column_bytes_append(values, number.n_bytes), 0, number.n_bytes);
        else if (!put_number(from, at + from.n_bytes * row, number, values))
            return fail(normal, no_fit);
    }
    return true;
}

/* What lists and maps are made of: numbers, or pairs of texts. */
struct items {
    struct source all, pair[2];
    struct column_number number;        /* that is wanted; no bytes: pairs */
    uint64_t n;                         /* of them were put */
};

static bool open_items(struct arrow_normal *normal, const struct source *lists, struct items *items)
{
    if (lists->field->type == ARROW_TYPE_NULL) return true;
    const struct arrow_field *field = &lists->field->children[0];
    const struct arrow_array *array = &lists->array->children[0];
    if (!open_source(normal, field, array, &items->all)) return false;
    for (unsigned k = 0; k < 2 && items->number.n_bytes == 0; k++) {
        if (!open_source(normal, &field->children[k], &array->children[k], &items->pair[k]))
            return false;
        if (array->children[k].n_rows < array->n_rows) return fail_damaged(normal);
    }
    return true;
}

/* Adds a pair of a map. */
static bool put_pair(struct arrow_normal *normal, const struct source pair[2], uint64_t i,
                     struct column_values *to)
{
    for (unsigned k = 0; k < 2; k++) {
        struct text text = {NULL, 0};
        unsigned buffer = k == 0 ? BUFFER_KEY_OFFSETS : BUFFER_MAPPED_OFFSETS;
        if (!row_is_null(&pair[k], i) && !text_of_row(&pair[k], i, &text))
            return fail_damaged(normal);
        if (!text.at) return fail(normal, null_inside);
        if (!arrow_body_take(normal->body, 4) ||
            !put_text(normal, text, &to->buffers[buffer], &to->buffers[buffer + 1]))
            return false;
    }
    return true;
}

/* Adds an item of a list. */
static bool put_item(struct arrow_normal *normal, const struct items *items, uint64_t i,
                     struct column_values *to)
{
    if (row_is_null(&items->all, i)) return fail(normal, null_inside);
    if (items->number.n_bytes == 0) return put_pair(normal, items->pair, i, to);
    const struct column_number from = items->all.field->number;
    return (arrow_body_take(normal->body, items->number.n_bytes) &&
            put_number(from, items->all.array->buffers[1].bytes + from.n_bytes * i, items->number,
                       &to->buffers[BUFFER_VALUES])) ||
           fail(normal, no_fit);
}

/* Adds the list of a row, unless it is null. */
static bool put_list(struct arrow_normal *normal, const struct source *lists, uint64_t row,
                     struct items *items, struct column_values *to)
{
    uint64_t begin = 0, n = 0;
    if (!row_is_null(lists, row) &&
        !span_of(lists, row, items->all.array->n_rows, &begin, &n))
        return fail_damaged(normal);
    for (uint64_t i = begin; i < begin + n; i++)
        if (!put_item(normal, items, i, to)) return false;
    items->n += n;
    return put_offset(normal, &to->buffers[BUFFER_OFFSETS], (size_t)items->n);
}

/* number: that of the elements; without bytes if maps are wanted. */
static bool put_lists(struct arrow_normal *normal, const struct source *lists,
                      struct column_number number, struct column_values *to)
{
    struct items items = {.number = number};
    if (!open_items(normal, lists, &items) || !begin_values(normal, lists, 4, to)) return false;
    (void)put_offset(normal, &to->buffers[BUFFER_OFFSETS], 0);
    if (number.n_bytes == 0) {
        (void)put_offset(normal, &to->buffers[BUFFER_KEY_OFFSETS], 0);
        (void)put_offset(normal, &to->buffers[BUFFER_MAPPED_OFFSETS], 0);
    }
    for (uint64_t row = 0; row < to->n_rows; row++)
        if (!put_list(normal, lists, row, &items, to)) return false;
    return true;
}

/* ---- values that are laid out as wanted ---- */

static bool is_plain_text(const struct arrow_field *field)
{
    return field->type == ARROW_TYPE_UTF8 && !field->has_dictionary;
}

/* True if the values need only be moved. */
static bool is_normal(const struct arrow_field *field, const struct arrow_array *array,
                      enum column_type type)
{
    if (column_type_is_text(type)) return is_plain_text(field);
    if (type == COLUMN_MAP) {
        if (field->type != ARROW_TYPE_MAP && field->type != ARROW_TYPE_LIST) return false;
        const struct arrow_array *pairs = &array->children[0];
        return is_plain_text(&field->children[0].children[0]) &&
               is_plain_text(&field->children[0].children[1]) && pairs->n_nulls == 0 &&
               pairs->children[0].n_nulls == 0 && pairs->children[1].n_nulls == 0;
    }
    if (column_type_is_list(type))
        return field->type == ARROW_TYPE_LIST && array->children[0].n_nulls == 0 &&
               is_same_number(field->children[0].number, column_type_number(type));
    return type != COLUMN_REFERENCE && !field->has_dictionary &&
           is_same_number(field->number, column_type_number(type));
}

/* Moves values that need no change. */
static void move_values(struct arrow_array *array, enum column_type type, struct column_values *to)
{
    to->n_rows = array->n_rows;
    to->n_nulls = array->n_nulls;
    move(&array->buffers[0], &to->buffers[BUFFER_VALIDITY]);
    if (column_type_is_text(type)) {
        move(&array->buffers[1], &to->buffers[BUFFER_OFFSETS]);
        move(&array->buffers[2], &to->buffers[BUFFER_VALUES]);
    } else if (type == COLUMN_MAP) {
        struct arrow_array *pair = array->children[0].children;
        move(&array->buffers[1], &to->buffers[BUFFER_OFFSETS]);
        move(&pair[0].buffers[1], &to->buffers[BUFFER_KEY_OFFSETS]);
        move(&pair[0].buffers[2], &to->buffers[BUFFER_KEYS]);
        move(&pair[1].buffers[1], &to->buffers[BUFFER_MAPPED_OFFSETS]);
        move(&pair[1].buffers[2], &to->buffers[BUFFER_MAPPED]);
    } else if (column_type_is_list(type)) {
        move(&array->buffers[1], &to->buffers[BUFFER_OFFSETS]);
        move(&array->children[0].buffers[1], &to->buffers[BUFFER_VALUES]);
    } else {
        move(&array->buffers[1], &to->buffers[BUFFER_VALUES]);
    }
}

bool arrow_normal_put(struct arrow_normal *normal, const struct arrow_field *field,
                      struct arrow_array *array, enum column_type type, struct column_values *to)
{
    struct source source;
    if (is_normal(field, array, type)) {
        move_values(array, type, to);
        return true;
    }
    if (!open_source(normal, field, array, &source)) return false;
    if (column_type_is_text(type)) return put_texts(normal, &source, to);
    if (type == COLUMN_REFERENCE) return put_references(normal, &source, to);
    const struct column_number number = column_type_number(type);
    if (type == COLUMN_MAP || column_type_is_list(type))
        return put_lists(normal, &source, number, to);
    return put_numbers(normal, &source, number, to);
}

bool arrow_normal_add(struct arrow_normal *normal, const struct arrow_array *array,
                      struct arrow_dictionary *dictionary)
{
    struct source source;
    if (!open_source(normal, &dictionary->values, array, &source)) return false;
    for (uint64_t i = 0; i < array->n_rows; i++) {
        struct text text = {NULL, 0};
        if (!row_is_null(&source, i) && !text_of_row(&source, i, &text))
            return fail_damaged(normal);
        if (!arrow_dictionary_add(dictionary, text, normal->references))
            return arrow_body_fail(normal->body, "a dictionary has more than 2 GiB");
    }
    return true;
}
