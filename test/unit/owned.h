/*
 * owned.h -- variables that free what they hold at the end of their block.
 *
 *     OWNED uint8_t *bytes = test_alloc(n);                    free
 *     RELEASED(x_release) struct x x = {0};                    x_release(&x)
 *     OWNER(struct y, y_destroy)                               once in a file, then
 *     RELEASED(own_y_destroy) struct y *y = y_create();        y_destroy(y)
 */
#ifndef ROCKSORT_TEST_OWNED_H
#define ROCKSORT_TEST_OWNED_H

#include <htslib/kstring.h>
#include <htslib/sam.h>
#include <stdlib.h>

#define RELEASED(function) __attribute__((cleanup(function)))

#define OWNER(type, destroy)                     \
    static inline void own_##destroy(type **at)  \
    {                                            \
        destroy(*at);                            \
    }

OWNER(bam1_t, bam_destroy1)
OWNER(sam_hdr_t, sam_hdr_destroy)

static inline void own_free(void *at)
{
    free(*(void **)at);
}

#define OWNED RELEASED(own_free)
#define OWNED_RECORD RELEASED(own_bam_destroy1)
#define OWNED_HEADER RELEASED(own_sam_hdr_destroy)
#define OWNED_TEXT RELEASED(ks_free)

#endif
