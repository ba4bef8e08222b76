/* test_batch_pool.c -- the memory of batches, where there is none. */
#include "random_records.h"

#include "pipeline/pipeline_internal.h"
#include "util/diag.h"

#include <sys/resource.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_OWN_ALLOCATOR
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_OWN_ALLOCATOR
#endif

/* Whether malloc is the C library's, which fails where there are no more addresses. Others end the
   process. */
static bool memory_can_end(void)
{
#ifdef HAS_OWN_ALLOCATOR
    return false;
#else
    const char *preloaded = getenv("LD_PRELOAD");
    return !preloaded || !strstr(preloaded, "vgpreload");
#endif
}

struct taken {
    struct taken *next;
};

/* Takes all memory that malloc has, and lets it get no more. */
static struct taken *take_all(struct rlimit *before)
{
    struct taken *all = NULL, *one;
    assert_int_equal(getrlimit(RLIMIT_AS, before), 0);
    struct rlimit none = {.rlim_cur = 0, .rlim_max = before->rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
    size_t n_bytes = 1 << 20;
    while (n_bytes >= 16) {
        one = malloc(n_bytes);
        if (one) {
            one->next = all;
            all = one;
        } else {
            n_bytes -= n_bytes > 2048 ? n_bytes / 2 : 16;
        }
    }
    return all;
}

static void give_back(struct taken *all, const struct rlimit *before)
{
    int r = setrlimit(RLIMIT_AS, before);
    while (all) {
        struct taken *next = all->next;
        free(all);
        all = next;
    }
    assert_int_equal(r, 0);
}

/* The reader is told that it gets no batch; it used to wait for somebody to free one. */
static void test_no_memory_for_a_batch(void **state)
{
    (void)state;
    struct sort_report report = {0};
    struct pipeline p = {.rules.order = SORT_COORDINATE, .report = &report};
    struct rlimit before;
    if (!memory_can_end()) skip();
    assert_int_equal(pthread_mutex_init(&p.lock, NULL), 0);
    assert_int_equal(pthread_cond_init(&p.changed, NULL), 0);
    mem_budget_plan(&p.budget, 64 << 20, 1);
    assert_int_equal(prepare_batches(&p), 0);
    struct batch *first = take_batch(&p);
    struct taken *all = take_all(&before);
    (void)alarm(20);                            /* rather than to wait for ever */
    struct batch *second = take_batch(&p);
    (void)alarm(0);
    give_back(all, &before);
    assert_non_null(first);
    assert_null(second);
    assert_true(pipeline_failed(&p));
    assert_non_null(strstr(diag_error_text(), "out of memory"));
    pipeline_lock(&p);
    free_batch(&p, first);
    pipeline_unlock(&p);
    release_batches(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_memory_for_a_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
