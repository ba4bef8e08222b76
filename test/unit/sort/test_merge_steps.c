/*
 * test_merge_steps.c -- the ends of sorted BAM files, and the steps of --merge that follow from
 * them: which inputs are copied, which are merged, and in which order. The files and their indexes
 * are written by htslib.
 */
#include "test_place.h"
#include "unit_test.h"

#include "input/bam_inputs.h"
#include "sort/merge_sorted.h"

#include <htslib/bgzf.h>

enum { MOST_FILES = 6, MOST_RECORDS = 40 };

#define REFERENCES "@SQ\tSN:c1\tLN:100000\n@SQ\tSN:c2\tLN:100000\n"
#define HEADER "@HD\tVN:1.6\tSO:coordinate\n" REFERENCES

static const char *header_text = HEADER;

struct place_of {
    int32_t tid;
    int64_t pos;                /* from 0 */
};

static const struct place_of unplaced = {-1, -1};
static const char *const names[MOST_FILES] = {"0.bam", "1.bam", "2.bam", "3.bam", "4.bam",
                                              "5.bam"};

static void write_record(samFile *file, sam_hdr_t *header, bam1_t *b, struct place_of at)
{
    static const uint32_t cigar = 10 << BAM_CIGAR_SHIFT | BAM_CMATCH;
    bool placed = at.tid >= 0;
    assert_true(bam_set1(b, 1, "r", placed ? 0 : BAM_FUNMAP, at.tid, at.pos, 60, placed, &cigar,
                         -1, -1, 0, 10, "ACGTACGTAC", NULL, 0) >= 0);
    assert_true(sam_write1(file, header, b) >= 0);
}

/* Writes a file of records at these places, and its CSI if `indexed`. */
static void write_bam(const char *name, const struct place_of *at, size_t n, bool indexed)
{
    char index[32];
    samFile *file = sam_open(name, "wb0");
    OWNED_HEADER sam_hdr_t *header = parse_header(header_text);
    OWNED_RECORD bam1_t *b = bam_init1();
    assert_true(file && header && b && sam_hdr_write(file, header) == 0);
    for (size_t i = 0; i < n; i++) write_record(file, header, b, at[i]);
    assert_int_equal(sam_close(file), 0);
    (void)snprintf(index, sizeof index, "%s.csi", name);
    if (indexed) assert_int_equal(sam_index_build3(name, index, 14, 0), 0);
}

static void remove_all(void)
{
    char index[32];
    for (int i = 0; i < MOST_FILES; i++) {
        (void)snprintf(index, sizeof index, "%s.csi", names[i]);
        (void)unlink(names[i]);
        (void)unlink(index);
    }
}

TEST_IN_OWN_DIR(test_ends_are_those_of_the_index)
{
    const struct place_of at[] = {{0, 5}, {0, 5}, {1, 7}, {1, 900}, unplaced, unplaced};
    const struct bam_ends_places none = {0};
    struct bam_ends ends;
    write_bam(names[0], at, 6, false);
    assert_int_equal(bam_ends_read(names[0], &none, &ends), 0);
    assert_true(ends.first && ends.first->core.tid == 0 && ends.first->core.pos == 5);
    assert_true(!ends.last && !ends.after);
    /* The records begin where the header's block ends; the second follows the first. */
    uint64_t first = ends.begin << 16, record = (uint64_t)ends.first->l_data + 36;
    bam_ends_release(&ends);
    assert_null(ends.first);
    const struct bam_ends_places last = {.last_begin = first};
    assert_int_equal(bam_ends_read(names[0], &last, &ends), 0);
    assert_true(ends.last && ends.last->core.tid == -1);
    bam_ends_release(&ends);
    /* bam1_t pads the name; the file does not. */
    BGZF *file = bgzf_open(names[0], "r");
    OWNED_HEADER sam_hdr_t *header = bam_hdr_read(file);
    OWNED_RECORD bam1_t *b = bam_init1();
    uint64_t after_placed = 0;
    for (int i = 0; i < 4; i++) assert_true(bam_read1(file, b) > 0);
    after_placed = (uint64_t)bgzf_tell(file);
    assert_int_equal(bgzf_close(file), 0);
    assert_true(after_placed > first + record);
    const struct bam_ends_places placed = {.placed_end = after_placed};
    assert_int_equal(bam_ends_read(names[0], &placed, &ends), 0);
    assert_true(ends.after && ends.after->core.tid == -1);
    bam_ends_release(&ends);
    remove_all();
}

TEST_IN_OWN_DIR(test_files_without_ends)
{
    const struct bam_ends_places none = {0}, beyond = {.last_begin = UINT64_C(1) << 40};
    struct bam_ends ends;
    const struct place_of at[] = {{0, 5}};
    write_bam(names[0], NULL, 0, false);
    assert_int_equal(bam_ends_read(names[0], &none, &ends), 0);
    assert_null(ends.first);
    bam_ends_release(&ends);
    write_bam(names[1], at, 1, false);
    assert_int_equal(bam_ends_read(names[1], &beyond, &ends), -1);
    assert_int_equal(bam_ends_read("missing.bam", &none, &ends), -1);
    /* Without its EOF block it may be cut off. */
    FILE *file = fopen(names[1], "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    assert_int_equal(ftruncate(fileno(file), ftell(file) - 28), 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(bam_ends_read(names[1], &none, &ends), -1);
    put_file(names[2], "no BAM", 6);
    assert_int_equal(bam_ends_read(names[2], &none, &ends), -1);
    remove_all();
}

struct test_file {
    struct place_of at[4];
    size_t n;
    bool lacks_index;
};

/* Describes the steps: "2c 0,1 3c": input 2 is copied, 0 and 1 are merged, 3 is copied. */
static void describe(const struct merge_steps *steps, char *out, size_t room)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < steps->n; i++) {
        const struct merge_step *step = &steps->steps[i];
        for (size_t k = 0; k < step->n_inputs; k++)
            used += (size_t)snprintf(out + used, room - used, "%s%zu",
                                     k > 0 ? "," : i > 0 ? " " : "", step->inputs[k]);
        if (step->copies) used += (size_t)snprintf(out + used, room - used, "c");
    }
}

static void check_steps(const struct test_file *files, size_t n,
                        const struct bam_index_shape *shape, const char *want)
{
    static const htsFormat no_options;
    char got[256];
    struct merge_steps steps;
    for (size_t i = 0; i < n; i++)
        write_bam(names[i], files[i].at, files[i].n, !files[i].lacks_index);
    struct bam_inputs *inputs = bam_inputs_open(names, n, &no_options, NULL, true);
    assert_non_null(inputs);
    merge_steps_plan(names, inputs, n, shape, &steps);
    describe(&steps, got, sizeof got);
    assert_string_equal(got, want);
    merge_steps_release(&steps);
    bam_inputs_close(inputs);
    remove_all();
}

TEST_IN_OWN_DIR(test_files_that_overlap_are_one_step)
{
    const struct test_file first = {{{0, 1}, {0, 50}}, 2, false},
                           second = {{{0, 60}, {1, 4}}, 2, false},
                           across = {{{0, 55}, {0, 70}}, 2, false},
                           last = {{{1, 5}, unplaced}, 2, false},
                           only_unplaced = {{unplaced}, 1, false}, empty = {.n = 0},
                           plain = {{{1, 500}}, 1, true};
    const struct test_file in_order[] = {first, second, last};
    check_steps(in_order, 3, NULL, "0c 1c 2c");
    const struct test_file turned[] = {last, second, first};
    check_steps(turned, 3, NULL, "2c 1c 0c");
    const struct test_file overlapping[] = {last, second, across, first};
    check_steps(overlapping, 4, NULL, "3c 1,2 0c");
    const struct test_file without[] = {first, plain};          /* it may hold any place */
    check_steps(without, 2, NULL, "0,1");
    const struct test_file with_empty[] = {second, empty, first};
    check_steps(with_empty, 3, NULL, "1c 2c 0c");
    const struct test_file two_unplaced[] = {only_unplaced, last};      /* these have one key */
    check_steps(two_unplaced, 2, NULL, "0,1");
    const struct test_file one_unplaced[] = {only_unplaced, first};
    check_steps(one_unplaced, 2, NULL, "1c 0c");
}

TEST_IN_OWN_DIR(test_order_of_inputs_decides_at_one_place)
{
    const struct test_file before = {{{0, 1}, {0, 50}}, 2, false},
                           after = {{{0, 50}, {0, 70}}, 2, false},
                           also_before = {{{0, 10}, {0, 50}}, 2, false};
    const struct test_file in_order[] = {before, after}, turned[] = {after, before};
    check_steps(in_order, 2, NULL, "0c 1c");
    check_steps(turned, 2, NULL, "0,1");
    const struct test_file between[] = {before, after, also_before};
    check_steps(between, 3, NULL, "0,1,2");
}

/* The files have the same sizes, and so the indexes the same places. */
TEST_IN_OWN_DIR(test_input_with_the_index_of_another_file_is_merged)
{
    static const struct {
        struct place_of indexed[2], at[2];
        const char *want;
    } cases[] = {
        {{{0, 5}, {1, 5}}, {{0, 5}, {1, 5}}, "1c 0c"}, {{{1, 5}, {1, 5}}, {{0, 5}, {1, 5}}, "0,1"},
        {{{0, 5}, {0, 5}}, {{0, 5}, {1, 5}}, "0,1"}, {{{0, 5}, {-1, -1}}, {{0, 5}, {1, 5}}, "0,1"},
        {{{-1, -1}, {-1, -1}}, {{0, 5}, {1, 5}}, "0,1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct test_file files[] = {{{cases[i].at[0], cases[i].at[1]}, 2, true},
                                          {{{0, 1}}, 1, false}};
        write_bam(names[0], cases[i].indexed, 2, true);
        check_steps(files, 2, NULL, cases[i].want);
    }
}

TEST_IN_OWN_DIR(test_index_of_another_shape_or_order_is_not_used)
{
    const struct test_file files[] = {{{{0, 1}}, 1, false}, {{{1, 1}}, 1, false}};
    /* htslib makes as many levels as references of 100,000 bases need. */
    const struct bam_index_shape own = {14, 1}, other = {14, 5}, wider = {15, 1};
    check_steps(files, 2, &own, "0c 1c");
    check_steps(files, 2, &other, "0,1");
    check_steps(files, 2, &wider, "0,1");
    check_steps(files, 2, NULL, "0c 1c");
    header_text = "@HD\tVN:1.6\tSO:unsorted\n" REFERENCES;
    check_steps(files, 2, NULL, "0,1");
    header_text = HEADER;
}

TEST(test_inputs_may_be_one_step)
{
    struct merge_steps steps;
    char got[64];
    merge_steps_plan(names, NULL, 3, NULL, &steps);
    describe(&steps, got, sizeof got);
    assert_string_equal(got, "0,1,2");
    merge_steps_release(&steps);
    assert_int_equal(steps.n, 0);
}
