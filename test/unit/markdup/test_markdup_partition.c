/* test_markdup_partition.c -- read ends on tapes become marks: which streams are searched, what is
   left out of them, and the same marks however little memory there is. */
#include "test_place.h"
#include "unit_test.h"

#include "markdup/markdup_partition.h"
#include "markdup/read_ends_store.h"

enum { RUN = 2, MOST_RECORDS = 6000 };

static struct search {
    struct resolve_settings settings;
    struct markdup_rules rules;
    struct read_ends_gather gather;
    pthread_mutex_t lock;
    uint32_t n_records;
} s;

static void begin_search(size_t memory_bytes)
{
    static const char *const prefixes[] = {"./"};
    const struct temp_places places = {prefixes, 1, NULL};
    memset(&s, 0, sizeof s);
    (void)pthread_mutex_init(&s.lock, NULL);
    s.settings = (struct resolve_settings){
        .threads = thread_pool_create(), .rules = &s.rules, .n_threads = 2,
        .memory_bytes = memory_bytes, .places = places,
        .ends_tapes = tape_set_create(READ_ENDS_N_STREAMS, 8 << 20, &places),
        .names = tape_set_create(READ_ENDS_N_PARTITIONS, 1 << 20, &places),
        .sent = tape_set_create(READ_ENDS_N_PARTITIONS, 1 << 20, &places),
        .counts = group_totals_create(1)};
    assert_int_equal(thread_pool_start(s.settings.threads, 2), 0);
    const struct duplicate_marks_settings marks = {
        .threads = s.settings.threads, .n_threads = 2, .bits_bytes = 1 << 20,
        .tags_bytes = 1 << 20, .places = places};
    s.settings.marks = duplicate_marks_create(&marks);
}

static void add(struct read_ends ends)
{
    ends.index = s.n_records++;
    ends.ordinal = ends.index;
    read_ends_gather_add(&s.gather, &ends);
}

static void end_chunk(uint64_t label)
{
    assert_int_equal(read_ends_gather_end(&s.gather, label, s.settings.ends_tapes, &s.lock), 0);
}

/* Resolves all, and sets marks[i] to 'd' for each duplicate, else '.'. Returns the counts. */
static struct duplicate_counts resolve(char marks[MOST_RECORDS + 1])
{
    struct found_marks found = {0};
    uint64_t file_bytes = 0;
    size_t n;
    duplicate_marks_add_run(s.settings.marks, RUN, s.n_records);
    (void)duplicate_marks_begin(s.settings.marks);
    assert_int_equal(resolve_duplicates(&s.settings, &file_bytes), 0);
    assert_int_equal(duplicate_marks_end(s.settings.marks, 1 << 20), 0);
    assert_int_equal(duplicate_marks_find(s.settings.marks, RUN, 0, s.n_records, &found), 0);
    for (uint32_t i = 0; i < s.n_records; i++) marks[i] = found_marks_have(&found, i) ? 'd' : '.';
    marks[s.n_records] = '\0';
    const struct duplicate_counts counts = *group_totals_counts(s.settings.counts, &n);
    found_marks_release(&found);
    read_ends_gather_release(&s.gather);
    duplicate_marks_destroy(s.settings.marks);
    group_totals_destroy(s.settings.counts);
    tape_set_destroy(s.settings.ends_tapes);
    tape_set_destroy(s.settings.names);
    tape_set_destroy(s.settings.sent);
    thread_pool_destroy(s.settings.threads);
    return counts;
}

/* A read of a pair whose 5' end is at `here`. */
static struct read_ends pair(int64_t here, int64_t score, const char *name)
{
    return (struct read_ends){.kind = READ_ENDS_PAIR, .orientation = PAIR_FR, .is_left = true,
                              .pos = here - 1, .here = here, .other_place = here, .there = 900,
                              .score = score, .name = (const uint8_t *)name, .has_others = true,
                              .name_bytes = (uint8_t)strlen(name)};
}

static struct read_ends of_kind(enum read_ends_kind kind, struct read_ends ends)
{
    ends.kind = kind;
    return ends;
}

TEST_IN_OWN_DIR(test_worse_pairs_and_single_reads_at_a_place_are_marked)
{
    static char marks[MOST_RECORDS + 1];
    struct read_ends same_strand = pair(66, 1, "h"), its_end;
    same_strand.orientation = PAIR_FF;
    same_strand.other_place = 70;
    its_end = of_kind(READ_ENDS_END, same_strand);
    its_end.here = 70;
    its_end.other_place = 66;
    for (int tags = 0; tags < 2; tags++) {
        begin_search(4 << 20);
        s.rules.names_original = tags;
        add(pair(50, 5, "a"));
        add(of_kind(READ_ENDS_SINGLE, pair(50, 99, "b")));      /* meets a pair */
        add(pair(50, 7, "c"));
        add(pair(51, 1, "d"));
        add(of_kind(READ_ENDS_SINGLE, pair(60, 3, "e")));
        add(of_kind(READ_ENDS_SINGLE, pair(60, 4, "f")));
        add(of_kind(READ_ENDS_SINGLE, pair(70, 1, "g")));       /* meets the 5' end of a pair */
        add(same_strand);
        s.n_records--;                                          /* the same record */
        add(its_end);
        end_chunk(RUN);
        const struct duplicate_counts counts = resolve(marks);
        assert_string_equal(marks, "dd..d.d.");
        assert_true(counts.paired_duplicates == 1 && counts.single_duplicates == 3);
    }
}

TEST_IN_OWN_DIR(test_read_ends_of_undone_runs_do_not_count)
{
    static char marks[MOST_RECORDS + 1];
    uint64_t undone = UINT64_C(1) << 32 | RUN;
    for (size_t n = 0; n < 2; n++) {
        begin_search(4 << 20);
        s.settings.undone = (struct undone_runs){&undone, n, n};
        add(pair(50, 5, "a"));
        end_chunk(RUN);
        add(pair(50, 9, "a"));
        end_chunk(undone);
        (void)resolve(marks);
        assert_string_equal(marks, n == 0 ? "d." : "..");
    }
}

TEST_IN_OWN_DIR(test_other_records_are_marked_like_the_read_of_their_name)
{
    static char marks[MOST_RECORDS + 1];
    for (int removes = 0; removes < 2; removes++) {
        struct read_ends was_marked = of_kind(READ_ENDS_OTHER, pair(80, 0, "a"));
        was_marked.was_marked = true;
        begin_search(4 << 20);
        s.rules.marks_others = true;
        s.rules.removes = removes;
        add(of_kind(READ_ENDS_OTHER, pair(10, 0, "a")));
        add(pair(50, 5, "a"));
        add(pair(50, 9, "c"));
        add(of_kind(READ_ENDS_OTHER, pair(70, 0, "c")));
        add(of_kind(READ_ENDS_OTHER, pair(70, 0, "q")));
        add(was_marked);
        end_chunk(RUN);
        const struct duplicate_counts counts = resolve(marks);
        assert_string_equal(marks, "dd...d");
        assert_int_equal(counts.other_duplicates, removes ? 1 : 2);
    }
}

/* All at few places, with different scores: the best pair of each place is not marked. */
TEST_IN_OWN_DIR(test_marks_do_not_depend_on_the_memory)
{
    enum { N_PLACES = 300 };
    static const size_t memories[] = {64 << 20, 2 << 20, 1 << 16};
    static char marks[MOST_RECORDS + 1], want[MOST_RECORDS + 1];
    struct rng rng = rng_start(811);
    static size_t scores[MOST_RECORDS], best[N_PLACES], places[MOST_RECORDS];
    rng_permute(&rng, scores, MOST_RECORDS);
    for (size_t i = 0; i < MOST_RECORDS; i++) {
        places[i] = rng_below(&rng, N_PLACES);
        if (scores[i] >= scores[best[places[i]]]) best[places[i]] = i;
    }
    memset(want, 'd', MOST_RECORDS);
    for (size_t i = 0; i < N_PLACES; i++) want[best[i]] = '.';
    for (size_t k = 0; k < sizeof memories / sizeof *memories; k++) {
        begin_search(memories[k]);
        for (size_t i = 0; i < MOST_RECORDS; i++)
            add(pair((int64_t)places[i] * 1000, (int64_t)scores[i], "q"));
        end_chunk(RUN);
        assert_int_equal(resolve(marks).paired_duplicates, MOST_RECORDS - N_PLACES);
        assert_string_equal(marks, want);
    }
}
