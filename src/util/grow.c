/* grow.c -- see grow.h. */
#include "util/grow.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int grow_array(void *array, size_t *room, size_t n, size_t some_more, size_t item_bytes)
{
    if (n <= *room) return 0;
    size_t most = SIZE_MAX / item_bytes;
    if (n > most || some_more > most - n) {
        errno = ENOMEM;
        return -1;
    }
    /* A pointer of whatever type. */
    void *items;
    memcpy(&items, array, sizeof items);
    items = realloc(items, (n + some_more) * item_bytes);
    if (!items) return -1;
    memcpy(array, &items, sizeof items);
    *room = n + some_more;
    return 0;
}
