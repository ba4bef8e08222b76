/* test_disk_space.c -- free space, mount points, and the errors of a disk that is full. */
#include "small_disk.h"
#include "test_place.h"
#include "unit_test.h"

#include "os/disk_space.h"
#include "util/diag.h"

#include <errno.h>
#include <sys/statvfs.h>

TEST(test_full_disk_is_told_by_its_errors)
{
    assert_true(disk_space_is_short(ENOSPC));
    assert_true(disk_space_is_short(EDQUOT));
    assert_false(disk_space_is_short(EIO));
    assert_false(disk_space_is_short(0));
}

TEST_IN_OWN_DIR(test_space_and_mount_of_a_place_are_known)
{
    struct disk_space dir, file, none;
    assert_true(disk_space_look(".", &dir));
    assert_int_equal(dir.mount[0], '/');
    assert_true(disk_space_look("not-there-yet", &file));
    assert_true(disk_space_look("./not-there-yet", &file));
    assert_int_equal(file.device, dir.device);
    assert_string_equal(file.mount, dir.mount);
    assert_true(disk_space_look("/", &file));
    assert_string_equal(file.mount, "/");
    assert_false(disk_space_look("/nowhere/at/all", &none));
    assert_false(none.known);
    assert_int_equal(none.free_bytes, 0);
}

TEST(test_message_names_the_full_disk)
{
    diag_renew();
    disk_space_print_full("/", "No space left on device", 5300000);
    assert_non_null(strstr(diag_error_text(), "write in '/': No space left on device; '/' has "));
    assert_non_null(strstr(diag_error_text(), " 5.3 MB more are needed; free space or change -T"));
    diag_renew();
    disk_space_print_full("/nowhere/at/all", "Quota exceeded", 0);
    assert_string_equal(diag_error_text(), "cannot write in '/nowhere/at/all': Quota exceeded; "
                                           "free space or change -T");
    diag_renew();
    disk_space_print_output_error("out.bam", ENOSPC, "/", 0);
    assert_non_null(strstr(diag_error_text(), "'out.bam': No space left on device; '/' has "));
    diag_renew();
    disk_space_print_output_error("standard output", ENOSPC, NULL, 0);
    assert_string_equal(diag_error_text(), "cannot write 'standard output': No space left on "
                                           "device");
    diag_renew();
    disk_space_print_output_error("out.bam", EIO, "/", 0);
    assert_string_equal(diag_error_text(), "cannot write 'out.bam': Input/output error");
    diag_renew();
    disk_space_print_output_error("out.bam", 0, "/", 0);
    assert_string_equal(diag_error_text(), "cannot write 'out.bam': htslib reports an error");
}

/* The error of a full disk. */
static const char *full(const char *dir, uint64_t needed_bytes)
{
    diag_renew();
    disk_space_print_full(dir, "why", needed_bytes);
    return diag_error_text();
}

TEST_IN_OWN_DIR(test_space_of_a_small_disk_is_known)
{
    struct disk_space space, here;
    char where[PATH_MAX];
    if (!mount_small_disk("disk", 1 << 20)) skip();
    assert_non_null(realpath("disk", where));
    assert_int_equal(mkdir("disk/below", 0700), 0);
    assert_true(disk_space_look(".", &here));
    assert_true(disk_space_look("disk/below/file", &space));
    assert_true(space.device != here.device);
    assert_string_equal(space.mount, where);
    assert_in_range(space.free_bytes, 1 << 19, 1 << 20);
    fill_small_disk("disk");
    assert_non_null(strstr(full("disk/below", 0), " has 0 bytes free"));
    assert_non_null(strstr(diag_error_text(), where));
    assert_null(strstr(diag_error_text(), "needed"));
    assert_non_null(strstr(full("disk", 5300000), "5.3 MB more are needed"));
    unmount_small_disk("disk");
    assert_non_null(strstr(full("/nowhere/at/all", 7), "why; free space"));
}

TEST_IN_OWN_DIR(test_disk_without_free_files_is_full)
{
    assert_int_equal(mkdir("disk", 0700), 0);
    if (mount("none", "disk", "tmpfs", 0, "size=8m,nr_inodes=7") != 0) {
        assert_int_equal(rmdir("disk"), 0);
        skip();
    }
    assert_non_null(strstr(full("disk", 5300000), "only 6 inodes"));
    assert_null(strstr(diag_error_text(), "needed"));
    fill_small_disk("disk");
    assert_non_null(strstr(full("disk", 5300000), "has 0 bytes free, 5.3 MB"));
    unmount_small_disk("disk");
}
