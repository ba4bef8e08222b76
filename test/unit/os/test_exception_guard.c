/*
 * test_exception_guard.c -- C++ exceptions, aborts and failed allocations end the process cleanly.
 *
 * A child process throws, with functions that the C++ library has for its own use. It must print
 * one message, call clean_up and end with status 1.
 */
#define _GNU_SOURCE             /* RTLD_DEFAULT */
#include "child.h"
#include "unit_test.h"

#include "os/exception_guard.h"
#include "os/find_function.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <errno.h>
#include <htslib/hts.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum thrown { BAD_ALLOC, SYSTEM_ERROR, LOGIC_ERROR, ABORT, ABORT_IN_HTSLIB, NO_MEMORY };

static void *find(const char *symbol)
{
    void *function = NULL;
    find_function(RTLD_DEFAULT, symbol, &function);
    if (!function) skip();
    return function;
}

/* htslib aborts if it is told to save an index in a format that is none. */
static void abort_in_htslib(void)
{
    hts_idx_t *index = hts_idx_init(1, HTS_FMT_CSI, 0, 14, 5);
    assert_non_null(index);
    assert_int_equal(hts_idx_save(index, "index", 99), -1);
    hts_idx_destroy(index);
}

static void throw_it(enum thrown what)
{
    union {
        void *address;
        void (*plain)(void);
        void (*number)(int);
        void (*text)(const char *);
    } function;
    switch (what) {
    case BAD_ALLOC:
        function.address = find("_ZSt17__throw_bad_allocv");
        function.plain();
        break;
    case SYSTEM_ERROR:
        function.address = find("_ZSt20__throw_system_errori");
        function.number(EAGAIN);
        break;
    case LOGIC_ERROR:
        function.address = find("_ZSt19__throw_logic_errorPKc");
        function.text("logic");
        break;
    case ABORT: abort();
    case ABORT_IN_HTSLIB: abort_in_htslib(); break;
    case NO_MEMORY: xalloc_require(false);
    }
}

static void clean_up(void *arg)
{
    (void)fprintf(stderr, "cleaned up %s\n", (const char *)arg);
}

static void *throw_in_thread(void *arg)
{
    throw_it(*(const enum thrown *)arg);
    return NULL;
}

struct fault {
    enum thrown what;
    bool in_thread;
};

static void throw_in_child(void *arg)
{
    struct fault *fault = arg;
    pthread_t thread;
    exception_guard_begin(clean_up, "the child");
    if (!fault->in_thread) throw_it(fault->what);
    if (pthread_create(&thread, NULL, throw_in_thread, &fault->what) == 0)
        (void)pthread_join(thread, NULL);
}

/* The message must have the part, and clean_up must have been called after it. */
static void check(enum thrown what, bool in_thread, const char *part)
{
    struct fault fault = {what, in_thread};
    struct ended_child ended = run_in_child(throw_in_child, &fault);
    assert_int_equal(ended.status, 1);
    const char *message = strstr(ended.text, "samtools rocksort: ");
    const char *end = strstr(ended.text, "cleaned up the child");
    if (!message || !end || end < message || !strstr(ended.text, part))
        fail_msg("printed: %s", ended.text);
    assert_null(strstr(message + 1, "samtools rocksort: "));
}

TEST(test_each_exception_prints_one_message_and_cleans_up)
{
    (void)find("_ZSt17__throw_bad_allocv");
    for (int in_thread = 0; in_thread < 2; in_thread++) {
        check(BAD_ALLOC, in_thread, "out of memory");
        check(SYSTEM_ERROR, in_thread, "thread");
        check(LOGIC_ERROR, in_thread, "logic_error");
        check(ABORT, in_thread, "the program has given up");
        check(ABORT_IN_HTSLIB, in_thread, "htslib has given up");
        check(NO_MEMORY, in_thread, "out of memory");
    }
}

static void wait_for_abort(void *arg)
{
    exception_guard_begin(clean_up, arg);
    pid_t pid = getpid();
    if (fork() == 0) {
        (void)kill(pid, SIGABRT);
        _exit(0);
    }
    (void)alarm(20);
    for (;;) (void)pause();
}

/* Another process may send SIGABRT whatever this one is doing, to get a core dump: this one may
   hold any lock then, so clean_up would sometimes wait forever. */
TEST(test_abort_from_outside)
{
    struct ended_child ended = run_in_child(wait_for_abort, "the child");
    assert_int_equal(ended.status, -1);
    assert_string_equal(ended.text, "");
}

static bool print_explanation(void)
{
    diag_error("explained this");
    return true;
}

static void abort_with_explanation(void *arg)
{
    const enum thrown *what = arg;
    exception_guard_begin(clean_up, "the child");
    exception_guard_explain(print_explanation);
    throw_it(*what);
}

TEST(test_explanation_is_printed_for_aborts_in_htslib_alone)
{
    enum thrown whats[] = {ABORT_IN_HTSLIB, ABORT};
    for (size_t i = 0; i < sizeof whats / sizeof *whats; i++) {
        struct ended_child ended = run_in_child(abort_with_explanation, &whats[i]);
        assert_int_equal(ended.status, 1);
        assert_non_null(strstr(ended.text, "cleaned up the child\n"));
        assert_int_equal(strstr(ended.text, "explained this\n") != NULL,
                         whats[i] == ABORT_IN_HTSLIB);
        assert_null(strstr(ended.text, "RocksDB"));
    }
}

/* In clean_up, memory that cannot be had ends the process at once. */
static void clean_up_without_memory(void *arg)
{
    clean_up(arg);
    xalloc_require(false);
    (void)fputs("went on\n", stderr);
}

static void fail_twice(void *arg)
{
    exception_guard_begin(clean_up_without_memory, arg);
    xalloc_require(false);
}

TEST(test_no_memory_in_clean_up)
{
    struct ended_child ended = run_in_child(fail_twice, "twice");
    assert_int_equal(ended.status, 1);
    assert_non_null(strstr(ended.text, "cleaned up twice\n"));
    assert_null(strstr(ended.text, "went on"));
}

/* So does an exception, or an abort. */
static void clean_up_and_throw(void *arg)
{
    (void)alarm(20);
    clean_up("once");
    throw_it(*(const enum thrown *)arg);
}

static void throw_twice(void *arg)
{
    exception_guard_begin(clean_up_and_throw, arg);
    throw_it(BAD_ALLOC);
}

TEST(test_throw_in_clean_up)
{
    (void)find("_ZSt17__throw_bad_allocv");
    enum thrown whats[] = {BAD_ALLOC, ABORT};
    for (size_t i = 0; i < sizeof whats / sizeof *whats; i++) {
        struct ended_child ended = run_in_child(throw_twice, &whats[i]);
        assert_int_equal(ended.status, 1);
        assert_non_null(strstr(ended.text, "cleaned up once\n"));
    }
}

TEST(test_guard_can_begin_again)
{
    for (int i = 0; i < 3; i++) {
        exception_guard_begin(clean_up, NULL);
        exception_guard_end();
    }
}
