/*
 * test_markdup_stats.c -- the reports of --markdup. The expected texts are what samtools markdup
 * 1.24 wrote for files with these counts.
 */
#include "unit_test.h"

#include "markdup/markdup_stats.h"

static struct read_groups *groups_of(const char *text)
{
    OWNED_HEADER sam_hdr_t *header = parse_header(text);
    struct read_groups *groups = read_groups_create(header);
    return groups;
}

static void check_report(bool json, const struct duplicate_counts *of,
                         const struct read_groups *groups, const char *expected)
{
    OWNED char *text = NULL;
    size_t n;
    FILE *to = open_memstream(&text, &n);
    assert_non_null(to);
    markdup_stats_write(to, json, "samtools markdup -d 5", of, groups);
    assert_int_equal(fclose(to), 0);
    assert_string_equal(text, expected);
}

TEST(test_each_field_has_a_line_and_is_joined)
{
    struct duplicate_counts sum = {0};
    const struct duplicate_counts each = {.read = 1, .written = 2, .excluded = 3, .examined = 4,
                                          .paired = 5000, .single = 6, .paired_duplicates = 700,
                                          .single_duplicates = 8, .paired_optical = 9,
                                          .single_optical = 10, .other_duplicates = 11,
                                          .other_optical = 12, .unmapped = 13,
                                          .other_alignments = 14};
    for (int i = 0; i < 2; i++) duplicate_counts_join(&sum, &each);
    assert_int_equal(sum.unmapped, 26);
    assert_int_equal(sum.other_alignments, 28);
    check_report(false, &sum, NULL,
                 "COMMAND: samtools markdup -d 5\nREAD: 2\nWRITTEN: 4\nEXCLUDED: 6\nEXAMINED: 8\n"
                 "PAIRED: 10000\nSINGLE: 12\nDUPLICATE PAIR: 1400\nDUPLICATE SINGLE: 16\n"
                 "DUPLICATE PAIR OPTICAL: 18\nDUPLICATE SINGLE OPTICAL: 20\n"
                 "DUPLICATE NON PRIMARY: 22\nDUPLICATE NON PRIMARY OPTICAL: 24\n"
                 "DUPLICATE PRIMARY TOTAL: 1416\nDUPLICATE TOTAL: 1438\n"
                 "ESTIMATED_LIBRARY_SIZE: 16319\n\n");
}

/* Of files with so many reads of pairs, duplicates and optical duplicates, 1.24 says this. */
TEST(test_library_size_is_that_of_samtools)
{
    static const uint64_t cases[][4] = {
        {40000, 10776, 0, 30100}, {40000, 34012, 950, 2998}, {100000, 98000, 330, 1000},
        {6000, 92, 0, 96823},     {40000, 3866, 282, 103314}, {10, 6, 0, 2},
        {4, 2, 0, 1},             {6, 4, 0, 1},              {11, 7, 0, 2},
        {6, 4, 4, 0},             {40000, 39996, 0, 2},      {8001, 2953, 0, 3983},
        {0, 0, 0, 0},             {80, 52, 0, 15},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct duplicate_counts of = {.paired = cases[i][0],
                                            .paired_duplicates = cases[i][1],
                                            .paired_optical = cases[i][2]};
        char *text = NULL, expected[64];
        size_t n;
        FILE *to = open_memstream(&text, &n);
        assert_non_null(to);
        markdup_stats_write(to, false, "", &of, NULL);
        assert_int_equal(fclose(to), 0);
        (void)snprintf(expected, sizeof expected, "ESTIMATED_LIBRARY_SIZE: %" PRIu64 "\n\n",
                       cases[i][3]);
        assert_string_equal(strstr(text, "ESTIMATED"), expected);
        free(text);
    }
    assert_int_equal(duplicate_library_size(10, 10), 0);
    assert_int_equal(duplicate_library_size(10, 0), 0);
    /* It ends, also far from what a library can be. */
    assert_true(duplicate_library_size(UINT64_C(1) << 62, (UINT64_C(1) << 62) - 1) == INT64_MAX);
}

static char *metrics_of(const struct duplicate_counts *of, const struct read_groups *groups)
{
    char *text = NULL;
    size_t n;
    FILE *to = open_memstream(&text, &n);
    assert_non_null(to);
    markdup_metrics_write(to, "samtools rocksort --markdup", "Mon Nov 23 06:00:00 UTC 2026", of,
                          groups);
    assert_int_equal(fclose(to), 0);
    return text;
}

#define METRICS_HEAD                                                                          \
    "## htsjdk.samtools.metrics.StringHeader\n# samtools rocksort --markdup\n"                \
    "## htsjdk.samtools.metrics.StringHeader\n# Started on: Mon Nov 23 06:00:00 UTC 2026\n\n" \
    "## METRICS CLASS\tpicard.sam.DuplicationMetrics\n"                                       \
    "LIBRARY\tUNPAIRED_READS_EXAMINED\tREAD_PAIRS_EXAMINED\tSECONDARY_OR_SUPPLEMENTARY_RDS\t" \
    "UNMAPPED_READS\tUNPAIRED_READ_DUPLICATES\tREAD_PAIR_DUPLICATES\t"                        \
    "READ_PAIR_OPTICAL_DUPLICATES\tPERCENT_DUPLICATION\tESTIMATED_LIBRARY_SIZE\n"

TEST(test_metrics_are_those_of_picard)
{
    struct read_groups *groups = groups_of("@RG\tID:a\tLB:l1\n@RG\tID:b\tLB:l2\n");
    struct duplicate_counts libraries[] = {
        {0},
        {.read = 40020, .paired = 40000, .single = 10, .paired_duplicates = 3866,
         .single_duplicates = 4, .paired_optical = 282, .unmapped = 7, .other_alignments = 3},
        {.read = 1, .paired = 1},
    };
    char *text = metrics_of(libraries, groups);
    assert_string_equal(text, METRICS_HEAD
                        "l1\t10\t20000\t3\t7\t4\t1933\t141\t0.096726\t103314\n"
                        "l2\t0\t0\t0\t0\t0\t0\t0\t0\t\n");
    free(text);
    libraries[0] = (struct duplicate_counts){.read = 8, .single = 8, .single_duplicates = 4};
    text = metrics_of(libraries, groups);
    assert_non_null(strstr(text, "_SIZE\nUnknown Library\t8\t0\t0\t0\t4\t0\t0\t0.5\t\nl1\t10"));
    free(text);
    read_groups_destroy(groups);
    text = metrics_of(&libraries[0], NULL);
    assert_string_equal(text, METRICS_HEAD "Unknown Library\t8\t0\t0\t0\t4\t0\t0\t0.5\t\n");
    free(text);
}

TEST(test_one_library_has_a_histogram)
{
    struct read_groups *groups = groups_of("@RG\tID:a\tLB:l1\n");
    const struct duplicate_counts libraries[] = {
        {0}, {.read = 40000, .paired = 40000, .paired_duplicates = 10776}};
    OWNED char *text = metrics_of(libraries, groups);
    const char *rest = text + strlen(METRICS_HEAD);
    static const char begin[] = "l1\t0\t20000\t0\t0\t0\t5388\t0\t0.2694\t30100\n\n"
                                "## HISTOGRAM\tjava.lang.Double\nBIN\tCoverageMult\n"
                                "1.0\t0.999992\n2.0\t1.514543\n";
    static const char end[] = "100.0\t2.059951\n";
    assert_memory_equal(rest, begin, sizeof begin - 1);
    assert_string_equal(text + strlen(text) - (sizeof end - 1), end);
    size_t n_lines = 0;
    for (; *rest; rest++) n_lines += *rest == '\n';
    assert_int_equal(n_lines, 1 + 3 + 100);
    read_groups_destroy(groups);
}
