/* fed_block.c -- see fed_block.h. */
#include "pipeline/fed_block.h"

#include "store/bam_block.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct fed_block *fed_block_find(struct run_scan *scan, const uint8_t *key, size_t key_bytes)
{
    const uint8_t *part;
    size_t part_bytes;
    struct fed_block *block = xmalloc(sizeof *block + key_bytes);
    *block = (struct fed_block){.dir = run_scan_dir(scan), .key_bytes = key_bytes};
    memcpy(block->key, key, key_bytes);
    run_scan_value(scan, &part, &part_bytes);
    block->value_bytes = bam_block_value_bytes(part, part_bytes);
    /* Not a block: the merge will print a message about it. */
    if (block->value_bytes == 0) block->value_bytes = part_bytes;
    return block;
}

/* Moves the scan to the next part. Returns 1, 0 if the block has no more parts, or -1. */
static int next_part(const struct fed_block *block, struct run_scan *scan)
{
    const uint8_t *key;
    size_t key_bytes;
    run_scan_next(scan);
    int r = run_scan_key(scan, &key, &key_bytes);
    return r > 0 ? bam_block_is_part(key, key_bytes, block->key, block->key_bytes) : r;
}

int fed_block_fetch(struct fed_block *block, struct run_scan *scan)
{
    size_t n = 0;
    int r = 1;
    block->value = xmalloc(block->value_bytes);
    while (r > 0) {
        const uint8_t *part;
        size_t part_bytes;
        run_scan_value(scan, &part, &part_bytes);
        if (part_bytes > block->value_bytes - n) break;
        memcpy(block->value + n, part, part_bytes);
        n += part_bytes;
        r = next_part(block, scan);
    }
    block->value_bytes = n;
    return r < 0 ? -1 : 0;
}

int fed_block_skip(const struct fed_block *block, struct run_scan *scan)
{
    int r;
    while ((r = next_part(block, scan)) > 0) continue;
    return r;
}

bool fed_block_is_dropped(const struct fed_block *block, const uint32_t *runs, size_t n)
{
    uint32_t run;
    uint64_t index;
    if (n == 0 || !merge_bound_is_sound(block->key_bytes)) return false;
    merge_bound_position(block->key, block->key_bytes, &run, &index);
    for (size_t i = 0; i < n; i++)
        if (runs[i] == run) return true;
    return false;
}

int fed_block_report_run(const char *dir, uint32_t run)
{
    diag_error_of(DIAG_DAMAGE, "the temporary data in '%s' are damaged: run %" PRIu32 " fails its "
                  "checksum; sort again on another disk", dir, run);
    return -1;
}

int fed_block_report_entry(const char *dir)
{
    diag_error_of(DIAG_DAMAGE, "the temporary data in '%s' are damaged: an entry is not a block; sort "
                  "again on another disk", dir);
    return -1;
}

void fed_block_free(struct fed_block *block)
{
    if (!block) return;
    free(block->value);
    free(block);
}
