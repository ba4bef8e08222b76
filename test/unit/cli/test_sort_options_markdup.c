/* test_sort_options_markdup.c -- the text of --markdup, its rules and what is refused. */
#include "unit_test.h"

#include "cli/sort_options.h"
#include "markdup/read_names.h"
#include "util/diag.h"

static struct markdup_rules parse(const char *text)
{
    struct markdup_rules rules;
    if (sort_options_parse_markdup(text, &rules) < 0) fail_msg("'%s' was refused", text);
    return rules;
}

/* The text is refused with a message that has these words. */
static void check_refused(const char *text, const char *words)
{
    struct markdup_rules rules;
    diag_renew();
    if (sort_options_parse_markdup(text, &rules) == 0) fail_msg("'%s' was accepted", text);
    sort_options_release_markdup(&rules);
    const char *error = diag_error_text();
    assert_non_null(error);
    if (!strstr(error, words)) fail_msg("'%s': '%s' lacks '%s'", text, error, words);
    if (strncmp(error, "--markdup", strlen("--markdup")) != 0) fail_msg("'%s'", error);
    diag_renew();
}

TEST(test_defaults_are_those_of_samtools)
{
    struct markdup_rules rules = parse(" ");
    assert_false(rules.by_sequence || rules.include_fails || rules.use_read_groups);
    assert_false(rules.only_optical || rules.ignores_strand);
    assert_false(rules.use_libraries || rules.removes || rules.clears || rules.marks_others);
    assert_false(rules.names_original || rules.counts || rules.coords || rules.moves_umi);
    assert_false(rules.prints_statistics || rules.json);
    assert_null(rules.statistics_path);
    assert_null(rules.metrics_path);
    assert_int_equal(rules.barcode_source, BARCODE_NONE);
    assert_int_equal(rules.barcode_mismatches, 0);
    assert_int_equal(rules.optical_distance, 0);
    assert_int_equal(rules.umi_separator, ':');
    assert_true(rules.checks_chains);
    assert_false(markdup_rules_set_tags(&rules));
    sort_options_release_markdup(&rules);
    sort_options_release_markdup(&rules);       /* {0} now */
}

TEST(test_options_are_understood)
{
    struct markdup_rules rules = parse("-rScts -d 2500 --mode s -f 'my stats.txt' --metrics=m.txt"
                                       " --json --duplicate-count --include-fails -l 1000"
                                       " --no-multi-dup --use-read-groups");
    assert_true(rules.by_sequence && rules.include_fails && rules.use_read_groups);
    assert_true(rules.removes && rules.clears && rules.marks_others && rules.names_original);
    assert_true(rules.counts && rules.prints_statistics && rules.json);
    assert_false(rules.checks_chains || rules.use_libraries);
    assert_int_equal(rules.optical_distance, 2500);
    assert_string_equal(rules.statistics_path, "my stats.txt");
    assert_string_equal(rules.metrics_path, "m.txt");
    assert_true(markdup_rules_set_tags(&rules));
    sort_options_release_markdup(&rules);

    rules = parse("-m s -mt -d 5 -d0 --use-libraries");
    assert_false(rules.by_sequence || rules.prints_statistics);
    assert_true(rules.use_libraries);
    assert_int_equal(rules.optical_distance, 0);
    sort_options_release_markdup(&rules);

    static const char *const reports[] = {"-s", "-f x", "--json"};
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++) {
        rules = parse(reports[i]);
        assert_true(rules.prints_statistics);
        sort_options_release_markdup(&rules);
    }
    rules = parse("--optical-only --ignore-strand -d 1");
    assert_true(rules.only_optical && rules.ignores_strand);
    sort_options_release_markdup(&rules);
    rules = parse("--metrics x");
    assert_false(rules.prints_statistics);
    sort_options_release_markdup(&rules);
}

static void check_coords(const char *text, unsigned t, unsigned x, unsigned y)
{
    regmatch_t found[NAME_PATTERN_GROUPS + 1];
    struct markdup_rules rules = parse(text);
    assert_non_null(rules.coords);
    assert_int_equal(rules.coords_t, t);
    assert_int_equal(rules.coords_x, x);
    assert_int_equal(rules.coords_y, y);
    assert_true(name_pattern_match(rules.coords, "a:1:2", found));
    sort_options_release_markdup(&rules);
}

TEST(test_coordinates_have_the_given_order)
{
    check_coords("--read-coords (.+):([0-9]+):([0-9]+)", 1, 2, 3);
    check_coords("--coords-order txy --read-coords (.+):([0-9]+):([0-9]+)", 1, 2, 3);
    check_coords("--coords-order tyx --read-coords (.+):([0-9]+):([0-9]+)", 1, 3, 2);
    check_coords("--read-coords (.+):([0-9]+):([0-9]+) --coords-order xty", 2, 1, 3);
    check_coords("--coords-order ytx --read-coords (.+):([0-9]+):([0-9]+)", 2, 3, 1);
    check_coords("--coords-order xyt --read-coords (.+):([0-9]+):([0-9]+)", 3, 1, 2);
    check_coords("--coords-order yxt --read-coords (.+):([0-9]+):([0-9]+)", 3, 2, 1);
    check_coords("--coords-order xy --read-coords ([0-9]+):([0-9]+)", 0, 1, 2);
    check_coords("--coords-order yx --read-coords ([0-9]+):([0-9]+)", 0, 2, 1);
    /* The last one counts. */
    check_coords("--read-coords ([0-9]+ --read-coords '([a-z]):([0-9]+):([0-9]+)'", 1, 2, 3);
}

TEST(test_sources_of_barcodes_are_understood)
{
    regmatch_t found[NAME_PATTERN_GROUPS + 1];
    struct markdup_rules rules = parse("--barcode-tag RX --barcode-mismatches 1");
    assert_int_equal(rules.barcode_source, BARCODE_TAG);
    assert_memory_equal(rules.barcode_tag, "RX", 2);
    assert_int_equal(rules.barcode_mismatches, 1);
    assert_true(markdup_rules_share_barcodes(&rules));
    sort_options_release_markdup(&rules);

    rules = parse("--barcode-own --barcode-tag RX");
    assert_true(rules.own_barcodes);
    assert_false(markdup_rules_share_barcodes(&rules));
    sort_options_release_markdup(&rules);

    rules = parse("--barcode-name --move-umi-to-tag --umi-separator _ --barcode-mismatches=0");
    assert_int_equal(rules.barcode_source, BARCODE_NAME);
    assert_true(rules.moves_umi);
    assert_int_equal(rules.umi_separator, '_');
    assert_null(rules.barcode_pattern);
    sort_options_release_markdup(&rules);

    /* As in samtools the pattern counts whichever comes first. */
    static const char *const both[] = {"--barcode-rgx ^([ACGT]+)_ --barcode-name",
                                       "--barcode-name --barcode-rgx ^([ACGT]+)_"};
    for (size_t i = 0; i < 2; i++) {
        rules = parse(both[i]);
        assert_int_equal(rules.barcode_source, BARCODE_NAME);
        assert_int_equal(name_pattern_match(rules.barcode_pattern, "ACG_x", found), true);
        assert_int_equal(found[1].rm_eo, 3);
        sort_options_release_markdup(&rules);
    }
}

TEST(test_wrong_options_are_refused)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"-T x", "does not take -T: give options"},
        {"-@ 4", "does not take -@"},
        {"-Sr@4", "does not take -@"},
        {"--threads 4", "does not take --threads"},
        {"-O sam", "does not take -O"},
        {"--output-fmt sam", "does not take --output-fmt"},
        {"-u", "does not take -u"},
        {"--no-PG", "does not take --no-PG"},
        {"--write-index", "does not take --write-index"},
        {"--reference x.fa", "does not take --reference"},
        {"--reference=x.fa", "does not take --reference"},
        {"--output-fmt-option level=1", "does not take --output-fmt-option"},
        {"--input-fmt-option level=1", "does not take --input-fmt-option"},
        {"--verbosity 3", "does not take --verbosity"},
        {"--input-fmt sam", "does not take --input-fmt"},
        {"-x", "does not take -x"},
        {"-rxS", "does not take -x"},
        {"--what", "does not take --what"},
        {"--json=1", "does not take --json=1"},
        {"-d", "-d needs a value"},
        {"--metrics", "--metrics needs a value"},
        {"in.bam", "not 'in.bam'"},
        {"-r out.bam -S", "not 'out.bam'"},
        {"-f 'x", "has no end"},
        {"-f ''", "-f takes the name"},
        {"--metrics=", "--metrics takes the name"},
        {"-d x", "not 'x'"},
        {"-d 10x", "not '10x'"},
        {"-d ''", "not ''"},
        {"-d -1", "not '-1'"},
        {"-d +1", "not '+1'"},
        {"-d 2147483648", "0 to 2147483647, not '2147483648'"},
        {"-d 99999999999999999999", "not '99999999999999999999'"},
        {"-l x", "-l takes"},
        {"-l -300", "-l takes"},
        {"-m x", "not 'x'"},
        {"--mode ts", "not 'ts'"},
        {"--mode ''", "not ''"},
        {"--coords-order xyz", "not 'xyz'"},
        {"--coords-order txyz", "not 'txyz'"},
        {"--coords-order x", "not 'x'"},
        {"--read-coords ([0-9]+", "--read-coords '([0-9]+' is not a regular"},
        {"--read-coords ([0-9]+):([0-9]+)", "needs 3 groups in parentheses, and has 2"},
        {"--read-coords ([0-9]+) --coords-order xy", "needs 2 groups in parentheses, and has 1"},
        {"--barcode-tag R", "not 'R'"},
        {"--barcode-tag RXX", "not 'RXX'"},
        {"--barcode-tag 1X", "not '1X'"},
        {"--barcode-rgx [", "--barcode-rgx '[' is not a regular"},
        {"--barcode-rgx [ACGT]+", "needs 1 group in parentheses, and has 0"},
        {"--barcode-tag RX --barcode-name", "cannot be used together"},
        {"--barcode-rgx (.) --barcode-tag RX", "cannot be used together"},
        {"--move-umi-to-tag", "needs --barcode-name"},
        {"--move-umi-to-tag --barcode-tag RX", "needs --barcode-name"},
        {"--umi-separator ''", "takes one character"},
        {"--umi-separator ::", "takes one character"},
        {"--barcode-mismatches 1", "--barcode-mismatches needs"},
        {"--barcode-mismatches 2 --barcode-tag RX", "0 to 1, not '2'"},
        {"--barcode-own", "--barcode-own needs --barcode-tag"},
        {"--barcode-own --barcode-name", "--barcode-own needs --barcode-tag"},
        {"--use-read-groups --use-libraries", "cannot be used together"},
        {"--optical-only -r", "--optical-only needs -d N"},
        {"-d 100 --optical-only -d 0", "--optical-only needs -d N"},
        /* A pattern that was compiled before is freed. */
        {"--read-coords (.):(.):(.) --barcode-rgx [", "--barcode-rgx '['"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_refused(cases[i].text, cases[i].words);
}
