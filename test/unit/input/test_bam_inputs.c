/* test_bam_inputs.c -- what order inputs claim, in which order they are read, and which changes of
   them are errors. test_merge_steps.c tests their ends. */
#include "test_place.h"
#include "unit_test.h"

#include "input/bam_inputs.h"

#define CLAIM(order) "@HD\tVN:1.6\t" order "\n@SQ\tSN:c\tLN:9\n"
#define RECORD "r\t4\t*\t0\t0\t*\t*\t0\t0\tA\tI\n"

static const char *const paths[] = {"0.sam", "1.sam", "2.sam"};

static struct bam_inputs *open_three(const char *first, const char *second, const char *third)
{
    static const htsFormat no_options;
    const char *const texts[] = {first, second, third};
    for (int i = 0; i < 3; i++) put_file(paths[i], texts[i], strlen(texts[i]));
    return bam_inputs_open(paths, 3, &no_options, NULL, false);
}

static int leave(void **state)
{
    for (int i = 0; i < 3; i++) (void)unlink(paths[i]);
    return leave_place(state);
}

TEST_WITH(test_order_counts_if_all_headers_claim_it, enter_place, leave)
{
    static const char place[] = CLAIM("SO:coordinate"), name[] = CLAIM("SO:queryname"),
                      natural[] = CLAIM("SO:queryname\tSS:queryname:natural");
    static const char *const cases[][5] = {
        {place, place, place, "coordinate", "0.sam"}, {name, place, place, "", "1.sam"},
        {natural, natural, natural, "queryname:natural", ""}, {name, natural, name, "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bam_inputs *in = open_three(cases[i][0], cases[i][1], cases[i][2]);
        const char *sorted = bam_inputs_sorted_by_coordinate(in);
        assert_string_equal(in->common_order, cases[i][3]);
        assert_string_equal(sorted ? sorted : "", cases[i][4]);
        bam_inputs_close(in);
    }
}

/* Reads from input 1 on; while that is read, a file gets this text. Returns what the call for the
   next input returns. */
static int next_after(const char *changed, const char *text)
{
    static const char usual[] = CLAIM("SO:unsorted") RECORD;
    const struct input_position start = {.input = 1};
    struct bam_reader *reader;
    struct bam_inputs *in = open_three(usual, usual, usual);
    assert_int_equal(bam_inputs_start_at(in, &start), sizeof usual - 1);
    assert_int_equal(bam_inputs_next(in, &reader), 1);
    assert_string_equal(reader->name, paths[1]);
    put_file(changed, text, strlen(text));
    if (strcmp(changed, "new") == 0) assert_int_equal(rename(changed, paths[1]), 0);
    int r = bam_inputs_next(in, &reader);
    if (r == 1) assert_string_equal(reader->name, paths[2]);
    if (r == 1) assert_int_equal(bam_inputs_next(in, &reader), 0);
    assert_int_equal(in->changed, r < 0);
    bam_inputs_close(in);
    return r;
}

TEST_WITH(test_inputs_that_change_while_they_are_needed_are_errors, enter_place, leave)
{
    static const char longer[] = CLAIM("SO:unsorted") RECORD RECORD,
                      other[] = CLAIM("SO:unknown") RECORD;
    assert_int_equal(next_after("0.sam", longer), 1);
    assert_int_equal(next_after("1.sam", longer), -1);
    assert_int_equal(next_after("new", longer), 1);
    assert_int_equal(next_after("2.sam", longer), 1);
    assert_int_equal(next_after("2.sam", other), -1);
}
