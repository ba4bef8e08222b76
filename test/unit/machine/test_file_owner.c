/*
 * test_file_owner.c -- whether the process that works with a file still lives: the rule, for owners
 * with locks and without, on this host and on others.
 */
#include "unit_test.h"
#include "test_place.h"

#include "machine/file_owner.h"

#include <stdio.h>

static struct file_owner make_owner(const char *boot, enum lock_reach reach)
{
    struct file_owner owner = {.host = "n17", .reach = reach};
    (void)strcpy(owner.boot, boot);
    return owner;
}

TEST(test_owner_is_dead_by_the_rule)
{
    enum { NONE = LOCK_REACH_NONE, HOST = LOCK_REACH_HOST, ALL = LOCK_REACH_ALL };
    static const struct {
        const char *boot;
        int owner, self;
        bool is_dead;
    } cases[] = {
        /* This process has the lock, and both had it in a way that all hosts see. */
        {"a", ALL, ALL, true}, {"b", ALL, ALL, true},
        /* Another host. */
        {"b", NONE, ALL, false}, {"b", HOST, ALL, false}, {"b", ALL, HOST, false},
        {"b", ALL, NONE, false}, {"b", NONE, NONE, false}, {"?", HOST, HOST, false},
        /* This host: it has one set of locks. */
        {"a", HOST, HOST, true}, {"a", HOST, ALL, true},
        /* This host, without a lock. */
        {"a", NONE, ALL, false}, {"a", ALL, NONE, false}, {"a", NONE, NONE, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct file_owner owner = make_owner(cases[i].boot, (enum lock_reach)cases[i].owner);
        struct file_owner self = make_owner("a", (enum lock_reach)cases[i].self);
        if (file_owner_judge(&owner, &self) != cases[i].is_dead) fail_msg("case %zu", i);
    }
    /* Two hosts whose kernels have no names are not the same. */
    struct file_owner owner = make_owner("?", LOCK_REACH_HOST), self = owner;
    assert_false(file_owner_judge(&owner, &self));
}

TEST(test_reach_of_locks_follows_the_file_system)
{
    static const struct {
        unsigned long magic;
        const char *options;
        enum lock_reach expected;
    } cases[] = {
        {0xef53, NULL, LOCK_REACH_ALL},
        {0x6969, "rw,vers=4.2,hard,local_lock=none,addr=10.0.0.1", LOCK_REACH_ALL},
        {0x6969, "rw,vers=3,nolock,local_lock=all", LOCK_REACH_HOST},
        {0x6969, "rw,vers=3,nolock", LOCK_REACH_HOST},
        {0x6969, "local_lock=flock", LOCK_REACH_HOST},
        {0x6969, "rw,local_lock=posix", LOCK_REACH_ALL},
        {0x6969, NULL, LOCK_REACH_HOST},
        {0x0bd00bd0, "rw,flock,user_xattr", LOCK_REACH_ALL},
        {0x0bd00bd0, "rw,localflock", LOCK_REACH_HOST},
        {0x0bd00bd0, "rw", LOCK_REACH_HOST},
        {0x65735546, "rw,flock", LOCK_REACH_HOST},      /* FUSE */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (file_owner_reach(cases[i].magic, cases[i].options) != cases[i].expected)
            fail_msg("case %zu", i);
}

static int open_file(void)
{
    int fd = open("LOCK", O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    return fd;
}

static bool is_dead(void)
{
    struct file_owner owner;
    int fd = open_file();
    bool found = file_owner_is_dead(fd, FILE_LOCK_HELD, &owner);
    assert_int_equal(close(fd), 0);
    return found;
}

/* By the clock of the file system, whatever that of this host says; no file stays. */
TEST_IN_OWN_DIR(test_recent_by_the_clock_of_the_file_system)
{
    static const struct {
        long seconds;
        bool recent;
    } cases[] = {{0, true}, {-500, true}, {3600, true}, {-700, false}, {-86400, false}};
    int fd = open_file();
    struct stat now, st;
    assert_int_equal(fstat(fd, &now), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct timespec times[2] = {now.st_mtim, now.st_mtim};
        times[1].tv_sec += cases[i].seconds;
        assert_int_equal(futimens(fd, times), 0);
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(file_owner_is_recent("LOCK", &st), cases[i].recent);
    }
    assert_true(file_owner_is_recent("nowhere/LOCK", &st));
    assert_int_equal(close(fd) + unlink("LOCK"), 0);            /* leave_place checks the rest */
}

/* What is written is read; a longer text before it is gone. */
TEST_IN_OWN_DIR(test_owner_that_is_written_is_read)
{
    struct file_owner owner = make_owner("other", LOCK_REACH_HOST), read;
    int fd = open_file();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(file_owner_write(fd, &owner), 0);
        assert_false(file_owner_is_dead(fd, FILE_LOCK_HELD, &read));
        assert_string_equal(read.host, owner.host);
        assert_string_equal(read.boot, "other");
        assert_int_equal(read.reach, LOCK_REACH_HOST);
        (void)strcpy(owner.host, "n");
    }
    assert_int_equal(ftruncate(fd, 20), 0);
    assert_false(is_dead());
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_true(is_dead());
    assert_int_equal(close(fd), 0);
    fd = open("LOCK", O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(file_owner_write(fd, &owner), -1);
    assert_int_equal(close(fd) + unlink("LOCK"), 0);
}
