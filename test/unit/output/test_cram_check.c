/* test_cram_check.c -- which records are refused before htslib's CRAM encoder gets them. */
#include "unit_test.h"

#include "output/cram_check.h"

enum { BASES = 4, NAME_BYTES = 5, OPS_AT = 36 + NAME_BYTES };

struct sample {
    uint32_t flag;
    int32_t pos;
    int32_t n_bases;
    uint32_t n_ops, op;         /* the first operation is op, as long as the read */
    const char *tags;
    size_t tag_bytes;
    const char *problem;        /* a part of what is said, or NULL: no problem */
};

#define NO_TAGS "", 0
#define TAGS(text) text, sizeof(text) - 1

static const struct sample samples[] = {
    {0, 9, BASES, 1, BAM_CMATCH, NO_TAGS, NULL},
    {0, 0, BASES, 1, BAM_CEQUAL, NO_TAGS, NULL},
    {0, 9, BASES, 1, BAM_CBACK, NO_TAGS, "operation B"},
    {0, 9, BASES, 1, 10, NO_TAGS, "unknown operation"},
    {0, 9, BASES, 1, 15, NO_TAGS, "unknown operation"},
    {0, 9, BASES, 0, 0, NO_TAGS, "no CIGAR"},
    {0, 9, 0, 0, 0, NO_TAGS, NULL},
    {0, -1, BASES, 1, BAM_CMATCH, NO_TAGS, "no position"},
    {0, INT32_MAX - BASES, BASES, 1, BAM_CMATCH, NO_TAGS, NULL},
    {0, INT32_MAX - BASES + 1, BASES, 1, BAM_CMATCH, NO_TAGS, "ends above position 2147483647"},
    {0, INT32_MAX - BASES + 1, BASES, 1, BAM_CINS, NO_TAGS, NULL},
    {0, INT32_MAX, BASES, 1, BAM_CMATCH, NO_TAGS, "its position or that of its mate"},
    {BAM_FUNMAP, INT32_MAX, BASES, 0, 0, NO_TAGS, "its position or that of its mate"},
    {BAM_FUNMAP, INT32_MAX - 1, BASES, 0, 0, NO_TAGS, NULL},
    /* of an unmapped read the encoder does not look at the CIGAR */
    {BAM_FUNMAP, 9, BASES, 1, BAM_CBACK, NO_TAGS, NULL},
    {BAM_FUNMAP, -1, BASES, 0, 0, NO_TAGS, NULL},
    {BAM_FUNMAP, -1, BASES, 0, 0, TAGS("XXy\0\0\0"), "damaged"},
    {0, 9, BASES, 1, BAM_CMATCH, TAGS("XXZabc\0XYc\1XZBS\1\0\0\0\1\0"), NULL},
    {0, 9, BASES, 1, BAM_CMATCH, TAGS("XXBf\0\0\0\0"), NULL},
    {0, 9, BASES, 1, BAM_CMATCH, TAGS("XXZabc"), "damaged"},
    {0, 9, BASES, 1, BAM_CMATCH, TAGS("XXHabc"), "damaged"},
    {0, 9, BASES, 1, BAM_CMATCH, TAGS("XXi\1\0\0"), "damaged"},
    {0, 9, BASES, 1, BAM_CMATCH, TAGS("XXBI\377\377\377\377"), "damaged"},
    {0, 9, BASES, 1, BAM_CMATCH, TAGS("XXBz\1\0\0\0\0"), "damaged"},
    {0, 9, BASES, 1, BAM_CMATCH, TAGS("XXy\0"), "damaged"},
    {0, 9, BASES, 1, BAM_CMATCH, TAGS("X"), "damaged"},
    {0, 9, BASES, 1, BAM_CMATCH, TAGS("XXd\1\1\1\1\1\1\1\1"), "type d"},
    {0, 9, BASES, 1, BAM_CMATCH, TAGS("XXBd\0\0\0\0"), "array"},
    {0, 9, BASES, 1, BAM_CMATCH, TAGS("XXBA\1\0\0\0c"), "array"},
    {0, 9, BASES, 1, BAM_CMATCH, TAGS("\0Xc\1"), "NUL"},
    {0, 9, BASES, 1, BAM_CMATCH, TAGS("XYc\1X\0c\1"), "NUL"},
    {0, 9, BASES, 1, BAM_CMATCH, TAGS("XYc\1\0\0\0\1"), "NUL"},       /* nor has it a type */
    {0, 9, BASES, 1, BAM_CMATCH, TAGS("XYc\1\xcdXc\1"), "above 127"},
    {0, 9, BASES, 1, BAM_CMATCH, TAGS("X\x80""c\1"), "above 127"},
    {BAM_FUNMAP, -1, BASES, 0, 0, TAGS("X\xff""c\1"), "above 127"},
    {0, 9, BASES, 1, BAM_CMATCH, TAGS("X\x7f""c\1"), NULL},
    /* the CIGAR in the CG tag counts, if it is there */
    {0, 9, BASES, 1, BAM_CSOFT_CLIP, TAGS("CGBI\1\0\0\0\x49\0\0\0"), "operation B"},
    {0, 9, BASES, 1, BAM_CSOFT_CLIP, TAGS("CGBI\1\0\0\0\x40\0\0\0"), NULL},
    {0, 9, BASES, 1, BAM_CMATCH, TAGS("CGBI\1\0\0\0\x49\0\0\0"), NULL},
};

TEST(test_records_that_cram_cannot_hold_are_refused)
{
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const struct sample *s = &samples[i];
        struct record_fields f = {.name = "read", .tid = 0, .pos = s->pos, .flag = s->flag,
                                  .n_cigar = s->n_ops, .l_seq = s->n_bases,
                                  .tag_bytes = s->tag_bytes};
        OWNED uint8_t *rec = test_alloc(record_size(&f));
        size_t size = put_record(rec, &f, 0x11);
        if (s->n_ops > 0) test_put_u32(rec + OPS_AT, (uint32_t)s->n_bases << 4 | s->op);
        memcpy(rec + size - s->tag_bytes, s->tags, s->tag_bytes);
        struct cram_doubt doubt = {0};
        const char *problem = cram_record_check(rec, &doubt);
        if (!problem != !s->problem || (problem && !strstr(problem, s->problem)))
            fail_msg("sample %zu: %s", i, problem ? problem : "no problem");
    }
}
