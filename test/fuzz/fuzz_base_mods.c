/*
 * fuzz_base_mods.c -- --fixmate=-M of templates whose records have any MM, ML and MN tags. What
 * comes out are sound records with whole tags. Once fixed, they stay: tags of mates and of
 * modifications take their final order in the second round, and a third one changes nothing.
 */
#include "fuzz_record.h"

#include "bam/bam_aux.h"
#include "bam/bam_check.h"
#include "fixmate/fixmate.h"

enum { MAX_RECORDS = 5, MAX_BASES = 80, ROOM = 2048 };

static const int64_t reference_bases[FUZZ_N_REFS] = {1000, 1 << 29, INT32_MAX};
static const struct fixmate_rules rules = {.base_mods = true, .n_refs = FUZZ_N_REFS,
                                           .reference_bases = reference_bases};

static uint8_t *put_text(struct fuzz_input *in, uint8_t *out, const char *letters)
{
    for (unsigned n = fuzz_below(in, 60); n > 0; n--)
        *out++ = (uint8_t)letters[fuzz_u8(in) % strlen(letters)];
    return out;
}

/* A list that is often right. */
static uint8_t *put_list(struct fuzz_input *in, uint8_t *out)
{
    static const char *const heads[] = {"C+m", "A-a.", "N+n?", "G+hm", "T+76792", "U-x", "C+",
                                        "=+m"};
    const char *head = heads[fuzz_below(in, 8)];
    memcpy(out, head, strlen(head));
    out += strlen(head);
    for (unsigned n = fuzz_below(in, 8); n > 0; n--)
        out += sprintf((char *)out, ",%u", fuzz_below(in, fuzz_one_in(in, 8) ? 256 : 6));
    if (!fuzz_one_in(in, 16)) *out++ = ';';
    return out;
}

static uint8_t *put_tag(struct fuzz_input *in, uint8_t *out)
{
    static const char names[] = "MMMMMMMLMLMNMNMmMlXX";
    const char *name = names + 2 * fuzz_below(in, (sizeof names - 1) / 2);
    *out++ = (uint8_t)name[0];
    *out++ = (uint8_t)name[1];
    unsigned wrong = fuzz_below(in, 32);
    switch (wrong == 0 ? 'X' : name[1]) {
    case 'M':
    case 'm':
        *out++ = 'Z';
        if (fuzz_one_in(in, 4))
            out = put_text(in, out, "ACGTNU+-mhac.?,;0123456789");
        else
            for (unsigned n = fuzz_below(in, 4); n > 0; n--) out = put_list(in, out);
        *out++ = 0;
        return out;
    case 'L':
    case 'l': {
        unsigned n = fuzz_below(in, 30);
        memcpy(out, wrong == 1 ? "Bc" : "BC", 2);
        out = put_u32(out + 2, n);
        for (; n > 0; n--) *out++ = fuzz_u8(in);
        return out;
    }
    case 'N': {
        static const char types[] = "cCsSiI";
        char type = types[fuzz_below(in, 6)];
        *out++ = (uint8_t)type;
        (void)put_u32(out, fuzz_below(in, MAX_BASES));
        return out + (strchr("cC", type) ? 1 : strchr("sS", type) ? 2 : 4);
    }
    default:
        *out++ = 'A';
        *out++ = 'x';
        return out;
    }
}

static size_t make_record(struct fuzz_input *in, uint8_t *rec)
{
    static const uint16_t kinds[] = {0, BAM_FSECONDARY, BAM_FSUPPLEMENTARY, BAM_FSUPPLEMENTARY};
    uint32_t n_bases = 1 + fuzz_below(in, MAX_BASES - 1), first = fuzz_below(in, 3) * 5;
    uint32_t last = fuzz_below(in, 3) * 5;
    uint32_t flag = kinds[fuzz_below(in, 4)] | (fuzz_u8(in) & (BAM_FPAIRED | BAM_FREVERSE |
                                                               BAM_FREAD1 | BAM_FREAD2));
    uint32_t n_ops = 1u + (first > 0) + (last > 0);
    memset(rec, 0, 36);
    (void)put_u32(rec + 12, 2 | 9 << 8 | 4681u << 16);
    (void)put_u32(rec + 16, n_ops | flag << 16);
    (void)put_u32(rec + 20, n_bases);
    uint8_t *out = rec + 36;
    memcpy(out, "q", 2);
    out += 2;
    if (first > 0) out = put_u32(out, first << 4 | BAM_CHARD_CLIP);
    out = put_u32(out, n_bases << 4 | BAM_CMATCH);
    if (last > 0) out = put_u32(out, last << 4 | BAM_CHARD_CLIP);
    for (size_t i = 0; i < (n_bases + 1) / 2; i++) *out++ = fuzz_u8(in);
    memset(out, 30, n_bases);
    out += n_bases;
    for (unsigned n = fuzz_below(in, 5); n > 0; n--) out = put_tag(in, out);
    FUZZ_CHECK(out <= rec + ROOM);
    (void)put_u32(rec, (uint64_t)(out - rec) - 4);
    return (size_t)(out - rec);
}

static void check_tags(const uint8_t *rec)
{
    const uint8_t *at = bam_record_tags(rec);
    struct bam_aux aux;
    int r;
    while ((r = bam_aux_next_before(bam_record_end(rec), &at, &aux)) > 0) continue;
    FUZZ_CHECK(r == 0);
}

/* Fixes a template. Returns the records, and stores their bytes in *n_bytes. */
static uint8_t *fix(const uint8_t *records, size_t *n_bytes)
{
    RELEASED(fixmate_release) struct fixmate_space space = {.n_out = 0};
    size_t n = 0;
    for (size_t at = 0; at < *n_bytes; at += bam_record_bytes(records + at), n++)
        FUZZ_CHECK(!fixmate_add(&rules, &space, records + at));
    FUZZ_CHECK(fixmate_finish(&rules, &space));
    FUZZ_CHECK(space.n_out == n);
    for (size_t at = 0; at < space.out_bytes; at += bam_record_bytes(space.out + at)) {
        FUZZ_CHECK(!bam_record_check(space.out + at, FUZZ_N_REFS));
        check_tags(space.out + at);
    }
    *n_bytes = space.out_bytes;
    uint8_t *result = fuzz_copy(space.out, space.out_bytes);
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct fuzz_input in = {data, data + n_bytes};
    uint8_t made[MAX_RECORDS * ROOM];
    size_t bytes[4] = {0};
    uint8_t *rounds[4];
    for (unsigned n = 1 + fuzz_below(&in, MAX_RECORDS - 1); n > 0; n--)
        bytes[0] += make_record(&in, made + bytes[0]);
    rounds[0] = fuzz_copy(made, bytes[0]);
    for (int i = 1; i < 4; i++) {
        bytes[i] = bytes[i - 1];
        rounds[i] = fix(rounds[i - 1], &bytes[i]);
    }
    FUZZ_CHECK(bytes[2] == bytes[3] && memcmp(rounds[2], rounds[3], bytes[2]) == 0);
    for (int i = 0; i < 4; i++) free(rounds[i]);
    return 0;
}
