/* read_barcode.c -- see read_barcode.h. */
#include "duplicates/read_barcode.h"

#include "bam/bam_long.h"
#include "duplicates/name_pattern.h"

#include <string.h>

static const char umi_tag[] = {'R', 'X', 'Z'};

/* The characters of read names, which have no @. */
static bool is_of_barcode(char c)
{
    return c >= '!' && c <= '~' && c != '@';
}

/* Finds the eighth field of a name, between colons: what follows the seventh colon, up to the first
   character that read names do not have. Further colons belong to it, as in samtools. */
static struct read_barcode find_eighth_field(const char *name)
{
    enum { COLONS_BEFORE = 7 };
    struct read_barcode barcode = {.text = NULL};
    for (int i = 0; i < COLONS_BEFORE && name; i++) {
        name = strchr(name, ':');
        if (name) name++;
    }
    while (name && is_of_barcode(name[barcode.n])) barcode.n++;
    if (barcode.n > 0) barcode.text = name;
    barcode.is_unreadable = barcode.n == 0;
    return barcode;
}

static struct read_barcode find_in_name(const struct duplicate_rules *rules, const char *name)
{
    regmatch_t found[NAME_PATTERN_GROUPS + 1];
    struct read_barcode barcode = {.is_unreadable = true};
    if (!rules->barcode_pattern) return find_eighth_field(name);
    if (!name_pattern_match(rules->barcode_pattern, name, found) || found[1].rm_so < 0)
        return barcode;
    barcode.is_unreadable = false;
    barcode.n = (size_t)(found[1].rm_eo - found[1].rm_so);
    if (barcode.n > 0) barcode.text = name + found[1].rm_so;
    return barcode;
}

static struct read_barcode find_in_tag(const struct duplicate_rules *rules, const uint8_t *rec)
{
    struct read_barcode barcode = {.text = NULL};
    struct bam_aux aux;
    if (bam_aux_find(rec, rules->barcode_tag, &aux) <= 0) return barcode;
    barcode.is_unreadable = aux.type != 'Z' && aux.type != 'H';
    if (barcode.is_unreadable || aux.value_bytes <= 1) return barcode;
    barcode.text = (const char *)aux.value;
    barcode.n = aux.value_bytes - 1;
    return barcode;
}

struct read_barcode read_barcode_of(const struct duplicate_rules *rules, const uint8_t *rec)
{
    switch (rules->barcode_source) {
    case BARCODE_TAG: return find_in_tag(rules, rec);
    case BARCODE_NAME: return find_in_name(rules, (const char *)bam_record_name(rec));
    default: return (struct read_barcode){.text = NULL};
    }
}

static uint8_t *put(uint8_t *out, const void *from, size_t n)
{
    memcpy(out, from, n);
    return out + n;
}

/* Writes the name without the barcode and one separator. Returns its end, after the NUL. */
static uint8_t *put_name(const char *name, const struct read_barcode *barcode, char separator,
                         uint8_t *out)
{
    size_t begin = (size_t)(barcode->text - name), end = begin + barcode->n;
    if (begin > 0 && name[begin - 1] == separator)
        begin--;
    else if (name[end] == separator)
        end++;
    uint8_t *name_end = put(put(out, name, begin), name + end, strlen(name + end));
    if (name_end == out) *name_end++ = '*';
    *name_end++ = '\0';
    return name_end;
}

static uint8_t *put_umi(uint8_t *out, const struct read_barcode *barcode)
{
    out = put(put(out, umi_tag, sizeof umi_tag), barcode->text, barcode->n);
    *out++ = '\0';
    return out;
}

size_t read_barcode_move(const struct duplicate_rules *rules, const uint8_t *rec, uint8_t *out)
{
    const char *name = (const char *)bam_record_name(rec);
    struct read_barcode barcode = find_in_name(rules, name);
    struct bam_aux aux;
    if (!barcode.text) return 0;
    uint8_t *out_name = out + BAM_RECORD_FIXED_BYTES;
    memcpy(out, rec, BAM_RECORD_FIXED_BYTES);
    uint8_t *at = put_name(name, &barcode, rules->umi_separator, out_name);
    out[BAM_NAME_BYTES_AT] = (uint8_t)(at - out_name);
    const uint8_t *rest = bam_record_ops(rec), *end = bam_record_end(rec);
    if (bam_aux_find(rec, umi_tag, &aux) > 0) {
        at = put_umi(put(at, rest, (size_t)(aux.start - rest)), &barcode);
        rest = aux.value + aux.value_bytes;
        at = put(at, rest, (size_t)(end - rest));
    } else {
        const uint8_t *tags_end = bam_record_tags_end(rec);
        at = put_umi(put(at, rest, (size_t)(tags_end - rest)), &barcode);
        at = put(at, tags_end, (size_t)(end - tags_end));
    }
    size_t n_bytes = (size_t)(at - out);
    put_u32(out, (uint32_t)(n_bytes - 4));
    return n_bytes;
}
