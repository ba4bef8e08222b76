/* header_ids.c -- see header_ids.h. */
#include "input/header_ids.h"

#include "util/diag.h"
#include "util/xalloc.h"

#include <stdlib.h>

static const char *const line_types[N_ID_KINDS] = {"@RG", "@PG"};
static const char *const ref_tags[N_ID_KINDS] = {"PG:", "PP:"};

enum id_kind header_ids_kind_of(struct text line)
{
    enum id_kind kind = ID_GROUP;
    while (kind < N_ID_KINDS && !header_line_is(line, line_types[kind])) kind++;
    return kind;
}

/* Adds an ID unless it is in the list already. Returns its index in the list. */
static size_t add_id(struct header_id_list *list, const struct header_id *id)
{
    size_t place = text_map_put(&list->places, id->id, list->n);
    if (place < list->n) return place;
    xgrow(&list->at, &list->room, list->n + 1, list->n, sizeof *list->at);
    list->at[list->n] = *id;
    return list->n++;
}

int header_ids_add(struct header_ids *ids, enum id_kind kind, struct text line, const char *file)
{
    struct header_id id = {.line = line};
    struct text rest = header_line_rest(line), field;
    while (header_next_field(&rest, &field)) {
        if (!id.id.at) id.id = header_field_value(field, "ID:");
        if (!id.ref.at) id.ref = header_field_value(field, ref_tags[kind]);
    }
    if (!id.id.at) {
        diag_error("the header of '%s' has an %s line without ID; add it with 'samtools reheader'",
                   file, line_types[kind]);
        return -1;
    }
    (void)add_id(&ids->kinds[kind], &id);
    return 0;
}

void header_ids_link(struct header_ids *ids)
{
    for (enum id_kind kind = ID_GROUP; kind < N_ID_KINDS; kind++) {
        struct header_id_list *list = &ids->kinds[kind];
        for (size_t k = 0; k < list->n; k++) {
            struct header_id missing = {.id = list->at[k].ref};
            if (!missing.id.at) continue;
            size_t parent = add_id(&ids->kinds[ID_PROGRAM], &missing);
            list->at[k].parent = parent;
        }
    }
}

void header_ids_release(struct header_ids *ids)
{
    for (enum id_kind kind = ID_GROUP; kind < N_ID_KINDS; kind++) {
        free(ids->kinds[kind].at);
        text_map_release(&ids->kinds[kind].places);
    }
    *ids = (struct header_ids){0};
}
