/* test_markdup_partition.c -- read ends on tapes become marks: which of them are compared, which
   are left out, and the same marks however little memory there is. */
#include "test_place.h"
#include "unit_test.h"

#include "markdup/markdup_partition.h"
#include "markdup/read_ends_store.h"

enum { RUN = 2, MOST = 12000, N_REPEATS = 100, N_NAMES = 2000, N_PLACES = 400, N_EACH = 20 };

static struct {
    struct resolve_settings settings;
    struct markdup_rules rules;
    struct read_ends_gather gather;
    pthread_mutex_t lock;
    uint32_t n_records;
    uint64_t file_bytes;
    struct duplicate_counts counts;
    char want[MOST];            /* for each record 'd': a duplicate, or '.' */
} s;

static void begin(size_t memory_bytes)
{
    static const char *const prefixes[] = {"./"};
    const struct temp_places places = {prefixes, 1, NULL};
    memset(&s, 0, sizeof s);
    s.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    struct threads *threads = thread_pool_create();
    const struct duplicate_marks_settings marks = {threads, 2, 1 << 20, 16 << 20, places};
    s.settings = (struct resolve_settings){
        threads, &s.rules, 2, memory_bytes, places, .counts = group_totals_create(1),
        .ends_tapes = tape_set_create(READ_ENDS_N_STREAMS, 16 << 20, &places),
        .names = tape_set_create(READ_ENDS_N_PARTITIONS, 16 << 20, &places),
        .sent = tape_set_create(READ_ENDS_N_PARTITIONS, 16 << 20, &places),
        .marks = duplicate_marks_create(&marks)};
    assert_int_equal(thread_pool_start(threads, 2), 0);
}

/* Adds read ends of the next record; want: its mark. */
static void add(struct read_ends ends, char want)
{
    s.want[s.n_records] = want;
    ends.index = s.n_records++;
    ends.ordinal = ends.index;
    read_ends_gather_add(&s.gather, &ends);
}

static void end_chunk(uint64_t label)
{
    assert_int_equal(read_ends_gather_end(&s.gather, label, s.settings.ends_tapes, &s.lock), 0);
}

static void resolve(void)
{
    RELEASED(found_marks_release) struct found_marks found = {0};
    struct duplicate_marks *marks = s.settings.marks;
    size_t n;
    end_chunk(RUN);
    duplicate_marks_add_run(marks, RUN, s.n_records);
    (void)duplicate_marks_begin(marks);
    assert_int_equal(resolve_duplicates(&s.settings, &s.file_bytes), 0);
    assert_int_equal(duplicate_marks_end(marks, 1 << 20), 0);
    assert_int_equal(duplicate_marks_find(marks, RUN, 0, s.n_records, &found), 0);
    for (uint32_t i = 0; i < s.n_records; i++)
        if (found_marks_have(&found, i) != (s.want[i] == 'd')) fail_msg("record %u", i);
    s.counts = *group_totals_counts(s.settings.counts, &n);
    read_ends_gather_release(&s.gather);
    duplicate_marks_destroy(marks);
    group_totals_destroy(s.settings.counts);
    tape_set_destroy(s.settings.ends_tapes);
    tape_set_destroy(s.settings.names);
    tape_set_destroy(s.settings.sent);
    thread_pool_destroy(s.settings.threads);
}

static struct read_ends ends_of(enum read_ends_kind kind, int64_t here, int64_t score,
                                const char *name)
{
    return (struct read_ends){.kind = kind, .orientation = PAIR_FR, .is_left = true,
                              .here = here, .other_place = here, .there = 900, .score = score,
                              .name = (const uint8_t *)name, .has_others = true,
                              .name_bytes = (uint8_t)strlen(name)};
}

#define PAIR(here, score, name) ends_of(READ_ENDS_PAIR, here, score, name)
#define SINGLE(here, score) ends_of(READ_ENDS_SINGLE, here, score, "s")
#define OTHER(name) ends_of(READ_ENDS_OTHER, 7, 0, name)

/* Two reads on one strand: single reads meet the first one at `there`, not `here`. */
static void add_same_strand(int64_t here, int64_t there)
{
    struct read_ends ends = PAIR(here, 1, "f");
    ends.orientation = PAIR_FF;
    ends.other_place = there;
    add(ends, '.');
    ends.kind = READ_ENDS_END;
    ends.here = there;
    ends.other_place = here;
    s.n_records--;              /* of the same record */
    add(ends, '.');
}

TEST_IN_OWN_DIR(test_worse_pairs_and_single_reads_at_a_place_are_marked)
{
    for (int tags = 0; tags < 2; tags++) {
        uint64_t undone = UINT64_C(1) << 32 | RUN;      /* an earlier attempt at the run */
        begin(4 << 20);
        s.rules.names_original = tags;
        s.settings.undone = (struct undone_runs){&undone, 1, 1};
        add(PAIR(50, 99, "better than all"), '.');
        end_chunk(undone);
        for (int64_t at = 0; at < N_REPEATS * 1000; at += 1000) {
            add(PAIR(at + 50, 5, "a"), 'd');
            add(SINGLE(at + 50, 99), 'd');
            add(PAIR(at + 50, 7, "c"), '.');
            add(PAIR(at + 51, 1, "d"), '.');
            add(SINGLE(at + 60, 3), 'd');
            add(SINGLE(at + 60, 4), '.');
            add_same_strand(at + 66, at + 70);
            add_same_strand(at + 70, at + 75);
            add(SINGLE(at + 66, 9), '.');
            add(SINGLE(at + 70, 9), 'd');
        }
        resolve();
        assert_int_equal(s.counts.paired_duplicates, N_REPEATS);
        assert_int_equal(s.counts.single_duplicates, 3 * N_REPEATS);
    }
}

TEST_IN_OWN_DIR(test_other_records_are_marked_like_the_read_of_their_name)
{
    for (int removes = 0; removes < 2; removes++) {
        begin(4 << 20);
        s.rules.marks_others = true;
        s.rules.removes = removes;
        for (int i = 0; i < N_NAMES; i++) {
            char name[12];
            (void)snprintf(name, sizeof name, "%d", i);
            struct read_ends was_marked = OTHER(name);
            was_marked.was_marked = true;
            add(OTHER(name), i % 2 ? 'd' : '.');
            add(PAIR(i / 2, i % 2 ? 5 : 9, name), i % 2 ? 'd' : '.');
            add(was_marked, i % 2 ? 'd' : '.');
        }
        resolve();
        assert_int_equal(s.counts.other_duplicates, removes ? N_NAMES / 2 : N_NAMES);
    }
}

TEST_IN_OWN_DIR(test_marks_do_not_depend_on_the_memory)
{
    static const size_t memories[] = {64 << 20, 2 << 20, 1 << 16};
    for (size_t i = 0; i < 6; i++) {
        begin(memories[i / 2]);
        s.rules.names_original = i % 2;
        struct read_ends ends = PAIR(0, 0, "q");
        for (int n = 0; n < N_PLACES; ends.other_place = ++ends.here) {
            if (read_ends_partition(&ends) != 5) continue;      /* so that it is large */
            for (ends.score = 0; ends.score < N_EACH; ends.score++) {
                add(ends, ends.score == N_EACH - 1 ? '.' : 'd');
                if (ends.score % 4 == 0) add(SINGLE(ends.here, ends.score), 'd');
            }
            n++;
        }
        resolve();
        assert_int_equal(s.counts.paired_duplicates, N_PLACES * (N_EACH - 1));
        assert_true(i / 2 == 1 || (s.file_bytes > 0) == (i / 2 == 2));
    }
}
