/* test_batch_pool.c -- the memory of batches: taken, sealed, spilled, retired. */
#include "unit_test.h"

#include "pipeline/batch_pool.h"

struct fixture {
    struct crew *crew;
    struct batch_pool *pool;
    struct mem_budget budget;
    struct sort_rules rules;
};

static struct fixture f;

static int set_up(void **state)
{
    (void)state;
    f = (struct fixture){.rules = {.order = SORT_COORDINATE}};
    mem_budget_plan(&f.budget, 64 << 20, 1);
    f.crew = crew_create();
    f.pool = batch_pool_create(f.crew, &f.budget);
    return batch_pool_open(f.pool, &f.rules);
}

static int tear_down(void **state)
{
    (void)state;
    batch_pool_destroy(f.pool);
    crew_destroy(f.crew);
    return 0;
}

#define TEST_OF_POOL(test) TEST_WITH(test, set_up, tear_down)

/* Takes n batches and seals them, sorted. */
static void seal(size_t n)
{
    struct input_position end = {0};
    for (size_t i = 0; i < n; i++) {
        struct batch *batch = batch_pool_take(f.pool);
        assert_non_null(batch);
        batch_reset(batch);
        end.n_records = i;
        batch_pool_seal(f.pool, batch, &end);
        crew_lock(f.crew);
        batch->sorted = true;
        crew_unlock(f.crew);
    }
}

static bool is_crowded(bool may_fit)
{
    crew_lock(f.crew);
    bool crowded = batch_pool_n_due(f.pool, may_fit ? 0 : UINT64_MAX) > 0;
    crew_unlock(f.crew);
    return crowded;
}

static size_t n_kept(void)
{
    size_t n;
    (void)batch_pool_kept(f.pool, &n);
    return n;
}

/* Without records there is no list of full batches: it was once computed from NULL. */
TEST_OF_POOL(test_empty_pool_keeps_nothing)
{
    size_t n = 1;
    assert_null(batch_pool_kept(f.pool, &n));
    assert_int_equal(n, 0);
    assert_int_equal(batch_pool_kept_bytes(f.pool), 0);
}

TEST_OF_POOL(test_batches_crowd_later_where_the_input_may_fit)
{
    assert_true(f.budget.first_full_batches > f.budget.full_batches);
    seal(f.budget.full_batches - 1);
    assert_false(is_crowded(false));
    seal(1);
    assert_true(is_crowded(false));
    assert_false(is_crowded(true));
    batch_pool_spilled(f.pool, 1);
    assert_false(is_crowded(true));
    seal(1);
    assert_true(is_crowded(true));
}

/* The oldest batches come in the order of the input, and their memory is used again. */
TEST_OF_POOL(test_oldest_batches_come_first)
{
    struct batch *oldest[3];
    seal(5);
    assert_int_equal(batch_pool_oldest(f.pool, 3, oldest), 0);
    for (size_t i = 0; i < 3; i++) assert_int_equal(oldest[i]->end.n_records, i);
    uint8_t *mem = oldest[2]->mem;
    batch_pool_spilled(f.pool, 3);
    assert_int_equal(n_kept(), 2);
    struct batch *next = batch_pool_take(f.pool);
    assert_ptr_equal(next->mem, mem);
    batch_pool_free(f.pool, next);
}

/* Retired batches leave the budget: those that were never made at once, others when they are
   free. */
TEST_OF_POOL(test_retired_batches_leave_the_budget)
{
    struct mem_budget now;
    seal(f.budget.n_batches - 1);
    crew_lock(f.crew);
    assert_false(batch_pool_retire(f.pool, 3));
    crew_unlock(f.crew);
    batch_pool_budget(f.pool, &now);
    assert_int_equal(now.n_batches, f.budget.n_batches - 1);
    batch_pool_spilled(f.pool, 2);
    batch_pool_budget(f.pool, &now);
    assert_int_equal(now.n_batches, f.budget.n_batches - 3);
    crew_lock(f.crew);
    assert_true(batch_pool_retire(f.pool, 0));
    crew_unlock(f.crew);
}

/* Another budget keeps what was found out about the disk: runs are long where seeks are slow. */
TEST_OF_POOL(test_new_budget_keeps_long_runs)
{
    struct mem_budget now, smaller;
    mem_budget_plan(&smaller, 32 << 20, 1);
    batch_pool_lengthen_runs(f.pool);
    batch_pool_set_budget(f.pool, &smaller);
    batch_pool_budget(f.pool, &now);
    assert_int_equal(now.total_bytes, 32 << 20);
    assert_true(now.long_runs);
    assert_true(now.run_batches > smaller.run_batches);
}

TEST_OF_POOL(test_no_batch_after_a_failure)
{
    struct batch *oldest[1];
    seal(f.budget.n_batches);
    crew_fail(f.crew);
    assert_null(batch_pool_take(f.pool));
    assert_int_equal(batch_pool_oldest(f.pool, 1, oldest), -1);
}

/* A pool that may grow hands out batches of the same size for as long as the reader wants some. */
TEST_OF_POOL(test_growing_pool_never_waits)
{
    size_t n;
    batch_pool_let_grow(f.pool);
    seal(f.budget.n_batches + 3);
    struct batch *const *kept = batch_pool_kept(f.pool, &n);
    assert_int_equal(n, f.budget.n_batches + 3);
    assert_int_equal(kept[n - 1]->mem_bytes, kept[0]->mem_bytes);
    assert_int_equal(kept[n - 1]->end.n_records, 2 + f.budget.n_batches);
    crew_fail(f.crew);
    assert_null(batch_pool_take(f.pool));
}
