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

/* The format options. As in htslib, the last one of a kind applies. */
struct wishes {
    const char *fasta;          /* NULL: none is given */
    bool no_ref;
    int embed_ref;              /* -1: not given */
    bool many_in_slice;         /* multi_seq_per_slice=1 */
};

static bool is_regular(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static struct wishes look_at_options(const htsFormat *format)
{
    struct wishes wishes = {.embed_ref = -1};
    for (const hts_opt *option = format->specific; option; option = option->next) {
        if (option->opt == CRAM_OPT_REFERENCE) wishes.fasta = option->val.s;
        if (option->opt == CRAM_OPT_NO_REF) wishes.no_ref = option->val.i != 0;
        if (option->opt == CRAM_OPT_EMBED_REF) wishes.embed_ref = option->val.i;
        if (option->opt == CRAM_OPT_MULTI_SEQ_PER_SLICE) wishes.many_in_slice = option->val.i == 1;
    }
    return wishes;
}

/* The first version known to embed references without the bugs listed in the header. 1.16, 1.17 and
   1.18 have them, 1.21 and 1.24 do not; 1.19 and 1.20 were not tested. */
#define EMBEDDING_VERSION "1.21"

static bool htslib_embeds_well(void)
{
    int major = 0, minor = 0;
    (void)sscanf(hts_version(), "%d.%d", &major, &minor);
    return major > 1 || minor >= 21;
}

/* True if the cache has a file for the checksum. In the pattern of its name, "%2s" stands for the
   next two characters of the checksum and "%s" for the rest, which is appended if there is no
   "%s". */
static bool is_in_store(const char *pattern, const char *sum)
{
    kstring_t path = KS_INITIALIZE;
    for (const char *at = pattern; *at; at++) {
        char *conversion = NULL;
        size_t width = *at == '%' ? strtoul(at + 1, &conversion, 10) : 0;
        if (!conversion || *conversion != 's') {
            xalloc_require(kputc(*at, &path) >= 0);
            continue;
        }
        size_t left = strlen(sum);
        if (width == 0 || width > left) width = left;
        xalloc_require(kputsn(sum, width, &path) >= 0);
        sum += width;
        at = conversion;
    }
    if (*sum) xalloc_require(ksprintf(&path, "/%s", sum) >= 0);
    bool found = is_regular(path.s);
    ks_free(&path);
    return found;
}

/* True if htslib will find the sequence by its checksum: in the cache or in a directory of
   REF_PATH. If neither is set, the cache is in the home directory. Assumes that servers in REF_PATH
   have the sequence, but not the default server of htslib. */
static bool is_stored(const char *sum)
{
    const char *cache = getenv("REF_CACHE"), *path = getenv("REF_PATH");
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool has_base = base && *base, found = path && strstr(path, "://");
    char *places = (cache && *cache) || (path && *path)
        ? xasprintf("%s:%s", cache ? cache : "", path ? path : "")
        : xasprintf("%s%s/hts-ref/%%2s/%%2s/%%s", has_base ? base : home ? home : "",
                    has_base ? "" : "/.cache");
    for (char *rest = places, *place; !found && (place = strsep(&rest, ":"));)
        found = *place && is_in_store(place, sum);
    free(places);
    return found;
}

enum place { IN_FILE, ELSEWHERE, DOUBTFUL, NOWHERE, N_PLACES };

/* The file that the UR tag of a sequence names. */
struct named_file {
    char *name;                 /* NULL: none so far */
    faidx_t *index;             /* NULL: missing, or not FASTA */
};

static void open_named(struct named_file *file, const char *name)
{
    if (file->name && name && strcmp(file->name, name) == 0) return;
    if (file->index) fai_destroy(file->index);
    free(file->name);
    file->name = name ? xstrdup(name) : NULL;
    file->index = name && is_regular(name) ? fai_load(name) : NULL;
}

/* Where htslib will find a sequence that is not in the FASTA file. If a FASTA file is given, htslib
   1.16 reads the file of UR only for sequences without M5. */
static enum place find_elsewhere(sam_hdr_t *header, const char *name, bool has_fasta,
                                 struct named_file *file)
{
    kstring_t value = KS_INITIALIZE;
    bool has_sum = sam_hdr_find_tag_id(header, "SQ", "SN", name, "M5", &value) == 0;
    bool found = has_sum && is_stored(value.s);
    bool has_file = sam_hdr_find_tag_id(header, "SQ", "SN", name, "UR", &value) == 0;
    if (has_file && !found && !(has_fasta && has_sum)) {
        open_named(file, strncmp(value.s, "file:", 5) == 0 ? value.s + 5 : value.s);
        found = file->index && faidx_has_seq(file->index, name);
    }
    ks_free(&value);
    return found ? ELSEWHERE : has_sum || has_file ? DOUBTFUL : NOWHERE;
}

/* How the sequences of the file differ from those of the header. */
struct difference {
    int n[N_PLACES];            /* number of sequences in each place */
    int first[N_PLACES];        /* the first in each place */
    int n_others, first_other;  /* sequences with another length in the file */
    int64_t other_bases;        /* length of the first of these in the file */
    bool is_shorter;            /* one of these is shorter in the file */
};

/* index: NULL if there is no file. */
static void compare(sam_hdr_t *header, const faidx_t *index, struct cram_reference *ref,
                    struct difference *difference)
{
    int n_refs = sam_hdr_nref(header);
    struct named_file file = {NULL, NULL};
    if (index) ref->n_bases = xcalloc((size_t)n_refs + 1, sizeof *ref->n_bases);
    for (int tid = 0; tid < n_refs; tid++) {
        const char *name = sam_hdr_tid2name(header, tid);
        int64_t n_bases = index ? faidx_seq_len(index, name) : -1;
        enum place place =
            n_bases >= 0 ? IN_FILE : find_elsewhere(header, name, index != NULL, &file);
        if (difference->n[place]++ == 0) difference->first[place] = tid;
        if (index) ref->n_bases[tid] = n_bases < 0 ? INT64_MAX : n_bases;
        if (n_bases < 0 || n_bases == sam_hdr_tid2len(header, tid)) continue;
        if (difference->n_others++ == 0) {
            difference->first_other = tid;
            difference->other_bases = n_bases;
        }
        difference->is_shorter |= n_bases < sam_hdr_tid2len(header, tid);
    }
    open_named(&file, NULL);
}

static int n_lacking(const struct difference *difference)
{
    return difference->n[NOWHERE] + difference->n[DOUBTFUL];
}

/* Chooses the options for an old htslib, which must not embed references built from reads. With
   embed_ref=1 it would do so if a sequence is not found, and would encode slices of several
   references wrongly. */
static void choose_for_old(const struct wishes *wishes, const struct difference *difference,
                           struct cram_reference *ref)
{
    ref->no_ref = wishes->embed_ref == 2 ||
                  (wishes->embed_ref != 0 && n_lacking(difference) > 0) ||
                  (wishes->embed_ref == 1 && wishes->many_in_slice);
    ref->no_embedding |= ref->no_ref || wishes->embed_ref != 1;
    if (ref->no_ref) cram_reference_release(ref);
}

/* Reads the index of the FASTA file, if there is one, and compares. */
static int look_at_file(sam_hdr_t *header, const char *fasta, struct cram_reference *ref,
                        struct difference *difference)
{
    errno = 0;
    faidx_t *index = fasta ? fai_load(fasta) : NULL;
    if (fasta && !index) {
        const char *advice = diag_advice(errno);
        diag_error("htslib cannot make or read the index of the reference, '%s.fai'%s", fasta,
                   *advice ? advice : diag_library_words());
        return -1;
    }
    compare(header, index, ref, difference);
    if (index) fai_destroy(index);
    return 0;
}

static int look(sam_hdr_t *header, const struct wishes *wishes, struct cram_reference *ref,
                struct difference *difference)
{
    *difference = (struct difference){.n_others = 0};
    /* With both no_ref=1 and embed_ref=1, htslib crashes, even 1.24. */
    *ref = (struct cram_reference){.fasta = wishes->fasta, .no_embedding = wishes->no_ref};
    /* A pipe can be read only once. */
    bool has_index = !wishes->fasta || is_regular(wishes->fasta);
    if (!wishes->no_ref && has_index &&
        look_at_file(header, wishes->fasta, ref, difference) < 0)
        return -1;
    if (!htslib_embeds_well())
        choose_for_old(wishes, difference, ref);
    else
        ref->embeds = wishes->embed_ref == 2 ||
                      (wishes->embed_ref < 0 && difference->n[NOWHERE] > 0);
    return 0;
}

int cram_reference_open(sam_hdr_t *header, const htsFormat *format, struct cram_reference *ref)
{
    struct wishes wishes = look_at_options(format);
    struct difference difference;
    return look(header, &wishes, ref, &difference);
}

/* Warns if the CRAM will be written without references, or embed them, unrequested. */
static void warn_of_choice(sam_hdr_t *header, const struct wishes *wishes,
                           const struct cram_reference *ref, const struct difference *difference)
{
    static const char none[] = "the CRAM is written without a reference (no_ref=1) and gets larger";
    if (wishes->no_ref || (!ref->embeds && !ref->no_ref)) return;
    if (wishes->embed_ref == 2 || n_lacking(difference) == 0) {
        if (ref->no_ref)
            diag_warning("htslib %s is too old for embed_ref=%s, which needs "
                         EMBEDDING_VERSION ": %s",
                         hts_version(), wishes->embed_ref == 2 ? "2" : "1 with "
                         "multi_seq_per_slice=1", none);
        return;
    }
    enum place place = difference->n[NOWHERE] > 0 ? NOWHERE : DOUBTFUL;
    const char *name = sam_hdr_tid2name(header, difference->first[place]);
    int n_more = n_lacking(difference) - 1;
    char others[64] = "";
    if (n_more > 0)
        (void)snprintf(others, sizeof others, " and %d other%s", n_more, n_more == 1 ? "" : "s");
    const char *then = ref->no_ref ? none : "a reference made of the reads goes into the CRAM, "
                                           "which gets larger";
    if (wishes->fasta)
        diag_warning("the reference '%s' lacks the sequence '%s'%s: %s",
                     wishes->fasta, name, others, then);
    else
        diag_warning("the sequence '%s'%s will not be found without --reference: %s", name,
                     others, then);
}

static void warn_of_length(sam_hdr_t *header, const struct cram_reference *ref,
                           const struct difference *difference)
{
    int tid = difference->first_other;
    bool cannot = difference->is_shorter && ref->n_bases;
    diag_warning("'%s' has %" PRId64 " bases of '%s', the header %" PRId64 "%s: is it the right "
                 "one?", ref->fasta, difference->other_bases,
                 sam_hdr_tid2name(header, tid), (int64_t)sam_hdr_tid2len(header, tid),
                 cannot ? "; reads beyond the end cannot be written" : "");
}

/* With these options htslib needs every sequence for the header. */
static void refuse(sam_hdr_t *header, const struct wishes *wishes, int tid, const char *output)
{
    const char *name = sam_hdr_tid2name(header, tid);
    if (wishes->fasta)
        diag_error("'%s' lacks the sequence '%s', which embed_ref=%d needs: leave embed_ref out",
                   wishes->fasta, name, wishes->embed_ref);
    else
        diag_error("cannot encode '%s' with embed_ref=%d: '%s' is not found; give --reference",
                   output, wishes->embed_ref, name);
}

int cram_reference_check(sam_hdr_t *header, const htsFormat *format, const char *output)
{
    if (format->format != cram) return 0;
    struct wishes wishes = look_at_options(format);
    struct difference difference;
    struct cram_reference ref;
    if (look(header, &wishes, &ref, &difference) < 0) return -1;
    bool is_refused =
        difference.n[NOWHERE] > 0 && (wishes.embed_ref == 0 || wishes.embed_ref == 1);
    if (is_refused) refuse(header, &wishes, difference.first[NOWHERE], output);
    if (!is_refused && difference.n_others > 0)
        warn_of_length(header, &ref, &difference);
    if (!is_refused) warn_of_choice(header, &wishes, &ref, &difference);
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
