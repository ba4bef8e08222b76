/* duplicate_key.c -- see duplicate_key.h. */
#include "duplicates/duplicate_key.h"

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

static struct duplicate_key hash_words(const uint64_t *words, size_t n_bytes)
{
    XXH128_hash_t hash = XXH3_128bits(words, n_bytes);
    return (struct duplicate_key){hash.low64, hash.high64};
}

struct duplicate_key duplicate_key_of_pair(const struct duplicate_rules *rules,
                                           const struct duplicate_view *view)
{
    uint64_t group = duplicate_rules_keep_groups_apart(rules) ? view->group : 0;
    const uint64_t words[] = {
        (uint64_t)view->here,
        (uint64_t)view->there,
        (uint64_t)(uint32_t)view->ref << 32 | (uint32_t)view->mate_ref,
        group << 8 | (uint64_t)view->orientation << 1 | view->is_left,
        view->barcode,
    };
    return hash_words(words, sizeof words);
}

/* Hashes other numbers of words than the key of a pair has: both may be keys of sets. */
struct duplicate_key duplicate_key_of_single(const struct duplicate_rules *rules,
                                             const struct duplicate_view *view)
{
    int64_t here = view->here, other = view->other_place;
    uint64_t ref = (uint64_t)(uint32_t)view->ref << 1;
    uint64_t group = duplicate_rules_keep_groups_apart(rules) ? view->group : 0;
    if (rules->ignores_strand) {
        bool is_end = here > other;
        const uint64_t words[] = {
            (uint64_t)(is_end ? other : here),
            (uint64_t)(is_end ? here : other),
            ref,
            group,
            view->barcode,
            0,
        };
        return hash_words(words, sizeof words);
    }
    const uint64_t words[] = {
        (uint64_t)(view->kind == VIEW_PAIR ? other : here),
        ref | view->is_reverse,
        group,
        view->barcode,
    };
    return hash_words(words, sizeof words);
}

struct duplicate_key duplicate_key_of_name(const uint8_t *name, size_t n_bytes)
{
    XXH128_hash_t hash = XXH3_128bits(name, n_bytes);
    return (struct duplicate_key){hash.low64, hash.high64};
}

struct duplicate_key duplicate_key_with_barcode(struct duplicate_key key, const uint8_t *barcode,
                                                size_t n_bytes)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(barcode, n_bytes, key.low);
    return (struct duplicate_key){hash.low64 ^ key.high, hash.high64 ^ key.low};
}
