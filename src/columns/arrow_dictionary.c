/* arrow_dictionary.c -- see arrow_dictionary.h. */
#include "columns/arrow_dictionary.h"

#include "util/byte_order.h"
#include "util/xalloc.h"

#include <stdlib.h>

#define MOST_BYTES ((uint64_t)2 << 30)  /* of texts, as in a batch */

struct arrow_dictionary *arrow_dictionaries_find(const struct arrow_dictionaries *dictionaries,
                                                 int64_t id)
{
    for (size_t i = 0; i < dictionaries->n; i++)
        if (dictionaries->list[i].id == id) return &dictionaries->list[i];
    return NULL;
}

void arrow_dictionaries_expect(struct arrow_dictionaries *dictionaries,
                               const struct arrow_field *field)
{
    if (arrow_dictionaries_find(dictionaries, field->dictionary)) return;
    size_t n = dictionaries->n++;
    dictionaries->list = xrealloc(dictionaries->list, (n + 1) * sizeof *dictionaries->list);
    struct arrow_dictionary *dictionary = &dictionaries->list[n];
    *dictionary = (struct arrow_dictionary){.id = field->dictionary, .values = *field};
    dictionary->values.has_dictionary = false;
}

void arrow_dictionaries_release(struct arrow_dictionaries *dictionaries)
{
    for (size_t i = 0; i < dictionaries->n; i++) {
        free(dictionaries->list[i].texts.bytes);
        free(dictionaries->list[i].ends.bytes);
        free(dictionaries->list[i].references.bytes);
    }
    free(dictionaries->list);
    *dictionaries = (struct arrow_dictionaries){0};
}

void arrow_dictionary_clear(struct arrow_dictionary *dictionary)
{
    dictionary->n = 0;
    dictionary->texts.n_bytes = dictionary->ends.n_bytes = dictionary->references.n_bytes = 0;
}

bool arrow_dictionary_add(struct arrow_dictionary *dictionary, struct text text,
                          const struct text_map *references)
{
    if (text.n > MOST_BYTES - dictionary->texts.n_bytes || dictionary->n == INT32_MAX) return false;
    const size_t *number = text.at ? text_map_find(references, text) : NULL;
    int32_t reference = number    ? (int32_t)*number
                        : text.at ? REFERENCE_UNKNOWN
                                  : REFERENCE_NULL;
    column_bytes_copy(&dictionary->texts, text.at, text.n);
    (void)put_u64(column_bytes_append(&dictionary->ends, 8), dictionary->texts.n_bytes);
    (void)put_u32(column_bytes_append(&dictionary->references, 4), (uint32_t)reference);
    dictionary->n++;
    return true;
}

int32_t arrow_dictionary_reference(const struct arrow_dictionary *dictionary, size_t i)
{
    return (int32_t)get_u32(dictionary->references.bytes + 4 * i);
}

struct text arrow_dictionary_text(const struct arrow_dictionary *dictionary, size_t i)
{
    static const char nothing[1];
    const uint8_t *ends = dictionary->ends.bytes;
    if (arrow_dictionary_reference(dictionary, i) == REFERENCE_NULL) return (struct text){NULL, 0};
    size_t begin = i > 0 ? (size_t)get_u64(ends + 8 * (i - 1)) : 0;
    size_t n_bytes = (size_t)get_u64(ends + 8 * i) - begin;
    const char *at = n_bytes > 0 ? (const char *)dictionary->texts.bytes + begin : nothing;
    return (struct text){at, n_bytes};
}
