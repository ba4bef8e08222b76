/* test_cgroup.c -- limits of control groups, read from hierarchies that the tests make. */
#include "test_place.h"
#include "unit_test.h"

#include "os/memory.h"

#include <sys/stat.h>

enum { NAME_BYTES = 256 };

struct file {
    const char *path, *text;
};

static void make_parents(const char *path, bool remove)
{
    char name[NAME_BYTES];
    (void)snprintf(name, sizeof name, "%s", path);
    if (remove) {
        for (char *slash; (slash = strrchr(name, '/')) != NULL;) {
            *slash = '\0';
            (void)rmdir(name);  /* fails while it has other files */
        }
        return;
    }
    for (char *at = name; (at = strchr(at, '/')) != NULL; *at++ = '/') {
        *at = '\0';
        (void)mkdir(name, 0700);
    }
}

/* Writes a list of groups and the files of a hierarchy below "sys", reads the limits from them, and
   removes them. */
static struct cgroup limits_of(const char *list, const struct file *files)
{
    struct cgroup limits;
    put_file("list", list, strlen(list));
    for (const struct file *file = files; file->path; file++) {
        make_parents(file->path, false);
        put_file(file->path, file->text, strlen(file->text));
    }
    cgroup_read_at("list", "sys", &limits);
    for (const struct file *file = files; file->path; file++) {
        assert_int_equal(unlink(file->path), 0);
        make_parents(file->path, true);
    }
    assert_int_equal(unlink("list"), 0);
    return limits;
}

static void check(struct cgroup limits, double cpus, uint64_t limit, uint64_t left)
{
    assert_true(limits.cpus > cpus - 0.001 && limits.cpus < cpus + 0.001);
    assert_true(limits.limit_bytes == limit);
    assert_true(limits.free_bytes == left);
}

TEST_IN_OWN_DIR(test_no_files_are_no_limits)
{
    static const struct file none[] = {{NULL, NULL}};
    check(limits_of("", none), 0, UINT64_MAX, UINT64_MAX);
    check(limits_of("0::/a/b\n", none), 0, UINT64_MAX, UINT64_MAX);
    check(limits_of("garbage\n:\n::\n1:\n", none), 0, UINT64_MAX, UINT64_MAX);
    struct cgroup limits;
    cgroup_read_at("nowhere", "sys", &limits);
    check(limits, 0, UINT64_MAX, UINT64_MAX);
    cgroup_read(&limits);
    assert_true(limits.cpus >= 0 && limits.free_bytes <= limits.limit_bytes);
}

TEST_IN_OWN_DIR(test_limits_of_version_2_are_the_least_of_all_groups)
{
    static const struct file own[] = {
        {"sys/a/b/cpu.max", "150000 100000\n"},
        {"sys/a/b/memory.max", "1000000\n"},
        {"sys/a/b/memory.current", "700000\n"},
        {"sys/a/b/memory.stat", "anon 1\nfile 5\nactive_file 4\ninactive_file 200000\n"},
        {"sys/a/memory.max", "max\n"},
        {"sys/a/cpu.max", "max 100000\n"},
        {NULL, NULL},
    };
    check(limits_of("0::/a/b\n", own), 1.5, 1000000, 500000);
    /* The group above has the lower limits. */
    static const struct file above[] = {
        {"sys/a/b/memory.max", "1000000\n"}, {"sys/a/b/memory.current", "100\n"},
        {"sys/a/memory.max", "900000\n"},    {"sys/a/memory.current", "0\n"},
        {"sys/a/b/cpu.max", "800000 100000\n"}, {"sys/a/cpu.max", "50000 100000\n"},
        {NULL, NULL},
    };
    check(limits_of("0::/a/b\n", above), 0.5, 900000, 900000);
    /* In a container the groups of the path do not exist, but the root does. */
    static const struct file root[] = {
        {"sys/memory.max", "1000\n"}, {"sys/cpu.max", "200000 100000\n"}, {NULL, NULL},
    };
    check(limits_of("0::/docker/0123\n", root), 2, 1000, 1000);
    /* The limit was lowered below what is used. */
    static const struct file over[] = {
        {"sys/memory.max", "1000\n"}, {"sys/memory.current", "3000\n"}, {NULL, NULL},
    };
    check(limits_of("0::/\n", over), 0, 1000, 0);
}

TEST_IN_OWN_DIR(test_limits_of_version_1_are_found_by_controller)
{
    static const struct file files[] = {
        {"sys/memory/job/memory.limit_in_bytes", "5000000\n"},
        {"sys/memory/job/memory.usage_in_bytes", "3000000\n"},
        {"sys/memory/job/memory.stat", "inactive_file 7\ntotal_inactive_file 1000000\n"},
        {"sys/memory/memory.limit_in_bytes", "9223372036854771712\n"},
        {"sys/cpu/job/cpu.cfs_quota_us", "400000\n"},
        {"sys/cpu/job/cpu.cfs_period_us", "100000\n"},
        {"sys/cpu/cpu.cfs_quota_us", "-1\n"},
        {"sys/cpu/cpu.cfs_period_us", "100000\n"},
        {NULL, NULL},
    };
    check(limits_of("5:memory:/job\n4:cpuset:/\n3:cpuacct,cpu:/job\n1:name=systemd:/\n0::/\n",
                    files),
          4, 5000000, 3000000);
    /* Controllers whose names only begin with "cpu". */
    check(limits_of("4:cpuset:/job\n3:cpuacct:/job\n", files), 0, UINT64_MAX, UINT64_MAX);
}

TEST_IN_OWN_DIR(test_path_that_is_too_long_gives_no_limit)
{
    static const struct file none[] = {{NULL, NULL}};
    char list[4096];
    memset(list, 'x', sizeof list);
    memcpy(list, "0::/", 4);
    memcpy(list + sizeof list - 2, "\n", 2);
    check(limits_of(list, none), 0, UINT64_MAX, UINT64_MAX);
}
