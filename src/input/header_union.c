/*
 * header_union.c -- see header_union.h.
 *
 * Headers are read as text, line by line: htslib would parse the @SQ lines of each, and thousands
 * of inputs of 100,000 references would fill the memory. Strings are pieces of these texts and are
 * looked up by hash, so that the work is linear in the size of all headers.
 *
 * First all IDs of all inputs are collected, because a new ID must not occur in a later input. Then
 * each input is united with those before it. The *content* of a line is its ID and its sorted tags,
 * with the program that the line refers to (PP of @PG, PG of @RG) replaced by that program's ID in
 * the united header. Lines with the same content become one line. The programs of a chain are
 * united from the oldest to the newest, so two contents are equal only if the whole chains are
 * equal.
 *
 * If a line refers to an ID without a line, this ID is treated as a line without tags. Otherwise it
 * could end up referring to a line of another input.
 */
#include "input/header_union.h"

#include "bam/header_text.h"
#include "util/byte_order.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <htslib/kstring.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* OTHER stands for comments and lines of unknown types. They have no ID. */
enum kind { GROUP = ID_GROUP, PROGRAM = ID_PROGRAM, OTHER = N_ID_KINDS, N_KINDS };

enum { TYPE_BYTES = 3, TAG_BYTES = 3 };     /* "@RG", "ID:" */

/* The IDs of one header: its @RG and @PG lines, and the programs that these lines refer to. Texts
   are pieces of the header. */
struct header_id {
    struct text line;           /* none if the header has no line with this ID */
    struct text id;
    struct text ref;            /* ID of the program that the line refers to, or none (PP of @PG,
                                   PG of @RG) */
    size_t parent;              /* index of that program among the programs; set by link */
    struct text new_id;         /* in the united header; none until it is known */
    bool is_added;              /* the united header gets this line */
    bool is_visited;
    size_t child;               /* the program from which this one was reached */
};

struct header_id_list {
    struct header_id *at;
    size_t n, room;
    struct text_map places;     /* by ID: index in `at` */
};

struct header_ids {
    struct header_id_list kinds[N_ID_KINDS];
};

/* State of one kind of lines in the inputs united so far. */
struct kind_state {
    struct text last_of_first;  /* the first input's last line of this kind */
    kstring_t added;            /* lines of later inputs, to be written after that line */
    /* For groups and programs, every ID that an input has or that was made is a key. The value is 0
       if no line of the united header has the ID yet, else the number at which the search for a new
       ID begins. For OTHER, a line is a key, and the value is the first input that has the line. */
    struct text_map numbers;
    struct text_map contents;   /* by content: index in `kept` of the ID in the united header */
};

struct builder {
    sam_hdr_t *const *headers;
    const char *const *file_names;
    size_t n_inputs;
    struct header_ids *ids;     /* of each input */
    struct kind_state kinds[N_KINDS];
    kstring_t content;          /* scratch of unite_id */
    struct text *fields;        /* scratch of make_content */
    size_t fields_room;
    struct kept_texts kept;
};

/* ---- IDs of a header ---- */

static const char *const line_types[N_ID_KINDS] = {"@RG", "@PG"};
static const char *const ref_tags[N_ID_KINDS] = {"PG:", "PP:"};

/* The kind of a line; N_ID_KINDS if it is neither @RG nor @PG. */
static enum id_kind kind_of(struct text line)
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

/* Adds a line, unless an earlier line has the same ID. Returns -1 after a message if the line has
   no ID. */
static int add_line(struct header_ids *ids, enum id_kind kind, struct text line, const char *file)
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

/* Sets all parents. Adds each program that a line refers to but that has no line itself. */
static void link_programs(struct header_ids *ids)
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

static void release_ids(struct header_ids *ids)
{
    for (enum id_kind kind = ID_GROUP; kind < N_ID_KINDS; kind++) {
        free(ids->kinds[kind].at);
        text_map_release(&ids->kinds[kind].places);
    }
}

static void put(kstring_t *out, struct text t)
{
    if (t.n > 0) xalloc_require(kputsn(t.at, t.n, out) >= 0);
}

static void put_char(kstring_t *out, char c)
{
    xalloc_require(kputc(c, out) >= 0);
}

/* Copies the text, which becomes the last of the list. */
static struct text keep(struct kept_texts *list, struct text t)
{
    xgrow(&list->at, &list->room, list->n + 1, list->n, sizeof *list->at);
    return list->at[list->n++] = (struct text){xmemdup(t.at, t.n), t.n};
}

static void release_texts(struct kept_texts *list)
{
    for (size_t k = 0; k < list->n; k++) free((char *)(uintptr_t)list->at[k].at);
    free(list->at);
}

/* ---- reading the headers ---- */

/* Adds a line of the other types unless an earlier input has it. */
static void read_other_line(struct builder *b, size_t i, struct text line)
{
    struct kind_state *state = &b->kinds[OTHER];
    size_t first_input = text_map_put(&state->numbers, line, i);
    if (i == 0 || first_input < i) return;
    put(&state->added, line);
    put_char(&state->added, '\n');
}

static int read_line(struct builder *b, size_t i, struct text line)
{
    if (header_line_is(line, "@HD") || header_line_is(line, "@SQ")) return 0;
    enum id_kind kind = kind_of(line);
    if (i == 0) b->kinds[kind].last_of_first = line;
    if (kind < N_ID_KINDS) return add_line(&b->ids[i], kind, line, b->file_names[i]);
    read_other_line(b, i, line);
    return 0;
}

static int read_header(struct builder *b, size_t i)
{
    const char *at = header_whole_text(b->headers[i]);
    struct text line;
    while (header_next_line(&at, &line))
        if (read_line(b, i, line) < 0) return -1;
    link_programs(&b->ids[i]);
    for (enum id_kind kind = ID_GROUP; kind < N_ID_KINDS; kind++) {
        struct header_id_list *list = &b->ids[i].kinds[kind];
        for (size_t k = 0; k < list->n; k++)
            (void)text_map_put(&b->kinds[kind].numbers, list->at[k].id, 0);
        text_map_release(&list->places);        /* memory adds up over thousands of inputs */
    }
    return 0;
}

/* ---- uniting ---- */

static int compare_fields(const void *a, const void *b)
{
    const struct text *x = a, *y = b;
    return compare_bytes(x->at, x->n, y->at, y->n);
}

/* True if `value` is the value of this field. Compares addresses: other fields may be equal. */
static bool has_value(struct text field, struct text value)
{
    return value.at && value.at + value.n == field.at + field.n;
}

static const struct header_id *parent_of(const struct builder *b, size_t i,
                                         const struct header_id *id)
{
    return &b->ids[i].kinds[ID_PROGRAM].at[id->parent];
}

/* Writes a tab and a field of the line of `id`, as in the united header. */
static void put_field(const struct builder *b, size_t i, const struct header_id *id,
                      struct text field, kstring_t *out)
{
    struct text value = {NULL, 0};
    if (has_value(field, id->id)) value = id->new_id;
    if (has_value(field, id->ref)) value = parent_of(b, i, id)->new_id;
    if (value.at) field.n = TAG_BYTES;
    put_char(out, '\t');
    put(out, field);
    put(out, value);
}

/* Puts the sorted fields of a line except its ID into b->fields. Returns their number. */
static size_t sort_fields(struct builder *b, const struct header_id *id)
{
    size_t n = 0;
    struct text rest = header_line_rest(id->line), field;
    while (header_next_field(&rest, &field)) {
        if (has_value(field, id->id)) continue;
        xgrow(&b->fields, &b->fields_room, n + 1, n, sizeof *b->fields);
        b->fields[n++] = field;
    }
    if (n > 0) qsort(b->fields, n, sizeof *b->fields, compare_fields);
    return n;
}

/*
 * Writes the line's content to b->content. A newline, which no line contains, marks two special
 * cases: an ID without a line, and a cyclic chain of programs. A cycle has no oldest program, so
 * the number of the input is added to distinguish it from chains of other inputs.
 */
static void make_content(struct builder *b, size_t i, const struct header_id *id)
{
    b->content.l = 0;
    put(&b->content, id->id);
    if (!id->line.at) {
        put_char(&b->content, '\n');
        return;
    }
    size_t n = sort_fields(b, id);
    for (size_t k = 0; k < n; k++) put_field(b, i, id, b->fields[k], &b->content);
    if (id->ref.at && !parent_of(b, i, id)->new_id.at)
        xalloc_require(ksprintf(&b->content, "\n%zu", i) >= 0);
}

/* Makes an ID that no line has: the line's own with "-" and a number, `from` or above. */
static void make_id(struct builder *b, struct kind_state *state, struct header_id *id, size_t from)
{
    kstring_t name = KS_INITIALIZE;
    size_t number = from;
    do {
        name.l = 0;
        put(&name, id->id);
        xalloc_require(ksprintf(&name, "-%zu", number++) >= 0);
    } while (text_map_find(&state->numbers, (struct text){name.s, name.l}));
    id->new_id = keep(&b->kept, (struct text){name.s, name.l});
    free(name.s);
    (void)text_map_put(&state->numbers, id->new_id, 1);
    *text_map_find(&state->numbers, id->id) = number;
}

/* Lets the line keep its ID unless another line of the united header has it. */
static void choose_id(struct builder *b, size_t i, struct kind_state *state, struct header_id *id)
{
    size_t *number = text_map_find(&state->numbers, id->id);
    if (*number > 0) {
        make_id(b, state, id, *number < i + 1 ? i + 1 : *number);
        return;
    }
    *number = 1;
    id->new_id = id->id;
}

/* Sets the line's ID in the united header: that of an earlier line with the same content, or an ID
   that no line has so far. The program that the line refers to must have its new ID already. */
static void unite_id(struct builder *b, size_t i, enum id_kind kind, struct header_id *id)
{
    struct kind_state *state = &b->kinds[kind];
    make_content(b, i, id);
    struct text content = {b->content.s, b->content.l};
    size_t *place = text_map_find(&state->contents, content);
    if (place) {
        id->new_id = b->kept.at[*place];
        return;
    }
    choose_id(b, i, state, id);
    content = keep(&b->kept, content);
    id->new_id = keep(&b->kept, id->new_id);
    (void)text_map_put(&state->contents, content, b->kept.n - 1);
    id->is_added = i > 0 && id->line.at;
}

/* Unites a program and its whole chain, the oldest first. */
static void unite_chain(struct builder *b, size_t i, size_t program)
{
    const size_t none = SIZE_MAX;
    struct header_id *at = b->ids[i].kinds[ID_PROGRAM].at;
    size_t next = program, last = none;
    while (next != none && !at[next].is_visited) {
        at[next].is_visited = true;
        at[next].child = last;
        last = next;
        next = at[next].ref.at ? at[next].parent : none;
    }
    for (; last != none; last = at[last].child) unite_id(b, i, ID_PROGRAM, &at[last]);
}

static void put_added_line(struct builder *b, size_t i, enum id_kind kind,
                           const struct header_id *id)
{
    kstring_t *out = &b->kinds[kind].added;
    struct text rest = header_line_rest(id->line), field;
    put(out, (struct text){id->line.at, TYPE_BYTES});
    while (header_next_field(&rest, &field)) put_field(b, i, id, field, out);
    put_char(out, '\n');
}

static void unite_input(struct builder *b, size_t i)
{
    struct header_id_list *groups = &b->ids[i].kinds[ID_GROUP];
    size_t n_programs = b->ids[i].kinds[ID_PROGRAM].n;
    for (size_t k = 0; k < n_programs; k++) unite_chain(b, i, k);
    for (size_t k = 0; k < groups->n; k++) unite_id(b, i, ID_GROUP, &groups->at[k]);
    for (enum id_kind kind = ID_GROUP; kind < N_ID_KINDS; kind++) {
        const struct header_id_list *list = &b->ids[i].kinds[kind];
        for (size_t k = 0; k < list->n; k++)
            if (list->at[k].is_added) put_added_line(b, i, kind, &list->at[k]);
    }
}

/* ---- the result ---- */

static void make_renames(struct header_union *u, size_t i, const struct header_ids *ids)
{
    for (enum id_kind kind = ID_GROUP; kind < N_ID_KINDS; kind++) {
        const struct header_id_list *list = &ids->kinds[kind];
        size_t most = 0;
        for (size_t k = 0; k < list->n; k++) {
            const struct text old_id = list->at[k].id, new_id = list->at[k].new_id;
            if (text_equal(old_id, new_id)) continue;
            const struct text key = keep(&u->ids, old_id);
            (void)text_map_put(&u->renames[i].kinds[kind], key, u->ids.n);
            (void)keep(&u->ids, new_id);
            if (new_id.n > old_id.n + most) most = new_id.n - old_id.n;
        }
        u->renames[i].growth += most;
    }
}

static void put_added(const struct builder *b, enum kind kind, kstring_t *out)
{
    const kstring_t *added = &b->kinds[kind].added;
    put(out, (struct text){added->s, added->l});
}

/* Writes the first input's header, with the added lines after its own of their kind. */
static void put_united_text(const struct builder *b, kstring_t *out)
{
    const char *at = header_whole_text(b->headers[0]);
    struct text line;
    while (header_next_line(&at, &line)) {
        put(out, line);
        put_char(out, '\n');
        for (enum kind kind = GROUP; kind < N_KINDS; kind++)
            if (line.at == b->kinds[kind].last_of_first.at) put_added(b, kind, out);
    }
}

/* If nothing is added the header of the first input is copied as it is. */
static sam_hdr_t *make_header(struct builder *b)
{
    kstring_t text = KS_INITIALIZE;
    size_t n_added_bytes = 0;
    for (enum kind kind = GROUP; kind < N_KINDS; kind++) n_added_bytes += b->kinds[kind].added.l;
    if (n_added_bytes > 0) put_united_text(b, &text);
    for (enum kind kind = GROUP; kind < N_KINDS; kind++)
        if (!b->kinds[kind].last_of_first.at) put_added(b, kind, &text);
    sam_hdr_t *header =
        n_added_bytes > 0 ? sam_hdr_parse(text.l, text.s) : sam_hdr_dup(b->headers[0]);
    if (!header)
        diag_error("cannot unite the header of '%s' with those of the other inputs: one of them is "
                   "damaged", b->file_names[0]);
    free(text.s);
    return header;
}

static void builder_release(struct builder *b)
{
    for (size_t i = 0; i < b->n_inputs; i++) release_ids(&b->ids[i]);
    free(b->ids);
    for (enum kind kind = GROUP; kind < N_KINDS; kind++) {
        free(b->kinds[kind].added.s);
        text_map_release(&b->kinds[kind].numbers);
        text_map_release(&b->kinds[kind].contents);
    }
    free(b->content.s);
    free(b->fields);
    release_texts(&b->kept);
}

int header_union_check_references(const sam_hdr_t *x, const char *x_file, const sam_hdr_t *y,
                                  const char *y_file)
{
    static const char advice[] = "inputs need the same @SQ lines, in the same order";
    int n_x = sam_hdr_nref(x), n_y = sam_hdr_nref(y), n = n_x < n_y ? n_x : n_y;
    for (int k = 0; k < n; k++) {
        const char *x_name = sam_hdr_tid2name(x, k), *y_name = sam_hdr_tid2name(y, k);
        int64_t x_length = sam_hdr_tid2len(x, k), y_length = sam_hdr_tid2len(y, k);
        if (x_length == y_length && strcmp(x_name, y_name) == 0) continue;
        diag_error("reference %d is '%s' of %" PRId64 " bases in '%s' and '%s' of %" PRId64
                   " in '%s'; %s",
                   k + 1, x_name, x_length, x_file, y_name, y_length, y_file, advice);
        return -1;
    }
    if (n_x == n_y) return 0;
    const sam_hdr_t *longer = n_x > n_y ? x : y;
    diag_error("'%s' has %d references, '%s' only %d: it lacks reference %d, '%s' of %" PRId64
               " bases; %s",
               longer == x ? x_file : y_file, n_x > n_y ? n_x : n_y, longer == x ? y_file : x_file,
               n, n + 1, sam_hdr_tid2name(longer, n), (int64_t)sam_hdr_tid2len(longer, n), advice);
    return -1;
}

static int unite(struct header_union *u, struct builder *b)
{
    /* A single header, which may be large, needs no work. */
    size_t n = b->n_inputs > 1 ? b->n_inputs : 0;
    for (size_t i = 0; i < n; i++)
        if (read_header(b, i) < 0) return -1;
    for (size_t i = 0; i < n; i++) {
        unite_input(b, i);
        make_renames(u, i, &b->ids[i]);
    }
    for (size_t i = 0; i < n; i++) u->renames[i].new_ids = u->ids.at;
    u->header = make_header(b);
    return u->header ? 0 : -1;
}

struct header_union *header_union_create(sam_hdr_t *const *headers, const char *const *names,
                                         size_t n)
{
    struct builder b = {.headers = headers, .file_names = names, .n_inputs = n};
    struct header_union *u = xcalloc(1, sizeof *u);
    u->n_inputs = n;
    u->renames = xcalloc(n, sizeof *u->renames);
    b.ids = xcalloc(n, sizeof *b.ids);
    int r = unite(u, &b);
    builder_release(&b);
    if (r == 0) return u;
    header_union_destroy(u);
    return NULL;
}

void header_union_destroy(struct header_union *u)
{
    if (!u) return;
    for (size_t i = 0; i < 2 * u->n_inputs; i++)
        text_map_release(&u->renames[i / 2].kinds[i % 2]);
    free(u->renames);
    release_texts(&u->ids);
    sam_hdr_destroy(u->header);
    free(u);
}

const struct id_renames *header_union_renames(const struct header_union *u, size_t i)
{
    const struct id_renames *renames = &u->renames[i];
    return renames->kinds[ID_GROUP].table || renames->kinds[ID_PROGRAM].table ? renames : NULL;
}
