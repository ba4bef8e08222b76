/*
 * child.h -- runs a function that ends its process, and tells how it ended and what it printed.
 */
#ifndef ROCKSORT_TEST_CHILD_H
#define ROCKSORT_TEST_CHILD_H

#include "random_records.h"

#include <sys/wait.h>
#include <unistd.h>

/* The exit status if the function returns. */
enum { CHILD_RETURNED = 77 };

struct ended_child {
    int status;                 /* exit status; -1: a signal ended it */
    char text[4096];            /* what it wrote to standard error */
};

/* Calls run(arg) in a child process. */
static inline struct ended_child run_in_child(void (*run)(void *arg), void *arg)
{
    struct ended_child ended = {0};
    int fds[2], status;
    size_t n = 0;
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(fds[1], STDERR_FILENO);
        run(arg);
        _exit(CHILD_RETURNED);
    }
    assert_int_equal(close(fds[1]), 0);
    for (ssize_t got; (got = read(fds[0], ended.text + n, sizeof ended.text - 1 - n)) > 0;)
        n += (size_t)got;
    assert_int_equal(close(fds[0]), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return ended;
}

#endif
