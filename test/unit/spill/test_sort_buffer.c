/*
 * test_sort_buffer.c -- sort buffers are filled, indexed and sorted as in a sort, but with every
 * step at a random time. A stream of records goes through them. Each sort buffer must be a stable
 * sort of its part of the stream, with the bytes of the records unchanged, and both ends of its
 * memory must never meet.
 */
#include "test_rules.h"
#include "unit_test.h"

#include "input/record_entries.h"
#include "spill/sort_buffer.h"
#include "util/xalloc.h"

enum { N_REFS = 4, MIN_BATCH_BYTES = 256 * 1024, MAX_RECORD = 1024 };

static const enum sort_order all_orders[] = {SORT_COORDINATE, SORT_NAME_NATURAL,
                                             SORT_NAME_LEXICAL};

struct stream {                 /* records one after another, as in a BAM file */
    uint8_t *bytes;
    size_t n_bytes, n_records;
    size_t *starts;             /* of each record, and the end */
};

enum stream_kind {
    STREAM_MIXED,
    STREAM_TINY,                /* without a name: the most entries in a given space */
    STREAM_LONGEST_KEYS,        /* only names: 254 characters, every second a digit */
    STREAM_ALTERNATING,         /* such names of all lengths */
    STREAM_SHORT_READS,
    STREAM_KIND_COUNT
};

static struct record_fields random_fields(struct rng *rng, enum stream_kind kind, char *name)
{
    struct record_fields f = {.name = name, .flag = random_flag(rng)};
    random_place(rng, N_REFS, &f);
    name[0] = '\0';
    if (kind == STREAM_LONGEST_KEYS) alternating_name(name, TEST_MAX_NAME, rng_one_in(rng, 2));
    if (kind == STREAM_ALTERNATING)
        alternating_name(name, rng_below(rng, TEST_MAX_NAME + 1), rng_one_in(rng, 2));
    if (kind == STREAM_SHORT_READS || kind == STREAM_MIXED) {
        tricky_name(rng, name);
        f.n_cigar = (uint32_t)rng_below(rng, 4);
        f.l_seq = kind == STREAM_MIXED ? (int32_t)rng_below(rng, 300) : 150;
        f.tag_bytes = rng_below(rng, 60);
    }
    return f;
}

static void make_stream(struct rng *rng, enum stream_kind kind, size_t n_bytes, struct stream *s)
{
    char name[TEST_MAX_NAME + 1];
    *s = (struct stream){.bytes = test_alloc(n_bytes + MAX_RECORD),
                         .starts = test_alloc((n_bytes / 37 + 2) * sizeof *s->starts)};
    while (s->n_bytes < n_bytes) {
        struct record_fields f = random_fields(rng, kind, name);
        CHECK(rng, record_size(&f) <= MAX_RECORD);
        s->starts[s->n_records++] = s->n_bytes;
        s->n_bytes += put_record(s->bytes + s->n_bytes, &f, (uint8_t)s->n_records);
    }
    s->starts[s->n_records] = s->n_bytes;
}

static void release_stream(struct stream *s)
{
    free(s->bytes);
    free(s->starts);
}

static struct content_sum sum_of_stream(const struct stream *s)
{
    struct content_sum sum = {0};
    for (size_t i = 0; i < s->n_records; i++)
        content_sum_add(&sum, s->bytes + s->starts[i], s->starts[i + 1] - s->starts[i]);
    return sum;
}

/* A sort buffer in use, its place in the stream, and its parts that are not indexed yet. */
struct work {
    struct rng *rng;
    const struct stream *stream;
    struct sort_buffer *buffer;
    uint8_t *mem;               /* of exactly the size of the sort buffer */
    size_t first_record;        /* of the sort buffer, in the stream */
    struct sort_buffer_part *waiting[4096];
    size_t n_waiting;
    struct content_sum sum;
    struct merge_space space;
};

static void start_work(struct work *w, struct rng *rng, const struct stream *stream,
                       enum sort_order order, size_t mem_bytes)
{
    *w = (struct work){.rng = rng, .stream = stream};
    w->mem = aligned_alloc(64, mem_bytes);
    assert_non_null(w->mem);
    w->buffer = sort_buffer_create(test_rules(order), w->mem, mem_bytes);
}

static void end_work(struct work *w)
{
    sort_buffer_destroy(w->buffer);
    merge_space_release(&w->space);
    free(w->mem);
}

/* Raw bytes are below, entries and keys above, and between them is what sorting needs. */
static void check_ends(const struct work *w)
{
    const struct sort_buffer *b = w->buffer;
    CHECK(w->rng, b->raw_bytes + atomic_load(&b->result_bytes) <= atomic_load(&b->top));
    CHECK(w->rng, atomic_load(&b->top) <= b->mem_bytes);
}

/* Adds a part: as many of the next records as n_bytes hold, but one at least if there is room.
   Returns false if there is none, or no record. */
static bool add_part(struct work *w, size_t n_bytes)
{
    struct sort_buffer *b = w->buffer;
    const struct stream *s = w->stream;
    size_t first = w->first_record + b->n_records, from = s->starts[first], n = 0;
    size_t room = sort_buffer_room(b), before = atomic_load(&b->unindexed_bytes);
    while (first + n < s->n_records) {
        size_t more = s->starts[first + n + 1] - from;
        if (more > room || (n > 0 && more > n_bytes)) break;
        n++;
    }
    if (n == 0) return false;
    CHECK(w->rng, w->n_waiting < sizeof w->waiting / sizeof *w->waiting);
    n_bytes = s->starts[first + n] - from;
    struct sort_buffer_part *part = sort_buffer_add_part(b, s->bytes + from, n_bytes, n, first);
    CHECK(w->rng, part->n_records == n && part->from + n_bytes == b->mem + b->raw_bytes);
    CHECK(w->rng, atomic_load(&b->unindexed_bytes) == before + n_bytes);
    w->waiting[w->n_waiting++] = part;
    check_ends(w);
    return true;
}

/* Indexes one of the waiting parts, not always the oldest: workers overtake each other. */
static void index_one(struct work *w)
{
    struct record_problem problem;
    size_t i = rng_below(w->rng, w->n_waiting);
    struct sort_buffer_part *part = w->waiting[i];
    w->waiting[i] = w->waiting[--w->n_waiting];
    CHECK(w->rng, record_entries_index_part(part, N_REFS, &w->sum, &problem) == 0);
    check_ends(w);
}

static void index_all(struct work *w)
{
    while (w->n_waiting > 0) index_one(w);
    CHECK(w->rng, w->buffer->n_records > 0 || atomic_load(&w->buffer->result_bytes) == 0);
}

struct expected {
    const uint8_t *record;      /* in the sort buffer */
    size_t place;
    uint8_t key[2 * TEST_MAX_NAME + 16];
    size_t key_bytes;
};

static int compare_expected(const void *a, const void *b)
{
    const struct expected *x = a, *y = b;
    size_t n = x->key_bytes < y->key_bytes ? x->key_bytes : y->key_bytes;
    int c = memcmp(x->key, y->key, n);
    return c ? c : (x->place > y->place) - (x->place < y->place);
}

/* Compares the sorted sort buffer with a plain sort of its part of the stream. */
static void check_sorted(struct work *w)
{
    const struct sort_buffer *b = w->buffer;
    const struct stream *s = w->stream;
    size_t n = b->n_records, from = s->starts[w->first_record];
    const uint8_t *raw = b->mem;
    size_t raw_bytes = s->starts[w->first_record + n] - from;
    CHECK(w->rng, b->raw_bytes == raw_bytes);
    CHECK(w->rng, memcmp(raw, s->bytes + from, raw_bytes) == 0);
    OWNED struct expected *expected = test_alloc(n * sizeof *expected);
    for (size_t i = 0; i < n; i++) {
        struct expected *e = &expected[i];
        e->record = raw + (s->starts[w->first_record + i] - from);
        e->place = i;
        if (sort_order_is_fixed(b->rules->order)) {
            e->key_bytes = SORT_KEY_FIXED_BYTES;
            sort_key_store_fixed(sort_key_coordinate(e->record), e->key);
        } else {
            e->key_bytes = sort_key_encode(b->rules, e->record, e->key);
        }
    }
    qsort(expected, n, sizeof *expected, compare_expected);
    for (size_t i = 0; i < n; i++) {
        const struct sort_entry *entry = &b->entries[i];
        CHECK(w->rng, sort_entry_record(b->rules->order, entry) == expected[i].record);
        if (sort_order_is_fixed(b->rules->order)) {
            CHECK(w->rng, entry->prefix == sort_key_load_fixed(expected[i].key));
        } else {
            const struct keyed_record *kr = entry->ref;
            CHECK(w->rng, kr->key_bytes == expected[i].key_bytes);
            CHECK(w->rng, memcmp(kr->key, expected[i].key, kr->key_bytes) == 0);
        }
    }
}

static void sort_and_check(struct work *w)
{
    index_all(w);
    sort_buffer_sort(w->buffer, &w->space);
    check_ends(w);
    check_sorted(w);
}

/* When parts are indexed. The sooner, the more is known about the memory that records take. */
enum index_when { INDEX_AT_ONCE, INDEX_SOMETIMES, INDEX_AT_THE_END, INDEX_WHEN_COUNT };

/* Fills a sort buffer with as many bytes as it says there is room for. */
static void fill_to_the_brim(struct rng *rng, enum sort_order order, enum stream_kind kind,
                             enum index_when when)
{
    struct stream stream;
    make_stream(rng, kind, 2 * MIN_BATCH_BYTES, &stream);
    OWNED struct work *w = test_alloc(sizeof *w);
    start_work(w, rng, &stream, order, MIN_BATCH_BYTES);
    for (size_t room; (room = sort_buffer_room(w->buffer)) > 0;) {
        if (!add_part(w, rng_one_in(rng, 2) ? 1 + rng_below(rng, room) : (room + 1) / 2)) break;
        if (when == INDEX_AT_ONCE) index_all(w);
        if (when == INDEX_SOMETIMES && rng_one_in(rng, 2)) index_one(w);
    }
    CHECK(rng, w->buffer->n_records < stream.n_records);
    sort_and_check(w);
    CHECK(rng, sort_buffer_used_bytes(w->buffer) <= w->buffer->mem_bytes);
    /* When all is indexed, nothing is wasted but room for one record and twice its size for its
       key. */
    if (when == INDEX_AT_ONCE)
        CHECK(rng,
              sort_buffer_used_bytes(w->buffer) + 3 * MAX_RECORD + 2048 > w->buffer->mem_bytes);
    else
        CHECK(rng, w->buffer->raw_bytes > w->buffer->mem_bytes / 4);
    end_work(w);
    release_stream(&stream);
}

TEST(test_ends_never_meet)
{
    struct rng rng = rng_start(82);
    for (size_t o = 0; o < sizeof all_orders / sizeof *all_orders; o++)
        for (int kind = 0; kind < STREAM_KIND_COUNT; kind++)
            for (int when = 0; when < INDEX_WHEN_COUNT; when++)
                for (int round = 0; round < 5; round++)
                    fill_to_the_brim(&rng, all_orders[o], (enum stream_kind)kind,
                                     (enum index_when)when);
}

TEST(test_memory_for_given_bytes)
{
    struct rng rng = rng_start(83);
    for (size_t o = 0; o < sizeof all_orders / sizeof *all_orders; o++) {
        for (int round = 0; round < 300; round++) {
            size_t raw = rng_below(&rng, 200000);
            size_t n = sort_buffer_bytes_for(all_orders[o], raw);
            struct sort_buffer *buffer = sort_buffer_create(test_rules(all_orders[o]), NULL, n);
            CHECK(&rng, buffer->owns_mem && buffer->mem_bytes >= n);
            CHECK(&rng,
                  sort_buffer_room(buffer) >= raw && sort_buffer_room(buffer) < buffer->mem_bytes);
            memset(buffer->mem, 1, buffer->mem_bytes);
            sort_buffer_destroy(buffer);
        }
    }
    sort_buffer_destroy(NULL);
}

TEST(test_damaged_record_is_numbered)
{
    struct rng rng = rng_start(84);
    struct stream stream;
    const uint64_t first = 5000000000;
    make_stream(&rng, STREAM_MIXED, 20000, &stream);
    for (size_t o = 0; o < sizeof all_orders / sizeof *all_orders; o++) {
        for (size_t damaged = 0; damaged <= stream.n_records; damaged++) {
            const struct sort_rules *rules = test_rules(all_orders[o]);
            struct sort_buffer *buffer = sort_buffer_create(rules, NULL, MIN_BATCH_BYTES);
            OWNED uint8_t *records = xmemdup(stream.bytes, stream.n_bytes);
            if (damaged < stream.n_records)
                test_put_u32(records + stream.starts[damaged] + 4, N_REFS);
            struct sort_buffer_part *part =
                sort_buffer_add_part(buffer, records, stream.n_bytes, stream.n_records, first);
            struct content_sum sum = {0};
            struct record_problem problem;
            int r = record_entries_index_part(part, N_REFS, &sum, &problem);
            CHECK(&rng, r == (damaged < stream.n_records ? -1 : 0));
            CHECK(&rng, r == 0 || (problem.record == first + damaged && problem.text &&
                                   problem.is_damaged && !problem.read_name));
            sort_buffer_destroy(buffer);
        }
    }
    release_stream(&stream);
}

/* A forged long tag would decide where a record is sorted to, and be missing in the output. */
TEST(test_forged_long_coordinates_are_refused)
{
    static const uint8_t tag[8] = {1, 1, 'B', 'I', 6, 0, 0, 0};
    struct record_fields f = {.name = "r", .tid = 0, .pos = INT32_MAX, .tag_bytes = 32};
    const struct sort_rules rules[] = {{.order = SORT_COORDINATE},
                                       {.order = SORT_COORDINATE_LONG, .long_positions = true}};
    for (int i = 0; i < 2; i++) {
        struct sort_buffer *buffer = sort_buffer_create(&rules[i], NULL, MIN_BATCH_BYTES);
        uint8_t rec[128];
        size_t n = put_record(rec, &f, 0);
        memcpy(rec + n - 32, tag, sizeof tag);
        struct sort_buffer_part *part = sort_buffer_add_part(buffer, rec, n, 1, 0);
        struct content_sum sum = {0};
        struct record_problem problem;
        assert_int_equal(record_entries_index_part(part, N_REFS, &sum, &problem), i == 0 ? -1 : 0);
        sort_buffer_destroy(buffer);
    }
}

/* The record is told by its number, or if that is unknown by its name only. */
TEST(test_key_that_is_too_long_is_refused)
{
    static uint8_t records[2 * SORT_KEY_MOST_BYTES];
    const struct sort_rules rules = {.order = SORT_TAG, .tag = {'X', 'X'}};
    size_t n = 0;
    for (size_t i = 0; i < 2; i++) {
        const struct record_fields f = {.name = "r", .tag_bytes = i == 0 ? 8 : SORT_KEY_MOST_BYTES};
        n += put_record(records + n, &f, 7);
        memcpy(records + n - f.tag_bytes, "XXZ", 3);
        records[n - 1] = '\0';
    }
    for (uint64_t first = 4, i = 0; i < 2; first = RECORD_NUMBER_UNKNOWN, i++) {
        struct record_problem problem;
        assert_int_equal(record_entries_measure(&rules, records, records + n, first, &problem), -1);
        assert_true(problem.record == (i == 0 ? 5 : first) && problem.tag == rules.tag);
        assert_string_equal(problem.read_name, "r");
    }
}

TEST(test_empty_buffer_has_no_records)
{
    RELEASED(merge_space_release) struct merge_space space = {0};
    for (size_t o = 0; o < sizeof all_orders / sizeof *all_orders; o++) {
        struct sort_buffer *buffer = sort_buffer_create(test_rules(all_orders[o]), NULL, 8192);
        sort_buffer_sort(buffer, &space);
        assert_int_equal(buffer->n_records, 0);
        assert_int_equal(buffer->raw_bytes, 0);
        assert_int_equal(sort_buffer_used_bytes(buffer), 0);
        sort_buffer_destroy(buffer);
    }
}

TEST(test_content_sum_notices_all_but_another_order)
{
    struct rng rng = rng_start(86);
    struct stream s;
    make_stream(&rng, STREAM_MIXED, 30000, &s);
    struct content_sum sum = sum_of_stream(&s), backwards = {0};
    for (size_t i = s.n_records; i-- > 0;)
        content_sum_add(&backwards, s.bytes + s.starts[i], s.starts[i + 1] - s.starts[i]);
    CHECK(&rng, content_sum_equal(&sum, &backwards));
    CHECK(&rng, sum.n_records == s.n_records && sum.n_bytes == s.n_bytes);
    struct content_sum lost = {0}, doubled = sum;
    for (size_t i = 0; i + 1 < s.n_records; i++)
        content_sum_add(&lost, s.bytes + s.starts[i], s.starts[i + 1] - s.starts[i]);
    content_sum_add(&doubled, s.bytes, s.starts[1]);
    CHECK(&rng, !content_sum_equal(&sum, &lost) && !content_sum_equal(&sum, &doubled));
    for (size_t i = 0; i < 1000; i++) {
        size_t at = rng_below(&rng, s.n_bytes);
        uint8_t flip = (uint8_t)(1 + rng_below(&rng, 255));
        s.bytes[at] ^= flip;
        struct content_sum altered = sum_of_stream(&s);
        CHECK(&rng, !content_sum_equal(&sum, &altered));
        s.bytes[at] ^= flip;
    }
    release_stream(&s);
}
