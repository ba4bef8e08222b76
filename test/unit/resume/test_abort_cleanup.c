/* test_abort_cleanup.c -- the thread that takes signals. */
#include "unit_test.h"

#include "os/exception_guard.h"
#include "resume/abort_cleanup.h"

#include <unistd.h>

/* A signal that the thread has taken when it learns that signals are to wait is not lost. */
TEST(test_signal_at_the_end)
{
    struct abort_cleanup cleanup = {0};
    assert_int_equal(abort_cleanup_watch(&cleanup), 0);
    atomic_store(&cleanup.is_over, true);
    assert_int_equal(kill(getpid(), SIGTERM), 0);
    assert_int_equal(pthread_join(cleanup.thread, NULL), 0);

    static const struct timespec at_once = {0};
    sigset_t term;
    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    assert_int_equal(sigtimedwait(&term, NULL, &at_once), SIGTERM);
    exception_guard_end();
    abort_cleanup_restore_signals(&cleanup);
}
