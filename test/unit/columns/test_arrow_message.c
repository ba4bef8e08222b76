/*
 * test_arrow_message.c -- batches as Arrow IPC has them: their bytes do not depend on the room that
 * the output happens to have.
 */
#include "unit_test.h"

#include "columns/arrow_message.h"
#include "util/byte_order.h"

/* zstd compresses so many bytes at a time. */
enum { BLOCK_BYTES = 128 << 10 };

/* A text: a block that takes more than a quarter when it is compressed, and n bases. */
static void fill(struct rng *rng, struct column_values *names, unsigned n)
{
    struct byte_buffer *offsets = &names->buffers[BUFFER_OFFSETS];
    (void)put_u32(put_u32(byte_buffer_append(offsets, 8), 0), BLOCK_BYTES + n);
    uint8_t *text = byte_buffer_append(&names->buffers[BUFFER_VALUES], BLOCK_BYTES + n);
    memset(text, 'A', BLOCK_BYTES);
    rng_fill(rng, text, BLOCK_BYTES / 3);
    text += BLOCK_BYTES;
    for (unsigned i = 0; i < n; i++) text[i] = (uint8_t)"ACGT"[rng_below(rng, 4)];
    names->n_rows = 1;
}

static void compare_rooms(const struct column_schema *schema, const struct column_values *names,
                          struct arrow_coder *coder, enum column_codec codec)
{
    const struct column_request request = {.list = "qname", .codec = codec, .level = 3};
    const struct encoded_batch batch = {.schema = schema, .columns = names, .n_rows = 1,
                                        .request = &request};
    struct byte_buffer expected = {0};
    (void)byte_buffer_reserve(&expected, 2 * BLOCK_BYTES);
    (void)arrow_put_batch(coder, &batch, &expected);
    for (size_t room = expected.n_bytes - 64; room <= expected.n_bytes + 16; room++) {
        struct byte_buffer out = {.bytes = test_alloc(room), .room = room};
        (void)arrow_put_batch(coder, &batch, &out);
        assert_int_equal(out.n_bytes, expected.n_bytes);
        assert_memory_equal(out.bytes, expected.bytes, expected.n_bytes);
        free(out.bytes);
    }
    free(expected.bytes);
}

TEST(test_message_fits_its_room)
{
    struct column_schema *schema = column_schema_create("qname", NULL);
    assert_non_null(schema);
    struct rng rng = rng_start(1);
    RELEASED(arrow_coder_release) struct arrow_coder coder = {0};
    for (unsigned n = 30; n < 110; n += 4) {
        RELEASED(column_values_release) struct column_values names = {0};
        fill(&rng, &names, n);
        for (enum column_codec codec = COLUMN_CODEC_LZ4; codec <= COLUMN_CODEC_ZSTD; codec++)
            compare_rooms(schema, &names, &coder, codec);
    }
    column_schema_destroy(schema);
}
