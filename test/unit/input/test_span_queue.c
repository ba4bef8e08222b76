/*
 * test_span_queue.c -- spans of several inputs come in the order of each, as many ahead as the
 * memory allows, and what a damaged record does.
 */
#include "bam_content.h"
#include "test_place.h"
#include "unit_test.h"

#include "input/span_queue.h"

enum { N_INPUTS = 3 };

static struct rng rng;
static struct content content;
static struct input_streams_settings settings;
static size_t n_made, n_alive, most_alive;      /* under the lock: spans */

static int make(void *arg, struct worker *worker, struct queued_span *span, const char *input)
{
    (void)worker;
    (void)input;
    thread_pool_lock(settings.threads);
    n_made++;
    if (++n_alive > most_alive) most_alive = n_alive;
    thread_pool_unlock(settings.threads);
    span->made = arg;
    return 0;
}

static void drop(void *arg, void *made)
{
    assert_ptr_equal(made, arg);
    n_alive--;
}

static int enter(void **state)
{
    rng = rng_start(41);
    content = make_content(&rng, 20000, 60000);
    static struct load_totals totals;
    struct threads *threads = totals.threads = thread_pool_create();
    settings = (struct input_streams_settings){
        .threads = threads, .totals = &totals, .n_refs = 1,
        .share = {.span_bytes = 5000}, .make = make, .drop = drop, .arg = &content};
    return thread_pool_start(threads, 3) < 0 || enter_place(state) != 0;
}

static int leave(void **state)
{
    thread_pool_destroy(settings.threads);
    release_content(&content);
    return unlink(path) != 0 || leave_place(state) != 0;
}

/* The records of the span must be the next ones; *n counts them. Returns -1 if the next is bad. */
static int check_span(const struct record_span *span, size_t *n)
{
    size_t n_bytes = (size_t)(span->to - span->from);
    assert_int_equal(span->first_record, *n);
    assert_int_equal(n_bytes, content.at[*n + span->n_records] - content.at[*n]);
    assert_memory_equal(span->from, content.bytes + content.at[*n], n_bytes);
    *n += span->n_records;
    return record_span_has_problem(span) ? -1 : 0;
}

/* Waits until n_first spans are made, and takes those of all inputs, which are the same file.
   Returns what the last call returned. */
static int take_all(size_t n_first, size_t n_taken[N_INPUTS])
{
    static const htsFormat no_options;
    static const size_t numbers[] = {0, 1, 2}, order[] = {2, 0, 1};
    const char *const paths[] = {path, path, path};
    struct queued_span *span;
    int r = 0;
    n_made = n_alive = most_alive = 0;
    memset(n_taken, 0, N_INPUTS * sizeof *n_taken);
    settings.inputs = bam_inputs_open(paths, N_INPUTS, &no_options, NULL, true);
    settings.numbers = numbers;
    settings.n_inputs = N_INPUTS;
    struct input_streams *all = input_streams_start(&settings);
    thread_pool_lock(settings.threads);
    while (n_made < n_first) thread_pool_wait(settings.threads);
    thread_pool_unlock(settings.threads);
    for (size_t i = 0; i < N_INPUTS; i++)
        while (r >= 0 && (r = input_streams_next(all, order[i], &span)) > 0) {
            assert_int_equal(span->input, order[i]);
            r = check_span(&span->records, &n_taken[i]);
            span_queue_drop(span);
        }
    input_streams_stop(all);
    (void)thread_pool_finish_jobs(settings.threads);
    input_streams_destroy(all);
    bam_inputs_close(settings.inputs);
    return r;
}

TEST_WITH(test_inputs_taken_in_any_order_have_all_records_in_order, enter, leave)
{
    size_t n_taken[N_INPUTS];
    write_content(&rng, "@SQ\tSN:c1\tLN:100000\n", &content, content.n_bytes, "w1");
    for (size_t ahead_bytes = 0; ahead_bytes <= 1 << 20; ahead_bytes += 1 << 20) {
        settings.share.ahead_bytes = ahead_bytes;
        assert_int_equal(take_all(ahead_bytes > 0 ? 3 * N_INPUTS : 0, n_taken), 0);
        for (int i = 0; i < N_INPUTS; i++) assert_int_equal(n_taken[i], N_RECORDS);
        assert_int_equal(n_alive, 0);
        assert_true(ahead_bytes > 0 || most_alive <= N_INPUTS); /* one of each is always allowed */
    }
}

/* A taker who checks sees it; else the sort fails. */
TEST_WITH(test_records_before_a_damaged_one_are_taken, enter, leave)
{
    size_t n_taken[N_INPUTS];
    test_put_u32(content.bytes + content.at[N_RECORDS / 2], 31);
    write_content(&rng, "@SQ\tSN:c1\tLN:100000\n", &content, content.n_bytes, "w1");
    settings.taker_checks = true;
    assert_int_equal(take_all(0, n_taken), -1);
    assert_true(n_taken[0] == N_RECORDS / 2 && !thread_pool_failed(settings.threads));
    settings.taker_checks = false;
    assert_int_equal(take_all(0, n_taken), -1);
    assert_true(n_taken[0] <= N_RECORDS / 2 && thread_pool_failed(settings.threads));
}
