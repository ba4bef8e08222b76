/* test_disk_probe.c -- what is found out about a disk, and that no file is left there. */
#include "small_disk.h"
#include "test_place.h"
#include "unit_test.h"

#include "os/disk_probe.h"

#include <dirent.h>
#include <sys/vfs.h>

static bool is_tmpfs(const char *path)
{
    struct statfs fs;
    assert_int_equal(statfs(path, &fs), 0);
    return fs.f_type == 0x01021994;
}

static unsigned n_entries(const char *path)
{
    unsigned n = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    while (readdir(dir)) n++;
    assert_int_equal(closedir(dir), 0);
    return n - 2;
}

static void check_unknown(const struct disk_traits *traits)
{
    assert_true(traits->seek_seconds <= 0 && traits->bytes_per_second <= 0);
    assert_false(disk_is_slow_to_seek(traits));
    assert_non_null(traits->file_system);
}

/* A disk seeks in 1 us to 10 s and reads 100 KB to 100 GB a second. On a file system that cannot be
   read past the page cache nothing is measured. */
TEST_IN_OWN_DIR(test_probe_leaves_nothing)
{
    struct disk_traits traits;
    disk_probe(".", &traits);
    assert_int_equal(n_entries("."), 0);
    assert_int_equal(traits.is_memory, is_tmpfs("."));
    if (traits.seek_seconds <= 0) {
        check_unknown(&traits);
        return;
    }
    assert_false(traits.is_memory);
    assert_true(traits.seek_seconds > 1e-6 && traits.seek_seconds < 10);
    assert_true(traits.bytes_per_second > 1e5 && traits.bytes_per_second < 1e11);
    assert_true(traits.parallel >= 1 && traits.parallel < 1000);
}

TEST_IN_OWN_DIR(test_disk_in_memory_is_not_measured)
{
    struct disk_traits traits;
    if (access("/dev/shm", W_OK) != 0 || !is_tmpfs("/dev/shm")) skip();
    unsigned before = n_entries("/dev/shm");
    disk_probe("/dev/shm", &traits);
    assert_true(traits.is_memory);
    assert_false(traits.is_network);
    assert_string_equal(traits.file_system, "tmpfs");
    check_unknown(&traits);
    assert_true(n_entries("/dev/shm") <= before + 1);   /* other processes may use it */
}

TEST_IN_OWN_DIR(test_nothing_is_known_of_impossible_directories)
{
    struct disk_traits traits;
    disk_probe("missing", &traits);
    check_unknown(&traits);
    assert_string_equal(traits.file_system, "unknown");
    disk_probe("/proc", &traits);
    check_unknown(&traits);
    char path[5000];
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    disk_probe(path, &traits);
    check_unknown(&traits);
}

TEST_IN_OWN_DIR(test_file_with_the_name_of_the_probe_is_not_changed)
{
    struct disk_traits traits;
    put_file("probe", "mine", 4);
    disk_probe(".", &traits);
    check_unknown(&traits);
    FILE *file = fopen("probe", "r");
    assert_non_null(file);
    char text[8] = "";
    assert_non_null(fgets(text, sizeof text, file));
    assert_string_equal(text, "mine");
    assert_int_equal(fclose(file), 0);
    assert_int_equal(unlink("probe"), 0);
}

TEST_IN_OWN_DIR(test_full_disk_is_unknown_and_stays_as_it_is)
{
    struct disk_traits traits;
    if (!mount_small_disk("disk", 65536)) skip();
    fill_small_disk("disk");
    disk_probe("disk", &traits);
    check_unknown(&traits);
    assert_int_equal(n_entries("disk"), 1);
    unmount_small_disk("disk");
}

TEST(test_disk_is_slow_from_two_milliseconds_on)
{
    struct disk_traits traits = {.seek_seconds = 0.0001};
    assert_false(disk_is_slow_to_seek(&traits));
    traits.seek_seconds = 0.001;                        /* a network volume under load */
    assert_false(disk_is_slow_to_seek(&traits));
    traits.seek_seconds = 0.002;                        /* a cloud volume of 500 IOPS */
    assert_true(disk_is_slow_to_seek(&traits));
    traits.seek_seconds = 0.008;                        /* a rotating disk */
    assert_true(disk_is_slow_to_seek(&traits));
}

/* Times of 12 reads. Those of the two SSDs, to which other processes wrote, were measured. */
TEST(test_busy_disk_is_told_from_a_slow_one)
{
    bool is_busy;
    double ssd[] = {13.49e-3, 0.18e-3, 4.03e-3, 0.21e-3, 5.75e-3, 6.27e-3,
                    7.8e-3,   11.9e-3, 12e-3,   12e-3,   18e-3,   24e-3};
    assert_true(disk_seek_of(ssd, 12, &is_busy) > 0.005);
    assert_true(is_busy);
    double some[] = {0.06e-3, 0.07e-3, 0.07e-3, 0.16e-3, 0.23e-3, 0.76e-3,
                     4.1e-3,  7.4e-3,  12e-3,   15e-3,   16e-3,   18e-3};
    assert_true(disk_seek_of(some, 12, &is_busy) < 0.001);
    assert_false(is_busy);
    double drive[12], volume[12];
    for (size_t i = 0; i < 12; i++) drive[i] = 0.001 + 0.0007 * (double)i;
    assert_true(disk_seek_of(drive, 12, &is_busy) > 0.003);
    assert_false(is_busy);
    for (size_t i = 0; i < 12; i++) volume[i] = 0.002;
    assert_true(disk_seek_of(volume, 12, &is_busy) > 0.0019);
    assert_false(is_busy);
}

TEST(test_unfit_file_systems_are_named)
{
    char text[DISK_PROBLEM_TEXT_BYTES];
    struct disk_traits traits = {.file_system = "nfs", .is_network = true};
    assert_string_equal(disk_problem(&traits, text), "a network file system (nfs)");
    traits.file_system = "lustre";
    assert_null(disk_problem(&traits, text));
    traits = (struct disk_traits){.file_system = "fuse"};
    assert_non_null(strstr(disk_problem(&traits, text), "object store"));
    traits.file_system = "ext4";
    assert_null(disk_problem(&traits, text));
}
