/* test_read_barcode.c -- barcodes in tags and names, and their way from the name to RX. */
#include "sam_line.h"
#include "unit_test.h"

#include "bam/bam_check.h"
#include "bam/bam_fields.h"
#include "markdup/read_names.h"

static const struct markdup_rules no_barcode;
static const struct markdup_rules by_tag = {.barcode_source = BARCODE_TAG,
                                              .barcode_tag = {'B', 'X'}};
static const struct markdup_rules by_name = {.barcode_source = BARCODE_NAME,
                                               .umi_separator = ':'};

static struct markdup_rules by_pattern(const char *text, char separator)
{
    char why[NAME_PATTERN_WHY_BYTES];
    struct markdup_rules rules = {.barcode_source = BARCODE_NAME, .umi_separator = separator};
    rules.barcode_pattern = name_pattern_compile(text, why);
    assert_non_null(rules.barcode_pattern);
    return rules;
}

/* expected: NULL: there is none. */
static void check_record(const struct markdup_rules *rules, const uint8_t *rec,
                         const char *expected, bool unreadable)
{
    struct read_barcode barcode = read_barcode_of(rules, rec);
    assert_int_equal(barcode.is_unreadable, unreadable);
    if (!expected) {
        assert_null(barcode.text);
        return;
    }
    assert_non_null(barcode.text);
    assert_int_equal(barcode.n, strlen(expected));
    assert_memory_equal(barcode.text, expected, barcode.n);
}

static void check_line(const struct markdup_rules *rules, const char *name, const char *tags,
                       const char *expected, bool unreadable)
{
    char line[600];
    (void)snprintf(line, sizeof line, "%s\t4\t*\t0\t0\t*\t*\t0\t0\tACGT\tFFFF%s", name, tags);
    OWNED uint8_t *rec = record_of_line(line);
    check_record(rules, rec, expected, unreadable);
}

TEST(test_barcode_is_the_text_of_its_tag)
{
    check_line(&no_barcode, "1:2:3:4:5:6:7:ACG", "\tBX:Z:ACGT", NULL, false);
    check_line(&by_tag, "q", "\tAA:i:1\tBX:Z:ACGT", "ACGT", false);
    check_line(&by_tag, "q", "\tBX:H:1F", "1F", false);
    check_line(&by_tag, "q", "\tBX:Z:", NULL, false);
    check_line(&by_tag, "q", "", NULL, false);
    check_line(&by_tag, "q", "\tBx:Z:ACGT", NULL, false);
    check_line(&by_tag, "q", "\tBX:i:5", NULL, true);
    check_line(&by_tag, "q", "\tBX:A:G", NULL, true);
}

TEST(test_barcode_is_the_eighth_field_of_the_name)
{
    check_line(&by_name, "1:2:3:4:5:6:7:ACG", "", "ACG", false);
    check_line(&by_name, "1:2:3:4:5:6:7:ACG+T:8:9", "", "ACG+T:8:9", false);
    check_line(&by_name, "a_b:2:3:4:5:6:7:ACG", "", "ACG", false);
    check_line(&by_name, "x:a_b:2:3:4:5:6:7:ACG", "", "7:ACG", false);
    check_line(&by_name, "0:1:2:3:4:5:6:7:8", "", "7:8", false);
    check_line(&by_name, "1:2:3:4:5:6:7:", "", NULL, true);
    check_line(&by_name, "1:2:3:4:5:6:7", "", NULL, true);
    check_line(&by_name, "1:2::4:5:6:7:8", "", "8", false);
    check_line(&by_name, ":::::::A", "", "A", false);
    check_line(&by_name, "AV2341:2026-08-27_MOON:25524:1:10901:0465:0038:CCGGGG", "", "CCGGGG",
               false);
    static const char *const barcodes[] = {"AC+GT", "AC-GT", "AC_GT", "rACGT", "A/1", "N", "-"};
    for (size_t i = 0; i < sizeof barcodes / sizeof *barcodes; i++) {
        char name[100];
        (void)snprintf(name, sizeof name, "A-1:r_2:F.3:4:5:6:7:%s", barcodes[i]);
        check_line(&by_name, name, "", barcodes[i], false);
    }
    check_line(&by_name, "1:2:3:4:5:6:7:ACG 1:N:0:GT", "", "ACG", false);
    check_line(&by_name, "1:2:3:4:5:6:7: ACG", "", NULL, true);
    check_line(&by_name, "1:2:3:4:5:6:7:A", "\tRX:Z:G", "A", false);
    struct markdup_rules rules = by_pattern("_([ACGT]*)$", '_');
    check_line(&rules, "q_ACG", "", "ACG", false);
    check_line(&rules, "q_", "", NULL, false);
    check_line(&rules, "q", "", NULL, true);
    name_pattern_destroy(rules.barcode_pattern);
    rules = by_pattern("q(_x)?", '_');
    check_line(&rules, "q_A", "", NULL, true);
    name_pattern_destroy(rules.barcode_pattern);
}

/* `expected` is a line; NULL: the record stays. */
static void check_moved(const struct markdup_rules *rules, const char *line, const char *expected)
{
    OWNED uint8_t *rec = record_of_line(line);
    OWNED uint8_t *out = test_alloc(bam_record_bytes(rec) + READ_BARCODE_MOVED_BYTES);
    size_t n = read_barcode_move(rules, rec, out);
    if (!expected) {
        assert_int_equal(n, 0);
    } else {
        assert_int_equal(n, bam_record_bytes(out));
        assert_null(bam_record_check(out, 2));
        assert_line_of_record(out, expected);
    }
}

#define FIELDS "\t0\tc\t5\t60\t2S2M\t*\t0\t0\tACGT\tFFFF"

/* What samtools markdup --move-umi-to-tag 1.24 writes. */
TEST(test_barcode_moves_from_name_to_tag)
{
    check_moved(&by_name, "1:2:3:4:5:6:7:ACG" FIELDS, "1:2:3:4:5:6:7" FIELDS "\tRX:Z:ACG");
    check_moved(&by_name, "1:2:3:4:5:6:7:ACG" FIELDS "\tXX:i:1\tRX:Z:old one\tYY:i:2",
                "1:2:3:4:5:6:7" FIELDS "\tXX:i:1\tRX:Z:ACG\tYY:i:2");
    check_moved(&by_name, "1:2:3:4:5:6:7" FIELDS "\tRX:Z:A", NULL);
    struct markdup_rules rules = by_pattern("^([ACGT]*)[_x]", '_');
    check_moved(&rules, "ACG_q_1" FIELDS, "q_1" FIELDS "\tRX:Z:ACG");
    check_moved(&rules, "ACGxq_1" FIELDS, "xq_1" FIELDS "\tRX:Z:ACG");
    name_pattern_destroy(rules.barcode_pattern);
    rules = by_pattern(":r?([ACGT]+)", ':');
    check_moved(&rules, "q:ACG:x" FIELDS, "q:x" FIELDS "\tRX:Z:ACG");
    check_moved(&rules, "q:rACG:x" FIELDS, "q:rx" FIELDS "\tRX:Z:ACG");
    name_pattern_destroy(rules.barcode_pattern);
}

/* 1.24 fails on the tag, writes a record without a name, and an empty RX. */
TEST(test_nothing_moves_from_odd_names)
{
    check_moved(&by_name, "1:2:3:4:5:6:7:ACG" FIELDS "\tRX:i:70000",
                "1:2:3:4:5:6:7" FIELDS "\tRX:Z:ACG");
    struct markdup_rules rules = by_pattern("(.+)", ':');
    check_moved(&rules, "ACG" FIELDS, "*" FIELDS "\tRX:Z:ACG");
    check_moved(&rules, "_q" FIELDS "\tRX:Z:G", "*" FIELDS "\tRX:Z:_q");
    char line[TEST_MAX_NAME + 200], expected[TEST_MAX_NAME + 200];
    memset(line, 'A', TEST_MAX_NAME);
    strcpy(line + TEST_MAX_NAME, FIELDS);
    (void)snprintf(expected, sizeof expected, "*" FIELDS "\tRX:Z:%.*s", TEST_MAX_NAME, line);
    check_moved(&rules, line, expected);
    name_pattern_destroy(rules.barcode_pattern);
    rules = by_pattern("^([ACGT]*)_", '_');
    check_moved(&rules, "_q_1" FIELDS, NULL);
    name_pattern_destroy(rules.barcode_pattern);
}
