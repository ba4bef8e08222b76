/*
 * test_bam_index_reader.c -- an index file is read as the specification says; damaged ones are
 * refused and harm nothing.
 */
#include "test_place.h"
#include "unit_test.h"

#include "output/bam_index_reader.h"
#include "util/byte_order.h"

enum { MOST_BYTES = 1024 };

struct bytes {
    uint8_t at[MOST_BYTES];
    size_t n;
};

static void add_u32(struct bytes *to, uint32_t value)
{
    (void)put_u32(to->at + to->n, value);
    to->n += 4;
}

static void add_u64(struct bytes *to, uint64_t value)
{
    (void)put_u64(to->at + to->n, value);
    to->n += 8;
}

/* Two references: one without records; one with 5 mapped and 1 unmapped record in two bins, the
   first of which begins at window 2 and the second at window 0. 3 records have no place. */
static struct bytes make_index(bool is_csi)
{
    struct bytes index = {.n = 4};
    memcpy(index.at, is_csi ? "CSI\1" : "BAI\1", 4);
    if (is_csi) {
        add_u32(&index, 14);
        add_u32(&index, 5);
        add_u32(&index, 0);
    }
    add_u32(&index, 2);
    add_u32(&index, 0);
    if (!is_csi) add_u32(&index, 0);
    add_u32(&index, 3);
    const uint32_t bins[] = {4683, 4681, 37450};
    const uint64_t chunks[][2] = {{200 << 16, 300 << 16}, {100 << 16, 200 << 16}};
    for (int i = 0; i < 2; i++) {
        add_u32(&index, bins[i]);
        if (is_csi) add_u64(&index, chunks[i][0]);
        add_u32(&index, 1);
        add_u64(&index, chunks[i][0]);
        add_u64(&index, chunks[i][1]);
    }
    add_u32(&index, bins[2]);
    if (is_csi) add_u64(&index, 0);
    add_u32(&index, 2);
    add_u64(&index, 100 << 16);
    add_u64(&index, 300 << 16);
    add_u64(&index, 5);
    add_u64(&index, 1);
    if (!is_csi) {
        add_u32(&index, 3);
        add_u64(&index, 100 << 16);
        add_u64(&index, 100 << 16);
        add_u64(&index, 200 << 16);
    }
    add_u64(&index, 3);
    return index;
}

static int read_bytes(const struct bytes *bytes, const char *name, struct bam_read_index *index)
{
    put_file("x.bam", "", 0);
    put_file(name, bytes->at, bytes->n);
    int r = bam_index_read("x.bam", index);
    assert_int_equal(unlink("x.bam"), 0);
    assert_int_equal(unlink(name), 0);
    return r;
}

static void check_index(bool is_csi, const char *name)
{
    struct bam_read_index index;
    struct bytes bytes = make_index(is_csi);
    assert_int_equal(read_bytes(&bytes, name, &index), 0);
    const struct bam_index_part *part = &index.part;
    assert_int_equal(index.n_refs, 2);
    assert_int_equal(index.n_records, 9);
    assert_int_equal(part->n_unplaced, 3);
    assert_int_equal(part->n_refs, 1);
    assert_int_equal(part->refs[0].tid, 1);
    assert_int_equal(part->refs[0].begin, 100 << 16);
    assert_int_equal(part->refs[0].n_mapped, 5);
    assert_int_equal(part->refs[0].n_unmapped, 1);
    assert_int_equal(part->n_chunks, 2);
    assert_int_equal(part->chunks[0].bin, 4681);
    assert_int_equal(part->chunks[1].begin, 200 << 16);
    assert_int_equal(part->unplaced_begin, 300 << 16);
    assert_true(index.last_begin == 100 << 16 || index.last_begin == 200 << 16);
    /* Window 1 has no value of its own in a CSI. */
    uint64_t values[3] = {0};
    for (size_t i = 0; i < part->n_windows; i++)
        for (uint32_t w = part->windows[i].first; w <= part->windows[i].last && w < 3; w++)
            values[w] = part->windows[i].begin;
    assert_int_equal(values[0], 100 << 16);
    assert_int_equal(values[1], 100 << 16);
    assert_int_equal(values[2], 200 << 16);
    bam_index_part_release(&index.part);
}

TEST_IN_OWN_DIR(test_bai_is_read_and_written)
{
    check_index(false, "x.bam.bai");
    check_index(false, "x.bai");
}

TEST_IN_OWN_DIR(test_csi_is_read_and_written)
{
    check_index(true, "x.bam.csi");
    check_index(true, "x.csi");
}

TEST_IN_OWN_DIR(test_index_that_is_cut_off_is_refused)
{
    struct bam_read_index index;
    for (int is_csi = 0; is_csi < 2; is_csi++) {
        struct bytes bytes = make_index(is_csi);
        while (bytes.n-- > 0) assert_int_equal(read_bytes(&bytes, "x.bam.csi", &index), -1);
    }
}

TEST_IN_OWN_DIR(test_changed_index_reads_nothing_outside)
{
    static const uint32_t numbers[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 37449, 1 << 20};
    struct bam_read_index index;
    unsigned n_refused = 0;
    for (int is_csi = 0; is_csi < 2; is_csi++)
        for (size_t at = 0; at + 4 <= make_index(is_csi).n; at += 2)
            for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
                struct bytes bytes = make_index(is_csi);
                (void)put_u32(bytes.at + at, numbers[i]);
                if (read_bytes(&bytes, "x.bam.csi", &index) < 0)
                    n_refused++;
                else
                    bam_index_part_release(&index.part);
            }
    assert_true(n_refused > 100);
}

TEST_IN_OWN_DIR(test_missing_index_is_an_error)
{
    struct bam_read_index index;
    assert_int_equal(bam_index_read("none.bam", &index), -1);
    put_file("x.bam", "", 0);
    assert_int_equal(bam_index_read("x.bam", &index), -1);
    assert_int_equal(unlink("x.bam"), 0);
}
