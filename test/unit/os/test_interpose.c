/*
 * test_interpose.c -- functions of the C library that the program replaces.
 */
#define _GNU_SOURCE             /* sync_file_range */
#include "child.h"
#include "test_place.h"
#include "unit_test.h"

#include "os/exception_guard.h"
#include "os/interpose.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

/* Sanitizers and valgrind have their own allocators. */
static bool has_our_allocator(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
    return false;
#else
    const char *preloaded = getenv("LD_PRELOAD");
    return !preloaded || !strstr(preloaded, "vgpreload");
#endif
}

/* volatile, so that the compiler neither warns of the size nor leaves out the calls. */
static volatile size_t too_many_bytes = (size_t)1 << 62;
static void *volatile result;

static void malloc_too_much(void) { result = malloc(too_many_bytes); }
static void calloc_too_much(void) { result = calloc(too_many_bytes, 1); }

static void realloc_too_much(void)
{
    result = malloc(10);
    void *grown = realloc(result, too_many_bytes);
    if (grown) result = grown;
}

static void align_too_much(void)
{
    void *mem = NULL;
    assert_int_equal(posix_memalign(&mem, 64, too_many_bytes), ENOMEM);
    result = mem;
}

static void (*const failures[])(void) = {
    malloc_too_much, calloc_too_much, realloc_too_much, align_too_much,
};

static void clean_up(void *arg)
{
    (void)arg;
    result = malloc(too_many_bytes);    /* within clean_up this returns NULL */
    (void)fprintf(stderr, "cleaned up, %s\n", result ? "had memory" : "no memory");
}

struct failure {
    void (*run)(void);
    bool guarded;
};

static void fail_in_child(void *arg)
{
    const struct failure *failure = arg;
    if (failure->guarded) exception_guard_begin(clean_up, NULL);
    failure->run();
}

TEST(test_failed_allocations_end_a_guarded_process)
{
    if (!has_our_allocator()) skip();
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        struct failure failure = {failures[i], true};
        struct ended_child ended = run_in_child(fail_in_child, &failure);
        assert_int_equal(ended.status, 1);
        assert_non_null(strstr(ended.text, "samtools rocksort: out of memory"));
        assert_non_null(strstr(ended.text, "\ncleaned up, no memory\n"));
        failure.guarded = false;
        ended = run_in_child(fail_in_child, &failure);
        assert_int_equal(ended.status, CHILD_RETURNED);
    }
}

/* Sizes that are allowed to give NULL are no failure. */
static void ask_for_nothing(void *arg)
{
    (void)arg;
    exception_guard_begin(clean_up, NULL);
    volatile size_t none = 0;
    void *mem = malloc(10);
    result = realloc(mem, none);
    free(malloc(none));
}

TEST(test_sizes_of_zero)
{
    if (!has_our_allocator()) skip();
    assert_int_equal(run_in_child(ask_for_nothing, NULL).status, CHILD_RETURNED);
}

#if defined(__linux__)
/* Makes a FIFO below the working directory, whose fsync fails with EINVAL unless it is skipped. */
static int make_fifo(const char *path)
{
    assert_int_equal(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDWR | O_NONBLOCK);
    assert_true(fd >= 0);
    return fd;
}

static void check_synced(int fd, bool synced)
{
    errno = 0;
    assert_int_equal(fsync(fd), synced ? -1 : 0);
    assert_int_equal(errno, synced ? EINVAL : 0);
    assert_int_equal(fdatasync(fd), synced ? -1 : 0);
}

TEST_IN_OWN_DIR(test_syncs_below_given_directories_are_skipped)
{
    char first[PATH_MAX], second[PATH_MAX];
    assert_int_equal(mkdir("a", 0700), 0);
    assert_int_equal(mkdir("b", 0700), 0);
    assert_int_equal(mkdir("ab", 0700), 0);
    assert_non_null(realpath("a", first));
    assert_non_null(realpath("b", second));
    int in_a = make_fifo("a/f"), in_b = make_fifo("b/f"), in_ab = make_fifo("ab/f");
    check_synced(in_a, true);
    char *paths[] = {first, second, NULL};
    interpose_skip_syncs(paths);
    check_synced(in_a, false);
    check_synced(in_b, false);
    check_synced(in_ab, true);
    assert_true(interpose_make_all_syncs());
    check_synced(in_a, true);
    check_synced(in_b, true);
    assert_false(interpose_make_all_syncs());
    (void)close(in_a);
    (void)close(in_b);
    (void)close(in_ab);
    assert_int_equal(system("rm -r a b ab"), 0);
}

/* A closed descriptor shows which calls reach the kernel. */
TEST(test_page_cache_is_not_dropped)
{
    int fd = open(".", O_RDONLY);
    assert_true(fd >= 0 && close(fd) == 0);
    errno = 0;
    assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL), EBADF);
    assert_int_equal(errno, 0);
    assert_int_equal(sync_file_range(fd, 0, 0, 0), -1);
    assert_int_equal(errno, ENOSYS);
    assert_int_equal(sync_file_range(fd, 0, 4096, 0), -1);
    assert_int_equal(errno, EBADF);
}
#endif
