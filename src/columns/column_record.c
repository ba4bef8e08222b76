/* column_record.c -- see column_record.h. */
#include "columns/column_record.h"

#include "bam/bam_long.h"
#include "util/terminal_text.h"
#include "util/xalloc.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

/* ---- checks ---- */

static bool is_null(const struct column_values *column, uint64_t row)
{
    const struct column_bytes *bits = &column->buffers[BUFFER_VALIDITY];
    return bits->n_bytes > 0 && !(bits->bytes[row / 8] >> row % 8 & 1);
}

/* True if there are n + 1 offsets that ascend, and the last one is at most `most`. No values need no
   offsets. */
static bool offsets_are_sound(const struct column_bytes *offsets, uint64_t n, size_t most)
{
    if (n == 0) return true;
    if (offsets->n_bytes / 4 < n + 1) return false;
    uint32_t last = get_u32(offsets->bytes);
    bool ascend = true;
    for (uint64_t i = 1; i <= n; i++) {
        uint32_t offset = get_u32(offsets->bytes + 4 * i);
        ascend &= offset >= last;
        last = offset;
    }
    return ascend && last <= most && last <= INT32_MAX;
}

static bool texts_are_sound(const struct column_values *column, enum column_buffer offsets,
                            uint64_t n)
{
    return offsets_are_sound(&column->buffers[offsets], n, column->buffers[offsets + 1].n_bytes);
}

static bool map_is_sound(const struct column_values *column)
{
    const struct column_bytes *offsets = &column->buffers[BUFFER_OFFSETS];
    uint64_t n = column->n_rows > 0 && offsets->n_bytes / 4 > column->n_rows
                     ? get_u32(offsets->bytes + 4 * column->n_rows) : 0;
    return offsets_are_sound(offsets, column->n_rows, INT32_MAX) &&
           texts_are_sound(column, BUFFER_KEY_OFFSETS, n) &&
           texts_are_sound(column, BUFFER_MAPPED_OFFSETS, n);
}

static bool column_is_sound(enum column_type type, const struct column_values *column)
{
    uint64_t n = column->n_rows;
    size_t validity_bytes = column->buffers[BUFFER_VALIDITY].n_bytes;
    size_t value_bytes = column->buffers[BUFFER_VALUES].n_bytes;
    if (validity_bytes > 0 && validity_bytes < n / 8 + (n % 8 > 0)) return false;
    if (column_type_is_text(type)) return texts_are_sound(column, BUFFER_OFFSETS, n);
    if (type == COLUMN_MAP) return map_is_sound(column);
    size_t item_bytes = column_type_bytes(type);
    if (column_type_is_list(type))
        return offsets_are_sound(&column->buffers[BUFFER_OFFSETS], n, value_bytes / item_bytes);
    return value_bytes / item_bytes >= n;
}

const char *column_values_problem(const struct column_schema *schema,
                                  const struct column_values *columns, uint64_t n_rows,
                                  uint32_t n_refs)
{
    for (unsigned i = 0; i < schema->n_columns; i++) {
        const struct column_values *column = &columns[i];
        enum column_type type = schema->columns[i].type;
        if (column->n_rows != n_rows || !column_is_sound(type, column))
            return "its buffers do not agree with each other";
        for (uint64_t row = 0; type == COLUMN_REFERENCE && row < n_rows; row++)
            if (!is_null(column, row) &&
                get_u32(column->buffers[BUFFER_VALUES].bytes + 4 * row) >= n_refs)
                return "a reference is not in its dictionary";
    }
    return NULL;
}

/* ---- rows ---- */

struct text_part {
    const uint8_t *at;          /* NULL: null */
    size_t n;
};

struct row {
    const struct column_schema *schema;
    const struct column_values *columns;
    uint64_t number;
};

static struct text_part part_of(const struct column_values *column, enum column_buffer offsets,
                                uint64_t i, size_t item_bytes)
{
    static const uint8_t nothing[1];
    const uint8_t *at = column->buffers[offsets].bytes + 4 * i;
    size_t begin = get_u32(at) * item_bytes, end = get_u32(at + 4) * item_bytes;
    if (begin == end) return (struct text_part){nothing, 0};
    return (struct text_part){column->buffers[offsets + 1].bytes + begin, end - begin};
}

static struct text_part text_of_field(const struct row *row, enum column_field field)
{
    const struct column_values *column = &row->columns[row->schema->by_field[field]];
    if (is_null(column, row->number)) return (struct text_part){NULL, 0};
    return part_of(column, BUFFER_OFFSETS, row->number, 1);
}

/* The number in a field; if that is null, `otherwise`. */
static int64_t number_of_field(const struct row *row, enum column_field field, int64_t otherwise)
{
    unsigned number = row->schema->by_field[field];
    const struct column_values *column = &row->columns[number];
    if (is_null(column, row->number)) return otherwise;
    size_t n_bytes = column_type_bytes(row->schema->columns[number].type);
    const uint8_t *at = column->buffers[BUFFER_VALUES].bytes + n_bytes * row->number;
    if (n_bytes == 4) return (int32_t)get_u32(at);
    return n_bytes == 2 ? (int64_t)get_u16(at) : *at;
}

/* True if the fields are there that every record has. */
static bool has_numbers(const struct row *row)
{
    static const enum column_field fields[] = {FIELD_FLAG, FIELD_MAPQ, FIELD_TLEN};
    bool are_there = true;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        are_there &= !is_null(&row->columns[row->schema->by_field[fields[i]]], row->number);
    return are_there;
}

/* ---- fields ---- */

/* Appends the operations of a CIGAR. Returns their number, or -1. */
static ssize_t put_cigar(struct text_part cigar, struct column_bytes *out)
{
    static const char letters[] = BAM_CIGAR_STR;
    size_t n_ops = 0;
    if (!cigar.at) return 0;
    const uint8_t *at = cigar.at, *end = at + cigar.n;
    while (at < end) {
        uint64_t length = 0;
        const uint8_t *digits = at;
        for (; at < end && isdigit(*at) && length < 1u << 28; at++)
            length = 10 * length + (uint64_t)(*at - '0');
        const char *op = at < end && *at ? strchr(letters, *at) : NULL;
        if (at == digits || !op || length >= 1u << 28) return -1;
        (void)put_u32(column_bytes_append(out, 4),
                      length << BAM_CIGAR_SHIFT | (uint64_t)(op - letters));
        n_ops++;
        at++;
    }
    return (ssize_t)n_ops;
}

/* Writes n bases, two a byte. Returns false if one is a letter that BAM does not have. */
static bool put_bases(const uint8_t *letters, size_t n, uint8_t *to)
{
    enum { IS_BASE = 16 };
    static const uint8_t codes[256] = {
        ['='] = 16, ['A'] = 17, ['C'] = 18, ['M'] = 19, ['G'] = 20, ['R'] = 21, ['S'] = 22,
        ['V'] = 23, ['T'] = 24, ['W'] = 25, ['Y'] = 26, ['H'] = 27, ['K'] = 28, ['D'] = 29,
        ['B'] = 30, ['N'] = 31,
    };
    unsigned all = IS_BASE;
    for (size_t i = 0; i + 2 <= n; i += 2) {
        unsigned first = codes[letters[i]], second = codes[letters[i + 1]];
        all &= first & second;
        to[i / 2] = (uint8_t)(first << 4 | (second & 15));
    }
    if (n % 2) {
        all &= codes[letters[n - 1]];
        to[n / 2] = (uint8_t)(codes[letters[n - 1]] << 4);
    }
    return all & IS_BASE;
}

/* Writes n qualities of the characters that SAM has. Returns false if one is none of them. Eight
   are done at once; a carry is no harm, as all is refused then. */
static bool put_qualities(const uint8_t *characters, size_t n, uint8_t *to)
{
    const uint64_t every = UINT64_C(0x0101010101010101), top = 0x80 * every;
    uint64_t wrong = 0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t eight = get_u64(characters + i), less = (eight | top) - '!' * every;
        wrong |= (eight | ~less | (eight + (0x7f - '~') * every)) & top;
        (void)put_u64(to + i, less & ~top);
    }
    for (; i < n; i++) {
        wrong |= characters[i] < '!' || characters[i] > '~';
        to[i] = (uint8_t)(characters[i] - '!');
    }
    return wrong == 0;
}

static const char *put_sequence(struct text_part seq, struct text_part qual,
                                struct column_bytes *out)
{
    uint8_t *to = column_bytes_append(out, (seq.n + 1) / 2 + seq.n);
    if (!put_bases(seq.at, seq.n, to)) return "its sequence has letters that BAM does not have";
    to += (seq.n + 1) / 2;
    if (!qual.at) {
        if (seq.n > 0) memset(to, 0xff, seq.n);
        return NULL;
    }
    if (qual.n != seq.n) return "its sequence and its qualities differ in length";
    return put_qualities(qual.at, qual.n, to) ? NULL : "it has a quality outside ! to ~";
}

/* ---- tags ---- */

static const char bad_tag[] = "it lacks a tag that tag_types names, or has it with another type or "
                              "with text that is not UTF-8";

/* Appends an integer in the form of its type. Returns false if it does not fit. */
static bool put_integer(char type, int64_t value, struct column_bytes *out)
{
    static const struct {
        char type;
        uint8_t n_bytes;
        int64_t least, most;
    } types[] = {
        {'c', 1, INT8_MIN, INT8_MAX},   {'C', 1, 0, UINT8_MAX},  {'s', 2, INT16_MIN, INT16_MAX},
        {'S', 2, 0, UINT16_MAX},        {'i', 4, INT32_MIN, INT32_MAX}, {'I', 4, 0, UINT32_MAX},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (types[i].type != type) continue;
        if (value < types[i].least || value > types[i].most) return false;
        uint8_t *to = column_bytes_append(out, types[i].n_bytes);
        for (unsigned k = 0; k < types[i].n_bytes; k++) to[k] = (uint8_t)((uint64_t)value >> 8 * k);
        return true;
    }
    return false;
}

/* Appends a number that stands as text, of any type of BAM. */
static bool put_number(char type, struct text_part text, struct column_bytes *out)
{
    char copy[64], *end;
    if (text.n == 0 || text.n >= sizeof copy || isspace(text.at[0])) return false;
    memcpy(copy, text.at, text.n);
    copy[text.n] = '\0';
    errno = 0;
    if ((type == 'f' || type == 'd') && strncmp(copy, COLUMN_NAN, strlen(COLUMN_NAN)) == 0) {
        uint64_t bits = strtoull(copy + strlen(COLUMN_NAN), &end, 16);
        if (type == 'f')
            (void)put_u32(column_bytes_append(out, 4), bits);
        else
            (void)put_u64(column_bytes_append(out, 8), bits);
        end += *end == ')';
    } else if (type == 'f') {
        float value = strtof(copy, &end);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        (void)put_u32(column_bytes_append(out, 4), bits);
    } else if (type == 'd') {
        double value = strtod(copy, &end);
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        (void)put_u64(column_bytes_append(out, 8), bits);
    } else {
        long long value = strtoll(copy, &end, 10);
        if (errno || !put_integer(type, value, out)) return false;
    }
    return end == copy + text.n;
}

/* Appends an array that stands as text: "c,1,2". */
static bool put_array(struct text_part text, struct column_bytes *out)
{
    if (text.n == 0 || !column_type_is_element(text.at[0])) return false;
    char type = (char)text.at[0];
    size_t head = out->n_bytes, n = 0;
    column_bytes_append(out, BAM_AUX_ARRAY_HEAD_BYTES)[0] = (uint8_t)type;
    const uint8_t *at = text.at + 1, *end = text.at + text.n;
    while (at < end) {
        if (*at++ != ',') return false;
        const uint8_t *comma = memchr(at, ',', (size_t)(end - at));
        size_t n_bytes = (size_t)((comma ? comma : end) - at);
        if (!put_number(type, (struct text_part){at, n_bytes}, out)) return false;
        at += n_bytes;
        n++;
    }
    (void)put_u32(out->bytes + head + 1, n);
    return true;
}

static bool put_text(char type, struct text_part text, struct column_bytes *out)
{
    if (type == 'A' && text.n != 1) return false;
    if (text.n > 0 && memchr(text.at, 0, text.n)) return false;
    if (!utf8_is_valid((const char *)text.at, text.n)) return false;
    column_bytes_copy(out, text.at, text.n);
    if (type != 'A') *column_bytes_append(out, 1) = 0;
    return true;
}

/* Appends the value of the tag's own column. */
static bool put_own(const struct row *row, unsigned number, char type, struct column_bytes *out)
{
    const struct column_values *column = &row->columns[number];
    enum column_type of = row->schema->columns[number].type;
    const uint8_t *values = column->buffers[BUFFER_VALUES].bytes;
    if (column_type_is_text(of))
        return strchr("AZH", type) &&
               put_text(type, part_of(column, BUFFER_OFFSETS, row->number, 1), out);
    if (of == COLUMN_INT64)
        return put_integer(type, (int64_t)get_u64(values + 8 * row->number), out);
    if (of == COLUMN_FLOAT32) {
        if (type == 'f') column_bytes_copy(out, values + 4 * row->number, 4);
        return type == 'f';
    }
    if (!column_type_is_list(of) || type != 'B') return false;
    size_t item_bytes = column_type_bytes(of);
    struct text_part list = part_of(column, BUFFER_OFFSETS, row->number, item_bytes);
    uint8_t *head = column_bytes_append(out, BAM_AUX_ARRAY_HEAD_BYTES);
    head[0] = (uint8_t)column_type_element(of);
    (void)put_u32(head + 1, list.n / item_bytes);
    column_bytes_copy(out, list.at, list.n);
    return true;
}

/* Appends the value that the map has. */
static bool put_mapped(const struct row *row, const uint8_t *letters, char type,
                       struct column_bytes *out)
{
    const struct column_values *map = &row->columns[row->schema->by_field[FIELD_TAGS]];
    if (is_null(map, row->number)) return false;
    const uint8_t *offsets = map->buffers[BUFFER_OFFSETS].bytes + 4 * row->number;
    for (uint64_t i = get_u32(offsets); i < get_u32(offsets + 4); i++) {
        struct text_part key = part_of(map, BUFFER_KEY_OFFSETS, i, 1);
        if (key.n != 2 || memcmp(key.at, letters, 2) != 0) continue;
        struct text_part value = part_of(map, BUFFER_MAPPED_OFFSETS, i, 1);
        if (type == 'B') return put_array(value, out);
        return strchr("AZH", type) ? put_text(type, value, out) : put_number(type, value, out);
    }
    return false;
}

/* Appends all tags. Returns NULL, or what is wrong. */
static const char *put_tags(const struct row *row, struct column_bytes *out)
{
    struct text_part types = text_of_field(row, FIELD_TAG_TYPES);
    if (!types.at) return NULL;
    const uint8_t *at = types.at, *end = at + types.n;
    for (; at < end; at += 5) {
        bool is_last = end - at == 4;
        if (end - at < 4 || at[2] != ':' || (!is_last && at[4] != ',')) return bad_tag;
        if (!at[3] || !strchr("AcCsSiIfdZHB", at[3]) || (at[0] | at[1]) & 0x80) return bad_tag;
        unsigned number = column_schema_of_tag(row->schema, at);
        column_bytes_copy(out, at, 2);
        *column_bytes_append(out, 1) = at[3];
        bool is_own = number != NO_COLUMN && !is_null(&row->columns[number], row->number);
        if (!(is_own ? put_own(row, number, (char)at[3], out)
                     : put_mapped(row, at, (char)at[3], out)))
            return bad_tag;
        if (is_last) break;
    }
    return NULL;
}

/* ---- records ---- */

enum { MAX_FIELD_OPS = 0xffff };

/* Moves the operations of a CIGAR that is too long for its field, which are the last bytes, out of
   the record: a placeholder takes their place. Returns them; the caller frees them. */
static uint8_t *take_long_cigar(struct column_bytes *out, size_t ops_at, size_t n_ops,
                                size_t n_bases, int64_t reference_bases)
{
    uint8_t *ops = xmemdup(out->bytes + ops_at, 4 * n_ops);
    out->n_bytes = ops_at;
    uint8_t *to = column_bytes_append(out, 8);
    to = put_u32(to, (uint64_t)n_bases << BAM_CIGAR_SHIFT | BAM_CSOFT_CLIP);
    (void)put_u32(to, (uint64_t)reference_bases << BAM_CIGAR_SHIFT | BAM_CREF_SKIP);
    return ops;
}

static const char *put_fields(const struct row *row, size_t begin, struct column_bytes *out)
{
    struct text_part name = text_of_field(row, FIELD_QNAME);
    struct text_part seq = text_of_field(row, FIELD_SEQ), qual = text_of_field(row, FIELD_QUAL);
    int64_t flag = number_of_field(row, FIELD_FLAG, 0);
    int64_t pos = number_of_field(row, FIELD_POS, 0) - 1;
    int64_t mate_pos = number_of_field(row, FIELD_PNEXT, 0) - 1;
    if (!has_numbers(row)) return "its flag, its MAPQ or its TLEN is null";
    if (!name.at) name = (struct text_part){(const uint8_t *)"*", 1};
    if (name.n > 254) return "its name has more than 254 bytes";
    if (!utf8_is_valid((const char *)name.at, name.n)) return "its name is not UTF-8";
    if (column_name_has_control(name.at, name.n)) return "its name has a control character";
    if (pos < -1 || mate_pos < -1) return "its position, or its mate's, is negative";
    if (!seq.at && qual.at) return "it has qualities, but no sequence";
    (void)column_bytes_append(out, BAM_RECORD_FIXED_BYTES);
    column_bytes_copy(out, name.at, name.n);
    *column_bytes_append(out, 1) = 0;
    size_t ops_at = out->n_bytes;
    ssize_t n_ops = put_cigar(text_of_field(row, FIELD_CIGAR), out);
    if (n_ops < 0) return "its CIGAR is not valid";
    int64_t n_bases = bam_cigar_reference_bases(
        (struct bam_cigar){out->bytes + ops_at, (size_t)n_ops});
    uint8_t *long_ops = NULL;
    if (n_ops > MAX_FIELD_OPS) {
        if (n_bases >= 1 << 28) return "its CIGAR is too long for BAM";
        long_ops = take_long_cigar(out, ops_at, (size_t)n_ops, seq.n, n_bases);
    }
    if (flag & BAM_FUNMAP || n_bases == 0) n_bases = 1;
    const char *problem = put_sequence(seq, qual, out);
    if (!problem) problem = put_tags(row, out);
    if (long_ops) {
        column_bytes_copy(out, "CGBI", 4);
        (void)put_u32(column_bytes_append(out, 4), (uint64_t)n_ops);
        column_bytes_copy(out, long_ops, 4 * (size_t)n_ops);
        free(long_ops);
    }
    if (out->n_bytes - begin > INT32_MAX) return "it is too long for BAM";
    uint8_t *to = out->bytes + begin;
    to = put_u32(to, out->n_bytes - begin - 4);
    to = put_u32(to, (uint32_t)number_of_field(row, FIELD_RNAME, -1));
    to = put_u32(to, (uint32_t)pos);
    *to++ = (uint8_t)(name.n + 1);
    *to++ = (uint8_t)number_of_field(row, FIELD_MAPQ, 0);
    to = put_u16(to, (uint64_t)hts_reg2bin(pos, pos + n_bases, 14, 5));
    to = put_u16(to, n_ops > MAX_FIELD_OPS ? 2 : (uint64_t)n_ops);
    to = put_u16(to, (uint64_t)flag);
    to = put_u32(to, seq.n);
    to = put_u32(to, (uint32_t)number_of_field(row, FIELD_RNEXT, -1));
    to = put_u32(to, (uint32_t)mate_pos);
    (void)put_u32(to, (uint32_t)number_of_field(row, FIELD_TLEN, 0));
    return problem;
}

const char *column_record_put(const struct column_schema *schema,
                              const struct column_values *columns, uint64_t row,
                              struct column_bytes *out)
{
    const struct row of = {schema, columns, row};
    return put_fields(&of, out->n_bytes, out);
}
