/* test_input_file.c -- files, pipes and standard input as inputs. */
#include "test_place.h"
#include "unit_test.h"

#include "input/input_file.h"

#include <errno.h>

/* Makes fd standard input; returns the former one. */
static int exchange_standard_input(int fd)
{
    int before = dup(STDIN_FILENO);
    assert_true(before >= 0);
    assert_int_equal(dup2(fd, STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(close(fd), 0);
    return before;
}

TEST(test_names_become_paths_of_files)
{
    static const char *const names[][2] = {
        {"a.bam", "a.bam"},
        {"", ""},
        {"-", "-"},
        {"a.bam##idx##b.bai", "a.bam"},
        {"##idx##b", ""},
        {"file:///a/b", "/a/b"},
        {"file://localhost/a/b##idx##c", "/a/b"},
        {"file:///", "/"},
        {"file:///##idx##c", "/"},
        {"file://##idx##/c", "file://"},
        {"file://other/a", "file://other/a"},   /* htslib refuses it */
        {"file:a", "file:a"},
        {"https://a/b", "https://a/b"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        OWNED char *plain = input_plain_name(names[i][0]);
        assert_non_null(plain);
        assert_string_equal(plain, names[i][1]);
    }
}

TEST_IN_OWN_DIR(test_files_have_their_sizes)
{
    struct stat st;
    put_file("three", "xxx", 3);
    put_file("none", "", 0);
    assert_int_equal(input_bytes("three"), 3);
    assert_int_equal(input_bytes("none"), 0);
    assert_int_equal(input_bytes("missing"), -1);
    assert_int_equal(input_bytes("."), -1);
    assert_true(input_is_regular("three", &st));
    assert_int_equal(st.st_size, 3);
    assert_false(input_is_pipe("three"));
    assert_false(input_is_pipe("missing"));
    assert_int_equal(input_stat("missing", &st), -1);
    assert_int_equal(errno, ENOENT);
    const char *const files[] = {"three", "three", "none", "missing"};
    assert_int_equal(input_bytes_of_all(files, 3), 6);
    assert_int_equal(input_bytes_of_all(files, 4), 0);
    assert_int_equal(unlink("three"), 0);
    assert_int_equal(unlink("none"), 0);
}

TEST_IN_OWN_DIR(test_standard_input_is_the_file_behind_it)
{
    int ends[2];
    put_file("-", "xxxxx", 5);         /* a file of this name is not meant */
    put_file("three", "xxx", 3);
    int before = exchange_standard_input(open("three", O_RDONLY));
    assert_int_equal(input_bytes("-"), 3);
    assert_false(input_is_pipe("-"));
    assert_int_equal(input_bytes("./-"), 5);
    assert_int_equal(pipe(ends), 0);
    (void)close(exchange_standard_input(ends[0]));
    assert_true(input_is_pipe("-"));
    assert_int_equal(input_bytes("-"), -1);
    assert_int_equal(close(ends[1]), 0);
    (void)close(exchange_standard_input(before));
    assert_int_equal(unlink("-"), 0);
    assert_int_equal(unlink("three"), 0);
}
