/* id_renames.c -- see id_renames.h. */
#include "input/id_renames.h"

#include "bam/bam_aux.h"
#include "util/diag.h"

#include <stdlib.h>
#include <string.h>

static const char *const tags[N_ID_KINDS] = {"RG", "PG"};

static int no_memory(void)
{
    diag_no_memory();
    return -1;
}

int id_renames_init(struct id_renames *renames, size_t n)
{
    *renames = (struct id_renames){0};
    if (n > 0) renames->at = malloc(n * sizeof *renames->at);
    return n == 0 || renames->at ? 0 : no_memory();
}

static int compare_renames(const void *a, const void *b)
{
    const struct id_rename *x = a, *y = b;
    return strcmp(x->old_id, y->old_id);
}

int id_renames_add(struct id_renames *renames, struct text old_id, struct text new_id)
{
    struct id_rename *r = &renames->at[renames->n];
    size_t old_bytes = old_id.n + 1;
    r->old_id = malloc(old_bytes + new_id.n + 1);
    if (!r->old_id) return no_memory();
    r->new_id = r->old_id + old_bytes;
    memcpy(r->old_id, old_id.at, old_id.n);
    r->old_id[old_id.n] = '\0';
    memcpy(r->new_id, new_id.at, new_id.n);
    r->new_id[new_id.n] = '\0';
    renames->n++;
    size_t growth = new_id.n > old_id.n ? new_id.n - old_id.n : 0;
    if (growth > renames->growth) renames->growth = growth;
    return 0;
}

void id_renames_sort(struct id_renames *renames)
{
    if (renames->n > 0) qsort(renames->at, renames->n, sizeof *renames->at, compare_renames);
}

void id_renames_release(struct id_renames *renames)
{
    for (size_t k = 0; k < renames->n; k++) free(renames->at[k].old_id);
    free(renames->at);
}

size_t id_renames_rewrite_bound(const struct id_renames renames[N_ID_KINDS], const uint8_t *rec)
{
    return bam_record_bytes(rec) + renames[ID_GROUP].growth + renames[ID_PROGRAM].growth;
}

/* The new ID for the value of a tag, or NULL if it stays. */
static const char *new_id(const struct id_renames *renames, const struct bam_aux *aux)
{
    if (aux->type != 'Z') return NULL;
    /* Only compared. */
    struct id_rename wanted = {.old_id = (char *)(uintptr_t)aux->value};
    const struct id_rename *found =
        bsearch(&wanted, renames->at, renames->n, sizeof wanted, compare_renames);
    return found ? found->new_id : NULL;
}

size_t id_renames_rewrite(const struct id_renames renames[N_ID_KINDS], const uint8_t *rec,
                          uint8_t *out)
{
    const uint8_t *copied = rec, *at = bam_record_tags(rec), *end = rec + bam_record_bytes(rec);
    uint8_t *put_at = out;
    bool seen[N_ID_KINDS];
    for (enum id_kind kind = ID_GROUP; kind < N_ID_KINDS; kind++) seen[kind] = renames[kind].n == 0;
    struct bam_aux aux;
    while (!(seen[ID_GROUP] && seen[ID_PROGRAM]) && bam_aux_next(rec, &at, &aux) > 0) {
        enum id_kind kind = ID_GROUP;
        while (kind < N_ID_KINDS && memcmp(aux.start, tags[kind], 2) != 0) kind++;
        if (kind == N_ID_KINDS || seen[kind]) continue;
        seen[kind] = true;
        const char *id = new_id(&renames[kind], &aux);
        if (!id) continue;
        size_t n_before = (size_t)(aux.value - copied), id_bytes = strlen(id) + 1;
        memcpy(put_at, copied, n_before);
        memcpy(put_at + n_before, id, id_bytes);
        put_at += n_before + id_bytes;
        copied = at;
    }
    memcpy(put_at, copied, (size_t)(end - copied));
    size_t size = (size_t)(put_at - out) + (size_t)(end - copied);
    uint32_t block_size = (uint32_t)(size - 4);
    for (int k = 0; k < 4; k++) out[k] = (uint8_t)(block_size >> 8 * k);
    return size;
}
