/* id_renames.c -- see id_renames.h. */
#include "input/id_renames.h"

#include "bam/bam_aux.h"
#include "bam/bam_fields.h"
#include "util/byte_order.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

static const char *const tags[N_ID_KINDS] = {"RG", "PG"};

void id_renames_add(struct id_renames *renames, enum id_kind kind, struct text old_id,
                    struct text new_id)
{
    struct id_rename_list *list = &renames->kinds[kind];
    xgrow(&list->at, &list->room, list->n + 1, list->n, sizeof *list->at);
    struct id_rename *r = &list->at[list->n++];
    r->old_id = xasprintf("%.*s", (int)old_id.n, old_id.at);
    r->new_id = xasprintf("%.*s", (int)new_id.n, new_id.at);
    size_t growth = new_id.n > old_id.n ? new_id.n - old_id.n : 0;
    if (growth > list->growth) list->growth = growth;
}

static int compare_renames(const void *a, const void *b)
{
    const struct id_rename *x = a, *y = b;
    return strcmp(x->old_id, y->old_id);
}

void id_renames_sort(struct id_renames *renames)
{
    for (enum id_kind kind = ID_GROUP; kind < N_ID_KINDS; kind++) {
        struct id_rename_list *list = &renames->kinds[kind];
        if (list->n > 0) qsort(list->at, list->n, sizeof *list->at, compare_renames);
    }
}

void id_renames_release(struct id_renames *renames)
{
    for (enum id_kind kind = ID_GROUP; kind < N_ID_KINDS; kind++) {
        struct id_rename_list *list = &renames->kinds[kind];
        for (size_t k = 0; k < list->n; k++) {
            free(list->at[k].old_id);
            free(list->at[k].new_id);
        }
        free(list->at);
    }
    *renames = (struct id_renames){0};
}

size_t id_renames_rewrite_bound(const struct id_renames *renames, const uint8_t *rec)
{
    return bam_record_bytes(rec) + renames->kinds[ID_GROUP].growth +
           renames->kinds[ID_PROGRAM].growth;
}

/* The new ID for the value of a tag, or NULL if it stays. */
static const char *new_id(const struct id_rename_list *list, const struct bam_aux *aux)
{
    if (aux->type != 'Z') return NULL;
    /* bsearch only compares the key, so dropping const is safe. */
    struct id_rename wanted = {.old_id = (char *)(uintptr_t)aux->value};
    const struct id_rename *found =
        bsearch(&wanted, list->at, list->n, sizeof wanted, compare_renames);
    return found ? found->new_id : NULL;
}

/* Walks through the tags of a record. */
struct id_walk {
    const struct id_renames *renames;
    const uint8_t *rec, *at;
    bool seen[N_ID_KINDS];      /* skip this kind: its first tag was seen, or no ID changes */
};

static struct id_walk begin_walk(const struct id_renames *renames, const uint8_t *rec)
{
    struct id_walk walk = {.renames = renames, .rec = rec, .at = bam_record_tags(rec)};
    for (enum id_kind kind = ID_GROUP; kind < N_ID_KINDS; kind++)
        walk.seen[kind] = renames->kinds[kind].n == 0;
    return walk;
}

/* Finds the next tag whose ID changes. Returns the new ID, or NULL if there is none. */
static const char *next_id(struct id_walk *walk, struct bam_aux *aux)
{
    while (!(walk->seen[ID_GROUP] && walk->seen[ID_PROGRAM]) &&
           bam_aux_read(walk->rec, &walk->at, aux) > 0) {
        enum id_kind kind = ID_GROUP;
        while (kind < N_ID_KINDS && memcmp(aux->start, tags[kind], 2) != 0) kind++;
        if (kind == N_ID_KINDS || walk->seen[kind]) continue;
        walk->seen[kind] = true;
        const char *id = new_id(&walk->renames->kinds[kind], aux);
        if (id) return id;
    }
    return NULL;
}

bool id_renames_touch(const struct id_renames *renames, const uint8_t *rec)
{
    struct id_walk walk = begin_walk(renames, rec);
    struct bam_aux aux;
    return next_id(&walk, &aux) != NULL;
}

size_t id_renames_rewrite(const struct id_renames *renames, const uint8_t *rec, uint8_t *out)
{
    const uint8_t *copied = rec, *end = rec + bam_record_bytes(rec);
    uint8_t *put_at = out;
    struct id_walk walk = begin_walk(renames, rec);
    struct bam_aux aux;
    const char *id;
    while ((id = next_id(&walk, &aux))) {
        size_t n_before = (size_t)(aux.value - copied), id_bytes = strlen(id) + 1;
        memcpy(put_at, copied, n_before);
        memcpy(put_at + n_before, id, id_bytes);
        put_at += n_before + id_bytes;
        copied = walk.at;
    }
    memcpy(put_at, copied, (size_t)(end - copied));
    size_t size = (size_t)(put_at - out) + (size_t)(end - copied);
    (void)put_u32(out, size - 4);
    return size;
}
