/*
 * test_temp_dir.c -- where the temporary directory is made; removing it removes nothing else.
 *
 * Each test makes a directory of its own and changes to it.
 */
#include "test_place.h"
#include "unit_test.h"

#include "os/temp_dir.h"
#include "util/diag.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static void make_file(const char *dir, const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    put_file(path, "something\n", 10);
}

/* Makes a temporary directory. Its path must begin with `expected`, without a slash after that, and
   it must be closed to others. Removes it. */
static void check_path(const char *prefix, const char *output, const char *expected)
{
    OWNED char *path = temp_dir_create(prefix, output);
    struct stat st;
    assert_non_null(path);
    if (strncmp(path, expected, strlen(expected)) != 0 || strchr(path + strlen(expected), '/'))
        fail_msg("'%s' instead of '%s...'", path, expected);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(temp_dir_remove(path), 0);
    assert_false(exists(path));
}

TEST_IN_OWN_DIR(test_place_follows_option_output_and_tmpdir)
{
    const char *old = getenv("TMPDIR");
    OWNED char *saved = old ? strdup(old) : NULL;
    assert_int_equal(mkdir("dir", 0777), 0);
    assert_int_equal(mkdir("tmp", 0777), 0);
    make_file(".", "file");
    assert_int_equal(setenv("TMPDIR", "tmp", 1), 0);
    /* -T: in a directory; of anything else it is the beginning of the name. The output does not
       matter. */
    check_path("dir", NULL, "dir/rocksort.");
    check_path("dir/", "other/out.bam", "dir/rocksort.");
    check_path("dir/pre", NULL, "dir/pre.rocksort.");
    check_path("pre", "dir/out.bam", "pre.rocksort.");
    check_path("file", NULL, "file.rocksort.");
    check_path("./dir/../pre", NULL, "./dir/../pre.rocksort.");
    /* Beside the output, even if that is a directory or exists already. */
    check_path(NULL, "out.bam", "out.bam.rocksort.");
    check_path(NULL, "dir/out.bam", "dir/out.bam.rocksort.");
    check_path(NULL, "file", "file.rocksort.");
    check_path(NULL, "dir", "dir.rocksort.");
    /* Standard output. */
    check_path(NULL, NULL, "tmp/rocksort.");
    assert_int_equal(setenv("TMPDIR", "", 1), 0);
    check_path(NULL, NULL, "./rocksort.");
    assert_int_equal(unsetenv("TMPDIR"), 0);
    check_path(NULL, NULL, "./rocksort.");
    if (saved) assert_int_equal(setenv("TMPDIR", saved, 1), 0);
    assert_int_equal(unlink("file"), 0);
    assert_int_equal(rmdir("dir"), 0);
    assert_int_equal(rmdir("tmp"), 0);
}

TEST_IN_OWN_DIR(test_mode_does_not_depend_on_umask)
{
    mode_t before = umask(0);
    check_path("open", NULL, "open.rocksort.");
    (void)umask(before);
}

TEST_IN_OWN_DIR(test_never_twice_the_same)
{
    enum { N = 50 };
    char *paths[N];
    for (size_t i = 0; i < N; i++) {
        paths[i] = temp_dir_create("p", NULL);
        assert_non_null(paths[i]);
        for (size_t k = 0; k < i; k++) assert_string_not_equal(paths[i], paths[k]);
    }
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(temp_dir_remove(paths[i]), 0);
        free(paths[i]);
    }
}

TEST_IN_OWN_DIR(test_removes_what_is_in_it)
{
    char name[32], below[256];
    OWNED char *path = temp_dir_create("p", NULL), *beside = temp_dir_create("p", NULL);
    assert_non_null(path);
    assert_non_null(beside);
    make_file(".", "bystander");
    for (int i = 0; i < 1200; i++) {
        (void)snprintf(name, sizeof name, "%06d.sst", i);
        make_file(path, name);
    }
    make_file(path, ".hidden");
    make_file(path, "LOCK");
    (void)snprintf(below, sizeof below, "%s/db", path);
    assert_int_equal(mkdir(below, 0700), 0);
    make_file(below, "CURRENT");
    make_file(beside, "of another sort");
    assert_int_equal(temp_dir_remove(path), 0);
    assert_false(exists(path));
    assert_true(exists("bystander") && exists(beside));
    /* Removing it twice, or removing NULL, succeeds. */
    assert_int_equal(temp_dir_remove(path), 0);
    assert_int_equal(temp_dir_remove(NULL), 0);
    assert_int_equal(temp_dir_remove(beside), 0);
    assert_int_equal(unlink("bystander"), 0);
}

TEST_IN_OWN_DIR(test_temporary_directories_are_listed)
{
    struct dirent **found;
    static const char *const expected[] = {"a.rocksort.2.abcdef", "rocksort.10.abcdef",
                                           "rocksort.9.abcdef"};
    make_file(".", "rocksort.txt");
    for (size_t i = 0; i < 3; i++) assert_int_equal(mkdir(expected[2 - i], 0700), 0);
    assert_int_equal(temp_dir_list(".", &found), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(found[i]->d_name, expected[i]);
        assert_int_equal(rmdir(found[i]->d_name), 0);
        free(found[i]);
    }
    free(found);
    assert_int_equal(temp_dir_list(".", &found), 0);
    free(found);
    assert_int_equal(unlink("rocksort.txt"), 0);
    assert_int_equal(temp_dir_list("missing", &found), -1);
    assert_int_equal(errno, ENOENT);
}

TEST_IN_OWN_DIR(test_impossible_place_is_found_before_it_is_needed)
{
    make_file(".", "file");
    assert_int_equal(temp_dir_check("."), 0);
    assert_int_equal(temp_dir_check("new"), 0);
    assert_int_equal(temp_dir_check("./new"), 0);
    diag_silence();
    assert_int_equal(temp_dir_check("missing/new"), -1);
    assert_int_equal(temp_dir_check("missing/"), -1);
    assert_int_equal(temp_dir_check("file/new"), -1);
    assert_int_equal(temp_dir_check("/proc/new"), access("/proc", W_OK) == 0 ? 0 : -1);
    diag_renew();
    assert_int_equal(unlink("file"), 0);
}

TEST(test_name_tells_the_output)
{
    static const struct {
        const char *name;
        int n_output;           /* -1: no name of a temporary directory */
    } cases[] = {
        {"rocksort.1.abcdef", 0},     {"out.bam.rocksort.1.abcdef", 7}, {"a.rocksort.12.ABC12x", 1},
        {"rocksort.1.abcde", -1},     {"rocksort..abcdef", -1},         {"rocksort.x.abcdef", -1},
        {"xrocksort.1.abcdef", -1},   {"rocksort.1", -1},               {"", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = 99;
        bool is_name = temp_dir_is_name(cases[i].name, &n);
        assert_int_equal(is_name ? (int)n : -1, cases[i].n_output);
    }
}

TEST_IN_OWN_DIR(test_links_are_not_followed)
{
    char link[256], *path = temp_dir_create("p", NULL);
    assert_non_null(path);
    assert_int_equal(mkdir("precious", 0777), 0);
    make_file("precious", "data");
    (void)snprintf(link, sizeof link, "%s/to_dir", path);
    assert_int_equal(symlink("../precious", link), 0);
    (void)snprintf(link, sizeof link, "%s/to_file", path);
    assert_int_equal(symlink("../precious/data", link), 0);
    assert_int_equal(temp_dir_remove(path), 0);
    assert_false(exists(path));
    assert_true(exists("precious/data"));
    /* A link in place of the directory itself. */
    assert_int_equal(symlink("precious", path), 0);
    assert_int_equal(temp_dir_remove(path), -1);
    assert_true(exists("precious/data") && exists(path));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink("precious/data"), 0);
    assert_int_equal(rmdir("precious"), 0);
    free(path);
}

/* This prints a message. */
TEST_IN_OWN_DIR(test_impossible_places_are_errors)
{
    make_file(".", "file");
    assert_null(temp_dir_create("missing/dir/prefix", NULL));
    assert_null(temp_dir_create("missing/", NULL));
    assert_null(temp_dir_create("file/prefix", NULL));
    assert_null(temp_dir_create(NULL, "missing/out.bam"));
    assert_false(exists("missing"));
    assert_int_equal(temp_dir_remove("file"), -1);
    assert_true(exists("file"));
    assert_int_equal(unlink("file"), 0);
}
