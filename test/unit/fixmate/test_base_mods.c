/*
 * test_base_mods.c -- what becomes of MM, ML and MN, line by line.
 *
 * test_fixmate.py compares random templates with samtools 1.24. Here is also what 1.24 does wrong:
 * the expected lines are worked out by hand.
 */
#include "fixed_lines.h"
#include "unit_test.h"

#include "fixmate/base_mods.h"

static const struct fixmate_rules mods = {.sanitize = SANITIZE_ALL, .base_mods = true,
                                          .reference_bases = reference_bases};

/* The read ACGTCCAC has C at 1, 4, 5 and 7. */
#define FIELDS "\tc\t101\t9\t"
#define NO_MATE "\t*\t0\t0\t"
#define READ NO_MATE "ACGTCCAC\tFFFFFFFF"
#define TURNED NO_MATE "GTGGACGT\tFFFFFFFF"     /* the same read on the reverse strand */

TEST(test_modifications_of_the_primary_record_stay)
{
    CHECK_LINES(&mods,
                "q\t65" FIELDS "8M\t=\t101\t0\tACGTCCAC\tFFFFFFFF\tMM:Z:C+m,1,1;\tXX:i:1\t"
                "ML:B:C,3,4\tMN:i:8\tMQ:i:9\tMC:Z:8M\tms:i:296\n"
                "q\t129" FIELDS "8M\t=\t101\t0\tACGTCCAC\tFFFFFFFF\tMN:i:8\tMM:Z:C+h?;\tMQ:i:9\t"
                "MC:Z:8M\tms:i:296\n",
                "q\t65" FIELDS "8M" READ "\tMm:Z:C+m,1,1;\tXX:i:1\tMl:B:C,3,4",
                "q\t129" FIELDS "8M" READ "\tMN:i:0\tMM:Z:C+h?;");
}

/* Without MM the other tags say nothing. 1.24 fails if there are no tags at all. */
TEST(test_length_and_qualities_go_without_modifications)
{
    CHECK_LINES(&mods, "q\t0" FIELDS "8M" READ "\n", "q\t0" FIELDS "8M" READ);
    CHECK_LINES(&mods, "q\t0" FIELDS "8M" READ "\tXX:i:1\n",
                "q\t0" FIELDS "8M" READ "\tMN:i:8\tXX:i:1\tML:B:C,1\tMl:B:C,1");
}

/* 1.24 takes Mn, which belongs to the user, for MN. */
TEST(test_tag_of_the_user)
{
    CHECK_LINES(&mods, "q\t0" FIELDS "8M" READ "\tMn:f:0.5\n",
                "q\t0" FIELDS "8M" READ "\tMn:f:0.5");
}

TEST(test_cut_record_keeps_tags_of_its_length)
{
    CHECK_LINES(&mods, "q\t0" FIELDS "2H8M" READ "\tMM:Z:C+m,1;\tMN:i:8\n",
                "q\t0" FIELDS "2H8M" READ "\tMM:Z:C+m,1;\tMN:i:8");
    CHECK_LINES(&mods, "q\t0" FIELDS "8M2H" READ "\n", "q\t0" FIELDS "8M2H" READ "\tMM:Z:C+m,1;");
    CHECK_LINES(&mods, "q\t0" FIELDS "8M2H" READ "\n",
                "q\t0" FIELDS "8M2H" READ "\tMM:Z:C+m,1;\tMN:i:10");
}

/* Fixes a record that has these tags, and finds out whether MM is still there. */
static bool keeps(uint32_t flag, const char *seq, const char *lists, const char *others)
{
    OWNED_TEXT kstring_t line = KS_INITIALIZE, result = KS_INITIALIZE;
    assert_true(ksprintf(&line, "q\t%u" FIELDS "*" NO_MATE "%s\t*\tMM:Z:%s%s%s", flag, seq, lists,
                         *others ? "\t" : "", others) > 0);
    const char *lines[] = {line.s};
    assert_null(fix(&mods, lines, 1, &result));
    bool is_kept = strstr(result.s, "\tMM:Z:") != NULL;
    if (!is_kept) assert_true(!strstr(result.s, "\tML:") && !strstr(result.s, "\tMN:"));
    return is_kept;
}

TEST(test_valid_lists_are_told_from_others)
{
    static const struct {
        const char *lists, *others;
        bool is_valid;
    } cases[] = {
        {"C+m,1,1;", "", true},
        {"C+m,1,1;", "ML:B:C,1,2", true},
        {"C+m,1,1;", "ML:B:C,1", false},
        {"C+m,1,1;", "ML:B:C,1,2,3", false},
        {"C+m,1,1;", "ML:B:c,1,2", false},
        {"C+m,1,1;", "ML:Z:12", false},
        {"C+m,1,2;", "", false},                /* there are four C */
        {"C-m,3;", "", true},
        {"C+m,4;", "", false},
        {"C+m,0,0,0,0;", "", true},
        {"C+m,0,0,0,0,0;", "", false},
        {"A+a,1;T+a,0;G+a,0;U+a,0;", "", true},
        {"U+a,1;", "", false},
        {"N+n,7;", "", true},
        {"N+n,8;", "", false},
        {"C+mh,1,1;", "ML:B:C,1,2,3,4", true},
        {"C+mh,1,1;", "ML:B:C,1,2", false},
        {"C+76792,1,1;", "ML:B:C,1,2", true},
        {"C+76792?,1;A+76792.;", "ML:B:C,1", true},
        {"C+76792?;", "", true},
        {"C+2147483647;", "", true},
        {"C+2147483648;", "", false},
        {"", "", true},
        {"", "ML:B:C,1", false},
        {";", "", false},
        {"C+m", "", false},
        {"C+m,1", "", false},
        {"C+m?", "", false},
        {"C+m;C", "", false},
        {"C+m;C+", "", false},
        {"Cm;", "", false},
        {"R+m;", "", false},
        {"c+m;", "", false},
        {"C+m1;", "", false},
        {"C+1m;", "", false},
        {"C+m ,1;", "", false},
        {"C+m,;", "", false},
        {"C+m,1,;", "", false},                 /* kept by 1.24 on the forward strand */
        {"C+m,,1;", "", false},
        {"C+m,-1;", "", false},
        {"C+m,+1;", "", true},
        {"C+m,+;", "", false},
        {"C+m,0,x;", "", false},
        {"C+m,2147483647;", "", false},         /* kept by 1.24 on the forward strand */
        {"C+m,0,4294967296;", "", false},       /* this, too */
        {"C+,9;", "", true},                    /* no code, nothing to check; as in 1.24 */
        {"C+m;", "MN:i:9", false},
        {"C+m;", "MN:i:8", true},
        {"C+m;", "MN:Z:8", true},               /* not a length; 1.24 fails */
        {"C+m;", "MN:i:-5", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool forward = keeps(0, "ACGTCCAC", cases[i].lists, cases[i].others);
        bool reverse = keeps(BAM_FREVERSE, "GTGGACGT", cases[i].lists, cases[i].others);
        if (forward != cases[i].is_valid || reverse != cases[i].is_valid)
            fail_msg("'%s' %s: %d %d", cases[i].lists, cases[i].others, forward, reverse);
    }
}

TEST(test_lists_without_a_sequence_stay_on_the_forward_strand)
{
    assert_true(keeps(0, "*", "C+m,1,1;", "ML:B:C,1,2\tMN:i:8"));
    assert_false(keeps(0, "*", "C+m,1,1;", "ML:B:C,1"));
    assert_false(keeps(BAM_FREVERSE, "*", "C+m,1,1;", ""));
    assert_true(keeps(BAM_FREVERSE, "*", "C+m;", ""));
}

TEST(test_list_has_at_most_255_codes)
{
    char lists[300] = "C+";
    memset(lists + 2, 'm', 255);
    strcpy(lists + 257, ";");
    assert_true(keeps(0, "ACGT", lists, ""));
    strcpy(lists + 257, "m;");
    assert_false(keeps(0, "ACGT", lists, ""));
    strcpy(lists + 257, ";A+a;");
    assert_false(keeps(0, "ACGT", lists, ""));
}

/* Hard clips at both ends, on every strand. 1.24 takes reads on the reverse strand the wrong way
   around, and cannot cut lists with two codes, lists of N and empty ones. */
TEST(test_lists_are_cut_with_hard_clips)
{
    static const char *const primaries[] = {"q\t0" FIELDS "8M" READ, "q\t16" FIELDS "8M" TURNED};
    for (int i = 0; i < 2; i++) {
        OWNED_TEXT kstring_t expected = KS_INITIALIZE;
        assert_true(ksprintf(&expected,
                             "%s\tMM:Z:C+m,1,1;\tML:B:C,3,4\tMN:i:8\n"
                             "q\t2048" FIELDS "2H5M1H" NO_MATE "GTCCA\tFFFFF\tXX:i:1\t"
                             "MM:Z:C+m,0;\tML:B:C,3\tMN:i:5\n"
                             "q\t2064" FIELDS "2H5M1H" NO_MATE "GGACG\tFFFFF\t"
                             "MM:Z:C+m,1;\tML:B:C,3\tXX:i:1\tMN:i:5\n"
                             "q\t2048" FIELDS "6H2M" NO_MATE "AC\tFF\t"
                             "MM:Z:C+mh.,0;N+n,0;G-a;C+1;\tML:B:C,3,4,7\tXX:i:1\tMN:i:2\n"
                             "q\t2048" FIELDS "1M7H" NO_MATE "A\tF\tMM:Z:C+m;\tML:B:C\tMN:i:1\n"
                             "q\t2064" FIELDS "7M1H" NO_MATE "GTGGACG\tFFFFFFF\t"
                             "MM:Z:C+m,001,1;\tMN:i:7\n",
                             primaries[i]) > 0);
        OWNED_TEXT kstring_t primary = KS_INITIALIZE;
        assert_true(ksprintf(&primary, "%s\tMM:Z:C+m,1,1;\tML:B:C,3,4", primaries[i]) > 0);
        CHECK_LINES(&mods, expected.s, primary.s,
                    "q\t2048" FIELDS "2H5M1H" NO_MATE "GTCCA\tFFFFF\tMN:i:8\tXX:i:1\t"
                    "MM:Z:C+m,1,1;\tML:B:C,3,4",
                    "q\t2064" FIELDS "2H5M1H" NO_MATE "GGACG\tFFFFF\tMM:Z:C+m,1,1;\tMN:i:8\t"
                    "ML:B:C,3,4\tXX:i:1",
                    "q\t2048" FIELDS "6H2M" NO_MATE "AC\tFF\tMm:Z:C+mh.,0,2;N+n,1,4;G-a,0;C+1;\t"
                    "Ml:B:C,1,2,3,4,6,7,8\tXX:i:1\tMN:i:8",
                    "q\t2048" FIELDS "1M7H" NO_MATE "A\tF\tMM:Z:C+m,1,1;\tML:B:C,3,4",
                    "q\t2064" FIELDS "7M1H" NO_MATE "GTGGACG\tFFFFFFF\tMM:Z:C+m,001,1;");
    }
}

/* The first modification after the 5' clip lies in the 3' clip: 1.24 drops all tags. */
TEST(test_next_one_is_cut_off)
{
    CHECK_LINES(&mods,
                "q\t0" FIELDS "8M" READ "\tXX:i:1\n"
                "q\t2048" FIELDS "2H5M1H" NO_MATE "GTCCA\tFFFFF\tMM:Z:C+m;A+a,0;\tML:B:C,5\t"
                "MN:i:5\n",
                "q\t0" FIELDS "8M" READ "\tXX:i:1",
                "q\t2048" FIELDS "2H5M1H" NO_MATE "GTCCA\tFFFFF\tMM:Z:C+m,3;A+a,1;\tML:B:C,4,5");
}

static void check_other(const char *fields, const char *before, const char *after)
{
    OWNED_TEXT kstring_t line = KS_INITIALIZE, expected = KS_INITIALIZE;
    assert_true(ksprintf(&line, "q\t%s%s", fields, before) > 0);
    assert_true(ksprintf(&expected, "q\t0" FIELDS "8M" READ "\nq\t%s%s\n", fields, after) > 0);
    CHECK_LINES(&mods, expected.s, "q\t0" FIELDS "8M" READ, line.s);
}

/* Records with a primary record. */
TEST(test_other_records_get_lists_of_the_primary_one)
{
    static const char whole[] = "256" FIELDS "8M" READ;
    static const char cut[] = "256" FIELDS "3H5M" NO_MATE "TCCAC\tFFFFF";
    check_other(whole, "\tMM:Z:C+m,1;\tXX:i:1", "\tMM:Z:C+m,1;\tXX:i:1\tMN:i:8");
    check_other(whole, "\tMM:Z:C+m,1;\tMN:i:7\tXX:i:1", "\tMM:Z:C+m,1;\tMN:i:8\tXX:i:1");
    check_other(whole, "\tMM:Z:C+m,9;\tMN:i:8\tXX:i:1", "\tXX:i:1");
    check_other(whole, "\tML:B:C,1\tXX:i:1", "\tXX:i:1");
    check_other(cut, "\tMM:Z:C+m,2;\tMN:i:5", "\tMM:Z:C+m,2;\tMN:i:5");    /* cut already */
    check_other(cut, "\tMM:Z:C+m,2;", "\tMM:Z:C+m,1;\tMN:i:5");
    check_other(cut, "\tMM:Z:C+m,2;\tMN:i:6", "");      /* of another read; 1.24 keeps MM */
    check_other(cut, "\tMM:Z:C+m,2", "");
    check_other(cut, "\tMM:Z:C+m,2;\tML:B:C,1,2", "");
    check_other(cut, "\tMM:Z:C+m,2;\tML:B:s,1\tXX:i:1", "\tXX:i:1");
    check_other("256" FIELDS "2H5M" NO_MATE "TCCAC\tFFFFF", "\tMM:Z:C+m,2;", "");
    check_other("256" FIELDS "8M" NO_MATE "*\t*", "\tMM:Z:C+m,2;", "");
    check_other("256" FIELDS "8H" NO_MATE "*\t*", "\tMM:Z:C+m,2;\tMN:i:8", "\tMM:Z:C+m;");
}

/* The sequence of the cut record is not that of its read: the tags do not fit it. */
TEST(test_cut_of_another_sequence)
{
    check_other("256" FIELDS "3H5M" NO_MATE "TTTTT\tFFFFF", "\tMM:Z:C+m,2;", "");
}

/* A record whose read is not there keeps what it has, draft names included, if it is right. */
TEST(test_record_without_its_read_keeps_right_tags)
{
    static const char tags[] = "q\t256" FIELDS "2H8M" READ "\tMm:Z:C+m,1,1;\tMl:B:C,3,4\n";
    CHECK_LINES(&mods, tags, "q\t256" FIELDS "2H8M" READ "\tMm:Z:C+m,1,1;\tMl:B:C,3,4");
    CHECK_LINES(&mods, "q\t2048" FIELDS "8M" READ "\n",
                "q\t2048" FIELDS "8M" READ "\tMm:Z:C+m,1,2;\tMl:B:C,3,4");
    CHECK_LINES(&mods, "q\t2048" FIELDS "8M" READ "\n",
                "q\t2048" FIELDS "8M" READ "\tMM:Z:C+m;\tMN:i:7");
    CHECK_LINES(&mods, "q\t256" FIELDS "8M" READ "\tML:B:C,3\tMN:i:3\n",
                "q\t256" FIELDS "8M" READ "\tML:B:C,3\tMN:i:3");
}

/* MN comes after the tags of the mate. */
TEST(test_order_of_tags)
{
    CHECK_LINES(&mods,
                "q\t65" FIELDS "8M\t=\t101\t0\tACGTCCAC\tFFFFFFFF\tMQ:i:9\tMC:Z:8M\tms:i:296\n"
                "q\t129" FIELDS "8M\t=\t101\t0\tACGTCCAC\tFFFFFFFF\tMQ:i:9\tMC:Z:8M\tms:i:296\n"
                "q\t2177" FIELDS "3H5M\t=\t101\t0\tTCCAC\tFFFFF\tMM:Z:C+m,0;\tXX:i:1\tMQ:i:9\t"
                "MC:Z:8M\tMN:i:5\n",
                "q\t65" FIELDS "8M" READ, "q\t129" FIELDS "8M" READ,
                "q\t2177" FIELDS "3H5M" NO_MATE "TCCAC\tFFFFF\tMM:Z:C+m,1;\tMN:i:8\tXX:i:1");
}

/* Each tag at most once: the first counts, and MM before Mm. 1.24 keeps both under one name. */
TEST(test_first_tag_counts)
{
    CHECK_LINES(&mods, "q\t0" FIELDS "8M" READ "\tMM:Z:C+m,1;\tML:B:C,1\tMN:i:8\n",
                "q\t0" FIELDS "8M" READ "\tMm:Z:C+m,9;\tMM:Z:C+m,1;\tML:B:C,1\tMl:B:C,2\tMN:i:8\t"
                "MM:Z:C+h;\tMN:i:8");
}

/* Fixes a primary record with n_bases of A and these tags, and returns its tags. */
static size_t fix_tags(int32_t n_bases, const void *tags, size_t n, uint8_t *result)
{
    struct record_fields f = {.name = "q", .tid = -1, .pos = -1, .flag = BAM_FUNMAP,
                              .l_seq = n_bases, .tag_bytes = n};
    OWNED uint8_t *rec = test_alloc(record_size(&f));
    RELEASED(fixmate_release) struct fixmate_space space = {.n_out = 0};
    size_t n_bytes = put_record(rec, &f, 0x11);
    memcpy(rec + n_bytes - n, tags, n);
    assert_null(fixmate_add(&mods, &space, rec));
    assert_true(fixmate_finish(&mods, &space));
    assert_int_equal(space.n_out, 1);
    const uint8_t *from = bam_record_tags(space.out), *end = bam_record_end(space.out);
    n = (size_t)(end - from);
    memcpy(result, from, n);
    return n;
}

#define CHECK_TAGS(n_bases, tags, expected)                                     \
    do {                                                                        \
        uint8_t result_[100];                                                   \
        size_t n_ = fix_tags(n_bases, tags, sizeof tags - 1, result_);          \
        assert_int_equal(n_, sizeof expected - 1);                              \
        assert_memory_equal(result_, expected, n_);                             \
    } while (0)

/* The type of MN is htslib's: the smallest one for a new tag; one that is there never shrinks. */
TEST(test_types_of_the_length)
{
#define MM "MMZA+a;\0"
    CHECK_TAGS(254, MM, MM "MNC\xfe");
    CHECK_TAGS(255, MM, MM "MNS\xff\0");
    CHECK_TAGS(65534, MM, MM "MNS\xfe\xff");
    CHECK_TAGS(65535, MM, MM "MNI\xff\xff\0\0");
    CHECK_TAGS(8, MM "MNc\0XXcA", MM "MNC\x08XXcA");
    CHECK_TAGS(8, MM "MNs\0\0XXcA", MM "MNS\x08\0XXcA");
    CHECK_TAGS(8, MM "MNi\xff\xff\xff\xffXXcA", MM "MNI\x08\0\0\0XXcA");
    CHECK_TAGS(300, MM "MNc\0XXcA", MM "MNS\x2c\x01XXcA");
    CHECK_TAGS(70000, MM "MNS\0\0XXcA", MM "MNI\x70\x11\x01\0XXcA");
    CHECK_TAGS(300, MM "MNZ300\0XXcA", MM "MNS\x2c\x01XXcA");
    /* A length that is right stays as it is. */
    CHECK_TAGS(255, "MmZA+a;\0MNC\xff", MM "MNC\xff");
    CHECK_TAGS(8, "MmZA+a;\0MNi\x08\0\0\0", MM "MNi\x08\0\0\0");
    CHECK_TAGS(8, MM "MNs\x08\0", MM "MNs\x08\0");
    /* More than a length can be. */
    CHECK_TAGS(8, MM "MNI\xff\xff\xff\xff", "");
#undef MM
}

TEST(test_damaged_tags_are_refused)
{
    uint8_t rec[100];
    struct record_fields f = {.name = "q", .tid = 0, .pos = 5, .tag_bytes = 5};
    struct fixmate_space space = {.n_out = 0};
    size_t n = put_record(rec, &f, 0);
    memcpy(rec + n - 5, "MMZab", 5);
    assert_string_equal(fixmate_add(&mods, &space, rec), "its tags are damaged");
    fixmate_release(&space);
    assert_null(fixmate_add(&usual, &space, rec));
    fixmate_release(&space);
}

/* A CIGAR in a CG tag is there once, whatever becomes of the other tags. */
TEST(test_cigar_in_a_tag_is_there_once)
{
    enum { N_PAIRS = 40000 };
    OWNED_TEXT kstring_t cigar = KS_INITIALIZE, line = KS_INITIALIZE, result = KS_INITIALIZE;
    for (int i = 0; i < N_PAIRS; i++) assert_true(kputs("1D1P", &cigar) >= 0);
    assert_true(ksprintf(&line, "q\t256\td\t1\t9\t3H%s5M" NO_MATE "TCCAC\t*\tMM:Z:C+m,2;\tXX:i:1",
                         cigar.s) > 0);
    const char *const lines[] = {"q\t0" FIELDS "8M" READ, line.s};
    assert_null(fix(&mods, lines, 2, &result));
    char *second = strchr(result.s, '\n') + 1;
    assert_non_null(strstr(second, cigar.s));
    assert_null(strstr(second, "CG:B"));
    assert_string_equal(strstr(second, "MM:Z"), "MM:Z:C+m,1;\tXX:i:1\tMN:i:5\n");
}

/* Each field of coordinates beyond 2^31 is kept, and its tag is the last one. */
TEST(test_long_coordinates_are_kept_last)
{
    CHECK_LINES(&mods,
                "q\t0" FIELDS "8M" READ "\n"
                "q\t256\td\t5000000001\t9\t3H5M" NO_MATE "TCCAC\tFFFFF\tMM:Z:C+m,1;\tXX:i:1\t"
                "MN:i:5\n",
                "q\t0" FIELDS "8M" READ,
                "q\t256\td\t5000000001\t9\t3H5M" NO_MATE "TCCAC\tFFFFF\tMM:Z:C+m,2;\tXX:i:1");
}
