/* arrow_array.c -- see arrow_array.h. The numbers of fields are those of Arrow's Message.fbs. */
#include "columns/arrow_array.h"

#include "columns/arrow_format.h"
#include "util/byte_order.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <zstd.h>

static const char damaged[] = "it is damaged";

void arrow_body_open(struct arrow_body *body, const struct flat_table *batch, const uint8_t *bytes,
                     size_t n_bytes)
{
    struct flat_table compression;
    *body = (struct arrow_body){.bytes = bytes, .n_bytes = n_bytes, .codec = -1,
                                .bytes_left = ARROW_MOST_BATCH_BYTES};
    body->nodes = flat_read_vector(batch, 1, 16);
    body->buffers = flat_read_vector(batch, 2, 16);
    body->view_counts = flat_read_vector(batch, 4, 8);
    if (flat_read_table(batch, 3, &compression))
        body->codec = (int)flat_read_number(&compression, 0, 1, 0);
}

void arrow_body_release(struct arrow_body *body)
{
    if (body->lz4) (void)LZ4F_freeDecompressionContext(body->lz4);
    body->lz4 = NULL;
}

bool arrow_body_fail(struct arrow_body *body, const char *problem)
{
    if (!body->problem) body->problem = problem;
    return false;
}

bool arrow_body_take(struct arrow_body *body, uint64_t n_bytes)
{
    if (n_bytes > body->bytes_left)
        return arrow_body_fail(body, "a batch takes more than 2 GiB: write it as smaller batches");
    body->bytes_left -= n_bytes;
    return true;
}

/* ---- buffers ---- */

/* Decompresses to a buffer that has room. */
static bool decompress(struct arrow_body *body, const uint8_t *from, size_t n_from, uint8_t *to,
                       size_t n_to)
{
    if (body->codec == ARROW_CODEC_ZSTD) return ZSTD_decompress(to, n_to, from, n_from) == n_to;
    if (body->codec != ARROW_CODEC_LZ4) return false;
    if (!body->lz4) {
        bool made = !LZ4F_isError(LZ4F_createDecompressionContext(&body->lz4, LZ4F_VERSION));
        xalloc_require(made);
    }
    LZ4F_resetDecompressionContext(body->lz4);
    size_t left = 1, done = 0, used = 0;
    while (left > 0) {
        size_t n_out = n_to - done, n_in = n_from - used;
        left = LZ4F_decompress(body->lz4, to + done, &n_out, from + used, &n_in, NULL);
        if (LZ4F_isError(left) || (n_out == 0 && n_in == 0)) return false;
        done += n_out;
        used += n_in;
    }
    return done == n_to && used == n_from;
}

/* Finds the next buffer of the body. Returns false if there is none. */
static bool find_buffer(struct arrow_body *body, const uint8_t **bytes, uint64_t *n_bytes)
{
    if (body->buffer >= body->buffers.n) return arrow_body_fail(body, damaged);
    const uint8_t *at = body->buffers.view->bytes + body->buffers.at + 16 * body->buffer++;
    uint64_t begin = get_u64(at);
    *n_bytes = get_u64(at + 8);
    if (begin > body->n_bytes || *n_bytes > body->n_bytes - begin)
        return arrow_body_fail(body, damaged);
    *bytes = begin > 0 ? body->bytes + begin : body->bytes;     /* NULL, if the body is empty */
    return true;
}

/* Reads the next buffer of the body into `to`, which is empty. */
static bool read_buffer(struct arrow_body *body, struct column_bytes *to)
{
    const uint8_t *bytes;
    uint64_t n, size;
    if (!find_buffer(body, &bytes, &n)) return false;
    if (n == 0) return true;
    bool is_stored = body->codec < 0;
    size = n;
    if (!is_stored) {
        if (n < 8) return arrow_body_fail(body, damaged);
        size = get_u64(bytes);
        is_stored = size == UINT64_MAX;
        bytes += 8;
        n -= 8;
        if (is_stored) size = n;
    }
    if (size == 0) return true;
    if (!arrow_body_take(body, size)) return false;
    (void)column_bytes_append(to, (size_t)size);
    if (is_stored) memcpy(to->bytes, bytes, to->n_bytes);
    return is_stored || decompress(body, bytes, (size_t)n, to->bytes, to->n_bytes) ||
           arrow_body_fail(body, damaged);
}

/* ---- arrays ---- */

/* How many buffers of long texts the next field with views has. Fields that were skipped may have
   had more buffers than there are. */
static bool next_view_count(struct arrow_body *body, size_t *n)
{
    if (body->view >= body->view_counts.n || body->buffer > body->buffers.n)
        return arrow_body_fail(body, damaged);
    const struct flat_items *counts = &body->view_counts;
    uint64_t count = get_u64(counts->view->bytes + counts->at + 8 * body->view++);
    if (count > body->buffers.n - body->buffer) return arrow_body_fail(body, damaged);
    *n = (size_t)count;
    return true;
}

static bool read_texts(struct arrow_body *body, struct arrow_array *array)
{
    size_t n;
    if (!next_view_count(body, &n)) return false;
    array->texts = xcalloc(n + 1, sizeof *array->texts);
    while (array->n_texts < n)
        if (!read_buffer(body, &array->texts[array->n_texts++])) return false;
    return true;
}

/* How many children a field has in a batch. With a dictionary it has none. */
static unsigned n_children_of(const struct arrow_field *field)
{
    return field->has_dictionary ? 0 : field->n_children;
}

bool arrow_array_read(struct arrow_body *body, const struct arrow_field *field,
                      struct arrow_array *array)
{
    *array = (struct arrow_array){0};
    if (body->node >= body->nodes.n) return arrow_body_fail(body, damaged);
    const uint8_t *node = body->nodes.view->bytes + body->nodes.at + 16 * body->node++;
    array->n_rows = get_u64(node);
    array->n_nulls = get_u64(node + 8);
    for (unsigned i = 0; i < arrow_field_buffers(field); i++)
        if (!read_buffer(body, &array->buffers[i])) return false;
    if (arrow_field_has_views(field) && !read_texts(body, array)) return false;
    unsigned n = n_children_of(field);
    if (n > 0) array->children = xcalloc(n, sizeof *array->children);
    while (array->n_children < n) {
        unsigned i = array->n_children++;
        if (!arrow_array_read(body, &field->children[i], &array->children[i])) return false;
    }
    return true;
}

void arrow_array_release(struct arrow_array *array)
{
    for (unsigned i = 0; i < ARROW_MOST_BUFFERS; i++) free(array->buffers[i].bytes);
    for (size_t i = 0; i < array->n_texts; i++) free(array->texts[i].bytes);
    free(array->texts);
    for (unsigned i = 0; i < array->n_children; i++) arrow_array_release(&array->children[i]);
    free(array->children);
    *array = (struct arrow_array){0};
}

bool arrow_array_skip(struct arrow_body *body, const struct arrow_field *field)
{
    size_t n_texts = 0;
    body->node++;
    if (arrow_field_has_views(field) && !next_view_count(body, &n_texts)) return false;
    body->buffer += arrow_field_buffers(field) + n_texts;
    for (unsigned i = 0; i < n_children_of(field); i++)
        if (!arrow_array_skip(body, &field->children[i])) return false;
    return true;
}
