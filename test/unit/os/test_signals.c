/* test_signals.c -- the thread that takes signals. */
#include "unit_test.h"

#include "os/signals.h"

#include <unistd.h>

static enum signal_answer go_on(void *arg, int signal_number)
{
    int *n = arg;
    (void)signal_number;
    (*n)++;
    return SIGNAL_GO_ON;
}

/* A signal that the thread has taken when it learns that signals are to wait is not lost. */
TEST(test_signal_at_the_end)
{
    int n_asked = 0;
    struct signal_watch watch = {.on_signal = go_on, .arg = &n_asked};
    assert_int_equal(signals_watch(&watch), 0);
    atomic_store(&watch.is_over, true);
    assert_int_equal(kill(getpid(), SIGTERM), 0);
    assert_int_equal(pthread_join(watch.thread, NULL), 0);

    static const struct timespec at_once = {0};
    sigset_t term;
    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    assert_int_equal(sigtimedwait(&term, NULL, &at_once), SIGTERM);
    assert_int_equal(n_asked, 0);
    signals_restore(&watch);
}
