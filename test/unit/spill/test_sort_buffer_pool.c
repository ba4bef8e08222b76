/* test_sort_buffer_pool.c -- the memory of sort buffers: taken, frozen, spilled, retired. */
#include "unit_test.h"

#include "spill/sort_buffer_pool.h"

struct fixture {
    struct threads *threads;
    struct sort_buffer_pool *pool;
    struct memory_budget budget;
    struct sort_rules rules;
};

static struct fixture f;

static int open_pool(bool grows)
{
    f = (struct fixture){.rules = {.order = SORT_COORDINATE}};
    memory_budget_plan(&f.budget, 64 << 20, 1);
    f.threads = thread_pool_create();
    f.pool = sort_buffer_pool_create(f.threads, &f.budget);
    return sort_buffer_pool_open(f.pool, &f.rules, grows);
}

static int set_up(void **state)
{
    (void)state;
    return open_pool(false);
}

static int set_up_growing(void **state)
{
    (void)state;
    return open_pool(true);
}

static int tear_down(void **state)
{
    (void)state;
    sort_buffer_pool_destroy(f.pool);
    thread_pool_destroy(f.threads);
    return 0;
}

#define TEST_OF_POOL(test) TEST_WITH(test, set_up, tear_down)

/* Takes n sort buffers and freezes them, sorted. */
static void freeze(size_t n)
{
    struct input_position end = {0};
    for (size_t i = 0; i < n; i++) {
        struct sort_buffer *buffer = sort_buffer_pool_take(f.pool);
        assert_non_null(buffer);
        sort_buffer_reset(buffer);
        end.n_records = i;
        sort_buffer_pool_freeze(f.pool, buffer, &end);
        thread_pool_lock(f.threads);
        buffer->sorted = true;
        thread_pool_unlock(f.threads);
    }
}

static bool is_crowded(bool may_fit)
{
    thread_pool_lock(f.threads);
    bool crowded = sort_buffer_pool_n_due(f.pool, may_fit ? 0 : UINT64_MAX) > 0;
    thread_pool_unlock(f.threads);
    return crowded;
}

static size_t n_kept(void)
{
    size_t n;
    (void)sort_buffer_pool_kept(f.pool, &n);
    return n;
}

/* Without records there is no list of full sort buffers: it was once computed from NULL. */
TEST_OF_POOL(test_empty_pool_keeps_nothing)
{
    size_t n = 1;
    assert_null(sort_buffer_pool_kept(f.pool, &n));
    assert_int_equal(n, 0);
    assert_int_equal(sort_buffer_pool_kept_bytes(f.pool), 0);
}

TEST_OF_POOL(test_buffers_crowd_later_where_the_input_may_fit)
{
    assert_true(f.budget.first_full_buffers > f.budget.full_buffers);
    freeze(f.budget.full_buffers - 1);
    assert_false(is_crowded(false));
    freeze(1);
    assert_true(is_crowded(false));
    assert_false(is_crowded(true));
    sort_buffer_pool_spilled(f.pool, 1);
    assert_false(is_crowded(true));
    freeze(1);
    assert_true(is_crowded(true));
}

/* The oldest sort buffers come in the order of the input, and their memory is used again. */
TEST_OF_POOL(test_oldest_buffers_come_first)
{
    struct sort_buffer *oldest[3];
    freeze(5);
    assert_int_equal(sort_buffer_pool_oldest(f.pool, 3, oldest), 0);
    for (size_t i = 0; i < 3; i++) assert_int_equal(oldest[i]->end.n_records, i);
    uint8_t *mem = oldest[2]->mem;
    sort_buffer_pool_spilled(f.pool, 3);
    assert_int_equal(n_kept(), 2);
    struct sort_buffer *next = sort_buffer_pool_take(f.pool);
    assert_ptr_equal(next->mem, mem);
    sort_buffer_pool_free(f.pool, next);
}

/* Retired sort buffers leave the budget: those that were never made at once, others when they are
   free. */
TEST_OF_POOL(test_retired_buffers_leave_the_budget)
{
    struct memory_budget now;
    freeze(f.budget.n_buffers - 1);
    thread_pool_lock(f.threads);
    assert_false(sort_buffer_pool_retire(f.pool, 3));
    thread_pool_unlock(f.threads);
    sort_buffer_pool_budget(f.pool, &now);
    assert_int_equal(now.n_buffers, f.budget.n_buffers - 1);
    sort_buffer_pool_spilled(f.pool, 2);
    sort_buffer_pool_budget(f.pool, &now);
    assert_int_equal(now.n_buffers, f.budget.n_buffers - 3);
    thread_pool_lock(f.threads);
    assert_true(sort_buffer_pool_retire(f.pool, 0));
    thread_pool_unlock(f.threads);
}

/* Another budget keeps what was found out about the disk: runs are long where seeks are slow. */
TEST_OF_POOL(test_new_budget_keeps_long_runs)
{
    struct memory_budget now, smaller;
    memory_budget_plan(&smaller, 32 << 20, 1);
    sort_buffer_pool_lengthen_runs(f.pool);
    sort_buffer_pool_set_budget(f.pool, &smaller);
    sort_buffer_pool_budget(f.pool, &now);
    assert_int_equal(now.total_bytes, 32 << 20);
    assert_true(now.long_runs);
    assert_true(now.run_buffers > smaller.run_buffers);
}

TEST_OF_POOL(test_no_buffer_after_a_failure)
{
    struct sort_buffer *oldest[1];
    freeze(f.budget.n_buffers);
    thread_pool_fail(f.threads);
    assert_null(sort_buffer_pool_take(f.pool));
    assert_int_equal(sort_buffer_pool_oldest(f.pool, 1, oldest), -1);
}

/* A pool that may grow hands out sort buffers of the same size for as long as the reader wants
 * some. */
TEST_WITH(test_growing_pool_never_waits, set_up_growing, tear_down)
{
    size_t n;
    freeze(f.budget.n_buffers + 3);
    struct sort_buffer *const *kept = sort_buffer_pool_kept(f.pool, &n);
    assert_int_equal(n, f.budget.n_buffers + 3);
    assert_int_equal(kept[n - 1]->mem_bytes, kept[0]->mem_bytes);
    assert_int_equal(kept[n - 1]->end.n_records, 2 + f.budget.n_buffers);
    thread_pool_fail(f.threads);
    assert_null(sort_buffer_pool_take(f.pool));
}
