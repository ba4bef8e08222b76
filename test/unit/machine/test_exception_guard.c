/*
 * test_exception_guard.c -- what C++ throws ends the process cleanly.
 *
 * A child throws by what the C++ library has for its own use; it must print one message, clean up
 * and end with status 1.
 */
#define _GNU_SOURCE             /* RTLD_DEFAULT */
#include "random_records.h"

#include "machine/exception_guard.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum thrown { BAD_ALLOC, SYSTEM_ERROR, LOGIC_ERROR, ABORT };

static void *find(const char *symbol)
{
    void *function = dlsym(RTLD_DEFAULT, symbol);
    if (!function) skip();
    return function;
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

static void child(enum thrown what, bool in_thread, int fd)
{
    pthread_t thread;
    (void)dup2(fd, 2);
    exception_guard_begin(clean_up, "the child");
    if (!in_thread) throw_it(what);
    if (pthread_create(&thread, NULL, throw_in_thread, &what) == 0)
        (void)pthread_join(thread, NULL);
    _exit(77);
}

/* The message must have a part, and the clean-up must have been done behind it. */
static void check(enum thrown what, bool in_thread, const char *part)
{
    char text[4096] = "";
    int fds[2], status;
    size_t n = 0;
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) child(what, in_thread, fds[1]);
    assert_int_equal(close(fds[1]), 0);
    for (ssize_t got; (got = read(fds[0], text + n, sizeof text - 1 - n)) > 0;) n += (size_t)got;
    assert_int_equal(close(fds[0]), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    const char *message = strstr(text, "samtools rocksort: ");
    const char *end = strstr(text, "cleaned up the");
    if (!message || !end || end < message || !strstr(text, part)) fail_msg("printed: %s", text);
}

static void test_what_is_thrown(void **state)
{
    (void)state;
    (void)find("_ZSt17__throw_bad_allocv");
    for (int in_thread = 0; in_thread < 2; in_thread++) {
        check(BAD_ALLOC, in_thread, "out of memory");
        check(SYSTEM_ERROR, in_thread, "thread");
        check(LOGIC_ERROR, in_thread, "logic_error");
        check(ABORT, in_thread, "given up");
    }
}

static void test_begin_end(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        exception_guard_begin(clean_up, NULL);
        exception_guard_end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_thrown),
        cmocka_unit_test(test_begin_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
