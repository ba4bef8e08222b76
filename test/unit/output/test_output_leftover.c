/*
 * test_output_leftover.c -- unfinished outputs of dead processes are told from those that are still
 * written, and from files of others.
 */
#include "test_place.h"
#include "unit_test.h"

#include "output/output_journal.h"
#include "output/output_path.h"
#include "util/path.h"

#include <stdio.h>

TEST(test_names_of_leftovers_are_known)
{
    static const struct {
        const char *name;
        int n_output;           /* -1: no such name */
    } cases[] = {
        {"out.bam.rocksort.17.123456789.tmp", 7}, {"a.rocksort.1.000000000.tmp", 1},
        {"a.rocksort.2.x.rocksort.1.000000000.tmp", 14},
        {".rocksort.1.000000000.tmp", -1},        {"a.rocksort.1.00000000.tmp", -1},
        {"a.rocksort.1.0000000000.tmp", -1},      {"a.rocksort..000000000.tmp", -1},
        {"a.rocksort.1.000000000.tmpx", -1},      {"a.rocksort.1.000000000", -1},
        {"arocksort.1.000000000.tmp", -1},        {"a.rocksort.x.000000000.tmp", -1},
        {"000000000.tmp", -1},                    {".tmp", -1},
        {"rocksort.1.abcdef", -1},                {"", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = 99;
        bool is_name = output_leftover_is_name(cases[i].name, &n);
        if ((is_name ? (int)n : -1) != cases[i].n_output) fail_msg("'%s'", cases[i].name);
    }
}

TEST_IN_OWN_DIR(test_output_is_in_use_until_it_is_renamed)
{
    struct output_path path;
    struct output_leftover left;
    size_t n;
    assert_int_equal(output_path_choose(&path, "out"), 0);
    assert_true(output_leftover_is_name(path_name(path.temporary), &n));
    assert_int_equal(n, 3);
    assert_int_equal(output_leftover_open(path.temporary, &left), OUTPUT_LEFTOVER_FOREIGN);
    hFILE *file = output_path_open(&path);
    assert_non_null(file);
    assert_int_equal(output_leftover_open(path.temporary, &left), OUTPUT_LEFTOVER_IN_USE);
    assert_int_equal(left.fd, -1);
    assert_int_equal(hclose(file), 0);
    assert_int_equal(output_leftover_open(path.temporary, &left), OUTPUT_LEFTOVER_IN_USE);
    output_leftover_drop(path.temporary);
    assert_int_equal(output_path_commit(&path), 0);
    assert_int_equal(output_leftover_open("out", &left), OUTPUT_LEFTOVER_DEAD);
    output_leftover_close(&left);
    output_path_release(&path);
    assert_int_equal(unlink("out"), 0);
}

TEST_IN_OWN_DIR(test_leftover_of_a_dead_process_is_found)
{
    static const char name[] = "o.rocksort.1.000000000.tmp";
    struct output_leftover left;
    put_file(name, "", 0);
    assert_int_equal(output_leftover_open(name, &left), OUTPUT_LEFTOVER_DEAD);
    struct output_leftover other;
    assert_int_equal(output_leftover_open(name, &other), OUTPUT_LEFTOVER_IN_USE);
    /* It is removed only if the name still stands for it. */
    assert_int_equal(rename(name, "kept"), 0);
    put_file(name, "", 0);
    assert_int_equal(output_leftover_remove(name, &left), -1);
    assert_int_equal(access(name, F_OK), 0);
    output_leftover_close(&left);
    output_leftover_drop(name);
    assert_int_equal(access(name, F_OK), -1);
    output_leftover_drop("kept");               /* not such a name */
    output_leftover_drop(NULL);
    assert_int_equal(unlink("kept"), 0);
}

TEST_IN_OWN_DIR(test_foreign_things_of_that_name_stay)
{
    static const char name[] = "o.rocksort.1.000000000.tmp";
    struct output_leftover left;
    assert_int_equal(mkdir(name, 0700), 0);
    assert_int_equal(output_leftover_open(name, &left), OUTPUT_LEFTOVER_FOREIGN);
    assert_int_equal(rmdir(name), 0);
    assert_int_equal(mkfifo(name, 0600), 0);
    assert_int_equal(output_leftover_open(name, &left), OUTPUT_LEFTOVER_FOREIGN);
    output_leftover_drop(name);
    assert_int_equal(unlink(name), 0);
    assert_int_equal(symlink("victim", name), 0);
    int fd = open("victim", O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0 && close(fd) == 0);
    assert_int_equal(output_leftover_open(name, &left), OUTPUT_LEFTOVER_FOREIGN);
    output_leftover_drop(name);
    assert_int_equal(unlink(name) + unlink("victim"), 0);
}
