/* test_words.c -- words are split as a shell splits them, but for escapes. */
#include "unit_test.h"

#include "util/words.h"

static void check(const char *text, size_t n_expected, const char *const *expected)
{
    size_t n;
    char **words = words_split(text, &n);
    assert_non_null(words);
    assert_int_equal(n, n_expected);
    for (size_t i = 0; i < n; i++) assert_string_equal(words[i], expected[i]);
    assert_null(words[n]);
    free(words);
}

TEST(test_text_is_split_into_words)
{
    check("", 0, NULL);
    check(" \t ", 0, NULL);
    check("-r -z  off", 3, (const char *const[]){"-r", "-z", "off"});
    check("a b c d e f g ", 7, (const char *const[]){"a", "b", "c", "d", "e", "f", "g"});
    check("-f 'my stats.txt' x\"y z\"w", 3, (const char *const[]){"-f", "my stats.txt", "xy zw"});
    check("'' \"'\"", 2, (const char *const[]){"", "'"});
    check("a\\ b", 2, (const char *const[]){"a\\", "b"});
}

TEST(test_quote_without_end)
{
    size_t n;
    assert_null(words_split("a 'b", &n));
    assert_null(words_split("\"", &n));
    free(NULL);
}
