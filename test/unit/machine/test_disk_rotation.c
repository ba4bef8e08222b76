/* test_disk_rotation.c -- rotation rates that drives state, in directories like those of sysfs. */
#include "test_place.h"

#include "machine/disk_rotation.h"

#include <sys/sysmacros.h>

/* Writes a file below the working directory, and makes the directories of its path. */
static void put(const char *path, const void *bytes, size_t n)
{
    char command[600];
    assert_true(snprintf(command, sizeof command, "mkdir -p \"$(dirname '%s')\"", path) <
                (int)sizeof command);
    assert_int_equal(system(command), 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

/* Makes a disk below sys/devices; without a page if rate is negative. */
static void make_disk(const char *name, char flag, int rate)
{
    char path[200];
    uint8_t page[64] = {0, 0xb1, 0, 60, (uint8_t)(rate >> 8), (uint8_t)rate};
    (void)snprintf(path, sizeof path, "sys/devices/%s/queue/rotational", name);
    put(path, (char[]){flag, '\n'}, 2);
    if (rate < 0) return;
    (void)snprintf(path, sizeof path, "sys/devices/%s/device/vpd_pgb1", name);
    put(path, page, sizeof page);
}

/* Makes `path` a link to sys/devices/TO; `ups` leads from the directory of path to that of sys. */
static void make_link(const char *path, const char *ups, const char *to)
{
    char target[200];
    (void)snprintf(target, sizeof target, "%ssys/devices/%s", ups, to);
    assert_int_equal(symlink(target, path), 0);
}

/* Makes sys/dev/block/8:MINOR a link to sys/devices/TO. */
static void make_number(unsigned minor_number, const char *to)
{
    char path[200];
    put("sys/dev/block/8:x", "", 0);
    (void)snprintf(path, sizeof path, "sys/dev/block/8:%u", minor_number);
    make_link(path, "../../../", to);
}

/* Makes a device that consists of others; the list of their names ends with NULL. */
static void make_stack(const char *name, const char *const *below)
{
    char path[200];
    make_disk(name, '1', -1);
    (void)snprintf(path, sizeof path, "sys/devices/%s/slaves/.x", name);
    put(path, "", 0);
    for (; *below; below++) {
        const char *last = strrchr(*below, '/');
        (void)snprintf(path, sizeof path, "sys/devices/%s/slaves/%s", name,
                       last ? last + 1 : *below);
        make_link(path, "../../../../", *below);
    }
}

static void check(unsigned minor_number, int flag, unsigned rpm, unsigned n_drives)
{
    struct disk_rotation rotation;
    disk_rotation_look("sys", makedev(8, minor_number), &rotation);
    assert_int_equal(rotation.flag, flag);
    assert_int_equal(rotation.rpm, rpm);
    assert_int_equal(rotation.n_drives, n_drives);
}

static void test_one_disk(void **state)
{
    (void)state;
    static const struct {
        char flag;
        int rate;
        unsigned rpm;
    } disks[] = {
        {'1', 7200, 7200}, {'1', 5400, 5400}, {'1', 0x401, 0x401}, {'1', 0xfffe, 0xfffe},
        {'0', 1, 0}, {'1', 0, 0}, {'1', 0x400, 0}, {'1', 0xffff, 0}, {'1', -1, 0},
    };
    for (unsigned i = 0; i < sizeof disks / sizeof *disks; i++) {
        char name[32], partition[64], path[100];
        (void)snprintf(name, sizeof name, "d%u", i);
        make_disk(name, disks[i].flag, disks[i].rate);
        make_number(2 * i, name);
        /* A partition of it is the same. */
        (void)snprintf(partition, sizeof partition, "d%u/d%u1", i, i);
        (void)snprintf(path, sizeof path, "sys/devices/%s/start", partition);
        put(path, "2048\n", 5);
        make_number(2 * i + 1, partition);
        for (unsigned k = 0; k < 2; k++)
            check(2 * i + k, disks[i].flag - '0', disks[i].rpm, disks[i].rpm > 0);
    }
}

static void test_nothing_known(void **state)
{
    (void)state;
    check(99, -1, 0, 0);
    /* A page that is too short, and one with another code. */
    make_disk("cut", '1', 7200);
    put("sys/devices/cut/device/vpd_pgb1", "\0\xb1\0\x3c\x1c", 5);
    make_number(100, "cut");
    check(100, 1, 0, 0);
    put("sys/devices/cut/device/vpd_pgb1", "\0\xb0\0\x3c\x1c\x20\0\0", 8);
    check(100, 1, 0, 0);
    put("sys/devices/cut/queue/rotational", "?", 1);
    check(100, -1, 0, 0);
}

/* Encryption on a partition of one disk; LVM on encryption on a RAID of four. */
static void test_stacks(void **state)
{
    (void)state;
    make_disk("a", '1', 5900);
    make_disk("b", '1', 7200);
    make_disk("c", '1', 7200);
    make_disk("d", '1', 7200);
    make_disk("ssd", '0', 1);
    put("sys/devices/a/a1/start", "1", 1);
    make_stack("crypt", (const char *const[]){"a/a1", NULL});
    make_number(0, "crypt");
    check(0, 1, 5900, 1);
    make_stack("raid", (const char *const[]){"a/a1", "b", "c", "d", NULL});
    make_stack("crypt2", (const char *const[]){"raid", NULL});
    make_stack("lvm", (const char *const[]){"crypt2", NULL});
    make_number(1, "lvm");
    check(1, 1, 5900, 4);
    /* With an SSD as a cache no rate is known: the measurement decides. */
    make_stack("cached", (const char *const[]){"raid", "ssd", NULL});
    make_number(2, "cached");
    check(2, 1, 0, 0);
    /* A partition has no such list; that of its disk counts. */
    put("sys/devices/raid/raidp1/start", "2048", 4);
    make_number(4, "raid/raidp1");
    check(4, 1, 5900, 4);
    /* A loop ends. */
    make_stack("loop", (const char *const[]){"loop", NULL});
    make_number(3, "loop");
    check(3, 1, 0, 0);
}

static void test_text(void **state)
{
    (void)state;
    static const struct {
        struct disk_rotation rotation;
        const char *text;
    } cases[] = {
        {{-1, 0, 0}, ""},
        {{0, 0, 0}, ", not rotating according to the kernel"},
        {{1, 0, 0}, ", rotating according to the kernel"},
        {{1, 7200, 1}, ", 7200 rpm"},
        {{-1, 5400, 4}, ", 4 drives of 5400 rpm"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[DISK_ROTATION_TEXT_BYTES];
        assert_string_equal(disk_rotation_text(&cases[i].rotation, text), cases[i].text);
    }
}

static int remove_tree(void **state)
{
    return system("rm -rf sys") == 0 ? leave_place(state) : -1;
}

#define TEST_IN_PLACE(test) cmocka_unit_test_setup_teardown(test, enter_place, remove_tree)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_PLACE(test_one_disk),
        TEST_IN_PLACE(test_nothing_known),
        TEST_IN_PLACE(test_stacks),
        cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
