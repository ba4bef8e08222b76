/* test_output_chunk.c -- the memory of open blocks is counted as it is. */
#include "test_rules.h"
#include "unit_test.h"

#include "sort/output_chunk.h"
#include "spill/bam_block.h"

enum { N_RECORDS = 50, LONGEST_NAME = 254 };

struct place {
    struct threads *threads;
    struct sort_rules rules;
    struct output_chunker output_chunker;
    struct sort_context sort;
    sam_hdr_t *header;
};

static void start(struct place *place, enum sort_order order)
{
    place->threads = thread_pool_create();
    assert_non_null(place->threads);
    assert_int_equal(thread_pool_start(place->threads, 1), 0);
    place->rules = (struct sort_rules){.order = order};
    place->header = parse_header("@HD");
    place->sort = (struct sort_context){.threads = place->threads, .rules = place->rules,
                                        .header = place->header};
    output_chunker_init(&place->output_chunker, &place->sort, 1 << 20);
}

static void stop(struct place *place)
{
    thread_pool_destroy(place->threads);
    sam_hdr_destroy(place->header);
}

/* Makes a block of records without sequences, whose names have name_bytes characters. Sets
   *n_entry_bytes to the memory that their entries and keys take. */
static struct stored_block *make_block(const struct sort_rules *rules, size_t name_bytes,
                                       size_t *n_entry_bytes)
{
    static uint8_t raw[N_RECORDS * 400];
    char name[LONGEST_NAME + 1] = "";
    struct keyed_record *keyed[N_RECORDS];
    struct sort_entry entries[N_RECORDS];
    struct temp_coder coder = {0};
    size_t raw_bytes = 0;
    *n_entry_bytes = sizeof entries;
    for (size_t i = 0; i < name_bytes; i++) name[i] = i % 2 ? 'a' : '1';
    for (size_t i = 0; i < N_RECORDS; i++) {
        const struct record_fields f = {.name = name, .tid = -1, .pos = -1};
        const uint8_t *rec = raw + raw_bytes;
        raw_bytes += put_record(raw + raw_bytes, &f, 0);
        keyed[i] = test_alloc(sizeof **keyed + TEST_BOUND_BYTES);
        entries[i] = (struct sort_entry){0, keyed[i]};
        if (sort_order_is_fixed(rules->order)) {
            entries[i] = (struct sort_entry){sort_key_fixed(rules, rec), rec};
            continue;
        }
        keyed[i]->record = rec;
        keyed[i]->key_bytes = (uint32_t)sort_key_encode(rules, rec, keyed[i]->key);
        *n_entry_bytes += keyed_record_bytes(keyed[i]->key_bytes);
    }
    const struct merge_source source = {entries, N_RECORDS, 3, 70};
    uint8_t last[TEST_BOUND_BYTES];
    size_t last_bytes = merge_bound_store(rules->order, &source, N_RECORDS - 1, last);
    struct stored_block *queued = test_alloc(sizeof *queued + TEST_BOUND_BYTES);
    *queued = (struct stored_block){.dir = "nowhere", .run = 3, .first_index = 70};
    queued->key_bytes = merge_bound_store(rules->order, &source, 0, queued->key);
    const struct bam_block content = {TEMP_CODEC_LZ4, N_RECORDS, raw_bytes, last, last_bytes, NULL,
                                      .payload = raw};
    queued->value = test_alloc(bam_block_bound(TEMP_CODEC_LZ4, raw_bytes, last_bytes));
    ssize_t n = bam_block_encode(&coder, &content, queued->value);
    assert_true(n > 0);
    queued->value_bytes = (size_t)n;
    assert_int_equal(bam_block_parse(queued->value, queued->value_bytes, &queued->parsed), 0);
    for (size_t i = 0; i < N_RECORDS; i++) free(keyed[i]);
    return queued;
}

static size_t counted(struct place *place)
{
    thread_pool_lock(place->threads);
    size_t n_bytes = place->output_chunker.block_bytes;
    thread_pool_unlock(place->threads);
    return n_bytes;
}

/* Opens a block, and compares what is counted with what it takes. */
static void check_block(struct place *place, size_t name_bytes)
{
    size_t entry_bytes;
    struct stored_block *queued = make_block(&place->rules, name_bytes, &entry_bytes);
    size_t raw_bytes = queued->parsed.raw_bytes, value_bytes = queued->value_bytes;
    struct open_block *block = output_chunker_open_block(&place->output_chunker, queued);
    assert_int_equal(thread_pool_finish_jobs(place->threads), 0);
    assert_int_equal(block->source.n_entries, N_RECORDS);
    assert_true(counted(place) == block->n_bytes);
    assert_true(block->n_bytes >= raw_bytes + entry_bytes);
    assert_true(block->n_bytes <= raw_bytes + entry_bytes + value_bytes + block->last.n_bytes);
    thread_pool_lock(place->threads);
    output_chunker_drop_block(block);
    thread_pool_unlock(place->threads);
    assert_int_equal(counted(place), 0);
}

/* Entries and keys of short records take more than the records. Only a sixteenth of the size of the
   records was once counted for them. */
TEST(test_memory_of_blocks)
{
    static const enum sort_order orders[] = {SORT_COORDINATE, SORT_NAME_NATURAL, SORT_NAME_LEXICAL};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        struct place place;
        start(&place, orders[i]);
        for (size_t name_bytes = 1; name_bytes <= LONGEST_NAME; name_bytes += 11)
            check_block(&place, name_bytes);
        stop(&place);
    }
}
