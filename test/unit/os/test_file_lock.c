/* test_file_lock.c -- a lock lasts as long as its descriptor or a copy of it, and names are
   compared. */
#include "test_place.h"
#include "unit_test.h"

#include "os/file_owner.h"

#include <stdio.h>

static int open_file(const char *name)
{
    int fd = open(name, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    return fd;
}

TEST_IN_OWN_DIR(test_lock_keeps_others_out)
{
    int a = open_file("file"), b = open_file("file"), copy = dup(a);
    assert_int_equal(file_lock_try(a, false), FILE_LOCK_HELD);
    assert_int_equal(file_lock_try(b, false), FILE_LOCK_BUSY);
    assert_int_equal(close(a), 0);
    assert_int_equal(file_lock_try(b, false), FILE_LOCK_BUSY);         /* the copy has it */
    assert_int_equal(close(copy), 0);
    assert_int_equal(file_lock_try(b, false), FILE_LOCK_HELD);
    int c = open("file", O_RDWR | O_CLOEXEC);
    assert_int_equal(file_lock_try(c, false), FILE_LOCK_BUSY);
    assert_int_equal(close(b), 0);
    assert_int_equal(file_lock_try(c, false), FILE_LOCK_HELD);
    assert_int_equal(close(c), 0);
    assert_int_equal(file_lock_try(b, false), FILE_LOCK_ERROR);
    assert_int_equal(unlink("file"), 0);
}

TEST_IN_OWN_DIR(test_renamed_file_has_another_name)
{
    int fd = open_file("file");
    assert_true(file_lock_has_name(fd, AT_FDCWD, "file"));
    assert_int_equal(rename("file", "other"), 0);
    assert_false(file_lock_has_name(fd, AT_FDCWD, "file"));
    int another = open_file("file");
    assert_false(file_lock_has_name(fd, AT_FDCWD, "file"));
    assert_true(file_lock_has_name(fd, AT_FDCWD, "other"));
    assert_int_equal(close(fd) + close(another), 0);
    assert_int_equal(unlink("file") + unlink("other"), 0);
}
