/* chain_rules.c -- see chain_rules.h. */
#include "duplicates/chain_rules.h"

#include <string.h>

const struct duplicate_view *chain_lacks_score(const struct duplicate_view *view,
                                               const struct duplicate_view *best)
{
    if (view->failed_qc != best->failed_qc) return NULL;
    return view->lacks_score ? view : best->lacks_score ? best : NULL;
}

static int compare_names(const struct duplicate_view *a, const struct duplicate_view *b)
{
    size_t n = a->name_bytes < b->name_bytes ? a->name_bytes : b->name_bytes;
    int r = memcmp(a->name, b->name, n);
    return r != 0 ? r : a->name_bytes < b->name_bytes ? -1 : a->name_bytes > b->name_bytes;
}

int chain_compare_reads(const struct duplicate_view *a, const struct duplicate_view *b)
{
    if (a->failed_qc != b->failed_qc) return a->failed_qc ? 1 : -1;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return compare_names(a, b);
}

int chain_compare_duplicates(const struct duplicate_view *a, const struct duplicate_view *b)
{
    if (chain_is_paired(a) != chain_is_paired(b)) return chain_is_paired(a) ? -1 : 1;
    return chain_compare_reads(a, b);
}
