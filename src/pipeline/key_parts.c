/* key_parts.c -- see key_parts.h. */
#include "pipeline/key_parts.h"

#include "util/diag.h"

enum { MAX_PARTS = 1 << 2 * KEY_PARTS_MAX_DIVISIONS };

int key_part_go_on(struct key_part *keys, bool fitted)
{
    if (fitted) {
        keys->part++;
        return 0;
    }
    if (keys->n_parts >= MAX_PARTS) {
        diag_error("--markdup needs more memory than it may use here: give more with -m");
        return -1;
    }
    keys->part *= 4;
    keys->n_parts *= 4;
    return 0;
}
