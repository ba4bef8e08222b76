/* test_xalloc.c -- what xalloc returns; and how the process ends when there is no memory. */
#include "child.h"
#include "unit_test.h"

#include "util/xalloc.h"

/* More than any address space has, but not so much that a tool takes it for a negative number. */
static const size_t too_many_bytes = (size_t)1 << 62;

/* AddressSanitizer would end the process itself. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

TEST(test_memory_is_kept_when_it_grows)
{
    uint8_t *mem = xmalloc(100);
    memset(mem, 7, 100);
    mem = xrealloc(mem, 100000);
    for (size_t i = 0; i < 100; i++) assert_int_equal(mem[i], 7);
    mem[99999] = 7;
    OWNED uint8_t *copy = xmemdup(mem, 100);
    assert_memory_equal(copy, mem, 100);
    free(mem);
    mem = xrealloc(NULL, 10);
    memset(mem, 7, 10);
    free(mem);
    OWNED uint32_t *zeros = xcalloc(1000, sizeof *zeros);
    for (size_t i = 0; i < 1000; i++) assert_int_equal(zeros[i], 0);
}

TEST(test_sizes_of_zero)
{
    void *mems[] = {xmalloc(0), xcalloc(0, 8), xcalloc(8, 0), xrealloc(NULL, 0), xmemdup("", 0),
                    xrealloc(xmalloc(5), 0)};
    for (size_t i = 0; i < sizeof mems / sizeof *mems; i++) {
        assert_non_null(mems[i]);
        for (size_t k = 0; k < i; k++) assert_ptr_not_equal(mems[i], mems[k]);
    }
    for (size_t i = 0; i < sizeof mems / sizeof *mems; i++) free(mems[i]);
}

TEST(test_texts_are_copied)
{
    char *text = xstrdup("read"), *empty = xstrdup("");
    assert_string_equal(text, "read");
    assert_string_equal(empty, "");
    free(text);
    free(empty);
    text = xasprintf("%s %d of '%s'", "record", 17, "in.bam");
    assert_string_equal(text, "record 17 of 'in.bam'");
    free(text);
    empty = xasprintf("%s", "");
    assert_string_equal(empty, "");
    free(empty);
    OWNED char *wide = xasprintf("%100000d", 3);
    assert_int_equal(strlen(wide), 100000);
    assert_int_equal(wide[99999], '3');
}

TEST(test_array_grows_with_its_items)
{
    uint64_t *items = NULL;
    size_t room = 0;
    for (size_t n = 0; n < 1000; n++) {
        xgrow(&items, &room, n + 1, n / 2, sizeof *items);
        assert_true(room > n);
        items[n] = n;
    }
    for (size_t n = 0; n < 1000; n++) assert_int_equal(items[n], n);
    size_t before = room;
    const uint64_t *there = items;
    xgrow(&items, &room, room, 50, sizeof *items);
    assert_int_equal(room, before);
    assert_ptr_equal(items, there);
    free(items);
    items = NULL;
    room = 0;
    xgrow(&items, &room, 0, 50, sizeof *items);
    assert_null(items);
    xgrow(&items, &room, 3, 0, sizeof *items);
    assert_int_equal(room, 3);
    free(items);
}

/* volatile, so that the compiler does not leave out calls whose result is not used. */
static void *volatile result;

static void malloc_too_much(void) { result = xmalloc(too_many_bytes); }
static void calloc_too_much(void) { result = xcalloc(too_many_bytes, 1); }
static void calloc_overflow(void) { result = xcalloc(SIZE_MAX / 2 + 1, 2); }
static void memdup_too_much(void) { result = xmemdup("", too_many_bytes); }
static void require_nothing(void) { xalloc_require(false); }

static void realloc_too_much(void)
{
    result = xmalloc(10);
    result = xrealloc(result, too_many_bytes);
}

static void grow_to(size_t n, size_t some_more)
{
    uint64_t *items = NULL;
    size_t room = 0;
    xgrow(&items, &room, n, some_more, sizeof *items);
    result = items;
}

static void grow_too_much(void) { grow_to(too_many_bytes / 8, 0); }
static void grow_overflow(void) { grow_to(SIZE_MAX / 8 + 1, 0); }
static void grow_overflow_of_more(void) { grow_to(1, SIZE_MAX / 8); }
static void grow_overflow_of_sum(void) { grow_to(1, SIZE_MAX); }

static void (*const failures[])(void) = {
    malloc_too_much, calloc_too_much, calloc_overflow, realloc_too_much,
    memdup_too_much, require_nothing, grow_too_much,   grow_overflow,
    grow_overflow_of_more, grow_overflow_of_sum,
};

static void print_hook(void)
{
    (void)fputs("hook\n", stderr);
}

struct failure {
    void (*run)(void);
    void (*hook)(void);
};

static void fail_in_child(void *arg)
{
    const struct failure *failure = arg;
    xalloc_on_failure(failure->hook);
    failure->run();
}

/* Status 1, one message of ours (sanitizers may print their own), and the hook before it. */
static void check(const struct ended_child *ended, bool has_hook)
{
    const char *message = strstr(ended->text, "samtools rocksort: out of memory");
    if (ended->status != 1 || !message) fail_msg("status %d: %s", ended->status, ended->text);
    assert_null(strstr(message + 1, "samtools rocksort: "));
    const char *hook = strstr(ended->text, "hook\n");
    assert_int_equal(hook != NULL, has_hook);
    if (hook) assert_true(hook < message);
}

TEST(test_process_ends_without_memory)
{
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        struct failure plain = {failures[i], NULL}, hooked = {failures[i], print_hook};
        struct ended_child ended = run_in_child(fail_in_child, &plain);
        check(&ended, false);
        ended = run_in_child(fail_in_child, &hooked);
        check(&ended, true);
    }
}

static void require_something(void *arg)
{
    (void)arg;
    xalloc_on_failure(print_hook);
    xalloc_require(true);
    xalloc_on_failure(NULL);
    xalloc_require(false);
}

TEST(test_hook_taken_back)
{
    struct ended_child ended = run_in_child(require_something, NULL);
    check(&ended, false);
}
