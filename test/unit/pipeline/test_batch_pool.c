/* test_batch_pool.c -- the memory of batches: taken, sealed, spilled, retired. */
#include "unit_test.h"

#include "pipeline/batch_pool.h"

struct fixture {
    struct crew *crew;
    struct batch_pool *pool;
    struct mem_budget budget;
    struct sort_rules rules;
};

static void set_up(struct fixture *f)
{
    *f = (struct fixture){.rules = {.order = SORT_COORDINATE}};
    mem_budget_plan(&f->budget, 64 << 20, 1);
    f->crew = crew_create();
    assert_non_null(f->crew);
    f->pool = batch_pool_create(f->crew, &f->budget);
    assert_int_equal(batch_pool_open(f->pool, &f->rules), 0);
}

static void tear_down(struct fixture *f)
{
    batch_pool_destroy(f->pool);
    crew_destroy(f->crew);
}

/* Takes n batches and seals them, sorted. */
static void seal(struct fixture *f, size_t n)
{
    struct input_position end = {0};
    for (size_t i = 0; i < n; i++) {
        struct batch *batch = batch_pool_take(f->pool);
        assert_non_null(batch);
        batch_reset(batch);
        end.n_records = i;
        batch_pool_seal(f->pool, batch, &end);
        crew_lock(f->crew);
        batch->sorted = true;
        crew_unlock(f->crew);
    }
}

static bool is_crowded(struct fixture *f, bool may_fit)
{
    crew_lock(f->crew);
    bool crowded = batch_pool_n_due(f->pool, may_fit ? 0 : UINT64_MAX) > 0;
    crew_unlock(f->crew);
    return crowded;
}

static size_t n_kept(struct fixture *f)
{
    size_t n;
    (void)batch_pool_kept(f->pool, &n);
    return n;
}

/* Without records there is no list of full batches: it was once computed from NULL. */
TEST(test_empty)
{
    struct fixture f;
    size_t n = 1;
    set_up(&f);
    assert_null(batch_pool_kept(f.pool, &n));
    assert_int_equal(n, 0);
    assert_int_equal(batch_pool_kept_bytes(f.pool), 0);
    tear_down(&f);
}

/* Batches crowd later where the whole input may fit, but only before the first run. */
TEST(test_crowd)
{
    struct fixture f;
    set_up(&f);
    assert_true(f.budget.first_full_batches > f.budget.full_batches);
    seal(&f, f.budget.full_batches - 1);
    assert_false(is_crowded(&f, false));
    seal(&f, 1);
    assert_true(is_crowded(&f, false));
    assert_false(is_crowded(&f, true));
    batch_pool_spilled(f.pool, 1);
    assert_false(is_crowded(&f, true));
    seal(&f, 1);
    assert_true(is_crowded(&f, true));
    tear_down(&f);
}

/* The oldest batches come in the order of the input, and their memory is used again. */
TEST(test_oldest_first)
{
    struct fixture f;
    struct batch *oldest[3];
    set_up(&f);
    seal(&f, 5);
    assert_int_equal(batch_pool_oldest(f.pool, 3, oldest), 0);
    for (size_t i = 0; i < 3; i++) assert_int_equal(oldest[i]->end.n_records, i);
    uint8_t *mem = oldest[2]->mem;
    batch_pool_spilled(f.pool, 3);
    assert_int_equal(n_kept(&f), 2);
    struct batch *next = batch_pool_take(f.pool);
    assert_ptr_equal(next->mem, mem);
    batch_pool_free(f.pool, next);
    tear_down(&f);
}

/* Retired batches leave the budget: those that were never made at once, others when they are
   free. */
TEST(test_retire)
{
    struct fixture f;
    struct mem_budget now;
    set_up(&f);
    seal(&f, f.budget.n_batches - 1);
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
    tear_down(&f);
}

/* Another budget keeps what was found out about the disk: runs are long where seeks are slow. */
TEST(test_new_budget_keeps_long_runs)
{
    struct fixture f;
    struct mem_budget now, smaller;
    set_up(&f);
    mem_budget_plan(&smaller, 32 << 20, 1);
    batch_pool_lengthen_runs(f.pool);
    batch_pool_set_budget(f.pool, &smaller);
    batch_pool_budget(f.pool, &now);
    assert_int_equal(now.total_bytes, 32 << 20);
    assert_true(now.long_runs);
    assert_true(now.run_batches > smaller.run_batches);
    tear_down(&f);
}

/* After a failure the reader is not kept waiting for a batch that nobody frees. */
TEST(test_no_batch_after_a_failure)
{
    struct fixture f;
    struct batch *oldest[1];
    set_up(&f);
    seal(&f, f.budget.n_batches);
    crew_fail(f.crew);
    assert_null(batch_pool_take(f.pool));
    assert_int_equal(batch_pool_oldest(f.pool, 1, oldest), -1);
    tear_down(&f);
}

/* A pool that may grow hands out batches of the same size for as long as the reader wants some. */
TEST(test_growing_pool_never_waits)
{
    struct fixture f;
    size_t n;
    set_up(&f);
    batch_pool_let_grow(f.pool);
    seal(&f, f.budget.n_batches + 3);
    struct batch *const *kept = batch_pool_kept(f.pool, &n);
    assert_int_equal(n, f.budget.n_batches + 3);
    assert_int_equal(kept[n - 1]->mem_bytes, kept[0]->mem_bytes);
    assert_int_equal(kept[n - 1]->end.n_records, 2 + f.budget.n_batches);
    crew_fail(f.crew);
    assert_null(batch_pool_take(f.pool));
    tear_down(&f);
}
