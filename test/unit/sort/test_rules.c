/* test_rules.c -- which headers an output format can hold, and the line of our program in them. */
#include "unit_test.h"

#include "sort/rules.h"
#include "util/diag.h"
#include "util/version.h"

static const struct rules_maker maker = {.header_name = "in.bam"};

static void check_format(const char *sq, enum output_kind kind, const char *advice)
{
    OWNED_HEADER sam_hdr_t *header = parse_header(sq);
    const struct output_format format = {.kind = kind};
    int r = rules_check_format(header, &format);
    if (r != (advice ? -1 : 0)) fail_msg("%s: %d", sq, r);
    if (advice) assert_non_null(strstr(diag_error_text(), advice));
    diag_renew();
}

TEST(test_references_that_a_format_cannot_hold_are_refused)
{
    static const char too_long[] = "@SQ\tSN:c\tLN:2147483648\n", empty[] = "@SQ\tSN:c\tLN:0\n",
                      latin[] = "@SQ\tSN:caf\xe9\tLN:9\n", utf8[] = "@SQ\tSN:caf\xc3\xa9\tLN:9\n";
    check_format("@SQ\tSN:c\tLN:2147483647\n", OUTPUT_BAM, NULL);
    check_format(too_long, OUTPUT_BAM, "'c' has 2147483648 bases, more than BAM can hold");
    check_format(too_long, OUTPUT_CRAM, "write SAM with -O sam");
    check_format(too_long, OUTPUT_SAM_GZ, NULL);
    check_format(latin, OUTPUT_BAM, NULL);
    check_format(latin, OUTPUT_PARQUET, "not UTF-8");
    check_format(utf8, OUTPUT_ARROW, NULL);
    check_format(empty, OUTPUT_CRAM, "'c' has 0 bases");
    check_format(empty, OUTPUT_BAM, NULL);
    check_format("@SQ\tSN:c\tLN:1\n", OUTPUT_CRAM, NULL);
}

/* Adds our line to a header of programs; the rest of the header must be this. */
static void check_program(const char *programs, const char *command_line, const char *added)
{
    char expected[512];
    OWNED_HEADER sam_hdr_t *header = parse_header(programs);
    assert_int_equal(rules_add_program(&maker, header, command_line), 0);
    (void)snprintf(expected, sizeof expected, "%s%s", programs, added);
    assert_string_equal(sam_hdr_str(header), expected);
}

#define OURS "@PG\tID:samtools-rocksort"
#define NAME "\tPN:samtools-rocksort"
#define VERSION "\tVN:" ROCKSORT_VERSION

TEST(test_our_line_follows_each_chain_of_programs)
{
    check_program("", "sort x", OURS NAME VERSION "\tCL:sort x\n");
    check_program("", NULL, OURS NAME VERSION "\n");
    check_program("@PG\tID:a\n@PG\tID:b\tPP:a\n@PG\tID:c\n@PG\tID:d\tPP:c\n", NULL,
                  OURS NAME "\tPP:b" VERSION "\n" OURS ".1" NAME "\tPP:d" VERSION "\n");
    check_program("@PG\tID:a\tPP:b\n@PG\tID:b\tPP:a\n", "x", OURS NAME VERSION "\tCL:x\n");
}
