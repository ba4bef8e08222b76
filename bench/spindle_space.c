/*
 * spindle_space.c -- see spindle_space.h. The free places are a sorted array. Adjacent ones are
 * united, and the last one has no end. Both arrays stay short (hundreds), so moving their tails is
 * cheap.
 */
#include "spindle_space.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ext4 preallocates up to 8 MiB at a time for a growing file (its groups are 128 MiB), XFS as much
 * as the file has by then. With 8 MiB results were the same: see spindle_model.c. */
#define MAX_PIECE_BYTES (UINT64_C(32) << 20)
#define MIN_PIECE_BYTES (UINT64_C(64) << 10)

struct space {
    struct range *free; /* by address */
    size_t n_free, room;
};

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Makes room for one more element of an array. */
static int grow(void **array, size_t *room, size_t n, size_t size)
{
    if (n < *room) return 0;
    size_t more = *room ? *room * 2 : 8;
    void *moved = realloc(*array, more * size);
    if (!moved) return -1;
    *array = moved;
    *room = more;
    return 0;
}

struct space *space_create(void)
{
    struct space *space = calloc(1, sizeof *space);
    if (!space || grow((void **)&space->free, &space->room, 0, sizeof *space->free)) goto err;
    space->free[space->n_free++] =
        (struct range){SPACE_JOURNAL_BYTES, (UINT64_C(1) << 60) - SPACE_JOURNAL_BYTES};
    return space;
err:
    space_destroy(space);
    return NULL;
}

void space_destroy(struct space *space)
{
    if (!space) return;
    free(space->free);
    free(space);
}

static int give(struct space *space, struct range range)
{
    size_t i = 0;
    while (i < space->n_free && space->free[i].addr < range.addr)
        i++;
    bool joins_last = i > 0 && space->free[i - 1].addr + space->free[i - 1].len == range.addr;
    bool joins_next = i < space->n_free && range.addr + range.len == space->free[i].addr;
    if (joins_last && joins_next) {
        space->free[i - 1].len += range.len + space->free[i].len;
        memmove(space->free + i, space->free + i + 1,
                (space->n_free - i - 1) * sizeof *space->free);
        space->n_free--;
    } else if (joins_last) {
        space->free[i - 1].len += range.len;
    } else if (joins_next) {
        space->free[i].addr -= range.len;
        space->free[i].len += range.len;
    } else {
        if (grow((void **)&space->free, &space->room, space->n_free, sizeof *space->free))
            return -1;
        memmove(space->free + i + 1, space->free + i, (space->n_free - i) * sizeof *space->free);
        space->free[i] = range;
        space->n_free++;
    }
    return 0;
}

/* Takes a place of up to len bytes: at goal if a free place begins there, otherwise the first that
 * is large enough. */
static struct range take(struct space *space, uint64_t goal, uint64_t len)
{
    size_t i = 0;
    while (i < space->n_free && space->free[i].addr != goal)
        i++;
    if (i == space->n_free)
        for (i = 0; space->free[i].len < len; i++)
            ; /* the last one has no end */
    struct range *from = &space->free[i];
    struct range taken = {from->addr, min_u64(from->len, len)};
    from->addr += taken.len;
    from->len -= taken.len;
    if (!from->len) {
        memmove(from, from + 1, (space->n_free - i - 1) * sizeof *from);
        space->n_free--;
    }
    return taken;
}

/* The first extent that ends after offset. */
static size_t find(const struct file_map *map, uint64_t offset)
{
    size_t low = 0, high = map->n_extents;
    while (low < high) {
        size_t mid = (low + high) / 2;
        const struct extent *e = &map->extents[mid];
        if (e->offset + e->len > offset)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

static int insert(struct file_map *map, size_t i, struct extent extent)
{
    if (i > 0) {
        struct extent *last = &map->extents[i - 1];
        if (last->offset + last->len == extent.offset && last->addr + last->len == extent.addr) {
            last->len += extent.len;
            map->mapped_bytes += extent.len;
            return 0;
        }
    }
    if (grow((void **)&map->extents, &map->room, map->n_extents, sizeof *map->extents)) return -1;
    memmove(map->extents + i + 1, map->extents + i, (map->n_extents - i) * sizeof extent);
    map->extents[i] = extent;
    map->n_extents++;
    map->mapped_bytes += extent.len;
    return 0;
}

int space_map(struct space *space, struct file_map *map, uint64_t offset, uint64_t len)
{
    uint64_t at = offset / SPACE_BLOCK_BYTES * SPACE_BLOCK_BYTES;
    uint64_t end = (offset + len + SPACE_BLOCK_BYTES - 1) / SPACE_BLOCK_BYTES * SPACE_BLOCK_BYTES;

    while (at < end) {
        size_t i = find(map, at);
        uint64_t limit = UINT64_MAX;
        if (i < map->n_extents) {
            const struct extent *next = &map->extents[i];
            if (next->offset <= at) {
                at = next->offset + next->len;
                continue;
            }
            limit = next->offset - at;
        }
        uint64_t ahead = min_u64(max_u64(map->mapped_bytes, MIN_PIECE_BYTES), MAX_PIECE_BYTES);
        uint64_t want = min_u64(max_u64(end - at, ahead), limit);
        uint64_t goal = 0;
        if (i > 0) goal = map->extents[i - 1].addr + map->extents[i - 1].len;
        struct range got = take(space, goal, want);
        if (insert(map, i, (struct extent){at, got.addr, got.len})) {
            (void)give(space, got);
            return -1;
        }
        at += got.len;
    }
    return 0;
}

int space_unmap(struct space *space, struct file_map *map, const struct range *part,
                void (*freed)(void *arg, struct range range), void *arg)
{
    /* A block of which a part stays keeps its place. */
    uint64_t from = (part->addr + SPACE_BLOCK_BYTES - 1) / SPACE_BLOCK_BYTES * SPACE_BLOCK_BYTES;
    uint64_t to = part->len > UINT64_MAX - part->addr
                      ? UINT64_MAX
                      : (part->addr + part->len) / SPACE_BLOCK_BYTES * SPACE_BLOCK_BYTES;
    size_t i = find(map, from);

    while (from < to && i < map->n_extents && map->extents[i].offset < to) {
        struct extent old = map->extents[i];
        uint64_t begin = max_u64(old.offset, from), end = min_u64(old.offset + old.len, to);
        struct range range = {old.addr + (begin - old.offset), end - begin};
        memmove(map->extents + i, map->extents + i + 1,
                (map->n_extents - i - 1) * sizeof *map->extents);
        map->n_extents--;
        map->mapped_bytes -= old.len;
        if (begin > old.offset) {
            if (insert(map, i, (struct extent){old.offset, old.addr, begin - old.offset}))
                return -1;
            i = find(map, begin);
        }
        if (old.offset + old.len > end) {
            uint64_t addr = old.addr + (end - old.offset);
            if (insert(map, i, (struct extent){end, addr, old.offset + old.len - end})) return -1;
        }
        freed(arg, range);
        if (give(space, range)) return -1;
    }
    return 0;
}

size_t space_ranges(const struct file_map *map, uint64_t offset, uint64_t len, struct range *ranges,
                    size_t max)
{
    uint64_t at = offset / SPACE_BLOCK_BYTES * SPACE_BLOCK_BYTES;
    uint64_t end = len > UINT64_MAX - offset - SPACE_BLOCK_BYTES
                       ? UINT64_MAX
                       : (offset + len + SPACE_BLOCK_BYTES - 1) / SPACE_BLOCK_BYTES *
                             SPACE_BLOCK_BYTES;
    size_t n = 0;
    for (size_t i = find(map, at); i < map->n_extents && map->extents[i].offset < end; i++) {
        const struct extent *e = &map->extents[i];
        uint64_t begin = max_u64(e->offset, at);
        if (n < max) {
            ranges[n].addr = e->addr + (begin - e->offset);
            ranges[n].len = min_u64(e->offset + e->len, end) - begin;
        }
        n++;
    }
    return n;
}

void file_map_release(struct file_map *map)
{
    free(map->extents);
    *map = (struct file_map){0};
}
