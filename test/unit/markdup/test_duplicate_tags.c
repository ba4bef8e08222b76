/* test_duplicate_tags.c -- flag and tags of duplicates; those of random records are compared with
   samtools in test_markdup.py. */
#include "sam_line.h"
#include "unit_test.h"

#include "bam/bam_check.h"
#include "bam/bam_long.h"
#include "markdup/duplicate_tags.h"
#include "markdup/read_names.h"

#define LINE(flag) "q\t" flag "\tc\t5\t60\t2S2M\t*\t0\t0\tACGT\tFFFF"

static const uint8_t best[] = "A:1:best";

enum type { NO_TYPE, LIBRARY, OPTICAL };

struct wanted {                 /* what a record gets */
    bool is_duplicate;          /* only then: */
    const uint8_t *original;
    size_t original_bytes;
    enum type type;
    uint32_t count;             /* 0: --duplicate-count is off */
    bool drops_count;           /* -S; count is not 0 */
};

static struct wanted duplicate_of(enum type type)
{
    return (struct wanted){.is_duplicate = true, .original = best,
                           .original_bytes = sizeof best - 1, .type = type};
}

static uint8_t *write_tags(uint8_t *rec, const struct wanted *tags)
{
    const struct markdup_rules rules = {.optical_distance = tags->type != NO_TYPE,
                                        .counts = tags->count > 0,
                                        .marks_others = tags->drops_count};
    const struct duplicate_note note = {.is_optical = tags->type == OPTICAL,
                                        .count = tags->is_duplicate ? 0 : tags->count,
                                        .original = tags->original,
                                        .original_bytes = tags->original_bytes};
    uint8_t *out = test_alloc(bam_record_bytes(rec) + DUPLICATE_TAGS_GROWTH_BYTES);
    if (tags->is_duplicate) test_put_u16(rec + BAM_FLAG_AT, bam_record_flag(rec) | BAM_FDUP);
    size_t n = duplicate_tags_write(&rules, rec,
                                    tags->is_duplicate || tags->count > 0 ? &note : NULL, out);
    assert_int_equal(n, bam_record_bytes(out));
    assert_null(bam_record_check(out, 2));
    return out;
}

static void check_written(const char *line, const struct wanted *tags, const char *expected)
{
    OWNED uint8_t *rec = record_of_line(line), *out = write_tags(rec, tags);
    assert_line_of_record(out, expected);
}

TEST(test_duplicates_get_flag_and_tags)
{
    const struct wanted flag_only = {.is_duplicate = true}, nothing = {.count = 0};
    struct wanted both = duplicate_of(OPTICAL);
    check_written(LINE("16"), &flag_only, LINE("1040"));
    check_written(LINE("16") "\tdo:Z:x\tdc:i:1", &flag_only, LINE("1040") "\tdo:Z:x\tdc:i:1");
    check_written(LINE("1040") "\tdt:Z:LB", &nothing, LINE("1040") "\tdt:Z:LB");
    check_written(LINE("0") "\tXX:i:1", &both,
                  LINE("1024") "\tXX:i:1\tdo:Z:A:1:best\tdt:Z:SQ");
    check_written(LINE("0") "\tdt:Z:a long one\tXX:i:1\tdo:Z:\tdt:Z:x", &both,
                  LINE("1024") "\tdt:Z:SQ\tXX:i:1\tdo:Z:A:1:best\tdt:Z:x");
    both.type = LIBRARY;
    check_written(LINE("1024") "\tdo:Z:A\tXX:i:1", &both,
                  LINE("1024") "\tdo:Z:A:1:best\tXX:i:1\tdt:Z:LB");
    check_written(LINE("0") "\tdt:i:70000\tdo:B:c,1,2\tXX:i:1", &both,
                  LINE("1024") "\tdt:Z:LB\tdo:Z:A:1:best\tXX:i:1");
}

TEST(test_best_read_gets_the_count)
{
    struct wanted counted = {.count = 3}, dropped = duplicate_of(NO_TYPE);
    check_written(LINE("0"), &counted, LINE("0") "\tdc:i:3");
    check_written(LINE("0") "\tdc:i:9\tdc:i:8", &counted, LINE("0") "\tdc:i:3\tdc:i:8");
    check_written(LINE("0") "\tdc:Z:9\tXX:i:1", &counted, LINE("0") "\tdc:i:3\tXX:i:1");
    check_written(LINE("1024") "\tdc:i:9", &counted, LINE("1024") "\tdc:i:9");
    dropped.count = 3;
    check_written(LINE("0") "\tdc:i:9", &dropped, LINE("1024") "\tdc:i:9\tdo:Z:A:1:best");
    dropped.drops_count = true;
    check_written(LINE("0") "\tdc:i:9\tdc:i:8", &dropped, LINE("1024") "\tdc:i:8\tdo:Z:A:1:best");
    counted.drops_count = true;
    check_written(LINE("0") "\tdc:i:9", &counted, LINE("0") "\tdc:i:3");
}

static const char *const some_tags[] = {
    "do:Z:", "do:Z:A:1:best", "do:Z:x", "dt:Z:SQ", "dt:Z:LB", "dt:Z:longer", "dc:i:1", "dc:i:300",
    "dc:i:70000", "dc:i:-1", "dX:i:1", "XX:Z:do", "XY:B:i,1,2,3", "XZ:A:d",
};

static void random_line(struct rng *rng, char *line, size_t room, const char *name)
{
    size_t n_tags = sizeof some_tags / sizeof *some_tags;
    size_t n = (size_t)snprintf(line, room, "%s\t%d\tc\t5\t60\t2S2M\t*\t0\t0\tACGT\tFFFF", name,
                                rng_one_in(rng, 3) ? 1040 : 16);
    for (size_t i = rng_below(rng, 6); i > 0; i--)
        n += (size_t)snprintf(line + n, room - n, "\t%s", some_tags[rng_below(rng, n_tags)]);
}

static struct wanted random_tags(struct rng *rng)
{
    static const uint32_t counts[] = {0, 1, 254, 255, 256, 65534, 65535, 65536, UINT32_MAX};
    struct wanted tags = {.is_duplicate = rng_one_in(rng, 2)};
    if (tags.is_duplicate) tags.type = (enum type)rng_below(rng, 3);
    tags.count = counts[rng_below(rng, sizeof counts / sizeof *counts)];
    tags.drops_count = tags.count > 0 && rng_one_in(rng, 4);
    if (tags.is_duplicate && rng_one_in(rng, 2)) {
        tags.original = best;
        tags.original_bytes = rng_below(rng, sizeof best);
    }
    return tags;
}

/* The record with the long tag. */
static uint8_t *make_long(const char *line)
{
    OWNED uint8_t *rec = record_of_line(line);
    size_t n = bam_record_bytes(rec);
    uint8_t *out = test_alloc(n + BAM_LONG_TAG_BYTES);
    memcpy(out, rec, n);
    (void)bam_long_tag_put(out + n, INT64_C(5000000000), -1, 0);
    test_put_u32(out, (uint32_t)(n + BAM_LONG_TAG_BYTES - 4));
    test_put_u32(out + BAM_POS_AT, INT32_MAX);
    return out;
}

TEST(test_long_tag_stays_last)
{
    const struct wanted both = duplicate_of(LIBRARY);
    OWNED uint8_t *rec = make_long(LINE("0") "\tdt:Z:x"), *out = write_tags(rec, &both);
    OWNED uint8_t *expected = make_long(LINE("1024") "\tdt:Z:LB\tdo:Z:A:1:best");
    assert_int_equal(bam_record_bytes(out), bam_record_bytes(expected));
    assert_memory_equal(out, expected, bam_record_bytes(expected));
    assert_int_equal(bam_record_true_pos(out), INT64_C(5000000000));
    (void)duplicate_tags_clear(out);
    assert_int_equal(bam_record_true_pos(out), INT64_C(5000000000));
}

TEST(test_damaged_tags_stay_and_are_not_searched)
{
    const struct wanted both = duplicate_of(LIBRARY);
    OWNED uint8_t *rec = record_of_line(LINE("0") "\tdt:Z:x\tXX:Z:abcdef\tdo:Z:x");
    size_t n = bam_record_bytes(rec);
    rec[n - 5 - 8] = '?';       /* the type of XX */
    OWNED uint8_t *out = write_tags(rec, &both);
    assert_int_equal(bam_record_bytes(out), n + 1);
    assert_memory_equal(out + n + 1 - 15, rec + n - 15, 15);
    assert_memory_equal(out + n + 1 - 15 - 6, "dtZLB", 6);
}

static uint8_t *strip(const uint8_t *rec, size_t *n_bytes)
{
    uint8_t *out = test_alloc(bam_record_bytes(rec));
    *n_bytes = duplicate_tags_strip(rec, out);
    assert_int_equal(*n_bytes, bam_record_bytes(out));
    return out;
}

static void check_same_content(const struct rng *rng, const uint8_t *a, const uint8_t *b)
{
    size_t n, m;
    OWNED uint8_t *x = strip(a, &n), *y = strip(b, &m);
    CHECK(rng, n == m && memcmp(x, y, n) == 0);
}

static uint8_t *move_barcode(const uint8_t *rec)
{
    static const struct markdup_rules rules = {
        .barcode_source = BARCODE_NAME, .moves_umi = true, .umi_separator = ':'};
    size_t n = bam_record_bytes(rec);
    uint8_t *out = test_alloc(n + READ_BARCODE_MOVED_BYTES);
    if (read_barcode_move(&rules, rec, out) == 0) memcpy(out, rec, n);
    return out;
}

/* Whatever --markdup does to a record, the stripped record is the same, and is changed by any other
   change. */
TEST(test_stripped_record_is_the_same_with_any_marks)
{
    struct rng rng = rng_start(602);
    for (int i = 0; i < 20000; i++) {
        char line[400];
        struct wanted tags = random_tags(&rng);
        random_line(&rng, line, sizeof line, rng_one_in(&rng, 2) ? "q" : "1:2:3:4:5:6:7:AC");
        if (rng_one_in(&rng, 4)) strcat(line, "\tRX:Z:old");
        OWNED uint8_t *rec = rng_one_in(&rng, 4) ? make_long(line) : record_of_line(line);
        OWNED uint8_t *cleared = test_alloc(bam_record_bytes(rec));
        memcpy(cleared, rec, bam_record_bytes(rec));
        if (rng_one_in(&rng, 2)) (void)duplicate_tags_clear(cleared);
        OWNED uint8_t *out = write_tags(cleared, &tags);
        check_same_content(&rng, rec, out);
        OWNED uint8_t *moved = move_barcode(rec), *moved_last = move_barcode(out);
        OWNED uint8_t *moved_first = write_tags(moved, &tags);
        CHECK(&rng, bam_record_is_long(moved) == bam_record_is_long(rec));
        check_same_content(&rng, moved, moved_last);
        check_same_content(&rng, moved, moved_first);
    }
}

static void check_stripped(const char *line, const char *expected)
{
    size_t n;
    OWNED uint8_t *rec = record_of_line(line), *out = strip(rec, &n);
    assert_line_of_record(out, expected);
}

TEST(test_strip_keeps_others)
{
    check_stripped(LINE("1040"), LINE("16"));
    check_stripped(LINE("0") "\tdo:Z:a\tXX:i:1\tdt:i:5\tdo:Z:b\tdX:Z:do\tdc:i:3",
                   LINE("0") "\tXX:i:1\tdX:Z:do");
}
