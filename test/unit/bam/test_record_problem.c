/* test_record_problem.c -- the words of a message about a record. */
#include "unit_test.h"

#include "bam/record_problem.h"
#include "util/diag.h"

TEST(test_each_problem_has_its_words)
{
    static const struct {
        struct record_problem problem;
        const char *words;
    } cases[] = {
        {{"it is truncated", true, 0, NULL, NULL},
         "record 1 of 'x.bam' is damaged: it is truncated"},
        {{"its tags are damaged", true, 6, "q", NULL},
         "record 7 of 'x.bam' (read 'q') is damaged: its tags are damaged"},
        {{"its tags are damaged", true, 6, "", NULL},
         "record 7 of 'x.bam' is damaged: its tags are damaged"},
        {{"has no MC tag", false, 4294967295, "q", NULL},
         "record 4294967296 of 'x.bam' (read 'q') has no MC tag"},
        {{"has too long a tag", false, 6, "q", "XYZ"},
         "record 7 of 'x.bam' (read 'q') has too long a tag XY"},
        {{"has too long a tag", false, RECORD_NUMBER_UNKNOWN, "q", "XYZ"},
         "read 'q' of 'x.bam' has too long a tag XY"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        diag_renew();
        record_problem_print(&cases[i].problem, "x.bam");
        assert_non_null(diag_error_text());
        assert_non_null(strstr(diag_error_text(), cases[i].words));
    }
}
