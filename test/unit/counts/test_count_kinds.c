/* test_count_kinds.c -- the text of a report's option that a checkpoint keeps gives the name again. */
#include "unit_test.h"

#include "counts/count_kinds.h"

#include <stdlib.h>

TEST(test_names_with_blanks_and_quotes_of_both_kinds_are_kept)
{
    static const char *const names[] = {"/plain", "/a b", "/it's", "/a \"b\"", "/it's \"b\" 'c'",
                                        "'\"/", "\"'/", "/x\"'"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct count_request request;
        char *text = count_request_text("-n -x", names[i]);
        assert_int_equal(count_request_parse(COUNT_mosdepth, text, &request), 0);
        assert_string_equal(request.name, names[i]);
        assert_string_equal(request.words, "-n -x");
        count_request_release(COUNT_mosdepth, &request);
        free(text);
    }
}
