/*
 * test_column_batch.c -- columns of records: from the columns of random records the test makes the
 * lines of SAM again. Records that columns cannot hold are refused with the right words.
 */
#include "sam_line.h"
#include "unit_test.h"

#include "columns/column_batch.h"
#include "util/diag.h"

OWNER(struct column_batch, column_batch_destroy)
OWNER(struct column_schema, column_schema_destroy)

static struct column_schema *schema_of(const char *list, const struct tag_schema_scan *tag_scan)
{
    struct column_schema *schema = column_schema_create(list, tag_scan);
    assert_non_null(schema);
    return schema;
}

/* Adds a line to a batch of all columns; returns the problem. */
static const char *problem_of_line(const char *line)
{
    RELEASED(own_column_schema_destroy) struct column_schema *schema = schema_of(NULL, NULL);
    RELEASED(own_column_batch_destroy) struct column_batch *batch = column_batch_create(schema);
    OWNED uint8_t *rec = record_of_line(line);
    const char *problem = column_batch_add(batch, rec);
    return problem;
}

TEST(test_records_that_columns_cannot_hold_are_refused)
{
    static const char twice[] = "it has a tag twice", no_text[] = "it has text that is not UTF-8";
    static const struct {
        const char *tags, *problem;     /* or NULL */
    } cases[] = {
        {"\tNM:i:1\tNM:i:1", twice},
        {"\tXX:i:1\tXX:Z:1", twice},
        {"\tNM:i:1\tNM:Z:1", twice},
        {"\tNM:Z:1\tNM:i:1", twice},
        {"\tXX:Z:\xff", no_text},
        {"\tMD:Z:abcdefgh\xc3", no_text},
        {"\t1X:i:1", "it has a tag whose name is not a letter and a letter or digit"},
        {"\tXX:Z:\xc3\xa9", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[100];
        (void)snprintf(line, sizeof line, "r\t4\t*\t0\t0\t*\t*\t0\t0\tA\t~%s", cases[i].tags);
        const char *problem = problem_of_line(line);
        if (!problem != !cases[i].problem || (problem && strcmp(problem, cases[i].problem) != 0))
            fail_msg("'%s': %s", cases[i].tags, problem ? problem : "no problem");
    }
}

TEST(test_too_high_quality_is_found_anywhere)
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
TEST(test_bases_are_letters_at_each_place)
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
            const struct byte_buffer *text = &column_batch_end(batch)[0].buffers[BUFFER_VALUES];
            assert_int_equal(text->n_bytes, n);
            for (int k = 0; k < n; k++)
                assert_int_equal(text->bytes[k], seq_nt16_str[bam_seqi(seq, k)]);
        }
        free(rec);
    }
}

/* Room for all expected bases is made at once, if so many fit into the bytes that are expected. */
TEST(test_room_for_all_expected_bases_is_made_at_once)
{
    enum { ROWS = 1000, BASES = 21 };
    OWNED uint8_t *rec = record_of_line("r\t4\t*\t0\t0\t*\t*\t0\t0\tACGTACGTACGTACGTACGTA\t"
                                        "IIIIIIIIIIIIIIIIIIIII");
    RELEASED(own_column_schema_destroy) struct column_schema *schema = schema_of("seq,qual", NULL);
    struct column_batch *batch = column_batch_create(schema);
    batch->expected_rows = ROWS;
    batch->expected_bytes = ROWS * 100;
    const struct column_values *columns = NULL;
    for (int n = 0; n < 2; n++) {
        const uint8_t *begins[2] = {NULL, NULL};
        for (int i = 0; i < ROWS; i++) {
            assert_null(column_batch_add(batch, rec));
            columns = column_batch_end(batch);
            for (int k = 0; k < 2; k++) {
                const struct byte_buffer *text = &columns[k].buffers[BUFFER_VALUES];
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
    batch->expected_rows = SIZE_MAX / BASES;
    batch->expected_bytes = 3000;
    assert_null(column_batch_add(batch, rec));
    assert_in_range(column_batch_end(batch)[0].buffers[BUFFER_VALUES].room, 2000, 3000);
    column_batch_destroy(batch);
}

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

TEST(test_lists_of_columns_are_understood_or_refused)
{
    static const char no_column[] = "is not a column: give a field (qname to qual, end, tag_types, "
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

TEST(test_census_leaves_out_tags_that_do_not_occur)
{
    struct tag_schema_scan *tag_scan = tag_schema_scan_create();
    OWNED uint8_t *rec = record_of_line("r\t4\t*\t0\t0\t*\t*\t0\t0\tA\t!\tNM:i:1\tXS:i:1\tRG:Z:x");
    const struct observed_records records = {.all = {rec, rec + bam_record_bytes(rec)}};
    assert_int_equal(tag_scan->base.kind->add_records(&tag_scan->base, NULL, &records), 0);
    assert_true(tag_schema_scan_has(tag_scan, "NM") && tag_schema_scan_has(tag_scan, "XS"));
    assert_false(tag_schema_scan_has(tag_scan, "MD"));
    struct column_schema *schema = schema_of(NULL, tag_scan);
    assert_int_equal(schema->n_columns, N_COLUMN_FIELDS + 2);
    column_schema_destroy(schema);
    schema = schema_of("qname,RG", tag_scan);
    assert_int_equal(schema->n_columns, 2);
    assert_string_equal(schema->columns[1].name, "RG");
    column_schema_destroy(schema);
    tag_scan->base.kind->destroy(&tag_scan->base);
}
