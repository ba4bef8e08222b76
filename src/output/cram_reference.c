/* cram_reference.c -- see cram_reference.h. */
#include "output/cram_reference.h"

#include "util/diag.h"
#include "util/xalloc.h"

#include <errno.h>
#include <htslib/faidx.h>
#include <htslib/hts.h>
#include <htslib/kstring.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What the options of the format say. As in htslib, the last one of a kind counts. */
struct wishes {
    const char *fasta;          /* NULL: none is given */
    bool needs_none;            /* no CRAM, no_ref=1, or a reference that can be read only once */
    int embed_ref;              /* -1: not given */
};

static bool is_regular(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static struct wishes look_at_options(const htsFormat *format)
{
    struct wishes wishes = {.embed_ref = -1, .needs_none = format->format != cram};
    for (const hts_opt *option = format->specific; option; option = option->next) {
        if (option->opt == CRAM_OPT_REFERENCE) wishes.fasta = option->val.s;
        if (option->opt == CRAM_OPT_NO_REF) wishes.needs_none = option->val.i != 0;
        if (option->opt == CRAM_OPT_EMBED_REF) wishes.embed_ref = option->val.i;
    }
    if (format->format != cram || (wishes.fasta && !is_regular(wishes.fasta)))
        wishes.needs_none = true;
    return wishes;
}

/* True if htslib embeds references without fault; tried with 1.17, 1.18, 1.21 and 1.24. */
static bool htslib_embeds_well(void)
{
    int major = 0, minor = 0;
    (void)sscanf(hts_version(), "%d.%d", &major, &minor);
    return major > 1 || minor >= 17;
}

/* True if the user has said where references are. Tests and scripts say ":" for nowhere. */
static bool is_place(const char *variable)
{
    const char *value = getenv(variable);
    return value && value[strspn(value, ":")] != '\0';
}

/* True if htslib may find sequences by their checksums without downloading all of them: by its
   environment variables, or in the cache that it fills where these are not set. */
static bool has_store_of_sequences(void)
{
    static const char *const homes[][2] = {
        {"XDG_CACHE_HOME", "hts-ref"}, {"HOME", ".cache/hts-ref"}, {"TEMP", "hts-ref"}};
    if (is_place("REF_PATH") || is_place("REF_CACHE")) return true;
    if (getenv("REF_PATH")) return false;
    for (size_t i = 0; i < sizeof homes / sizeof *homes; i++) {
        const char *home = getenv(homes[i][0]);
        char *path = home && *home ? xasprintf("%s/%s", home, homes[i][1]) : NULL;
        struct stat st;
        bool found = path && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
        free(path);
        if (path) return found;
    }
    return false;
}

enum place { IN_FILE, ELSEWHERE, DOUBTFUL, NOWHERE, N_PLACES };

/* Where htslib will find a sequence that is not in the FASTA file. */
static enum place find_elsewhere(sam_hdr_t *header, const char *name, bool has_store)
{
    kstring_t value = KS_INITIALIZE;
    bool has_sum = sam_hdr_find_tag_id(header, "SQ", "SN", name, "M5", &value) == 0;
    bool has_file = sam_hdr_find_tag_id(header, "SQ", "SN", name, "UR", &value) == 0;
    enum place place = has_sum || has_file ? DOUBTFUL : NOWHERE;
    if (has_file) {
        const char *path = strncmp(value.s, "file:", 5) == 0 ? value.s + 5 : value.s;
        char *index = xasprintf("%s.fai", path);
        if (is_regular(path) && is_regular(index)) place = ELSEWHERE;
        free(index);
    }
    if (has_sum && has_store) place = ELSEWHERE;
    ks_free(&value);
    return place;
}

/* How the sequences of the file differ from those of the header. */
struct difference {
    int n[N_PLACES];            /* how many sequences are there */
    int first[N_PLACES];        /* the first of each, if there is one */
    int n_others, first_other;  /* sequences in the file that have another length */
    int64_t other_bases;        /* of the first one, in the file */
};

static void note_length(struct cram_reference *ref, int n_refs, int tid, int64_t n_bases)
{
    if (!ref->n_bases) {
        ref->n_bases = xcalloc((size_t)n_refs, sizeof *ref->n_bases);
        for (int i = 0; i < n_refs; i++) ref->n_bases[i] = INT64_MAX;
    }
    ref->n_bases[tid] = n_bases;
}

/* index: NULL if there is no file. */
static void compare(sam_hdr_t *header, const faidx_t *index, struct cram_reference *ref,
                    struct difference *difference)
{
    int n_refs = sam_hdr_nref(header);
    bool has_store = has_store_of_sequences();
    for (int tid = 0; tid < n_refs; tid++) {
        const char *name = sam_hdr_tid2name(header, tid);
        int64_t n_bases = index ? faidx_seq_len(index, name) : -1;
        enum place place = n_bases >= 0 ? IN_FILE : find_elsewhere(header, name, has_store);
        if (difference->n[place]++ == 0) difference->first[place] = tid;
        if (n_bases < 0 || n_bases == sam_hdr_tid2len(header, tid)) continue;
        if (difference->n_others++ == 0) {
            difference->first_other = tid;
            difference->other_bases = n_bases;
        }
        if (n_bases < sam_hdr_tid2len(header, tid)) note_length(ref, n_refs, tid, n_bases);
    }
}

/* Chooses what a htslib that does not embed well is told. */
static void choose_for_old(const struct wishes *wishes, const struct difference *difference,
                           struct cram_reference *ref)
{
    bool is_auto = wishes->embed_ref < 0, embeds_real = wishes->embed_ref == 1;
    int n_nowhere = difference->n[NOWHERE], n_doubtful = difference->n[DOUBTFUL];
    /* With embed_ref=1 a sequence that is nowhere is an error. */
    if ((is_auto && n_nowhere + n_doubtful > 0) ||
        (embeds_real && n_nowhere == 0 && n_doubtful > 0)) {
        ref->embed_ref = 2;
        ref->embeds = true;
    } else if (is_auto && difference->n[ELSEWHERE] > 0) {
        ref->embed_ref = 0;
    }
    ref->one_in_slice = ref->embeds || embeds_real;
}

static int look(sam_hdr_t *header, const struct wishes *wishes, struct cram_reference *ref,
                struct difference *difference)
{
    *difference = (struct difference){.n_others = 0};
    *ref = (struct cram_reference){.embed_ref = -1};
    if (wishes->needs_none) return 0;
    errno = 0;
    faidx_t *index = wishes->fasta ? fai_load(wishes->fasta) : NULL;
    if (wishes->fasta && !index) {
        const char *advice = diag_advice(errno);
        diag_error("htslib cannot make or read the index of the reference, '%s.fai'%s",
                   wishes->fasta, *advice ? advice : diag_library_words());
        return -1;
    }
    ref->fasta = wishes->fasta;
    compare(header, index, ref, difference);
    if (index) fai_destroy(index);
    ref->embeds = wishes->embed_ref == 2 || (wishes->embed_ref < 0 && difference->n[NOWHERE] > 0);
    if (!htslib_embeds_well()) choose_for_old(wishes, difference, ref);
    return 0;
}

int cram_reference_open(sam_hdr_t *header, const htsFormat *format, struct cram_reference *ref)
{
    struct wishes wishes = look_at_options(format);
    struct difference difference;
    return look(header, &wishes, ref, &difference);
}

/* Tells that the CRAM gets a reference that is made of the reads, which the user did not ask for. */
static void warn_of_embedding(sam_hdr_t *header, const struct wishes *wishes,
                              const struct difference *difference)
{
    enum place place = difference->n[NOWHERE] > 0 ? NOWHERE : DOUBTFUL;
    const char *name = sam_hdr_tid2name(header, difference->first[place]);
    int n_more = difference->n[NOWHERE] + difference->n[DOUBTFUL] - 1;
    char others[64] = "";
    if (n_more > 0)
        (void)snprintf(others, sizeof others, " and %d other%s", n_more, n_more == 1 ? "" : "s");
    static const char then[] = "a reference made of the reads goes into the CRAM, which gets larger";
    if (wishes->fasta)
        diag_warning("the reference '%s' lacks the sequence '%s'%s: %s", wishes->fasta, name,
                     others, then);
    else
        diag_warning("the sequence '%s'%s will not be found without --reference: %s", name, others,
                     then);
}

static void warn_of_length(sam_hdr_t *header, const struct cram_reference *ref,
                           const struct difference *difference)
{
    int tid = difference->first_other;
    diag_warning("'%s' has %" PRId64 " bases of '%s', the header %" PRId64 "%s: is it the right "
                 "one?", ref->fasta, difference->other_bases,
                 sam_hdr_tid2name(header, tid), (int64_t)sam_hdr_tid2len(header, tid),
                 ref->n_bases ? "; reads beyond the end cannot be written" : "");
}

int cram_reference_check(sam_hdr_t *header, const htsFormat *format)
{
    struct wishes wishes = look_at_options(format);
    struct difference difference;
    struct cram_reference ref;
    if (look(header, &wishes, &ref, &difference) < 0) return -1;
    bool is_refused = wishes.fasta && difference.n[NOWHERE] > 0 &&
                      (wishes.embed_ref == 0 || wishes.embed_ref == 1);
    if (is_refused)
        diag_error("'%s' lacks the sequence '%s', which embed_ref=%d needs: leave "
                   "embed_ref out", wishes.fasta,
                   sam_hdr_tid2name(header, difference.first[NOWHERE]), wishes.embed_ref);
    if (!is_refused && difference.n_others > 0) warn_of_length(header, &ref, &difference);
    if (!is_refused && ref.embeds && wishes.embed_ref != 2)
        warn_of_embedding(header, &wishes, &difference);
    cram_reference_release(&ref);
    return is_refused ? -1 : 0;
}

bool cram_reference_admits(const struct cram_reference *ref, const bam1_t *record)
{
    const bam1_core_t *core = &record->core;
    if (!ref->n_bases || core->tid < 0 || (core->flag & BAM_FUNMAP) != 0) return true;
    int64_t n_bases = ref->n_bases[core->tid];
    return ref->embeds ? n_bases == INT64_MAX || bam_endpos(record) <= n_bases
                       : core->pos < n_bases;
}

void cram_reference_release(struct cram_reference *ref)
{
    free(ref->n_bases);
    ref->n_bases = NULL;
}
