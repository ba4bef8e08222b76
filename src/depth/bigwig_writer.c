/*
 * bigwig_writer.c -- see bigwig_writer.h. The format: Kent et al. 2010, BigWig and BigBed, tables
 * in the supplement.
 *
 * All integers are little-endian. Both trees have nodes of at most 256 items. A node begins with a
 * byte that is 1 for a leaf, an unused byte, and the number of items in 16 bits. The root comes
 * first, then one level after the other, so the places of all nodes follow from the number of
 * items: only the last node of a level may have fewer.
 *
 * Entries of the index are kept as differences in variable-length integers until their level ends.
 */
#include "depth/bigwig_writer.h"

#include "util/byte_order.h"
#include "util/diag.h"

#include <inttypes.h>
#include <stdlib.h>
#include <zlib.h>

enum {
    NODE_ITEMS = 256, NODE_HEAD_BYTES = 4,
    HEADER_BYTES = 64, ZOOM_HEADER_BYTES = 24, N_ZOOM_HEADERS = TRACK_MOST_LEVELS - 1,
    SUMMARY_AT = HEADER_BYTES + N_ZOOM_HEADERS * ZOOM_HEADER_BYTES,
    HEAD_BYTES = SUMMARY_AT + 40,
    SUMMARY_BYTES = 32,         /* of a window; a run takes 12 */
    NAMES_HEAD_BYTES = 32, INDEX_HEAD_BYTES = 48, INDEX_LEAF_BYTES = 32, INDEX_NODE_BYTES = 24,
    MOST_TREE_LEVELS = 9,       /* 256 to the power of 8 is 2^64 */
};

static const uint32_t FILE_MAGIC = 0x888ffc26, NAMES_MAGIC = 0x78ca8c91, INDEX_MAGIC = 0x2468ace0;

struct written_level {
    uint64_t data_at, index_at;
    uint64_t n_sections, n_items;
    uint64_t n_bytes;           /* of all sections */
    struct byte_buffer entries;
    struct track_section last;
};

struct bigwig_writer {
    struct count_sink *sink;
    const int64_t *windows;
    uint64_t names_at;
    struct written_level levels[TRACK_MOST_LEVELS];
};

static uint8_t *put_float(uint8_t *at, double value)
{
    float rounded = (float)value;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    return put_u32(at, bits);
}

static uint8_t *put_double(uint8_t *at, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return put_u64(at, bits);
}

static int write_bytes(struct bigwig_writer *writer, const void *bytes, size_t n_bytes)
{
    return writer->sink->write(writer->sink, bytes, n_bytes);
}

/* ---- sections ---- */

/* Runs: chromosome, begin and end of all, two fields that are not used, type 1 (runs with begin and
   end, as in bedGraph), number of runs; then the runs. */
static uint8_t *put_runs(uint8_t *at, const struct track_item *items, size_t n)
{
    at = put_u32(at, (uint64_t)items->tid);
    at = put_u32(at, (uint64_t)items->begin);
    at = put_u32(at, (uint64_t)items[n - 1].end);
    at = put_u64(at, 0);
    at = put_u16(at, 1);
    at = put_u16(at, n);
    for (size_t i = 0; i < n; i++) {
        at = put_u32(at, (uint64_t)items[i].begin);
        at = put_u32(at, (uint64_t)items[i].end);
        at = put_float(at, items[i].max);
    }
    return at;
}

static uint8_t *put_summaries(uint8_t *at, const struct track_item *items, size_t n)
{
    for (const struct track_item *item = items; item < items + n; item++) {
        at = put_u32(at, (uint64_t)item->tid);
        at = put_u32(at, (uint64_t)item->begin);
        at = put_u32(at, (uint64_t)item->end);
        at = put_u32(at, item->n_bases);
        at = put_float(at, item->min);
        at = put_float(at, item->max);
        at = put_float(at, item->sum);
        at = put_float(at, item->squares);
    }
    return at;
}

int bigwig_encode(const void *none, struct bgzf_coder *coder, unsigned level,
                  const struct track_item *items, size_t n, struct byte_buffer *out)
{
    /* The header of zlib for the default level. */
    static const uint8_t zlib_head[2] = {0x78, 0x9c};
    const struct bgzf_method method = {.level = 1, .is_text = true};
    uint8_t raw[TRACK_MOST_ITEMS * SUMMARY_BYTES];
    size_t raw_bytes = (size_t)((level == 0 ? put_runs(raw, items, n)
                                            : put_summaries(raw, items, n)) - raw);
    size_t room = raw_bytes + raw_bytes / 8 + 1024;
    (void)none;
    byte_buffer_copy(out, zlib_head, sizeof zlib_head);
    ssize_t n_bytes = bgzf_engine_deflate(coder, method, raw, raw_bytes,
                                          byte_buffer_reserve(out, room), room);
    if (n_bytes <= 0) {
        diag_error("cannot compress a section of --bigwig");
        return -1;
    }
    out->n_bytes += (size_t)n_bytes;
    (void)put_big_endian(byte_buffer_append(out, 4), adler32(adler32(0, NULL, 0), raw,
                                                             (uInt)raw_bytes), 4);
    return 0;
}

/* ---- trees ---- */

/* Levels of a tree with n items, from the leaves ([0]) to the root: numbers of nodes. */
struct tree_shape {
    uint64_t n[MOST_TREE_LEVELS];
    unsigned n_levels;
};

static uint64_t n_nodes(uint64_t n_items)
{
    return n_items > 0 ? (n_items - 1) / NODE_ITEMS + 1 : 1;
}

static struct tree_shape shape_tree(uint64_t n_items)
{
    struct tree_shape shape = {{n_nodes(n_items)}, 1};
    while (shape.n[shape.n_levels - 1] > 1) {
        shape.n[shape.n_levels] = n_nodes(shape.n[shape.n_levels - 1]);
        shape.n_levels++;
    }
    return shape;
}

/* The number of items of node i on a level that has n of them in all. */
static unsigned node_items(uint64_t i, uint64_t n)
{
    uint64_t left = n - i * NODE_ITEMS;
    return left < NODE_ITEMS ? (unsigned)left : NODE_ITEMS;
}

static void put_node_head(struct byte_buffer *out, bool is_leaf, unsigned n)
{
    (void)put_u16(put_u16(byte_buffer_append(out, NODE_HEAD_BYTES), is_leaf), n);
}

/* The keys of nodes: `put` writes that of the leaves `first_leaf` to `last_leaf`. */
struct tree_keys {
    size_t key_bytes;
    void (*put)(uint8_t *at, const void *arg, uint64_t first_leaf, uint64_t last_leaf);
    const void *arg;
};

/* Appends all nodes above the leaves. The root is at `at` in the file. */
static void put_inner_nodes(struct byte_buffer *out, const struct tree_shape *shape,
                            const struct tree_keys *keys, uint64_t at, size_t leaf_bytes)
{
    uint64_t leaves_each = 1;   /* below an item of the level */
    for (unsigned level = 1; level + 1 < shape->n_levels; level++) leaves_each *= NODE_ITEMS;
    for (unsigned level = shape->n_levels - 1; level > 0; level--, leaves_each /= NODE_ITEMS) {
        size_t item_bytes = keys->key_bytes + 8;
        uint64_t n_items = shape->n[level - 1];
        uint64_t child = at + shape->n[level] * NODE_HEAD_BYTES + n_items * item_bytes;
        size_t child_bytes = NODE_HEAD_BYTES + NODE_ITEMS * (level > 1 ? item_bytes : leaf_bytes);
        at = child;
        for (uint64_t i = 0; i < n_items; i++, child += child_bytes) {
            if (i % NODE_ITEMS == 0) put_node_head(out, false, node_items(i / NODE_ITEMS, n_items));
            uint64_t last = (i + 1) * leaves_each - 1;
            if (last >= shape->n[0]) last = shape->n[0] - 1;
            uint8_t *to = byte_buffer_append(out, item_bytes);
            keys->put(to, keys->arg, i * leaves_each, last);
            (void)put_u64(to + keys->key_bytes, child);
        }
    }
}

/* ---- names of chromosomes ---- */

struct names {                  /* references in the order of their names */
    sam_hdr_t *header;
    size_t key_bytes;           /* of the longest name; shorter ones end with NULs */
    uint64_t n;
    struct named_ref {
        const char *name;
        int32_t tid;
    } *refs;
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct named_ref *)a)->name, ((const struct named_ref *)b)->name);
}

static void put_name(uint8_t *at, const void *arg, uint64_t first_leaf, uint64_t last_leaf)
{
    const struct names *names = arg;
    const char *name = names->refs[first_leaf * NODE_ITEMS].name;
    size_t n_bytes = strlen(name);
    (void)last_leaf;
    memset(copy_bytes(at, name, n_bytes), 0, names->key_bytes - n_bytes);
}

static int read_names(struct names *names, sam_hdr_t *header)
{
    names->header = header;
    names->n = (uint64_t)sam_hdr_nref(header);
    names->refs = xmalloc((names->n + 1) * sizeof *names->refs);
    names->key_bytes = 1;
    for (int32_t tid = 0; tid < sam_hdr_nref(header); tid++) {
        const char *name = sam_hdr_tid2name(header, tid);
        names->refs[tid] = (struct named_ref){name, tid};
        if (strlen(name) > names->key_bytes) names->key_bytes = strlen(name);
        if (sam_hdr_tid2len(header, tid) > (hts_pos_t)UINT32_MAX) {
            diag_error("--bigwig: reference '%s' is longer than 4294967295 bases, the limit of "
                       "bigWig; use --bedgraph", name);
            return -1;
        }
    }
    if (names->n > 1) qsort(names->refs, names->n, sizeof *names->refs, compare_names);
    return 0;
}

static int write_names(struct bigwig_writer *writer, const struct names *names)
{
    struct byte_buffer out = {0};
    struct tree_shape shape = shape_tree(names->n);
    const struct tree_keys keys = {names->key_bytes, put_name, names};
    size_t leaf_bytes = names->key_bytes + 8;
    writer->names_at = writer->sink->n_bytes;
    uint8_t *at = byte_buffer_append(&out, NAMES_HEAD_BYTES);
    at = put_u32(put_u32(at, NAMES_MAGIC), NODE_ITEMS);
    at = put_u32(put_u32(at, names->key_bytes), 8);
    (void)put_u64(put_u64(at, names->n), 0);
    put_inner_nodes(&out, &shape, &keys, writer->names_at + NAMES_HEAD_BYTES, leaf_bytes);
    int r = write_bytes(writer, out.bytes, out.n_bytes);
    for (uint64_t leaf = 0; r == 0 && leaf < shape.n[0]; leaf++) {
        unsigned n = node_items(leaf, names->n);
        const struct named_ref *refs = &names->refs[leaf * NODE_ITEMS];
        out.n_bytes = 0;
        put_node_head(&out, true, n);
        for (const struct named_ref *ref = refs; ref < refs + n; ref++) {
            at = byte_buffer_append(&out, leaf_bytes);
            at = copy_bytes(at, ref->name, strlen(ref->name));
            memset(at, 0, names->key_bytes - strlen(ref->name));
            at += names->key_bytes - strlen(ref->name);
            (void)put_u32(put_u32(at, (uint64_t)ref->tid),
                          (uint64_t)sam_hdr_tid2len(names->header, ref->tid));
        }
        r = write_bytes(writer, out.bytes, out.n_bytes);
    }
    free(out.bytes);
    return r;
}

struct bigwig_writer *bigwig_writer_create(struct count_sink *sink, sam_hdr_t *header,
                                           const int64_t *windows)
{
    static const uint8_t nothing[HEAD_BYTES];
    struct bigwig_writer *writer = xcalloc(1, sizeof *writer);
    struct names names = {0};
    writer->sink = sink;
    writer->windows = windows;
    int r = read_names(&names, header);
    if (r == 0) r = sink->rewrite(sink, 0, nothing, 0); /* fails now if it cannot later */
    if (r == 0) r = write_bytes(writer, nothing, sizeof nothing);
    if (r == 0) r = write_names(writer, &names);
    free(names.refs);
    if (r == 0) return writer;
    bigwig_writer_destroy(writer);
    return NULL;
}

void bigwig_writer_destroy(struct bigwig_writer *writer)
{
    if (!writer) return;
    for (unsigned i = 0; i < TRACK_MOST_LEVELS; i++) free(writer->levels[i].entries.bytes);
    free(writer);
}

/* ---- indexes ---- */

static void keep_entry(struct written_level *level, const struct track_section *section)
{
    struct byte_buffer *to = &level->entries;
    byte_buffer_varint(to, (uint64_t)(section->tid - level->last.last_tid));
    byte_buffer_signed_varint(to, section->begin - level->last.end);
    byte_buffer_varint(to, (uint64_t)(section->last_tid - section->tid));
    byte_buffer_signed_varint(to, section->end - section->begin);
    byte_buffer_varint(to, section->n_bytes);
    level->last = *section;
}

/* Reads an entry; *entry is the one before it, {0} at first. */
static void next_entry(const uint8_t **at, struct track_section *entry)
{
    entry->tid = entry->last_tid + (int64_t)get_varint(at);
    entry->begin = entry->end + get_signed_varint(at);
    entry->last_tid = entry->tid + (int64_t)get_varint(at);
    entry->end = entry->begin + get_signed_varint(at);
    entry->n_bytes = (uint32_t)get_varint(at);
}

static uint8_t *put_extent(uint8_t *at, const struct track_section *first,
                           const struct track_section *last)
{
    at = put_u32(put_u32(at, (uint64_t)first->tid), (uint64_t)first->begin);
    return put_u32(put_u32(at, (uint64_t)last->last_tid), (uint64_t)last->end);
}

static void put_leaf_extent(uint8_t *at, const void *arg, uint64_t first_leaf, uint64_t last_leaf)
{
    const struct track_section *leaves = arg;
    (void)put_extent(at, &leaves[first_leaf], &leaves[last_leaf]);
}

/* Returns the extent of each leaf. The caller frees it. */
static struct track_section *leaf_extents(const struct written_level *level, uint64_t n_leaves)
{
    struct track_section *leaves = xcalloc(n_leaves, sizeof *leaves), entry = {0};
    const uint8_t *from = level->entries.bytes;
    for (uint64_t i = 0; i < level->n_sections; i++) {
        struct track_section *leaf = &leaves[i / NODE_ITEMS];
        next_entry(&from, &entry);
        if (i % NODE_ITEMS == 0) *leaf = entry;
        leaf->last_tid = entry.last_tid;
        leaf->end = entry.end;
    }
    return leaves;
}

static void put_index_head(struct byte_buffer *out, const struct written_level *level,
                           const struct track_section *first, const struct track_section *last)
{
    uint8_t *at = byte_buffer_append(out, INDEX_HEAD_BYTES);
    at = put_u32(put_u32(at, INDEX_MAGIC), NODE_ITEMS);
    at = put_extent(put_u64(at, level->n_sections), first, last);
    (void)put_u32(put_u32(put_u64(at, level->index_at), TRACK_MOST_ITEMS), 0);
}

static int write_index(struct bigwig_writer *writer, struct written_level *level)
{
    struct byte_buffer out = {0};
    struct tree_shape shape = shape_tree(level->n_sections);
    struct track_section *leaves = leaf_extents(level, shape.n[0]), entry = {0};
    const struct tree_keys keys = {16, put_leaf_extent, leaves};
    level->index_at = writer->sink->n_bytes;
    put_index_head(&out, level, &leaves[0], &leaves[shape.n[0] - 1]);
    put_inner_nodes(&out, &shape, &keys, level->index_at + INDEX_HEAD_BYTES, INDEX_LEAF_BYTES);
    int r = write_bytes(writer, out.bytes, out.n_bytes);
    uint64_t place = level->index_at - level->n_bytes;
    const uint8_t *from = level->entries.bytes;
    for (uint64_t leaf = 0; r == 0 && leaf < shape.n[0]; leaf++) {
        unsigned n = node_items(leaf, level->n_sections);
        out.n_bytes = 0;
        put_node_head(&out, true, n);
        for (unsigned i = 0; i < n; i++) {
            next_entry(&from, &entry);
            uint8_t *at = put_extent(byte_buffer_append(&out, INDEX_LEAF_BYTES), &entry, &entry);
            (void)put_u64(put_u64(at, place), entry.n_bytes);
            place += entry.n_bytes;
        }
        r = write_bytes(writer, out.bytes, out.n_bytes);
    }
    free(leaves);
    free(out.bytes);
    byte_buffer_forget(&level->entries, false);
    return r;
}

/* ---- levels ---- */

/* Level 0 begins with the number of its sections, the others with that of their items. */
static int begin_level(struct bigwig_writer *writer, unsigned number)
{
    static const uint8_t nothing[8];
    struct written_level *level = &writer->levels[number];
    level->data_at = writer->sink->n_bytes;
    return write_bytes(writer, nothing, number == 0 ? 8 : 4);
}

static int end_level(struct bigwig_writer *writer, unsigned number)
{
    struct written_level *level = &writer->levels[number];
    uint8_t count[8];
    (void)put_u64(count, number == 0 ? level->n_sections : level->n_items);
    int r = writer->sink->rewrite(writer->sink, level->data_at, count, number == 0 ? 8 : 4);
    return r < 0 ? r : write_index(writer, level);
}

int bigwig_writer_write(void *arg, unsigned number, const struct track_section *section,
                        const uint8_t *bytes)
{
    struct bigwig_writer *writer = arg;
    struct written_level *level = &writer->levels[number];
    if (level->data_at == 0 && begin_level(writer, number) < 0) return -1;
    if (!section) return end_level(writer, number);
    keep_entry(level, section);
    level->n_sections++;
    level->n_items += section->n_items;
    level->n_bytes += section->n_bytes;
    return write_bytes(writer, bytes, section->n_bytes);
}

/* ---- the end ---- */

int bigwig_writer_finish(struct bigwig_writer *writer, const struct track_item *all)
{
    enum { VERSION = 4, RAW_BYTES = TRACK_MOST_ITEMS * SUMMARY_BYTES };
    uint8_t head[HEAD_BYTES] = {0}, magic[4], *zoom = head + HEADER_BYTES;
    for (unsigned i = 1; i < TRACK_MOST_LEVELS; i++) {
        const struct written_level *level = &writer->levels[i];
        if (level->index_at == 0) continue;
        zoom = put_u64(zoom, (uint64_t)writer->windows[i]);
        zoom = put_u64(put_u64(zoom, level->data_at), level->index_at);
    }
    uint8_t *at = put_u16(put_u32(head, FILE_MAGIC), VERSION);
    at = put_u16(at, (uint64_t)(zoom - head - HEADER_BYTES) / ZOOM_HEADER_BYTES);
    at = put_u64(at, writer->names_at);
    at = put_u64(put_u64(at, writer->levels->data_at), writer->levels->index_at);
    at = put_u64(put_u32(at, 0), 0);    /* only of bigBed: numbers of fields, their names */
    at = put_u64(at, SUMMARY_AT);
    (void)put_u64(put_u32(at, RAW_BYTES), 0);
    at = put_u64(head + SUMMARY_AT, all->n_bases);
    at = put_double(put_double(at, all->min), all->max);
    (void)put_double(put_double(at, all->sum), all->squares);
    (void)put_u32(magic, FILE_MAGIC);
    if (write_bytes(writer, magic, sizeof magic) < 0) return -1;
    return writer->sink->rewrite(writer->sink, 0, head, sizeof head);
}
