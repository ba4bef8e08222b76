/* test_diag.c -- which messages are printed, and how. Each test prints in a child process. */
#include "child.h"
#include "unit_test.h"

#include "util/diag.h"

#include <errno.h>
#include <signal.h>

#define US "samtools rocksort: "

static void check_printed(void (*run)(void *arg), const char *expected)
{
    struct ended_child ended = run_in_child(run, NULL);
    assert_int_equal(ended.status, CHILD_RETURNED);
    assert_string_equal(ended.text, expected);
}

static void print_errors(void *arg)
{
    (void)arg;
    assert_false(diag_failed());
    assert_null(diag_error_text());
    diag_error("cannot read '%s'", "in.bam");
    diag_error("second");
    diag_error_of(DIAG_DAMAGE, "third");
    assert_true(diag_failed());
    assert_int_equal(diag_cause(), DIAG_OTHER);
    assert_string_equal(diag_error_text(), "cannot read 'in.bam'");
    diag_renew();
    assert_false(diag_failed());
    assert_null(diag_error_text());
    diag_error_of(DIAG_DAMAGE, "damaged");
    assert_int_equal(diag_cause(), DIAG_DAMAGE);
    assert_null(diag_full_place());
    diag_renew();
    assert_int_equal(diag_cause(), DIAG_OTHER);
    diag_full_disk("/scratch", "full");
    diag_full_disk("/second", "second");
    assert_string_equal(diag_full_place(), "/scratch");
    diag_renew();
    assert_null(diag_full_place());
    diag_silence();
    diag_error("after silence");
    assert_true(diag_failed());
    assert_null(diag_error_text());
}

TEST(test_first_error_only)
{
    check_printed(print_errors, US "cannot read 'in.bam'\n" US "damaged\n" US "full\n");
}

static void print_all_kinds(void *arg)
{
    (void)arg;
    for (int quiet = 0; quiet < 2; quiet++) {
        assert_int_equal(diag_is_quiet(), quiet);
        diag_warning("w%d", quiet);
        diag_note("n%d", quiet);
        diag_left("l%d", quiet);
        diag_set_quiet();
    }
    diag_error("e");
    diag_left("after an error");
}

TEST(test_each_kind_of_message_is_printed)
{
    check_printed(print_all_kinds, US "warning: w0\n" US "n0\n" US "l0\n" US "l1\n" US "e\n" US
                                   "after an error\n");
}

static void print_control_characters(void *arg)
{
    (void)arg;
    diag_note("read '%s'", "a\n\x1b[2J");
    (void)fputs("before\t", stderr);
    diag_guard_stderr();
    diag_guard_stderr();
    (void)fputs("library \x1b[2J\n", stderr);
    (void)fprintf(stderr, "%s", "half");
    (void)fputs(" a line\n\n", stderr);
    char line[3000];
    memset(line, 'x', sizeof line);
    line[2999] = '\n';
    (void)fwrite(line, 1, sizeof line, stderr);
    diag_note("ours");
    (void)fputs("end", stderr);
    (void)fflush(stderr);
}

TEST(test_control_characters_are_escaped)
{
    char expected[4096];
    (void)strcpy(expected, US "read 'a\\x0a\\x1b[2J'\nbefore\tlibrary \\x1b[2J\nhalf a line\n\n");
    size_t n = strlen(expected);
    memset(expected + n, 'x', 2999);
    (void)strcpy(expected + n + 2999, "\n" US "ours\nend");
    check_printed(print_control_characters, expected);
}

/* A message erases the status line; nothing is drawn after diag_end_status. */
static void draw(void *arg)
{
    (void)arg;
    diag_status("10 %");
    diag_status("20 %");
    diag_note("between");
    diag_status("30 %");
    diag_end_status();
    diag_status("40 %");
    diag_note("after");
}

TEST(test_message_erases_the_status_line)
{
    check_printed(draw, "\r10 %\033[K\r" "\r20 %\033[K\r" "\r\033[K" US "between\n"
                        "\r30 %\033[K\r" "\r\033[K" US "after\n");
}

/* Nobody reads standard error any more. errno stays as a library left it. */
static void print_into_broken_pipe(void *arg)
{
    (void)arg;
    int fds[2];
    sigset_t pending;
    if (pipe(fds) != 0 || dup2(fds[1], STDERR_FILENO) < 0 || close(fds[0]) != 0) _exit(1);
    (void)signal(SIGPIPE, SIG_DFL);
    errno = EXDEV;
    diag_note("lost");
    if (errno != EXDEV) _exit(2);
    (void)sigpending(&pending);
    if (sigismember(&pending, SIGPIPE)) _exit(3);
}

TEST(test_broken_pipe_is_ignored)
{
    check_printed(print_into_broken_pipe, "");
}

static void print_words(void *arg)
{
    (void)arg;
    diag_no_memory();
    diag_renew();
    diag_no_thread(EAGAIN);
}

TEST(test_words_of_common_errors)
{
    struct ended_child ended = run_in_child(print_words, NULL);
    assert_non_null(strstr(ended.text, US "out of memory; give less with -m"));
    assert_non_null(strstr(ended.text, US "cannot start a thread: Resource temporarily"));
}

/* A message points at the words of a library only where the user can see them. */
static void point_at_words(void *arg)
{
    (void)arg;
    diag_guard_stderr();
    (void)fputs("[W::f] w\n", stderr);
    diag_note("a%s", diag_library_words());
    (void)fputs("[E::f] e\n", stderr);
    diag_note("b%s", diag_library_words());
    diag_renew();
    diag_note("c%s", diag_library_words());
    (void)fputs("Assertion\n", stderr);
    diag_note("d%s", diag_library_words());
    diag_renew();
    diag_hide_htslib();
    (void)fputs("[W::f] w\n", stderr);
    diag_note("e%s", diag_library_words());
    (void)fputs("[E::f] e\n", stderr);
    diag_note("f%s", diag_library_words());
}

TEST(test_message_points_at_words_that_can_be_seen)
{
    check_printed(point_at_words, "[W::f] w\n" US "a\n"
                                  "[E::f] e\n" US "b; its words are above\n" US "c\n"
                                  "Assertion\n" US "d; its words are above\n" US "e\n"
                                  US "f; --verbosity 1 shows its words\n");
}

static void react(void)
{
    diag_note("reacted");
}

static void print_the_words(void *arg)
{
    (void)arg;
    diag_guard_stderr();
    diag_watch_libraries("words", react);
    (void)fputs("these are the words\n", stderr);
    (void)fputs("others\n", stderr);
}

TEST(test_words_of_a_library_are_reacted_to)
{
    check_printed(print_the_words, "these are the words\n" US "reacted\nothers\n");
}
