/*
 * test_bam_index.c -- what no index can hold. fuzz_index.c and test_index.py compare indexes with
 * those of htslib, byte for byte.
 */
#include "unit_test.h"

#include "output/bam_index.h"
#include "util/diag.h"

#include <unistd.h>

/* References c0, c1, ...: the last of the given lengths is that of all further references, too. */
static sam_hdr_t *make_header(const int64_t *lengths, size_t n_lengths, size_t n_refs)
{
    OWNED_TEXT kstring_t text = {0};
    assert_true(kputs("@HD\tVN:1.6\tSO:coordinate\n", &text) >= 0);
    for (size_t i = 0; i < n_refs; i++) {
        int64_t length = lengths[i < n_lengths ? i : n_lengths - 1];
        assert_true(ksprintf(&text, "@SQ\tSN:c%zu\tLN:%" PRId64 "\n", i, length) > 0);
    }
    return parse_header(text.s);
}

static void add_one(struct bam_index_part *part, int32_t tid, int32_t pos, int r)
{
    uint8_t rec[64];
    struct record_fields fields = {.name = "far", .tid = tid, .pos = pos};
    (void)put_record(rec, &fields, 0);
    assert_int_equal(bam_index_part_add(part, rec, 0), r);
}

TEST(test_what_no_index_can_hold_is_refused)
{
    static const int64_t lengths[] = {1 << 29, (1 << 29) + 1};
    diag_silence();
    sam_hdr_t *header = make_header(lengths + 1, 1, 1);
    assert_null(bam_index_create(BAM_INDEX_BAI, header));
    sam_hdr_destroy(header);
    header = make_header(lengths, 1, 3);
    struct bam_index *index = bam_index_create(BAM_INDEX_BAI, header);
    assert_non_null(index);
    struct bam_index_part part;
    bam_index_part_init(&part, bam_index_shape(index));
    add_one(&part, 0, (1 << 29) - 1, 0);
    add_one(&part, 0, 1 << 29, -1);
    bam_index_part_release(&part);
    bam_index_part_init(&part, bam_index_shape(index));
    /* References must ascend, and records without one must come last. */
    static const int32_t disorders[][2] = {{1, 0}, {-1, 2}, {2, 1}};
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 2; k++) {
            add_one(&part, disorders[i][k], 0, 0);
            bam_index_part_end(&part, bam_index_voffset(1, 0));
            int r = bam_index_append(index, &part, (uint64_t)k);
            assert_int_equal(r, k == 0 ? 0 : -1);
            bam_index_part_release(&part);
            bam_index_part_init(&part, bam_index_shape(index));
        }
        bam_index_destroy(index);
        index = bam_index_create(BAM_INDEX_BAI, header);
        assert_non_null(index);
    }
    struct output_path path = {.name = "no-directory/index.bai"};
    assert_int_equal(bam_index_write(index, &path), -1);
    bam_index_destroy(index);
    index = bam_index_create(BAM_INDEX_CSI, header);
    assert_non_null(index);
    if (access("/dev/full", W_OK) == 0) {
        path.name = "/dev/full";
        assert_int_equal(bam_index_write(index, &path), -1);
        assert_int_equal(access("/dev/full", W_OK), 0);
    }
    bam_index_destroy(index);
    bam_index_destroy(NULL);
    bam_index_part_release(&part);
    bam_index_part_release(&part);
    sam_hdr_destroy(header);
}

/* Positions have 62 bits, and LN may claim more. No shape is large enough then, and none is sought.
   */
TEST(test_impossible_lengths_get_a_shape)
{
    static const int64_t most = INT64_C(1) << 62;
    static const int64_t lengths[] = {(INT64_C(1) << 59) - 256, most - 256, most - 255, most,
                                      INT64_MAX - 256, INT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        OWNED_HEADER sam_hdr_t *header = make_header(lengths + i, 1, 1);
        assert_true(sam_hdr_tid2len(header, 0) == lengths[i]);
        (void)alarm(60);
        struct bam_index *index = bam_index_create(BAM_INDEX_CSI, header);
        (void)alarm(0);
        assert_non_null(index);
        const struct bam_index_shape *shape = bam_index_shape(index);
        int bits = shape->min_shift + 3 * shape->depth;
        assert_in_range(bits, 1, 62);
        /* For possible lengths the index holds the reference and what htslib adds to it. */
        if (lengths[i] <= most - 256) assert_true(lengths[i] + 256 <= INT64_C(1) << bits);
        bam_index_destroy(index);
    }
}
