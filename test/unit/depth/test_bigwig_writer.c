/* Tests bigwig_writer with many sections and many references, whose trees have several levels. */
#include "unit_test.h"

#include "depth/bigwig_writer.h"
#include "util/byte_order.h"

/* ---- a file in memory ---- */

struct memory_file {
    struct count_sink sink;
    struct byte_buffer bytes;
};

static int write_memory(struct count_sink *sink, const void *bytes, size_t n_bytes)
{
    byte_buffer_copy(&((struct memory_file *)sink)->bytes, bytes, n_bytes);
    sink->n_bytes += n_bytes;
    return 0;
}

static int rewrite_memory(struct count_sink *sink, uint64_t at, const void *bytes, size_t n_bytes)
{
    struct memory_file *file = (struct memory_file *)sink;
    assert_true(at + n_bytes <= file->bytes.n_bytes);
    if (n_bytes > 0) memcpy(file->bytes.bytes + at, bytes, n_bytes);
    return 0;
}

/* ---- walks through trees ---- */

struct walk {
    const uint8_t *file;
    size_t key_bytes;
    bool has_names;
    uint64_t n_leaf_items, n_nodes;
    unsigned depth;
    void (*visit)(struct walk *walk, const uint8_t *item);
    /* of an index */
    uint64_t place, first_tid;
    const struct track_section *sections;
};

static void walk_node(struct walk *walk, uint64_t at, unsigned depth)
{
    const uint8_t *item = walk->file + at + 4;
    bool is_leaf = walk->file[at];
    size_t item_bytes = walk->key_bytes + (is_leaf && !walk->has_names ? 16 : 8);
    unsigned n = get_u16(walk->file + at + 2);
    assert_true(n > 0 && n <= 256);
    walk->n_nodes++;
    if (is_leaf) assert_true(walk->depth == 0 || walk->depth == depth);
    if (is_leaf) walk->depth = depth;
    for (unsigned i = 0; i < n; i++, item += item_bytes) {
        uint64_t first = walk->n_leaf_items;
        if (is_leaf) {
            walk->visit(walk, item);
            walk->n_leaf_items++;
            continue;
        }
        walk_node(walk, get_u64(item + walk->key_bytes), depth + 1);
        if (walk->has_names) continue;
        const struct track_section *a = &walk->sections[first];
        const struct track_section *b = &walk->sections[walk->n_leaf_items - 1];
        assert_int_equal(get_u32(item), a->tid);
        assert_int_equal(get_u32(item + 4), a->begin);
        assert_int_equal(get_u32(item + 8), b->last_tid);
        assert_int_equal(get_u32(item + 12), b->end);
    }
}

static void visit_section(struct walk *walk, const uint8_t *item)
{
    const struct track_section *section = &walk->sections[walk->n_leaf_items];
    assert_int_equal(get_u32(item), section->tid);
    assert_int_equal(get_u32(item + 4), section->begin);
    assert_int_equal(get_u32(item + 8), section->last_tid);
    assert_int_equal(get_u32(item + 12), section->end);
    assert_int_equal(get_u64(item + 16), walk->place);
    assert_int_equal(get_u64(item + 24), section->n_bytes);
    walk->place += section->n_bytes;
}

static char last_name[16];

static void visit_name(struct walk *walk, const uint8_t *item)
{
    char name[16] = "", want[16];
    memcpy(name, item, walk->key_bytes);
    (void)snprintf(want, sizeof want, "c%" PRIu32, get_u32(item + walk->key_bytes));
    assert_string_equal(name, want);
    assert_int_equal(get_u32(item + walk->key_bytes + 4),
                     1000000 + get_u32(item + walk->key_bytes));
    assert_true(strcmp(last_name, name) < 0);
    strcpy(last_name, name);
}

static sam_hdr_t *make_named_header(int n_refs)
{
    kstring_t text = {0};
    for (int i = 0; i < n_refs; i++)
        assert_true(ksprintf(&text, "@SQ\tSN:c%d\tLN:%d\n", i, 1000000 + i) >= 0);
    sam_hdr_t *header = sam_hdr_parse(text.l, text.s ? text.s : "");
    free(text.s);
    assert_non_null(header);
    return header;
}

/* Sections of 5 to 9 bytes, some of which span references if the level is not 0. */
static struct track_section *make_sections(struct rng *rng, size_t n, unsigned level, int n_refs)
{
    struct track_section *sections = test_alloc(n * sizeof *sections), last = {0};
    for (size_t i = 0; i < n; i++) {
        struct track_section *s = &sections[i];
        *s = (struct track_section){.tid = last.last_tid, .begin = last.end,
                                    .n_items = 1 + (uint32_t)rng_below(rng, 9)};
        s->begin += (int64_t)rng_below(rng, 9);
        if (last.last_tid + 1 < n_refs && rng_one_in(rng, 100)) s->tid++, s->begin = 0;
        s->last_tid = s->tid;
        s->end = s->begin + 1 + (int64_t)rng_below(rng, 9);
        if (level > 0 && s->tid + 1 < n_refs && rng_one_in(rng, 50)) s->last_tid++, s->end = 1;
        s->n_bytes = 5 + (uint32_t)rng_below(rng, 5);
        last = *s;
    }
    return sections;
}

static void check_index(const struct memory_file *file, uint64_t index_at, uint64_t data_at,
                        const struct track_section *sections, size_t n)
{
    const uint8_t *head = file->bytes.bytes + index_at;
    struct walk walk = {.file = file->bytes.bytes, .key_bytes = 16, .visit = visit_section,
                        .place = data_at, .sections = sections};
    assert_int_equal(get_u32(head), 0x2468ace0);
    assert_int_equal(get_u64(head + 8), n);
    assert_int_equal(get_u32(head + 16), sections[0].tid);
    assert_int_equal(get_u32(head + 28), sections[n - 1].end);
    walk_node(&walk, index_at + 48, 1);
    assert_int_equal(walk.n_leaf_items, n);
    assert_int_equal(walk.place, index_at);
    assert_int_equal(walk.depth, n > 65536 ? 3 : n > 256 ? 2 : 1);
}

static void check_file(size_t n_sections, int n_refs)
{
    static const int64_t windows[TRACK_MOST_LEVELS] = {0, 160, 640};
    struct rng rng = rng_start(n_sections);
    struct memory_file file = {.sink = {.write = write_memory, .rewrite = rewrite_memory}};
    sam_hdr_t *header = make_named_header(n_refs);
    struct bigwig_writer *writer = bigwig_writer_create(&file.sink, header, windows);
    assert_non_null(writer);
    const unsigned levels[2] = {0, 2};
    struct track_section *made[2];
    for (int k = 0; k < 2; k++) {
        made[k] = make_sections(&rng, n_sections, levels[k], n_refs);
        for (size_t i = 0; i < n_sections; i++)
            assert_int_equal(bigwig_writer_write(writer, levels[k], &made[k][i],
                                                 (const uint8_t *)"123456789"), 0);
        assert_int_equal(bigwig_writer_write(writer, levels[k], NULL, NULL), 0);
    }
    const struct track_item all = {.n_bases = 77, .min = 1, .max = 9, .sum = 100, .squares = 300};
    assert_int_equal(bigwig_writer_finish(writer, &all), 0);

    const uint8_t *head = file.bytes.bytes;
    assert_int_equal(get_u32(head), 0x888ffc26);
    assert_int_equal(get_u16(head + 6), 1);     /* zoom levels */
    assert_int_equal(get_u64(head + get_u64(head + 44)), 77);
    assert_int_equal(get_u64(head + get_u64(head + 16)), n_sections);
    check_index(&file, get_u64(head + 24), get_u64(head + 16) + 8, made[0], n_sections);
    assert_int_equal(get_u32(head + 64), 640);
    check_index(&file, get_u64(head + 80), get_u64(head + 72) + 4, made[1], n_sections);
    const uint8_t *names = head + get_u64(head + 8);
    struct walk walk = {.file = head, .key_bytes = get_u32(names + 8), .has_names = true,
                        .visit = visit_name};
    last_name[0] = '\0';
    walk_node(&walk, get_u64(head + 8) + 32, 1);
    assert_int_equal(walk.n_leaf_items, n_refs);

    bigwig_writer_destroy(writer);
    sam_hdr_destroy(header);
    free(file.bytes.bytes);
    for (int k = 0; k < 2; k++) free(made[k]);
}

TEST(test_trees_of_one_node_have_all_items)
{
    check_file(1, 1);
    check_file(256, 256);
}

TEST(test_trees_of_two_levels_have_all_items)
{
    check_file(257, 257);
    check_file(1000, 700);
}

TEST(test_trees_of_three_levels_have_all_items)
{
    check_file(65537, 66000);
}
