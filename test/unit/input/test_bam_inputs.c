/* test_bam_inputs.c -- inputs are read in their order, and which changes of them are errors.
   test_merge_steps.c tests their ends. */
#include "test_place.h"
#include "unit_test.h"

#include "input/bam_inputs.h"

#define HEADER(order) "@HD\tVN:1.6\tSO:" order "\n"
#define RECORD "r\t4\t*\t0\t0\t*\t*\t0\t0\tA\tI\n"

static const char *const paths[] = {"0.sam", "1.sam", "2.sam"};

static int leave(void **state)
{
    for (int i = 0; i < 3; i++) (void)unlink(paths[i]);
    return leave_place(state);
}

/* Reads from input 1 on; while that is read, a file gets this text. Returns what the call for the
   next input returns. */
static int next_after(const char *changed, const char *text)
{
    static const char usual[] = HEADER("unsorted") RECORD;
    static const htsFormat no_options;
    const struct input_position start = {.input = 1};
    struct bam_reader *reader;
    for (int i = 0; i < 3; i++) put_file(paths[i], usual, sizeof usual - 1);
    struct bam_inputs *in = bam_inputs_open(paths, 3, &no_options, NULL, false);
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
    static const char longer[] = HEADER("unsorted") RECORD RECORD,
                      other[] = HEADER("unknown") RECORD;
    assert_int_equal(next_after("0.sam", longer), 1);
    assert_int_equal(next_after("1.sam", longer), -1);
    assert_int_equal(next_after("new", longer), 1);
    assert_int_equal(next_after("2.sam", longer), 1);
    assert_int_equal(next_after("2.sam", other), -1);
}
