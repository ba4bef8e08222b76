/* Tests depth_runs with random intervals against an array of depths. */
#include "unit_test.h"

#include "depth/depth_runs.h"

#include <stdlib.h>
#include <string.h>

enum { N_REFS = 3, N_BASES = 4000, N_RECORDS = 400, MOST_INTERVALS = 4 };

struct record {
    int32_t tid;
    int64_t pos;
    unsigned n;
    struct { int64_t begin, end; bool is_less; } intervals[MOST_INTERVALS];
};

struct seen {
    int64_t depths[N_BASES];
    int64_t end;
    int64_t last_depth;
};

static void see(void *arg, const struct depth_run *run)
{
    struct seen *seen = arg;
    assert_int_equal(run->begin, seen->end);
    assert_true(run->end > run->begin && run->end <= N_BASES);
    assert_true(run->begin == 0 || run->depth != seen->last_depth);
    for (int64_t i = run->begin; i < run->end; i++) seen->depths[i] = run->depth;
    seen->end = run->end;
    seen->last_depth = run->depth;
}

static int compare(const void *a, const void *b)
{
    const struct record *x = a, *y = b;
    if (x->tid != y->tid) return x->tid < y->tid ? -1 : 1;
    return (x->pos > y->pos) - (x->pos < y->pos);
}

/* Some records are short, some have far intervals, some take depth away. */
static void make_records(struct record *records, int64_t depths[N_REFS][N_BASES])
{
    memset(depths, 0, sizeof(int64_t) * N_REFS * N_BASES);
    for (int i = 0; i < N_RECORDS; i++) {
        struct record *r = &records[i];
        *r = (struct record){.tid = rand() % N_REFS, .pos = rand() % N_BASES};
        r->n = (unsigned)rand() % (MOST_INTERVALS + 1);
        for (unsigned j = 0; j < r->n; j++) {
            int64_t reach = rand() % 8 == 0 ? N_BASES : 60;
            int64_t begin = r->pos + rand() % reach, end = begin + rand() % reach;
            if (begin > N_BASES) begin = N_BASES;
            if (end > N_BASES) end = N_BASES;
            r->intervals[j].begin = begin;
            r->intervals[j].end = end;
            r->intervals[j].is_less = rand() % 5 == 0;
            for (int64_t x = begin; x < end; x++)
                depths[r->tid][x] += r->intervals[j].is_less ? -1 : 1;
        }
    }
    qsort(records, N_RECORDS, sizeof *records, compare);
}

static void end_ref(struct depth_join *join, int64_t depths[N_REFS][N_BASES], int32_t tid)
{
    if (tid < 0) return;
    struct seen *seen = join->arg;
    depth_join_finish(join, N_BASES);
    assert_int_equal(seen->end, N_BASES);
    assert_memory_equal(seen->depths, depths[tid], sizeof seen->depths);
}

/* Where it is clear, the depth is that of the part alone. */
static void check_clear(const struct depth_join *join, const struct depth_part *part,
                        const struct depth_piece *piece, int64_t depths[N_BASES])
{
    const struct depth_step *steps = depth_piece_steps(part, piece);
    struct depth_cursor cursor = {0};
    int64_t depth = 0;
    for (size_t i = 0; i + 1 < piece->n_steps && steps[i + 1].pos < piece->last_begin; i++) {
        depth += steps[i].change;
        if (depth_join_is_clear(join, &cursor, steps[i].pos, steps[i + 1].pos))
            assert_int_equal(depths[steps[i].pos], depth);
    }
}

static void join_part(struct depth_join *join, const struct depth_part *part,
                      int64_t depths[N_REFS][N_BASES], int32_t *tid)
{
    for (size_t i = 0; i < part->n_pieces; i++) {
        const struct depth_piece *piece = &part->pieces[i];
        if (piece->tid != *tid) {
            end_ref(join, depths, *tid);
            *tid = piece->tid;
            memset(join->arg, 0, sizeof(struct seen));
            depth_join_begin(join);
        }
        check_clear(join, part, piece, depths[*tid]);
        depth_join_add_piece(join, part, piece, piece->last_begin);
    }
}

static void check_parts(unsigned seed, int most_in_part)
{
    static struct record records[N_RECORDS];
    static int64_t depths[N_REFS][N_BASES];
    static struct seen seen;
    struct depth_join join = {.visit = see, .arg = &seen};
    int32_t tid = -1;
    srand(seed);
    make_records(records, depths);
    for (int i = 0; i < N_RECORDS;) {
        struct depth_part part = {0};
        for (int n = rand() % (most_in_part + 1); n > 0 && i < N_RECORDS; n--, i++) {
            depth_part_add_record(&part, records[i].tid, records[i].pos);
            for (unsigned j = 0; j < records[i].n; j++)
                depth_part_add(&part, records[i].intervals[j].begin, records[i].intervals[j].end,
                               records[i].intervals[j].is_less);
        }
        depth_part_end(&part);
        join_part(&join, &part, depths, &tid);
        depth_part_release(&part);
    }
    end_ref(&join, depths, tid);
    depth_join_release(&join);
}

TEST(runs_of_small_parts_have_the_depths_of_an_array)
{
    for (unsigned seed = 1; seed <= 60; seed++) check_parts(seed, 5);
}

TEST(runs_of_large_parts_have_the_depths_of_an_array)
{
    for (unsigned seed = 1; seed <= 60; seed++) check_parts(seed, 300);
}

TEST(positions_beyond_32_bits_are_sorted)
{
    struct depth_part part = {0};
    const int64_t far = INT64_C(1) << 40;
    depth_part_add_record(&part, 0, 5);
    for (int64_t i = 100; i > 0; i--) depth_part_add(&part, i * far, i * far + 1, false);
    depth_part_end(&part);
    const struct depth_step *steps = depth_piece_steps(&part, &part.pieces[0]);
    assert_int_equal(part.pieces[0].n_steps, 200);
    for (int64_t i = 0; i < 200; i++) {
        assert_int_equal(steps[i].pos, (i / 2 + 1) * far + i % 2);
        assert_int_equal(steps[i].change, i % 2 ? -1 : 1);
    }
    depth_part_release(&part);
}
