/* id_renames.c -- see id_renames.h. */
#include "input/id_renames.h"

#include "bam/bam_aux.h"
#include "util/byte_order.h"

size_t id_renames_rewrite_bound(const struct id_renames *renames, const uint8_t *rec)
{
    return bam_record_bytes(rec) + renames->growth;
}

/* Walks through the tags of a record. */
struct id_walk {
    const struct id_renames *renames;
    const uint8_t *rec, *at;
    bool seen[N_ID_KINDS];      /* skip this kind: its first tag was seen, or no ID changes */
};

static struct id_walk begin_walk(const struct id_renames *renames, const uint8_t *rec)
{
    return (struct id_walk){.renames = renames, .rec = rec, .at = bam_record_tags(rec),
                            .seen = {!renames->kinds[ID_GROUP].table,
                                     !renames->kinds[ID_PROGRAM].table}};
}

/* Finds the next tag whose ID changes. Returns the new ID, or NULL if there is none. */
static const struct text *next_id(struct id_walk *walk, struct bam_aux *aux)
{
    static const char *const tags[N_ID_KINDS] = {"RG", "PG"};
    while (!(walk->seen[ID_GROUP] && walk->seen[ID_PROGRAM]) &&
           bam_aux_read(walk->rec, &walk->at, aux) > 0) {
        enum id_kind kind = ID_GROUP;
        while (kind < N_ID_KINDS && memcmp(aux->start, tags[kind], 2) != 0) kind++;
        if (kind == N_ID_KINDS || walk->seen[kind]) continue;
        walk->seen[kind] = true;
        if (aux->type != 'Z') continue;
        const struct text old_id = {(const char *)aux->value, aux->value_bytes - 1};
        const size_t *place = text_map_find(&walk->renames->kinds[kind], old_id);
        if (place) return &walk->renames->new_ids[*place];
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
    const uint8_t *copied = rec, *end = bam_record_end(rec);
    uint8_t *to = out;
    struct id_walk walk = begin_walk(renames, rec);
    struct bam_aux aux;
    const struct text *id;
    while ((id = next_id(&walk, &aux))) {
        to = copy_bytes(to, copied, (size_t)(aux.value - copied));
        to = copy_bytes(to, id->at, id->n);
        copied = walk.at - 1;           /* the NUL */
    }
    to = copy_bytes(to, copied, (size_t)(end - copied));
    (void)put_u32(out, (size_t)(to - out) - 4);
    return (size_t)(to - out);
}
