/* test_read_ends.c -- read ends of records that no aligner writes. The rules for all others
   are compared with samtools by test/differential.py. */
#include "sam_line.h"
#include "unit_test.h"

#include "markdup/read_ends.h"

static const struct markdup_rules rules;

/* The first read ends of a line; its name is not there any more. */
static struct read_ends ends_of(const char *line)
{
    struct record_read_ends all_ends;
    OWNED uint8_t *rec = record_of_line(line);
    assert_null(read_ends_make(&rules, rec, &all_ends));
    assert_true(all_ends.n > 0);
    return all_ends.ends[0];
}

/* The end of a mate with this CIGAR, at position 200. */
static int64_t end_of_mate(const char *cigar)
{
    OWNED_TEXT kstring_t line = KS_INITIALIZE;
    assert_true(kputs("q\t97\tc\t100\t9\t4M\t=\t200\t0\tACGT\tFFFF\tMC:Z:", &line) >= 0);
    assert_true(kputs(cigar, &line) >= 0);
    struct read_ends ends = ends_of(line.s);
    return ends.there;
}

/* Operations that together overflow 64 bits look like a short CIGAR. */
TEST(test_impossible_mate_cigar)
{
    static const char huge[] = "900000000000000000M", rest[] = "446744073709551620M";
    OWNED_TEXT kstring_t cigar = KS_INITIALIZE;
    for (int i = 0; i < 20; i++) assert_true(kputs(huge, &cigar) >= 0);
    assert_true(kputs(rest, &cigar) >= 0);
    assert_int_equal(end_of_mate("3S4M"), 203);
    assert_true(end_of_mate(cigar.s) > INT32_MAX);
}
