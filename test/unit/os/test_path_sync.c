/*
 * test_path_sync.c -- files and directories are synced by their names; what does not exist is an
 * error, and so is a file in place of a directory.
 */
#include "test_place.h"
#include "unit_test.h"

#include "util/path.h"

#include <errno.h>
#include <unistd.h>

TEST_IN_OWN_DIR(test_file_and_directory_are_synced)
{
    put_file("file", "", 0);
    assert_int_equal(path_sync_file("file"), 0);
    assert_int_equal(path_sync_directory("."), 0);
    errno = 0;
    assert_int_equal(path_sync_file("missing"), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(path_sync_directory("missing"), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(path_sync_directory("file"), -1);
    assert_int_equal(errno, ENOTDIR);
    assert_int_equal(unlink("file"), 0);
}
