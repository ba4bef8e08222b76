/*
 * test_count_kinds.c -- the argument of a report's option: its name, its options, and the text that
 * a checkpoint keeps of them.
 */
#include "unit_test.h"

#include "counts/count_kinds.h"

static void assert_parsed(const char *text, const char *words, const char *name)
{
    struct count_request request;
    assert_int_equal(count_request_parse(COUNT_samtools_checksum, text, &request), 0);
    assert_string_equal(request.words, words);
    assert_string_equal(request.name, name);
    OWNED char *again = count_request_text(request.words, request.name);
    count_request_release(COUNT_samtools_checksum, &request);
    assert_int_equal(count_request_parse(COUNT_samtools_checksum, again, &request), 0);
    assert_string_equal(request.words, words);
    assert_string_equal(request.name, name);
    count_request_release(COUNT_samtools_checksum, &request);
}

TEST(test_argument_is_parsed_into_options_and_name)
{
    assert_parsed("out.txt", "", "out.txt");
    assert_parsed("-", "", "-");
    assert_parsed("my sums.txt", "", "my sums.txt");
    assert_parsed("-q  -t NM,BC out", "-q -t NM,BC", "out");
    assert_parsed("-q 'a b'", "-q", "a b");
    assert_parsed("-q \"it's\"", "-q", "it's");
    assert_parsed("-a -", "-a", "-");
}

TEST(test_names_may_have_quotes_of_both_kinds)
{
    assert_parsed("it's \"b\"", "", "it's \"b\"");
    assert_parsed("-q 'a \"b\" it'\"'s\"", "-q", "a \"b\" it's");
    assert_parsed("-q '\"'\"'\"x", "-q", "\"'x");
    assert_parsed("-q \"'\"'\"x'", "-q", "'\"x");
}

TEST(test_kind_without_options_takes_the_whole_text_as_its_name)
{
    struct count_request request;
    assert_int_equal(count_request_parse(COUNT_flagstat, "-q out", &request), 0);
    assert_string_equal(request.name, "-q out");
    assert_null(request.options);
    count_request_release(COUNT_flagstat, &request);
}

TEST(test_wrong_arguments_are_refused)
{
    static const char *const wrong[] = {"-q", "-q 'out", "-X out", "-q more out", "-t ABC out"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct count_request request;
        if (count_request_parse(COUNT_samtools_checksum, wrong[i], &request) == 0)
            fail_msg("'%s' was accepted", wrong[i]);
        assert_null(request.name);
    }
}

TEST(test_each_kind_has_an_option_and_an_observer)
{
    for (int kind = 0; kind < COUNT_N_KINDS; kind++) {
        assert_memory_equal(count_kind_option(kind), "--", 2);
        assert_non_null(count_kinds[kind]->observe);
        assert_true(!count_kinds[kind]->parse == !count_kinds[kind]->free_options);
    }
}
