/* fuzz_record.c -- see fuzz_record.h. */
#include "fuzz_record.h"

#include "util/byte_order.h"

const char fuzz_header_text[] =
    "@HD\tVN:1.6\tSO:unsorted\n"
    "@SQ\tSN:a\tLN:1000\n"
    "@SQ\tSN:b\tLN:536870912\n"
    "@SQ\tSN:c\tLN:2147483647\n"
    "@RG\tID:g0\tSM:s\tLB:l1\n"
    "@RG\tID:g1\tSM:s\tLB:l0\n"
    "@RG\tID:g2\tSM:s\n"
    "@PG\tID:p0\tPN:p\n"
    "@PG\tID:p1\tPN:q\tPP:p0\n";

/* Where the next byte of the record goes. Bytes that do not fit are dropped. */
struct output {
    uint8_t *at, *end;
};

static void put_bytes(struct output *out, const void *bytes, size_t n)
{
    if (n > (size_t)(out->end - out->at)) return;
    if (n > 0) memcpy(out->at, bytes, n);
    out->at += n;
}

static void put_byte(struct output *out, unsigned value)
{
    uint8_t byte = (uint8_t)value;
    put_bytes(out, &byte, 1);
}

static void put_number(struct output *out, uint32_t value)
{
    uint8_t bytes[4];
    (void)put_u32(bytes, value);
    put_bytes(out, bytes, sizeof bytes);
}

/* A position, often at one of the limits. */
static uint32_t make_place(struct fuzz_input *in)
{
    static const uint32_t limits[] = {UINT32_MAX, 0, 1, 999, 1000, (1u << 29) - 1, 1u << 29,
                                      INT32_MAX - 1u, INT32_MAX};
    unsigned kind = fuzz_below(in, 16);
    return kind < sizeof limits / sizeof *limits ? limits[kind] : fuzz_u32(in) & INT32_MAX;
}

/* Puts text without a NUL: of `letters`, or of any bytes. */
static void put_text(struct fuzz_input *in, struct output *out, size_t n, const char *letters)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t byte = fuzz_u8(in);
        if (letters) byte = (uint8_t)letters[byte % strlen(letters)];
        put_byte(out, byte ? byte : 'n');
    }
}

static void put_name(struct fuzz_input *in, struct output *out, size_t n)
{
    static const char *const letters[] = {"0123456789", "001a:", "09", NULL};
    put_text(in, out, n, letters[fuzz_below(in, 4)]);
    put_byte(out, 0);
}

static void put_operations(struct fuzz_input *in, struct output *out, unsigned n, uint32_t n_bases)
{
    static const uint8_t others[] = {BAM_CDEL, BAM_CREF_SKIP, BAM_CHARD_CLIP, BAM_CPAD, BAM_CBACK};
    for (unsigned i = 0; i < n; i++) {
        uint32_t length = i == 0 ? n_bases : fuzz_u32(in) >> fuzz_below(in, 32);
        unsigned op = i == 0 ? BAM_CMATCH : fuzz_below(in, 16);
        /* Most records should pass the check of CIGAR against sequence. */
        if (i > 0 && !fuzz_one_in(in, 8)) op = others[op % 5];
        if (i == 0 && fuzz_one_in(in, 8)) op = BAM_CSOFT_CLIP;
        put_number(out, length << BAM_CIGAR_SHIFT | op);
    }
}

static void put_array(struct fuzz_input *in, struct output *out, bool is_cigar)
{
    static const char types[] = "cCsSiIfdAx";
    unsigned n = fuzz_below(in, 8);
    char type = is_cigar ? 'I' : types[fuzz_below(in, sizeof types - 1)];
    unsigned element = strchr("cCA", type) ? 1 : strchr("sS", type) ? 2 : type == 'd' ? 8 : 4;
    put_byte(out, (unsigned char)type);
    put_number(out, fuzz_one_in(in, 32) ? fuzz_u32(in) : n);
    for (unsigned i = 0; i < n * element; i++) put_byte(out, fuzz_u8(in));
}

static void put_tag(struct fuzz_input *in, struct output *out)
{
    static const char names[] = "RGMCMICGCBPGXYNM\1\1";
    static const char types[] = "ZZZAcCsSiIfdHBBx";
    const char *name = names + 2 * fuzz_below(in, (sizeof names - 1) / 2);
    char type = types[fuzz_below(in, sizeof types - 1)];
    put_bytes(out, name, 2);
    put_byte(out, (unsigned char)type);
    switch (type) {
    case 'Z':
    case 'H':
        switch (fuzz_below(in, 5)) {
        case 0: put_bytes(out, "g0", 2); put_byte(out, '0' + fuzz_below(in, 4)); break;
        case 1: put_text(in, out, fuzz_below(in, 12), "0123456789MIDNSHP=X*"); break;
        case 2: put_text(in, out, fuzz_u16(in) % 2000, "/AB"); break;
        case 3: put_bytes(out, "g1", 2); break;
        default: put_text(in, out, fuzz_below(in, 20), NULL);
        }
        put_byte(out, 0);
        break;
    case 'B': put_array(in, out, name[0] == 'C' && name[1] == 'G'); break;
    case 'c':
    case 'C':
    case 'A': put_byte(out, fuzz_u8(in)); break;
    case 's':
    case 'S': put_byte(out, fuzz_u8(in)); put_byte(out, fuzz_u8(in)); break;
    case 'd': put_number(out, fuzz_u32(in)); put_number(out, fuzz_u32(in)); break;
    default: put_number(out, fuzz_u32(in));
    }
}

/* The long tag (bam_long.h), with any values. */
static void put_long_tag(struct fuzz_input *in, struct output *out)
{
    put_bytes(out, "\1\1BI\6\0\0\0", 8);
    for (int i = 0; i < 3; i++) {
        uint8_t value[8];
        fuzz_fill(in, value, sizeof value);
        put_bytes(out, value, sizeof value);
    }
}

static void put_fixed_fields(struct fuzz_input *in, uint8_t *rec, size_t name_bytes, unsigned n_ops,
                             uint32_t n_bases)
{
    (void)put_u32(rec + 4, fuzz_below(in, FUZZ_N_REFS + 1) - 1u);
    (void)put_u32(rec + 8, make_place(in));
    (void)put_u32(rec + 12, (uint32_t)fuzz_u16(in) << 16 | 60 << 8 | (uint32_t)name_bytes);
    (void)put_u32(rec + 16, (uint32_t)fuzz_u16(in) << 16 | n_ops);
    (void)put_u32(rec + 20, n_bases);
    (void)put_u32(rec + 24, fuzz_below(in, FUZZ_N_REFS + 1) - 1u);
    (void)put_u32(rec + 28, make_place(in));
    (void)put_u32(rec + 32, fuzz_one_in(in, 4) ? fuzz_u32(in) : 0);
}

struct bam_key_template *fuzz_template_ends(void)
{
    OWNED_HEADER sam_hdr_t *header = sam_hdr_parse(strlen(fuzz_header_text), fuzz_header_text);
    FUZZ_CHECK(header);
    struct bam_key_template *ends = bam_key_template_create(header);
    FUZZ_CHECK(ends);
    return ends;
}

size_t fuzz_make_record(struct fuzz_input *in, uint8_t *rec)
{
    struct output out = {rec + 36, rec + FUZZ_MAX_RECORD};
    size_t name_length = fuzz_below(in, 255), n_bases = fuzz_below(in, 60);
    unsigned n_ops = fuzz_below(in, 5), n_tags = fuzz_below(in, 6), lies = fuzz_u8(in);
    if (lies & 1) name_length %= 10;
    put_fixed_fields(in, rec, name_length + 1, n_ops, (uint32_t)n_bases);
    put_name(in, &out, name_length);
    put_operations(in, &out, n_ops, (uint32_t)n_bases);
    for (size_t i = 0; i < (n_bases + 1) / 2 + n_bases; i++) put_byte(&out, fuzz_u8(in));
    for (unsigned i = 0; i < n_tags; i++) put_tag(in, &out);
    if (lies >> 4 == 15) put_long_tag(in, &out);
    if (lies >> 4 == 14) put_text(in, &out, fuzz_below(in, 9), NULL);
    size_t size = (size_t)(out.at - rec);
    (void)put_u32(rec, size - 4);
    if (lies >> 4 == 13) rec[4 + fuzz_below(in, 32)] = fuzz_u8(in);
    return size;
}
