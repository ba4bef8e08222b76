/*
 * test_output_path.c -- the names under which outputs are written; and no file is made after the
 * thread that handles a signal has removed it.
 */
#define _GNU_SOURCE             /* AT_EMPTY_PATH */
#include "test_place.h"
#include "unit_test.h"

#include "os/file_owner.h"
#include "output/output_path.h"
#include "util/diag.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static void wait_milliseconds(long n)
{
    struct timespec time = {0, n * 1000000};
    (void)nanosleep(&time, NULL);
}

TEST_IN_OWN_DIR(test_output_gets_its_name_when_it_is_complete)
{
    for (int durable = 0; durable < 2; durable++) {
        struct output_path path;
        assert_int_equal(output_path_choose(&path, "out"), 0);
        path.durable = durable;
        assert_non_null(path.temporary);
        hFILE *file = output_path_open(&path);
        assert_non_null(file);
        assert_true(exists(path.temporary));
        assert_null(output_path_open(&path));           /* it exists already */
        assert_int_equal(errno, EEXIST);
        assert_int_equal(hwrite(file, "abc", 3), 3);
        assert_int_equal(hclose(file), 0);
        assert_int_equal(output_path_commit(&path), 0);
        assert_false(exists(path.temporary));
        struct stat st;
        assert_int_equal(stat("out", &st), 0);
        assert_int_equal(st.st_size, 3);
        output_path_drop(&path);                        /* there is nothing left to drop */
        assert_true(exists("out"));
        output_path_release(&path);
    }
    assert_int_equal(unlink("out"), 0);
}

TEST(test_device_is_written_as_it_stands)
{
    struct output_path path;
    assert_int_equal(output_path_choose(&path, "/dev/null"), 0);
    path.durable = true;
    assert_null(path.temporary);
    hFILE *file = output_path_open(&path);
    assert_non_null(file);
    assert_int_equal(hclose(file), 0);
    assert_int_equal(output_path_commit(&path), 0);
    output_path_drop(&path);
    output_path_release(&path);
}

/* Makes a file with these bytes and permissions. */
static void write_file(const char *name, const char *bytes, mode_t mode)
{
    put_file(name, bytes, strlen(bytes));
    assert_int_equal(chmod(name, mode), 0);
}

/* Writes an output with this name. Returns what the file is then. */
static struct stat write_output(const char *name)
{
    struct output_path path;
    struct stat st;
    assert_int_equal(output_path_choose(&path, name), 0);
    hFILE *file = output_path_open(&path);
    assert_non_null(file);
    assert_int_equal(hwrite(file, "abc", 3), 3);
    assert_int_equal(hclose(file), 0);
    assert_int_equal(output_path_commit(&path), 0);
    output_path_release(&path);
    assert_int_equal(stat(name, &st), 0);
    assert_int_equal(st.st_size, 3);
    return st;
}

/* New files get permissions by the umask. Files that are replaced keep theirs, and their owner if
   we may give files away. */
TEST_IN_OWN_DIR(test_new_output_has_permissions_of_the_old_one)
{
    static const mode_t modes[] = {0664, 0600, 0646};
    mode_t before = umask(0027);
    assert_int_equal(write_output("new").st_mode & 07777, 0640);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        write_file("old", "", modes[i]);
        bool given = chown("old", 12345, 12346) == 0;
        struct stat st = write_output("old");
        assert_int_equal(st.st_mode & 07777, modes[i]);
        assert_int_equal(st.st_uid, given ? 12345 : geteuid());
        assert_int_equal(st.st_gid, given ? 12346 : getegid());
        assert_int_equal(unlink("old"), 0);
    }
    (void)umask(before);
    assert_int_equal(unlink("new"), 0);
}

static bool mocks_chown;
static bool owner_can_be_set;
static unsigned n_chowns;

/* In place of that of the C library, since root may give away every file, and others none. */
int fchown(int fd, uid_t uid, gid_t gid)
{
    if (!mocks_chown) return fchownat(fd, "", uid, gid, AT_EMPTY_PATH);
    n_chowns++;
    if (uid == (uid_t)-1 || owner_can_be_set) return 0;
    errno = EPERM;
    return -1;
}

TEST_IN_OWN_DIR(test_set_id_bits_stay_with_their_owner_and_group)
{
    for (int i = 0; i < 4; i++) {
        bool same_owner = i & 1, same_group = i & 2;
        struct output_path path;
        struct stat st;
        write_file("old", "", 06755);
        assert_int_equal(output_path_choose(&path, "old"), 0);
        path.uid = geteuid() + !same_owner;
        path.gid = getegid() + !same_group;
        mocks_chown = true;
        owner_can_be_set = same_owner;
        n_chowns = 0;
        hFILE *file = output_path_open(&path);
        assert_non_null(file);
        assert_int_equal(hclose(file), 0);
        /* Until it is complete, --clean knows by its owner that the file is ours. */
        assert_int_equal(n_chowns, 0);
        assert_int_equal(output_path_commit(&path), 0);
        mocks_chown = false;
        assert_true(n_chowns > 0);
        assert_int_equal(stat("old", &st), 0);
        assert_int_equal(st.st_mode & 07777,
                         0755 | (same_owner ? S_ISUID : 0) | (same_group ? S_ISGID : 0));
        output_path_release(&path);
    }
    assert_int_equal(unlink("old"), 0);
}

/* A symbolic link is followed, also to a file that does not exist; other hard links stay. */
TEST_IN_OWN_DIR(test_symbolic_links_are_followed)
{
    struct stat st;
    struct output_path path;
    assert_int_equal(mkdir("sub", 0700), 0);
    assert_int_equal(symlink("sub/second", "first"), 0);
    assert_int_equal(symlink("../file", "sub/second"), 0);
    for (int there = 0; there < 2; there++) {
        assert_int_equal(output_path_choose(&path, "first"), 0);
        assert_string_equal(strrchr(path.final, '/'), "/file");
        assert_null(strstr(path.final, "sub"));
        assert_non_null(path.temporary);
        output_path_release(&path);
        (void)write_output("first");
        assert_int_equal(lstat("file", &st), 0);
        assert_true(S_ISREG(st.st_mode));
    }
    assert_int_equal(link("file", "other"), 0);
    write_file("file", "abcd", 0644);
    (void)write_output("first");
    assert_int_equal(stat("other", &st), 0);
    assert_int_equal(st.st_size, 4);
    assert_int_equal(unlink("file"), 0);
    assert_int_equal(symlink("first", "file"), 0);      /* a circle */
    diag_silence();
    assert_int_equal(output_path_choose(&path, "first"), -1);
    assert_int_equal(symlink("nowhere/file", "lost"), 0);
    assert_int_equal(output_path_choose(&path, "lost"), -1);
    static const char *const made[] = {"first", "sub/second", "file", "other", "lost"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) assert_int_equal(unlink(made[i]), 0);
    assert_int_equal(rmdir("sub"), 0);
}

struct maker {
    struct output_path *path;
    atomic_bool about_to;
};

static void *open_in_thread(void *arg)
{
    struct maker *maker = arg;
    atomic_store(&maker->about_to, true);
    hFILE *file = output_path_open(maker->path);
    if (file) assert_int_equal(hclose(file), 0);
    return NULL;
}

TEST_IN_OWN_DIR(test_nothing_is_made_after_the_removal)
{
    struct output_path path;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread;
    assert_int_equal(output_path_choose(&path, "out"), 0);
    path.lock = &lock;
    struct maker maker = {.path = &path};
    assert_int_equal(pthread_mutex_lock(&lock), 0);
    assert_int_equal(pthread_create(&thread, NULL, open_in_thread, &maker), 0);
    while (!atomic_load(&maker.about_to)) wait_milliseconds(1);
    wait_milliseconds(50);
    assert_false(exists(path.temporary));
    assert_int_equal(pthread_mutex_unlock(&lock), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(exists(path.temporary));
    output_path_drop(&path);
    output_path_release(&path);
}

TEST_IN_OWN_DIR(test_same_file_is_known_by_any_name)
{
    struct output_path a, b;
    assert_int_equal(output_path_choose(&a, "out"), 0);
    assert_int_equal(output_path_choose(&b, "./out"), 0);
    assert_true(output_path_same(&a, &b));
    output_path_release(&b);
    assert_int_equal(output_path_choose(&b, "other"), 0);
    assert_false(output_path_same(&a, &b));
    output_path_release(&a);
    output_path_release(&b);
}

TEST_IN_OWN_DIR(test_commit_of_nothing_fails)
{
    struct output_path path;
    assert_int_equal(output_path_choose(&path, "out"), 0);
    diag_silence();
    assert_int_equal(output_path_commit(&path), -1);    /* nothing was made */
    path.durable = true;
    assert_int_equal(output_path_commit(&path), -1);
    assert_false(exists("out"));
    output_path_release(&path);
}
