/*
 * column_batch.c -- see column_batch.h.
 *
 * Nulls are added before the next value of a column, or at the end. So rare tags cost nothing.
 */
#include "columns/column_batch.h"

#include "bam/bam_long.h"
#include "util/decimal.h"
#include "util/terminal_text.h"
#include "util/xalloc.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    KEPT_BYTES = 32 << 20,      /* of a buffer, from batch to batch */
    SMALL_BYTES = 64 << 10,     /* a buffer of this size is always kept */
    LONG_RECORD_BYTES = 256 << 10,
    MOST_QUALITY = 93,          /* '~' - '!' */
};

/* In a map, a NaN is written as this, its bits and ")". */
#define COLUMN_NAN "nan(0x"

static const char too_long[] = "its values are too long for columns";
static const char not_text[] = "it has text that is not UTF-8";
static const char not_printable[] = "it has a tag of type A that is not a printable character";
static const char bad_position[] = "it has a position below 1 or above 2147483647";
static const char twice[] = "it has a tag twice";

struct column_batch *column_batch_create(const struct column_schema *schema)
{
    struct column_batch *batch = xcalloc(1, sizeof *batch);
    batch->schema = schema;
    batch->columns = xcalloc(schema->n_columns, sizeof *batch->columns);
    batch->value_bytes = xmalloc(schema->n_columns);
    for (unsigned i = 0; i < schema->n_columns; i++)
        batch->value_bytes[i] = (uint8_t)column_type_bytes(schema->columns[i].type);
    for (unsigned i = 0; i < 256; i++)
        batch->bases[i] = (uint16_t)(seq_nt16_str[i >> 4] | seq_nt16_str[i & 15] << 8);
    return batch;
}

void column_batch_destroy(struct column_batch *batch)
{
    if (!batch) return;
    for (unsigned i = 0; i < batch->schema->n_columns; i++)
        column_values_release(&batch->columns[i]);
    free(batch->columns);
    free(batch->value_bytes);
    free(batch);
}

/* ---- buffers ---- */

void column_values_release(struct column_values *values)
{
    for (unsigned i = 0; i < N_COLUMN_BUFFERS; i++) byte_buffer_forget(&values->buffers[i], false);
}

static bool has_room(const struct byte_buffer *buffer, uint64_t n_bytes)
{
    return n_bytes <= INT32_MAX - buffer->n_bytes;
}

static void append_offset(struct byte_buffer *offsets, size_t offset)
{
    (void)put_u32(byte_buffer_append(offsets, 4), offset);
}

/* ---- rows ---- */

static bool has_offsets(enum column_type type)
{
    return column_type_is_text(type) || column_type_is_list(type) || type == COLUMN_MAP;
}

/* The number of values, elements or entries in the column: the next offset. */
static size_t next_offset(const struct column_values *column, enum column_type type)
{
    if (type == COLUMN_MAP) {
        size_t n_bytes = column->buffers[BUFFER_KEY_OFFSETS].n_bytes;
        return n_bytes ? n_bytes / 4 - 1 : 0;
    }
    size_t n_bytes = column->buffers[BUFFER_VALUES].n_bytes;
    return column_type_is_text(type) ? n_bytes : n_bytes / column_type_bytes(type);
}

/* Extends the validity bits to n_rows rows; new bits mean null. */
static void extend_validity(struct column_values *column, uint64_t n_rows)
{
    struct byte_buffer *bits = &column->buffers[BUFFER_VALIDITY];
    size_t n_bytes = (size_t)(n_rows + 7) / 8;
    if (n_bytes > bits->n_bytes) {
        size_t n_more = n_bytes - bits->n_bytes;
        memset(byte_buffer_append(bits, n_more), 0, n_more);
    }
}

/* Adds nulls until the column has n_rows rows. */
static void add_nulls(struct column_values *column, enum column_type type, uint64_t n_rows)
{
    struct byte_buffer *offsets = &column->buffers[BUFFER_OFFSETS];
    if (has_offsets(type) && offsets->n_bytes == 0) append_offset(offsets, 0);
    uint64_t n = n_rows - column->n_rows;
    if (n == 0) return;
    extend_validity(column, n_rows);
    uint8_t *bits = column->buffers[BUFFER_VALIDITY].bytes;
    for (uint64_t i = 0; column->n_nulls == 0 && i < column->n_rows; i++)
        bits[i / 8] |= (uint8_t)(1u << i % 8);
    column->n_nulls += n;
    column->n_rows = n_rows;
    if (!has_offsets(type)) {
        size_t n_bytes = (size_t)n * column_type_bytes(type);
        memset(byte_buffer_append(&column->buffers[BUFFER_VALUES], n_bytes), 0, n_bytes);
        return;
    }
    for (size_t offset = next_offset(column, type); n > 0; n--) append_offset(offsets, offset);
}

/* Begins the value of this row, after nulls for earlier rows without one. */
static inline void begin_value(struct column_batch *batch, struct column_values *column,
                               enum column_type type)
{
    uint64_t row = batch->n_rows;
    if (column->n_rows < row || row == 0) add_nulls(column, type, row);
    column->n_rows = row + 1;
    if (column->n_nulls == 0) return;
    struct byte_buffer *bits = &column->buffers[BUFFER_VALIDITY];
    if (row % 8 == 0) *byte_buffer_append(bits, 1) = 0;
    bits->bytes[row / 8] |= (uint8_t)(1u << row % 8);
}

static bool has_value(const struct column_batch *batch, const struct column_values *column)
{
    return column->n_rows > batch->n_rows;
}

static void end_value(struct column_values *column, enum column_type type)
{
    append_offset(&column->buffers[BUFFER_OFFSETS], next_offset(column, type));
}

/* The column of a field, or NULL. */
static struct column_values *column_of(struct column_batch *batch, enum column_field field)
{
    unsigned number = batch->schema->by_field[field];
    return number == NO_COLUMN ? NULL : &batch->columns[number];
}

/* ---- values ---- */

/* Adds a value of fixed size, in little-endian bytes, to a column. */
static inline void add_fixed(struct column_batch *batch, unsigned number, uint64_t value)
{
    struct column_values *column = &batch->columns[number];
    begin_value(batch, column, batch->schema->columns[number].type);
    size_t n_bytes = batch->value_bytes[number];
    uint8_t *to = byte_buffer_append(&column->buffers[BUFFER_VALUES], n_bytes);
    switch (n_bytes) {
    case 1: *to = (uint8_t)value; break;
    case 2: (void)put_u16(to, value); break;
    case 4: (void)put_u32(to, value); break;
    default: (void)put_u64(to, value); break;
    }
}

static inline void add_field(struct column_batch *batch, enum column_field field, uint64_t value)
{
    unsigned number = batch->schema->by_field[field];
    if (number != NO_COLUMN) add_fixed(batch, number, value);
}

/* Adds a text, followed by a NUL. Returns NULL, or what is wrong. */
static const char *add_text(struct column_batch *batch, struct column_values *column,
                            const uint8_t *text, size_t n_bytes)
{
    struct byte_buffer *values = &column->buffers[BUFFER_VALUES];
    if (!utf8_is_valid((const char *)text, n_bytes)) return not_text;
    if (!has_room(values, n_bytes)) return too_long;
    begin_value(batch, column, COLUMN_TEXT);
    byte_buffer_copy(values, text, n_bytes);
    end_value(column, COLUMN_TEXT);
    return NULL;
}

/* True for a name with a control character, such as a tab. */
static bool has_control(const uint8_t *name, size_t n_bytes)
{
    bool found = false;
    for (size_t i = 0; i < n_bytes; i++) found |= name[i] < 0x20 || name[i] == 0x7f;
    return found;
}

static const char *add_name(struct column_batch *batch, const uint8_t *rec)
{
    struct column_values *column = column_of(batch, FIELD_QNAME);
    const uint8_t *name = bam_record_name(rec);
    size_t n_bytes = bam_record_name_bytes(rec) - 1;
    if (!column || (n_bytes == 1 && name[0] == '*')) return NULL;
    if (has_control(name, n_bytes)) return "its read name has a control character";
    return add_text(batch, column, name, n_bytes);
}

static const char *add_cigar(struct column_batch *batch, struct bam_cigar cigar)
{
    struct column_values *column = column_of(batch, FIELD_CIGAR);
    if (!column || cigar.n_ops == 0) return NULL;
    struct byte_buffer *values = &column->buffers[BUFFER_VALUES];
    bool is_known = true;
    size_t most_bytes = cigar.n_ops * 10;       /* nine digits for 28 bits, and a letter */
    if (!has_room(values, most_bytes)) return too_long;
    begin_value(batch, column, COLUMN_TEXT);
    uint8_t *begin = byte_buffer_append(values, most_bytes), *to = begin;
    for (const uint8_t *at = cigar.ops; at < cigar.ops + 4 * cigar.n_ops; at += 4) {
        uint32_t op = get_u32(at);
        is_known &= bam_cigar_op(op) <= BAM_CBACK;
        to = put_decimal(to, bam_cigar_oplen(op));
        *to++ = (uint8_t)bam_cigar_opchr(op);
    }
    values->n_bytes -= most_bytes - (size_t)(to - begin);
    end_value(column, COLUMN_TEXT);
    return is_known ? NULL : "its CIGAR has an operation that SAM does not know";
}

/* Appends room for n bases or qualities. The first record reserves room for the whole batch,
   because glibc reallocates large buffers under a lock, for which 16 workers would wait. */
static uint8_t *append_bases(const struct column_batch *batch, struct column_values *column,
                             size_t n)
{
    struct byte_buffer *values = &column->buffers[BUFFER_VALUES];
    size_t most = batch->expected_bytes / 3 * 2;        /* a base and its quality take 1.5 bytes */
    size_t n_all = n * batch->expected_rows < most ? n * batch->expected_rows : most;
    if (values->n_bytes == 0 && values->room <= n_all) {
        byte_buffer_forget(values, false);
        (void)byte_buffer_reserve(values, n_all + n_all / 8);
    }
    return byte_buffer_append(values, n);
}

/* Writes n bases as characters, eight at once. */
static void put_bases(const uint16_t *bases, uint8_t *to, const uint8_t *seq, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const uint8_t *at = seq + i / 2;
        uint64_t low = bases[at[0]] | (uint32_t)bases[at[1]] << 16;
        uint64_t high = bases[at[2]] | (uint32_t)bases[at[3]] << 16;
        (void)put_u64(to + i, low | high << 32);
    }
    for (; i + 2 <= n; i += 2) (void)put_u16(to + i, bases[seq[i / 2]]);
    if (i < n) to[i] = (uint8_t)bases[seq[i / 2]];
}

static const char *add_sequence(struct column_batch *batch, const uint8_t *rec)
{
    struct column_values *column = column_of(batch, FIELD_SEQ);
    size_t n = (size_t)bam_record_n_bases(rec);
    if (!column || n == 0) return NULL;
    if (!has_room(&column->buffers[BUFFER_VALUES], n)) return too_long;
    begin_value(batch, column, COLUMN_TEXT);
    put_bases(batch->bases, append_bases(batch, column, n), bam_record_seq(rec), n);
    end_value(column, COLUMN_TEXT);
    return NULL;
}

/* Writes n qualities as characters, eight at once. Returns false if one is above MOST_QUALITY; its
   carry may change the next one, but then the record is refused. */
static bool put_qualities(uint8_t *to, const uint8_t *quals, size_t n)
{
    const uint64_t every = UINT64_C(0x0101010101010101), top = 0x80 * every;
    uint64_t too_large = 0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t eight = get_u64(quals + i);
        too_large |= (eight | (eight + (0x7f - MOST_QUALITY) * every)) & top;
        (void)put_u64(to + i, eight + '!' * every);
    }
    for (; i < n; i++) {
        too_large |= quals[i] > MOST_QUALITY;
        to[i] = (uint8_t)(quals[i] + '!');
    }
    return too_large == 0;
}

static const char *add_qualities(struct column_batch *batch, const uint8_t *rec)
{
    struct column_values *column = column_of(batch, FIELD_QUAL);
    size_t n = (size_t)bam_record_n_bases(rec);
    const uint8_t *quals = bam_record_quals(rec);
    if (!column || n == 0 || quals[0] == 0xff) return NULL;
    if (!has_room(&column->buffers[BUFFER_VALUES], n)) return too_long;
    begin_value(batch, column, COLUMN_TEXT);
    bool is_sound = put_qualities(append_bases(batch, column, n), quals, n);
    end_value(column, COLUMN_TEXT);
    return is_sound ? NULL : "it has a base quality above 93";
}

/* ---- tags ---- */

enum { NUMBER_BYTES = 32 };     /* maximum of a number as text, with its NUL */

static size_t put_number(uint8_t *to, char type, const uint8_t *value)
{
    const struct bam_aux number = {.type = type, .value = value};
    int64_t integer;
    if (bam_aux_integer(&number, &integer)) {
        uint64_t size = integer < 0 ? 0 - (uint64_t)integer : (uint64_t)integer;
        uint8_t *at = to;
        if (integer < 0) *at++ = '-';
        return (size_t)(put_decimal(at, size) - to);
    }
    float f;
    double d;
    uint32_t bits = get_u32(value);
    memcpy(&f, &bits, sizeof f);
    uint64_t long_bits = type == 'd' ? get_u64(value) : 0;
    memcpy(&d, &long_bits, sizeof d);
    /* 9 and 17 digits restore the exact number. NaNs differ in their bits. */
    char *text = (char *)to;
    int n;
    if (type == 'd')
        n = d == d ? snprintf(text, NUMBER_BYTES, "%.17g", d)
                   : snprintf(text, NUMBER_BYTES, COLUMN_NAN "%" PRIx64 ")", long_bits);
    else
        n = f == f ? snprintf(text, NUMBER_BYTES, "%.9g", (double)f)
                   : snprintf(text, NUMBER_BYTES, COLUMN_NAN "%" PRIx32 ")", bits);
    return (size_t)n;
}

static void append_number(struct byte_buffer *to, char type, const uint8_t *value)
{
    size_t n_unused = NUMBER_BYTES;
    n_unused -= put_number(byte_buffer_append(to, NUMBER_BYTES), type, value);
    to->n_bytes -= n_unused;
}

/* Appends the elements of an array as SAM writes them: "c,1,2". Returns NULL, or what is wrong. */
static const char *append_array(struct byte_buffer *to, const struct bam_aux *aux)
{
    char type = (char)aux->value[0];
    size_t n = get_u32(aux->value + 1), element_bytes = bam_aux_fixed_bytes[aux->value[0]];
    const uint8_t *at = aux->value + BAM_AUX_ARRAY_HEAD_BYTES;
    if (!column_type_is_element(aux->value[0]))
        return "it has an array of a type that SAM does not know";
    *byte_buffer_append(to, 1) = (uint8_t)type;
    for (size_t i = 0; i < n; i++, at += element_bytes) {
        if (!has_room(to, NUMBER_BYTES + 1)) return too_long;
        *byte_buffer_append(to, 1) = ',';
        append_number(to, type, at);
    }
    return NULL;
}

/* Appends the value of a tag as text. Returns NULL, or what is wrong. */
static const char *append_value(struct byte_buffer *to, const struct bam_aux *aux)
{
    size_t n_bytes = aux->type == 'A' ? 1 : aux->value_bytes - 1;
    if (!has_room(to, NUMBER_BYTES + n_bytes)) return too_long;
    switch (aux->type) {
    case 'B': return append_array(to, aux);
    case 'A':
        if (!isgraph(aux->value[0])) return not_printable;
        break;
    case 'Z':
    case 'H':
        if (!utf8_is_valid((const char *)aux->value, n_bytes)) return not_text;
        break;
    default:
        append_number(to, aux->type, aux->value);
        return NULL;
    }
    byte_buffer_copy(to, aux->value, n_bytes);
    return NULL;
}

/* True if the map of this row has the tag. */
static bool map_has(const struct column_values *map, const uint8_t *letters)
{
    const struct byte_buffer *offsets = &map->buffers[BUFFER_OFFSETS];
    const uint8_t *keys = map->buffers[BUFFER_KEYS].bytes;
    size_t begin = get_u32(offsets->bytes + offsets->n_bytes - 4);
    size_t end = next_offset(map, COLUMN_MAP);
    for (size_t i = begin; i < end; i++)
        if (memcmp(keys + 2 * i, letters, 2) == 0) return true;
    return false;
}

/* Adds the tag to the map of this row. Returns NULL, or what is wrong. */
static const char *add_to_map(struct column_batch *batch, const struct bam_aux *aux)
{
    struct column_values *map = column_of(batch, FIELD_TAGS);
    if (!map) return NULL;
    struct byte_buffer *key_offsets = &map->buffers[BUFFER_KEY_OFFSETS];
    struct byte_buffer *mapped_offsets = &map->buffers[BUFFER_MAPPED_OFFSETS];
    struct byte_buffer *keys = &map->buffers[BUFFER_KEYS];
    struct byte_buffer *mapped = &map->buffers[BUFFER_MAPPED];
    if (!has_value(batch, map)) begin_value(batch, map, COLUMN_MAP);
    if (map_has(map, aux->start)) return twice;
    if (key_offsets->n_bytes == 0) {
        append_offset(key_offsets, 0);
        append_offset(mapped_offsets, 0);
    }
    byte_buffer_copy(keys, aux->start, 2);
    append_offset(key_offsets, keys->n_bytes);
    const char *problem = append_value(mapped, aux);
    append_offset(mapped_offsets, mapped->n_bytes);
    return problem;
}

/* Adds the tag to its column, which can hold it. Returns NULL, or what is wrong. */
static const char *add_to_column(struct column_batch *batch, unsigned number,
                                 const struct bam_aux *aux)
{
    struct column_values *column = &batch->columns[number];
    enum column_type type = batch->schema->columns[number].type;
    int64_t integer = 0;
    if (type == COLUMN_TEXT) return add_text(batch, column, aux->value, aux->value_bytes - 1);
    if (type == COLUMN_INT64) {
        (void)bam_aux_integer(aux, &integer);
        add_fixed(batch, number, (uint64_t)integer);
        return NULL;
    }
    if (type == COLUMN_FLOAT32) {
        add_fixed(batch, number, get_u32(aux->value));
        return NULL;
    }
    struct byte_buffer *values = &column->buffers[BUFFER_VALUES];
    if (!has_room(values, aux->value_bytes)) return too_long;
    const char *problem = NULL;
    begin_value(batch, column, type);
    if (type == COLUMN_CHAR) {
        *byte_buffer_append(values, 1) = aux->value[0];
        if (!isgraph(aux->value[0])) problem = not_printable;
    } else {
        size_t n_bytes = aux->value_bytes - BAM_AUX_ARRAY_HEAD_BYTES;
        byte_buffer_copy(values, aux->value + BAM_AUX_ARRAY_HEAD_BYTES, n_bytes);
    }
    end_value(column, type);
    return problem;
}

/* Appends the tag and its type, as in "NM:C,MD:Z". Returns NULL, or what is wrong. */
static const char *add_tag_type(struct column_batch *batch, const struct bam_aux *aux)
{
    struct column_values *types = column_of(batch, FIELD_TAG_TYPES);
    if (!types) return NULL;
    struct byte_buffer *values = &types->buffers[BUFFER_VALUES];
    if (!has_room(values, 5)) return too_long;
    bool is_first = !has_value(batch, types);
    if (is_first) begin_value(batch, types, COLUMN_TEXT);
    uint8_t *to = byte_buffer_append(values, is_first ? 4 : 5);
    if (!is_first) *to++ = ',';
    memcpy(to, aux->start, 2);
    to[2] = ':';
    to[3] = (uint8_t)aux->type;
    return NULL;
}

static const char *add_tag(struct column_batch *batch, const struct bam_aux *aux)
{
    if (!isalpha(aux->start[0]) || !isalnum(aux->start[1]))
        return "it has a tag whose name is not a letter and a letter or digit";
    const char *problem = add_tag_type(batch, aux);
    if (problem) return problem;
    unsigned number = column_schema_of_tag(batch->schema, aux->start);
    if (number == NO_COLUMN) return add_to_map(batch, aux);
    struct column_values *column = &batch->columns[number];
    enum column_type type = batch->schema->columns[number].type;
    const struct column_values *map = column_of(batch, FIELD_TAGS);
    if (has_value(batch, column)) return twice;
    if (batch->has_misfit && map && map_has(map, aux->start)) return twice;
    if (column_type_holds(type, aux)) return add_to_column(batch, number, aux);
    batch->has_misfit = true;
    return add_to_map(batch, aux);
}

/* Adds all tags except `cg`, the tag with a long CIGAR, or NULL. Returns NULL, or what is wrong. */
static const char *add_tags(struct column_batch *batch, const uint8_t *rec, const uint8_t *cg)
{
    const uint8_t *at = bam_record_tags(rec);
    const char *problem = NULL;
    struct bam_aux aux;
    int r;
    batch->has_misfit = false;
    while (!problem && (r = bam_aux_read(rec, &at, &aux)) != 0) {
        if (r < 0) return "its tags are damaged";
        if (aux.start != cg) problem = add_tag(batch, &aux);
    }
    struct column_values *types = column_of(batch, FIELD_TAG_TYPES);
    struct column_values *map = column_of(batch, FIELD_TAGS);
    if (types && has_value(batch, types)) end_value(types, COLUMN_TEXT);
    if (map && has_value(batch, map)) end_value(map, COLUMN_MAP);
    return problem;
}

/* ---- records ---- */

static void add_reference(struct column_batch *batch, enum column_field field, int32_t tid)
{
    if (tid >= 0) add_field(batch, field, (uint64_t)tid);
}

/* Adds a position counted from 0, or null for -1. Returns NULL, or what is wrong. */
static const char *add_position(struct column_batch *batch, enum column_field field, int64_t pos)
{
    if (pos == -1 || !column_of(batch, field)) return NULL;
    if (pos < 0 || pos >= INT32_MAX) return bad_position;
    add_field(batch, field, (uint64_t)pos + 1);
    return NULL;
}

static const char *add_positions(struct column_batch *batch, const uint8_t *rec,
                                 struct bam_cigar cigar)
{
    int64_t pos = bam_record_pos(rec), n_bases = 1;
    if (!(bam_record_flag(rec) & BAM_FUNMAP)) n_bases = bam_cigar_reference_bases(cigar);
    int64_t end = pos < 0 ? pos : pos + (n_bases > 0 ? n_bases : 1) - 1;
    const char *problem = add_position(batch, FIELD_POS, pos);
    if (!problem) problem = add_position(batch, FIELD_END, end);
    if (!problem) problem = add_position(batch, FIELD_PNEXT, bam_record_mate_pos(rec));
    return problem;
}

static void add_numbers(struct column_batch *batch, const uint8_t *rec)
{
    add_field(batch, FIELD_FLAG, bam_record_flag(rec));
    add_reference(batch, FIELD_RNAME, bam_record_tid(rec));
    add_field(batch, FIELD_MAPQ, rec[BAM_MAPQ_AT]);
    add_reference(batch, FIELD_RNEXT, bam_record_mate_tid(rec));
    add_field(batch, FIELD_TLEN, (uint64_t)bam_record_template_length(rec));
}

const char *column_batch_add(struct column_batch *batch, const uint8_t *rec)
{
    struct bam_aux cg;
    struct bam_cigar cigar = bam_record_find_cigar(rec, &cg);
    const char *problem = add_name(batch, rec);
    add_numbers(batch, rec);
    if (!problem) problem = add_positions(batch, rec, cigar);
    if (!problem) problem = add_cigar(batch, cigar);
    if (!problem) problem = add_sequence(batch, rec);
    if (!problem) problem = add_qualities(batch, rec);
    if (!problem) problem = add_tags(batch, rec, cg.type ? cg.start : NULL);
    batch->raw_bytes += bam_record_bytes(rec);
    batch->n_rows++;
    return problem;
}

const struct column_values *column_batch_end(struct column_batch *batch)
{
    for (unsigned i = 0; i < batch->schema->n_columns; i++) {
        struct column_values *column = &batch->columns[i];
        add_nulls(column, batch->schema->columns[i].type, batch->n_rows);
        if (batch->schema->columns[i].type != COLUMN_MAP) continue;
        for (unsigned k = BUFFER_KEY_OFFSETS; k < N_COLUMN_BUFFERS; k += 2)
            if (column->buffers[k].n_bytes == 0) append_offset(&column->buffers[k], 0);
    }
    return batch->columns;
}

size_t column_batch_bytes(const struct column_batch *batch)
{
    size_t n_bytes = 0;
    for (unsigned i = 0; i < batch->schema->n_columns; i++)
        for (unsigned k = 0; k < N_COLUMN_BUFFERS; k++)
            n_bytes += batch->columns[i].buffers[k].n_bytes;
    return n_bytes;
}

/* True if the next batch is likely to need the buffer. Else memory would grow with each batch that
   is large in another column: few long records, or rare tags. */
static bool is_worth_keeping(const struct column_batch *batch, const struct byte_buffer *buffer)
{
    if (buffer->room <= SMALL_BYTES) return true;
    bool has_long_records = batch->raw_bytes > batch->n_rows * LONG_RECORD_BYTES;
    return !has_long_records && buffer->room <= KEPT_BYTES && buffer->n_bytes >= buffer->room / 8;
}

void column_batch_clear(struct column_batch *batch)
{
    for (unsigned i = 0; i < batch->schema->n_columns; i++) {
        struct column_values *column = &batch->columns[i];
        column->n_rows = column->n_nulls = 0;
        for (unsigned k = 0; k < N_COLUMN_BUFFERS; k++) {
            struct byte_buffer *buffer = &column->buffers[k];
            byte_buffer_forget(buffer, is_worth_keeping(batch, buffer));
        }
    }
    batch->n_rows = batch->raw_bytes = 0;
}
