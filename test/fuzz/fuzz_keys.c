/*
 * fuzz_keys.c -- the keys of arbitrary records in all orders.
 *
 * Every record that passes bam_record_check has a key, or a reason why it has none. The key has the
 * size that sort_key_bytes said and is no longer than batches expect. Nothing outside record and
 * key is read or written. Keys of an order are prefix-free. Packing an unpacked record again gives
 * the same record, and what the minimiser order hides in a record is gone before it is written.
 */
#include "fuzz_record.h"

#include "bam/bam_aux.h"
#include "bam/bam_check.h"
#include "bam/bam_convert.h"
#include "bam/bam_long.h"
#include "order/bam_key_tag.h"
#include "order/slice_merge.h"

#include <sys/mman.h>
#include <unistd.h>

enum { MAX_RECORDS = 6 };

struct record {
    uint8_t *bytes;             /* in memory of exactly its size */
    size_t n_bytes;
};

static struct bam_key_template *template_ends;
static struct minhash_index *minhash_index;

/* An index of a reference so short that reads of few bases have its k-mers. */
static struct minhash_index *make_index(int k)
{
    static const char fasta[] =
        ">a\nACGTACGTAAAACCCCGGGGTTTTACGATCGATCAGCTAGCATCGACTAGCATCAGCATG\n";
    char path[64];
    int fd = memfd_create("fasta", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0 && write(fd, fasta, sizeof fasta - 1) == sizeof fasta - 1);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct minhash_index *index = minhash_index_load(path, k, 7, false);
    FUZZ_CHECK(index);
    (void)close(fd);
    return index;
}

void fuzz_begin(void)
{
    template_ends = fuzz_template_ends();
    minhash_index = make_index(4);
}

static void check_aux(const uint8_t *rec)
{
    const uint8_t *at = bam_record_tags(rec), *end = rec + bam_record_bytes(rec);
    struct bam_aux aux;
    int r;
    FUZZ_CHECK(at <= end);
    while ((r = bam_aux_read(rec, &at, &aux)) > 0) {
        FUZZ_CHECK(aux.value_bytes > 0 && aux.value + aux.value_bytes == at && at <= end);
        FUZZ_CHECK(!strchr("ZH", aux.type) || aux.value[aux.value_bytes - 1] == 0);
    }
    FUZZ_CHECK(r < 0 || at == end);
}

/* Unpacks the record, as for writing SAM and CRAM, and packs it again. */
static void check_unpacked(const uint8_t *rec)
{
    OWNED_RECORD bam1_t *b = bam_init1(), *again = bam_init1();
    FUZZ_CHECK(b && again);
    bam_record_unpack(rec, b);
    FUZZ_CHECK(strcmp(bam_get_qname(b), (const char *)bam_record_name(rec)) == 0);
    FUZZ_CHECK(b->core.pos == bam_record_true_pos(rec));
    OWNED uint8_t *packed = NULL;
    size_t room = 0;
    if (!bam_record_put(b, true, &packed, &room, 0)) {
        const bam1_core_t *c = &b->core;
        bool is_long = c->pos > INT32_MAX || c->mpos > INT32_MAX || c->isize > INT32_MAX ||
                       c->isize < INT32_MIN;
        /* A forged record may have two long tags. Unpacking takes the second for ours and drops it.
           The first one is last then, and looks like ours. sort_buffer.c refuses such a record
           unless references are long. */
        if (is_long || !bam_record_is_long(packed)) {
            FUZZ_CHECK(bam_record_check(packed, FUZZ_N_REFS) == NULL);
            bam_record_unpack(packed, again);
            FUZZ_CHECK(again->core.pos == b->core.pos && again->l_data == b->l_data);
            FUZZ_CHECK(memcmp(again->data, b->data, (size_t)b->l_data) == 0);
        }
    }
}

static bool begins_with(const uint8_t *key, size_t n_bytes, const uint8_t *other, size_t n_other)
{
    return n_bytes >= n_other && memcmp(key, other, n_other) == 0;
}

/* Makes the keys of all records in one order. Records without a key are left out. */
static void check_order(const struct sort_rules *rules, const struct record *records, size_t n)
{
    uint8_t *keys[MAX_RECORDS];
    size_t sizes[MAX_RECORDS], n_keys = 0;
    for (size_t i = 0; i < n; i++) {
        const char *problem = NULL;
        size_t size = sort_key_bytes(rules, records[i].bytes, &problem);
        FUZZ_CHECK((size == 0) == (problem != NULL));
        if (size == 0) continue;
        /* sort_buffer.c relies on this. */
        FUZZ_CHECK(keyed_record_bytes(size) + sizeof(struct sort_entry) <=
                   2 * records[i].n_bytes);
        keys[n_keys] = fuzz_alloc(size);
        FUZZ_CHECK(sort_key_encode(rules, records[i].bytes, keys[n_keys]) == size);
        sizes[n_keys++] = size;
    }
    for (size_t i = 0; i < n_keys; i++)
        for (size_t k = 0; k < n_keys; k++)
            FUZZ_CHECK(sizes[i] == sizes[k] || !begins_with(keys[i], sizes[i], keys[k], sizes[k]));
    for (size_t i = 0; i < n_keys; i++) free(keys[i]);
}

/* Admits and restores records in the minimiser order. They are copies, since they change. */
static void check_minhash(struct fuzz_input *in, const struct record *records, size_t n)
{
    struct sort_rules rules = {.order = SORT_MINHASH};
    struct record changed[MAX_RECORDS] = {{NULL, 0}};   /* GCC warns else */
    struct content_sum before = {0}, after = {0};
    unsigned flags = fuzz_u8(in);
    rules.minhash.k = 1 + (int)fuzz_below(in, 31);
    rules.minhash.forward_only = flags & 1;
    rules.minhash.squeeze = flags & 2;
    if (flags & 4) {
        rules.minhash.index = minhash_index;
        rules.minhash.squeeze = false;
        rules.minhash.k = 4;
    }
    for (size_t i = 0; i < n; i++) {
        changed[i] = (struct record){fuzz_copy(records[i].bytes, records[i].n_bytes),
                                     records[i].n_bytes};
        sort_rules_admit(&rules, changed[i].bytes, &before);
        FUZZ_CHECK(bam_record_check(changed[i].bytes, FUZZ_N_REFS) == NULL);
    }
    check_order(&rules, changed, n);
    for (size_t i = 0; i < n; i++) {
        sort_rules_restore(rules.order, changed[i].bytes);
        FUZZ_CHECK(bam_record_check(changed[i].bytes, FUZZ_N_REFS) == NULL);
        content_sum_add(&after, changed[i].bytes, changed[i].n_bytes);
        free(changed[i].bytes);
    }
    FUZZ_CHECK(content_sum_equal(&before, &after));
}

static void check_all_orders(struct fuzz_input *in, const struct record *records, size_t n)
{
    struct sort_rules rules = {.template_ends = template_ends};
    for (int long_positions = 0; long_positions < 2; long_positions++) {
        rules.long_positions = long_positions;
        for (rules.order = SORT_NAME_NATURAL; rules.order <= SORT_NAME_LEXICAL; rules.order++)
            check_order(&rules, records, n);
        rules.order = SORT_TEMPLATE;
        check_order(&rules, records, n);
        rules.order = SORT_TAG;
        for (rules.below = SORT_COORDINATE; rules.below <= SORT_NAME_LEXICAL; rules.below++) {
            memcpy(rules.tag, &"RGMCMICGCBXY"[2 * fuzz_below(in, 6)], 2);
            check_order(&rules, records, n);
        }
    }
    rules.order = SORT_COORDINATE_LONG;
    check_order(&rules, records, n);
    check_minhash(in, records, n);
    for (size_t i = 0; i < n; i++) {
        uint8_t stored[SORT_KEY_FIXED_BYTES];
        uint64_t key = sort_key_coordinate(records[i].bytes);
        sort_key_store_fixed(key, stored);
        FUZZ_CHECK(sort_key_load_fixed(stored) == key);
        (void)sort_key_shuffle(records[i].bytes, key);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct fuzz_input in = {data, data + n_bytes};
    struct record records[MAX_RECORDS];
    size_t n = 0;
    OWNED uint8_t *made = fuzz_alloc(FUZZ_MAX_RECORD);
    while (n < MAX_RECORDS && fuzz_left(&in) > 0) {
        size_t size = fuzz_make_record(&in, made);
        uint8_t *bytes = fuzz_copy(made, size);
        if (bam_record_check(bytes, FUZZ_N_REFS)) {
            free(bytes);
            continue;
        }
        check_aux(bytes);
        check_unpacked(bytes);
        records[n++] = (struct record){bytes, size};
    }
    check_all_orders(&in, records, n);
    for (size_t i = 0; i < n; i++) free(records[i].bytes);
    return 0;
}
