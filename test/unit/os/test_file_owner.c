/*
 * test_file_owner.c -- whether the process that works with a file still lives: the rule, for owners
 * with locks and without, on this host and on others.
 */
#include "test_place.h"
#include "unit_test.h"

#include "os/file_owner.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

static struct file_owner make_owner(const char *boot, const char *processes, enum lock_reach reach)
{
    struct file_owner owner = {.host = "n17", .process = 4711, .reach = reach};
    (void)strcpy(owner.boot, boot);
    (void)strcpy(owner.processes, processes);
    return owner;
}

TEST(test_owner_is_alive_dead_or_unknown_by_the_rule)
{
    enum { NONE = LOCK_REACH_NONE, HOST = LOCK_REACH_HOST, ALL = LOCK_REACH_ALL };
    enum { DEAD = FILE_OWNER_DEAD, ALIVE = FILE_OWNER_ALIVE, UNKNOWN = FILE_OWNER_ON_NAMESAKE };
    static const struct {
        const char *boot, *processes;
        int owner, self;
        bool has_open;
        int expected;
    } cases[] = {
        /* This process has the lock, and both had it in a way that all hosts see. */
        {"a", "x", ALL, ALL, false, DEAD},
        {"b", "x", ALL, ALL, false, DEAD},
        {"b", "y", ALL, ALL, true, DEAD},
        /* Another host. */
        {"b", "x", NONE, ALL, false, UNKNOWN},
        {"b", "x", HOST, ALL, false, UNKNOWN},
        {"b", "x", ALL, HOST, false, UNKNOWN},
        {"b", "x", ALL, NONE, false, UNKNOWN},
        {"b", "x", NONE, NONE, true, UNKNOWN},
        {"?", "x", HOST, HOST, false, UNKNOWN},
        /* This host: it has one set of locks. */
        {"a", "x", HOST, HOST, false, DEAD},
        {"a", "y", HOST, ALL, true, DEAD},
        /* This host, without a lock. */
        {"a", "x", NONE, ALL, true, ALIVE},
        {"a", "x", NONE, ALL, false, DEAD},
        {"a", "x", ALL, NONE, true, ALIVE},
        {"a", "x", NONE, NONE, false, DEAD},
        /* A container of this host: process numbers mean other processes. */
        {"a", "y", NONE, ALL, true, FILE_OWNER_IN_CONTAINER},
        {"a", "y", ALL, NONE, false, FILE_OWNER_IN_CONTAINER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct file_owner owner = make_owner(cases[i].boot, cases[i].processes,
                                             (enum lock_reach)cases[i].owner);
        struct file_owner self = make_owner("a", "x", (enum lock_reach)cases[i].self);
        if ((int)file_owner_judge(&owner, &self, cases[i].has_open) != cases[i].expected)
            fail_msg("case %zu", i);
    }
    /* Two hosts whose kernels have no names are not the same. */
    struct file_owner owner = make_owner("?", "x", LOCK_REACH_HOST), self = owner;
    assert_int_equal(file_owner_judge(&owner, &self, false), UNKNOWN);
    (void)strcpy(owner.host, "n18");
    assert_int_equal(file_owner_judge(&owner, &self, false), FILE_OWNER_ON_HOST);
    /* Neither the kernel nor the host is known. */
    (void)strcpy(owner.host, "?");
    (void)strcpy(self.host, "?");
    assert_int_equal(file_owner_judge(&owner, &self, false), FILE_OWNER_ON_HOST);
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

static enum file_owner_state look(void)
{
    struct file_owner owner;
    int fd = open_file();
    enum file_owner_state found = file_owner_look(fd, FILE_LOCK_HELD, &owner);
    assert_int_equal(close(fd), 0);
    return found;
}

TEST_IN_OWN_DIR(test_process_without_a_lock_is_alive_while_the_file_is_open)
{
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct file_owner self;
        int fd = open_file();
        file_owner_self(fd, FILE_LOCK_NONE, &self);
        bool good = file_owner_write(fd, &self) == 0;
        if (write(ready[1], good ? "y" : "n", 1) != 1) _exit(1);
        for (;;) (void)pause();
    }
    char answer;
    assert_int_equal(read(ready[0], &answer, 1), 1);
    assert_int_equal(answer, 'y');
    struct file_owner owner;
    int fd = open_file();
    assert_int_equal(file_owner_look(fd, FILE_LOCK_HELD, &owner), FILE_OWNER_ALIVE);
    assert_int_equal(owner.process, child);
    assert_int_equal(owner.reach, LOCK_REACH_NONE);
    assert_true(file_owner_writes_output(fd, child));
    assert_int_equal(close(fd), 0);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(look(), FILE_OWNER_DEAD);
    assert_int_equal(close(ready[0]) + close(ready[1]), 0);
    assert_int_equal(unlink("LOCK"), 0);
}

TEST_IN_OWN_DIR(test_others_do_not_write_the_output)
{
    int fd = open_file();
    assert_false(file_owner_writes_output(fd, 1));
    assert_false(file_owner_writes_output(fd, (long)getpid()));
    assert_false(file_owner_writes_output(fd, 0));
    assert_int_equal(close(fd) + unlink("LOCK"), 0);
}

/* What is written is read; a longer text before it is gone. */
TEST_IN_OWN_DIR(test_owner_that_is_written_is_read)
{
    struct file_owner owner = make_owner("other", "x", LOCK_REACH_HOST), read;
    int fd = open_file();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(file_owner_write(fd, &owner), 0);
        assert_int_equal(file_owner_look(fd, FILE_LOCK_HELD, &read), FILE_OWNER_ON_HOST);
        assert_string_equal(read.host, owner.host);
        assert_string_equal(read.boot, "other");
        assert_int_equal(read.process, 4711);
        assert_int_equal(read.reach, LOCK_REACH_HOST);
        (void)strcpy(owner.host, "n");
    }
    assert_int_equal(ftruncate(fd, 20), 0);
    assert_int_equal(look(), FILE_OWNER_ON_HOST);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(look(), FILE_OWNER_DEAD);
    assert_int_equal(close(fd), 0);
    fd = open("LOCK", O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(file_owner_write(fd, &owner), -1);
    assert_int_equal(close(fd) + unlink("LOCK"), 0);
}
