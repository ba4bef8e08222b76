/*
 * test_column_batch.c -- columns of records: from the columns of random records the test makes the
 * lines of SAM again. Records that columns cannot hold are refused with the right words.
 */
#include "unit_test.h"
#include "sam_line.h"

#include "columns/column_batch.h"
#include "util/diag.h"

OWNER(struct column_batch, column_batch_destroy)
OWNER(struct column_schema, column_schema_destroy)

static struct column_schema *schema_of(const char *list, const struct tag_census *census)
{
    struct column_schema *schema = column_schema_create(list, census);
    assert_non_null(schema);
    return schema;
}

/* ---- columns to lines ---- */

struct table {
    const struct column_schema *schema;
    const struct column_values *columns;
    uint64_t row;
};

static const uint8_t *buffer(const struct table *t, unsigned column, enum column_buffer which)
{
    return t->columns[column].buffers[which].bytes;
}

static bool is_null(const struct table *t, unsigned column)
{
    const struct column_bytes *bits = &t->columns[column].buffers[BUFFER_VALIDITY];
    assert_true(t->row < t->columns[column].n_rows);
    if (bits->n_bytes == 0) return false;
    assert_true(bits->n_bytes == (t->columns[column].n_rows + 7) / 8);
    return !(bits->bytes[t->row / 8] >> t->row % 8 & 1);
}

struct part {
    const uint8_t *at;
    size_t n;
};

/* Value `row` of texts or of lists whose elements have element_bytes. */
static struct part part_of(const struct table *t, unsigned column, enum column_buffer offsets,
                           uint64_t row, size_t element_bytes)
{
    const uint8_t *at = buffer(t, column, offsets) + 4 * row;
    size_t begin = get_u32(at) * element_bytes, end = get_u32(at + 4) * element_bytes;
    assert_true(begin <= end && end <= t->columns[column].buffers[offsets + 1].n_bytes);
    if (begin == end) return (struct part){(const uint8_t *)"", 0};
    return (struct part){buffer(t, column, offsets + 1) + begin, end - begin};
}

static int64_t number(const struct table *t, unsigned column)
{
    size_t n = column_type_bytes(t->schema->columns[column].type);
    const uint8_t *at = buffer(t, column, BUFFER_VALUES) + n * t->row;
    uint64_t value = 0;
    for (size_t i = n; i-- > 0;) value = value << 8 | at[i];
    bool is_signed = t->schema->columns[column].type == COLUMN_INT32;
    return is_signed ? (int32_t)value : (int64_t)value;
}

static void put_field(const struct table *t, enum column_field field, kstring_t *line)
{
    static const char *const references[] = {"c", "d"};
    unsigned column = t->schema->by_field[field];
    enum column_type type = t->schema->columns[column].type;
    bool has_none = is_null(t, column);
    if (field != FIELD_QNAME) kputc('\t', line);
    if (column_type_is_text(type)) {
        struct part text = {(const uint8_t *)"*", 1};
        if (!has_none) text = part_of(t, column, BUFFER_OFFSETS, t->row, 1);
        kputsn((const char *)text.at, text.n, line);
    } else if (type == COLUMN_REFERENCE) {
        kputs(has_none ? "*" : references[number(t, column)], line);
    } else {
        kputll(has_none ? 0 : number(t, column), line);
    }
}

static void put_list(enum column_type type, struct part list, kstring_t *line)
{
    static const char letters[] = "cCsSiIf";
    char letter = letters[type - COLUMN_INT8_LIST];
    size_t n = column_type_bytes(type);
    kputc(letter, line);
    for (; list.n > 0; list.at += n, list.n -= n) {
        struct bam_aux aux = {.type = letter, .value = list.at};
        int64_t value;
        float f;
        if (bam_aux_integer(&aux, &value)) {
            ksprintf(line, ",%" PRId64, value);
        } else {
            memcpy(&f, list.at, 4);
            ksprintf(line, ",%g", (double)f);
        }
    }
}

/* Puts the value of the tag's own column. */
static void put_own(const struct table *t, unsigned column, kstring_t *line)
{
    enum column_type type = t->schema->columns[column].type;
    float f;
    if (column_type_is_text(type)) {
        struct part text = part_of(t, column, BUFFER_OFFSETS, t->row, 1);
        kputsn((const char *)text.at, text.n, line);
    } else if (column_type_is_list(type)) {
        put_list(type, part_of(t, column, BUFFER_OFFSETS, t->row, column_type_bytes(type)), line);
    } else if (type == COLUMN_FLOAT32) {
        memcpy(&f, buffer(t, column, BUFFER_VALUES) + 4 * t->row, 4);
        ksprintf(line, "%g", (double)f);
    } else {
        kputll(number(t, column), line);
    }
}

/* Puts the value that the map has of the tag. */
static void put_mapped(const struct table *t, const uint8_t *letters, kstring_t *line)
{
    unsigned map = t->schema->by_field[FIELD_TAGS];
    assert_false(is_null(t, map));
    const uint8_t *at = buffer(t, map, BUFFER_OFFSETS) + 4 * t->row;
    for (uint64_t i = get_u32(at); i < get_u32(at + 4); i++) {
        struct part key = part_of(t, map, BUFFER_KEY_OFFSETS, i, 1);
        assert_true(key.n == 2);
        if (memcmp(key.at, letters, 2) != 0) continue;
        struct part value = part_of(t, map, BUFFER_MAPPED_OFFSETS, i, 1);
        kputsn((const char *)value.at, value.n, line);
        return;
    }
    fail_msg("the map has no tag %.2s", (const char *)letters);
}

static void put_tags(const struct table *t, kstring_t *line)
{
    unsigned types = t->schema->by_field[FIELD_TAG_TYPES];
    if (is_null(t, types)) return;
    struct part part = part_of(t, types, BUFFER_OFFSETS, t->row, 1);
    for (const uint8_t *at = part.at, *end = at + part.n; at < end; at += 5) {
        unsigned column = column_schema_of_tag(t->schema, at);
        ksprintf(line, "\t%.2s:%c:", (const char *)at, strchr("cCsSI", at[3]) ? 'i' : at[3]);
        if (column != NO_COLUMN && !is_null(t, column))
            put_own(t, column, line);
        else
            put_mapped(t, at, line);
    }
}

static void assert_row_is(const struct table *t, const char *expected, const struct rng *rng)
{
    static const enum column_field before[] = {
        FIELD_QNAME, FIELD_FLAG, FIELD_RNAME, FIELD_POS, FIELD_MAPQ, FIELD_CIGAR, FIELD_RNEXT,
        FIELD_PNEXT, FIELD_TLEN, FIELD_SEQ, FIELD_QUAL,
    };
    OWNED_TEXT kstring_t line = KS_INITIALIZE;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) put_field(t, before[i], &line);
    put_tags(t, &line);
    if (strcmp(line.s, expected) != 0)
        fail_msg("seed %" PRIu64 ":\n%s\ninstead of\n%s", rng ? rng->seed : 0, line.s, expected);
}

/* ---- random lines ---- */

static void put_random_tag(struct rng *rng, kstring_t *line)
{
    static const char letters[] = "AcCsSiIfZHB", arrays[] = "cCsSiIf";
    const struct column *standard = &standard_tags[rng_below(rng, n_standard_tags)];
    char type = letters[rng_below(rng, sizeof letters - 1)];
    if (rng_one_in(rng, 2)) {
        ksprintf(line, "%s", standard->name);
        if (standard->type == COLUMN_TEXT) type = 'Z';
        if (standard->type == COLUMN_INT64) type = 'i';
    } else {
        ksprintf(line, "%c%c", (int)('W' + rng_below(rng, 4)), (int)('a' + rng_below(rng, 26)));
    }
    if (strchr("cCsSI", type)) type = 'i';
    ksprintf(line, ":%c:", type);
    switch (type) {
    case 'A': kputc((int)('!' + rng_below(rng, 94)), line); break;
    case 'i': {
        int64_t value = (int64_t)(rng_next(rng) >> (32 + rng_below(rng, 32)));
        kputll(rng_one_in(rng, 2) ? value : -value / 2, line);
        break;
    }
    case 'f': ksprintf(line, "%g", (double)(int)rng_below(rng, 1000) / 8 - 50); break;
    case 'H': kputs(rng_one_in(rng, 2) ? "" : "1AE301", line); break;
    case 'B': {
        char element = arrays[rng_below(rng, sizeof arrays - 1)];
        kputc(element, line);
        for (size_t n = rng_below(rng, 5); n > 0; n--)
            ksprintf(line, element == 'f' ? ",%d.5" : ",%d", (int)rng_below(rng, 100));
        break;
    }
    default:
        for (size_t n = rng_below(rng, 20); n > 0; n--) kputc((int)(' ' + rng_below(rng, 95)), line);
        if (rng_one_in(rng, 8)) kputs("\xc3\xa9\xf0\x9f\xa7\xac z", line);
    }
}

static void put_random_bases(struct rng *rng, size_t n, kstring_t *line)
{
    if (n == 0) {
        kputs("*\t*", line);
        return;
    }
    for (size_t i = 0; i < n; i++) kputc("=ACMGRSVTWYHKDBN"[rng_below(rng, 16)], line);
    kputc('\t', line);
    /* A first quality of '*' in a read of one base says that there are none. */
    bool has_none = rng_one_in(rng, 8);
    if (has_none) kputc('*', line);
    for (size_t i = 0; i < n && !has_none; i++)
        kputc((int)((n == 1 ? '+' : '!') + rng_below(rng, 84)), line);
}

/* A line with no tag twice. */
static void random_line(struct rng *rng, kstring_t *line)
{
    static const char *const references[] = {"*", "c", "d"};
    size_t n = rng_below(rng, 30), n_tags = rng_below(rng, 6), at;
    bool has_cigar = n > 0 && rng_one_in(rng, 2);
    line->l = 0;
    if (rng_one_in(rng, 9))
        kputc('*', line);
    else
        ksprintf(line, "read-%zu", rng_below(rng, 1000000000));
    ksprintf(line, "\t%zu\t%s\t%zu\t%zu\t", (rng_below(rng, 4096) & ~(size_t)BAM_FUNMAP) | (has_cigar ? 0 : BAM_FUNMAP),
             references[1 + rng_below(rng, 2)], 1 + rng_below(rng, 900000), rng_below(rng, 256));
    if (has_cigar) ksprintf(line, "%zuM2D", n);
    if (has_cigar && n > 1) line->l -= strlen("2D");
    if (!has_cigar) kputc('*', line);
    ksprintf(line, "\t%s\t%zu\t%d\t", references[rng_below(rng, 3)], rng_below(rng, 900000),
             (int)rng_below(rng, 2000) - 1000);
    put_random_bases(rng, n, line);
    line->s[line->l] = '\0';
    for (size_t i = 0; i < n_tags; i++) {
        at = line->l;
        kputc('\t', line);
        put_random_tag(rng, line);
        char start[5] = {'\t', line->s[at + 1], line->s[at + 2], ':', '\0'};
        if (strstr(line->s, start) == line->s + at) continue;
        line->l = at;           /* it is there already */
        line->s[at] = '\0';
    }
}

TEST(test_random_records)
{
    enum { MOST = 40 };
    struct rng rng = rng_start(1);
    RELEASED(own_column_schema_destroy) struct column_schema *schema = schema_of(NULL, NULL);
    RELEASED(own_column_batch_destroy) struct column_batch *batch = column_batch_create(schema);
    for (int round = 0; round < 200; round++) {
        kstring_t lines[MOST] = {KS_INITIALIZE};
        size_t n = rng_below(&rng, MOST);
        for (size_t i = 0; i < n; i++) {
            random_line(&rng, &lines[i]);
            OWNED uint8_t *rec = record_of_line(lines[i].s);
            const char *problem = column_batch_add(batch, rec);
            if (problem) fail_msg("%s: %s", problem, lines[i].s);
        }
        CHECK(&rng, column_batch_n_rows(batch) == n);
        struct table t = {schema, column_batch_end(batch), 0};
        for (unsigned i = 0; i < schema->n_columns; i++) CHECK(&rng, t.columns[i].n_rows == n);
        for (; t.row < n; t.row++) {
            assert_row_is(&t, lines[t.row].s, &rng);
            ks_free(&lines[t.row]);
        }
        column_batch_clear(batch);
    }
}

/* ---- single records ---- */

/* Adds a line to a batch of all columns; returns the problem. */
static const char *problem_of_line(const char *line)
{
    RELEASED(own_column_schema_destroy) struct column_schema *schema = schema_of(NULL, NULL);
    RELEASED(own_column_batch_destroy) struct column_batch *batch = column_batch_create(schema);
    OWNED uint8_t *rec = record_of_line(line);
    const char *problem = column_batch_add(batch, rec);
    return problem;
}

TEST(test_refused)
{
    assert_string_equal(problem_of_line("r\t4\t*\t0\t0\t*\t*\t0\t0\tA\t!\tNM:i:1\tNM:i:1"),
                        "it has a tag twice");
    assert_string_equal(problem_of_line("r\t4\t*\t0\t0\t*\t*\t0\t0\tA\t!\tXX:i:1\tXX:Z:1"),
                        "it has a tag twice");
    assert_string_equal(problem_of_line("r\t4\t*\t0\t0\t*\t*\t0\t0\tA\t!\tNM:i:1\tNM:Z:1"),
                        "it has a tag twice");
    assert_string_equal(problem_of_line("r\t4\t*\t0\t0\t*\t*\t0\t0\tA\t!\tNM:Z:1\tNM:i:1"),
                        "it has a tag twice");
    assert_string_equal(problem_of_line("r\t4\t*\t0\t0\t*\t*\t0\t0\tA\t!\tXX:Z:\xff"),
                        "it has text that is not UTF-8");
    assert_string_equal(problem_of_line("r\t4\t*\t0\t0\t*\t*\t0\t0\tA\t!\tMD:Z:abcdefgh\xc3"),
                        "it has text that is not UTF-8");
    assert_string_equal(problem_of_line("r\t4\t*\t0\t0\t*\t*\t0\t0\tA\t!\t1X:i:1"),
                        "it has a tag whose name is not a letter and a letter or digit");
    assert_null(problem_of_line("r\t4\t*\t0\t0\t*\t*\t0\t0\tA\t!\tXX:Z:\xc3\xa9"));
    assert_null(problem_of_line("r\t4\t*\t0\t0\t*\t*\t0\t0\tA\t~"));
}

/* Qualities are looked at eight at a time: one that is too high is found wherever it is. */
TEST(test_qualities)
{
    enum { BASES = 21 };
    OWNED uint8_t *rec = record_of_line("r\t4\t*\t0\t0\t*\t*\t0\t0\tACGTACGTACGTACGTACGTA\t"
                                        "IIIIIIIIIIIIIIIIIIIII");
    RELEASED(own_column_schema_destroy) struct column_schema *schema = schema_of("qual", NULL);
    RELEASED(own_column_batch_destroy) struct column_batch *batch = column_batch_create(schema);
    uint8_t *quals = rec + (bam_record_quals(rec) - rec);
    for (size_t i = 0; i < BASES; i++) {
        for (unsigned q = 0; q < 256; q++) {
            if (i == 0 && q == 0xff) continue;  /* there are no qualities */
            memset(quals, 40, BASES);
            quals[i] = (uint8_t)q;
            column_batch_clear(batch);
            const char *problem = column_batch_add(batch, rec);
            assert_true((problem == NULL) == (q <= 93));
            const uint8_t *text = column_batch_end(batch)[0].buffers[BUFFER_VALUES].bytes;
            for (size_t k = 0; !problem && k < BASES; k++)
                assert_int_equal(text[k], quals[k] + '!');
        }
    }
}

/* Bases are written eight at a time: each pair of them, at each place, in sequences that end
   anywhere in an eight. */
TEST(test_bases)
{
    enum { BASES = 21 };
    RELEASED(own_column_schema_destroy) struct column_schema *schema = schema_of("seq", NULL);
    RELEASED(own_column_batch_destroy) struct column_batch *batch = column_batch_create(schema);
    for (int n = 1; n <= BASES; n++) {
        char line[100];
        (void)snprintf(line, sizeof line, "r\t4\t*\t0\t0\t*\t*\t0\t0\t%.*s\t*", n,
                       "ACGTACGTACGTACGTACGTA");
        uint8_t *rec = record_of_line(line), *seq = rec + (bam_record_seq(rec) - rec);
        for (unsigned pair = 0; pair < 256; pair++) {
            for (int i = 0; i < (n + 1) / 2; i++) seq[i] = (uint8_t)(pair + 7 * (unsigned)i);
            column_batch_clear(batch);
            assert_null(column_batch_add(batch, rec));
            const struct column_bytes *text = &column_batch_end(batch)[0].buffers[BUFFER_VALUES];
            assert_int_equal(text->n_bytes, n);
            for (int k = 0; k < n; k++)
                assert_int_equal(text->bytes[k], seq_nt16_str[bam_seqi(seq, k)]);
        }
        free(rec);
    }
}

/* Room for all expected bases is made at once, if so many fit into the bytes that are expected. */
TEST(test_expected)
{
    enum { ROWS = 1000, BASES = 21 };
    OWNED uint8_t *rec = record_of_line("r\t4\t*\t0\t0\t*\t*\t0\t0\tACGTACGTACGTACGTACGTA\t"
                                        "IIIIIIIIIIIIIIIIIIIII");
    RELEASED(own_column_schema_destroy) struct column_schema *schema = schema_of("seq,qual", NULL);
    struct column_batch *batch = column_batch_create(schema);
    column_batch_expect(batch, ROWS, ROWS * 100);
    const struct column_values *columns = NULL;
    for (int n = 0; n < 2; n++) {
        const uint8_t *begins[2] = {NULL, NULL};
        for (int i = 0; i < ROWS; i++) {
            assert_null(column_batch_add(batch, rec));
            columns = column_batch_end(batch);
            for (int k = 0; k < 2; k++) {
                const struct column_bytes *text = &columns[k].buffers[BUFFER_VALUES];
                if (i == 0) begins[k] = text->bytes;
                assert_ptr_equal(text->bytes, begins[k]);
                assert_in_range(text->room, ROWS * BASES, ROWS * BASES * 5 / 4);
            }
        }
        assert_int_equal(columns[0].buffers[BUFFER_VALUES].n_bytes, ROWS * BASES);
        column_batch_clear(batch);
    }
    column_batch_destroy(batch);
    batch = column_batch_create(schema);
    column_batch_expect(batch, SIZE_MAX / BASES, 3000);
    assert_null(column_batch_add(batch, rec));
    assert_in_range(column_batch_end(batch)[0].buffers[BUFFER_VALUES].room, 2000, 3000);
    column_batch_destroy(batch);
}

/* Names are looked at eight bytes at a time, too. */
TEST(test_names)
{
    enum { BYTES = 21 };
    for (size_t n = 1; n <= BYTES; n++) {
        for (size_t i = 0; i < n; i++) {
            for (unsigned byte = 0; byte < 256; byte++) {
                uint8_t name[BYTES];
                memset(name, byte & 1 ? 0x80 : 0x20, n);
                name[i] = (uint8_t)byte;
                assert_true(column_name_has_control(name, n) == (byte < 0x20 || byte == 0x7f));
            }
        }
    }
    assert_false(column_name_has_control(NULL, 0));
}

/* One type of a tag is in its column, another in the map. */
TEST(test_both_types)
{
    static const char line[] = "r\t4\t*\t0\t0\t*\t*\t0\t0\tA\t!\tNM:Z:x\tML:B:c,1\tTS:A:+";
    RELEASED(own_column_schema_destroy) struct column_schema *schema = schema_of(NULL, NULL);
    RELEASED(own_column_batch_destroy) struct column_batch *batch = column_batch_create(schema);
    OWNED uint8_t *rec = record_of_line(line);
    assert_null(column_batch_add(batch, rec));
    struct table t = {schema, column_batch_end(batch), 0};
    assert_true(is_null(&t, column_schema_of_tag(schema, (const uint8_t *)"NM")));
    assert_true(is_null(&t, column_schema_of_tag(schema, (const uint8_t *)"ML")));
    assert_false(is_null(&t, column_schema_of_tag(schema, (const uint8_t *)"TS")));
    assert_row_is(&t, line, NULL);
}

static int64_t end_of_line(const char *line)
{
    RELEASED(own_column_schema_destroy) struct column_schema *schema = schema_of("end", NULL);
    RELEASED(own_column_batch_destroy) struct column_batch *batch = column_batch_create(schema);
    OWNED uint8_t *rec = record_of_line(line);
    assert_null(column_batch_add(batch, rec));
    struct table t = {schema, column_batch_end(batch), 0};
    int64_t end = is_null(&t, 0) ? -1 : number(&t, 0);
    return end;
}

TEST(test_end)
{
    assert_int_equal(end_of_line("r\t0\tc\t10\t0\t3S4M5D6N2M1I\t*\t0\t0\t*\t*"), 26);
    assert_int_equal(end_of_line("r\t4\tc\t10\t0\t4M\t*\t0\t0\t*\t*"), 10);
    assert_int_equal(end_of_line("r\t0\tc\t10\t0\t*\t*\t0\t0\t*\t*"), 10);
    assert_int_equal(end_of_line("r\t0\tc\t10\t0\t4S\t*\t0\t0\t*\t*"), 10);
    assert_int_equal(end_of_line("r\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*"), -1);
}

/* A CIGAR that is too long for its field is a CIGAR like others; no tag CG is to be seen. */
TEST(test_long_cigar)
{
    enum { PAIRS = 40000 };
    OWNED_TEXT kstring_t line = KS_INITIALIZE;
    kputs("r\t0\tc\t10\t0\t", &line);
    for (int i = 0; i < PAIRS; i++) kputs("1M1I", &line);
    kputs("\t*\t0\t0\t", &line);
    for (int i = 0; i < 2 * PAIRS; i++) kputc('A', &line);
    kputs("\t*\tXX:i:1", &line);
    RELEASED(own_column_schema_destroy) struct column_schema *schema = schema_of(NULL, NULL);
    RELEASED(own_column_batch_destroy) struct column_batch *batch = column_batch_create(schema);
    OWNED uint8_t *rec = record_of_line(line.s);
    struct bam_aux aux;
    assert_int_equal(bam_aux_find(rec, "CG", &aux), 1);
    assert_null(column_batch_add(batch, rec));
    struct table t = {schema, column_batch_end(batch), 0};
    assert_row_is(&t, line.s, NULL);
    unsigned end = schema->by_field[FIELD_END];
    assert_int_equal(number(&t, end), 10 + PAIRS - 1);
}

/* ---- schemas ---- */

static void check_list(const char *list, const char *problem, const char *part)
{
    char expected[200];
    diag_renew();
    struct column_schema *schema = column_schema_create(list, NULL);
    assert_true((schema == NULL) == (problem != NULL));
    if (problem) {
        (void)snprintf(expected, sizeof expected, "option --columns%s'%s'%s%s",
                       part ? ": " : " has an empty name in ", part ? part : list, part ? " " : "",
                       problem);
        assert_string_equal(diag_error_text(), expected);
    }
    column_schema_destroy(schema);
}

TEST(test_lists)
{
    static const char no_column[] = "is no column: give a field (qname to qual, end, tag_types, "
                                    "tags) or a tag (NM, XS:i)";
    static const char no_type[] =
        "must have a type of SAM: A, i, f, Z, H, or B: and one of cCsSiIf";
    check_list("qname,flag,NM,XS:i,XM:B:c,TS:A", NULL, NULL);
    check_list("all,all,qname,XS:i,XS:i", NULL, NULL);
    check_list("qname,", "", NULL);
    check_list("", "", NULL);
    check_list("qname,name", no_column, "name");
    check_list("1X:i", no_column, "1X:i");
    check_list("pos,XS,end", "is a tag without a type: add one, as in XS:i", "XS");
    check_list("XS:", no_type, "XS:");
    check_list("XS:B", "lacks the type of its elements, as in XB:B:c", "XS:B");
    check_list("XS:B:x", no_type, "XS:B:x");
    check_list("XS:ii", no_type, "XS:ii");
    check_list("XS:i,XS:Z", "names a tag twice, with two types", "XS:Z");
}

TEST(test_census)
{
    struct tag_census *census = tag_census_create();
    OWNED uint8_t *rec = record_of_line("r\t4\t*\t0\t0\t*\t*\t0\t0\tA\t!\tNM:i:1\tXS:i:1\tRG:Z:x");
    const struct observed_records records = {.all = {rec, rec + bam_record_bytes(rec)}};
    assert_int_equal(census->base.kind->add_records(&census->base, NULL, &records), 0);
    assert_true(tag_census_has(census, "NM") && tag_census_has(census, "XS"));
    assert_false(tag_census_has(census, "MD"));
    struct column_schema *schema = schema_of(NULL, census);
    assert_int_equal(schema->n_columns, N_COLUMN_FIELDS + 2);
    column_schema_destroy(schema);
    schema = schema_of("qname,RG", census);
    assert_int_equal(schema->n_columns, 2);
    assert_string_equal(schema->columns[1].name, "RG");
    column_schema_destroy(schema);
    census->base.kind->destroy(&census->base);
}
