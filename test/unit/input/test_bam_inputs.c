/* test_bam_inputs.c -- which inputs are read in which order, what order they claim, and which of
   their changes are errors. test_merge_steps.c tests their ends. */
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
    struct bam_inputs *in = bam_inputs_open(paths, 3, &no_options, NULL, false);
    assert_non_null(in);
    return in;
}

static int leave(void **state)
{
    for (int i = 0; i < 3; i++) (void)unlink(paths[i]);
    return leave_place(state);
}

#define TEST_OF_INPUTS(test) TEST_WITH(test, enter_place, leave)

TEST_OF_INPUTS(test_order_counts_if_all_headers_claim_it)
{
    static const char place[] = CLAIM("SO:coordinate"), name[] = CLAIM("SO:queryname"),
                      natural[] = CLAIM("SO:queryname\tSS:queryname:natural");
    static const struct {
        const char *texts[3], *common, *by_coordinate;
    } cases[] = {
        {{place, place, place}, "coordinate", "0.sam"},
        {{name, place, place}, "", "1.sam"},
        {{natural, natural, natural}, "queryname:natural", NULL},
        {{natural, natural, name}, "", NULL},
        {{"@SQ\tSN:c\tLN:9\n", CLAIM("GO:query"), "@SQ\tSN:c\tLN:9\n"}, "", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const *texts = cases[i].texts;
        struct bam_inputs *in = open_three(texts[0], texts[1], texts[2]);
        const char *sorted = bam_inputs_sorted_by_coordinate(in);
        assert_string_equal(in->common_order, cases[i].common);
        assert_string_equal(sorted ? sorted : "", cases[i].by_coordinate ? cases[i].by_coordinate : "");
        assert_false(in->can_seek);
        bam_inputs_close(in);
    }
}

/* Reads from input 1 on. While that is read, the file at `changed` becomes this text. Returns what
   the call for the next input returns. */
static int next_after(const char *changed, const char *text, bool *is_changed)
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
    *is_changed = in->changed;
    bam_inputs_close(in);
    return r;
}

TEST_OF_INPUTS(test_inputs_that_change_while_they_are_needed_are_errors)
{
    static const char longer[] = CLAIM("SO:unsorted") RECORD RECORD,
                      other[] = CLAIM("SO:unknown") RECORD;
    static const struct {
        const char *path, *text;
        int r;
    } cases[] = {
        {"0.sam", longer, 1}, {"1.sam", longer, -1}, {"1.sam", other, -1}, {"new", longer, 1},
        {"2.sam", longer, 1}, {"2.sam", other, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool is_changed;
        assert_int_equal(next_after(cases[i].path, cases[i].text, &is_changed), cases[i].r);
        assert_int_equal(is_changed, cases[i].r < 0);
    }
}
