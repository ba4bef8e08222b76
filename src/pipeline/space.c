/* space.c -- see space.h. */
#include "pipeline/space.h"

#include "pipeline/duplicates.h"
#include "store/store_layout.h"
#include "util/diag.h"
#include "util/size.h"
#include "util/xalloc.h"

#include <stdlib.h>

enum {
    MOST_FILE_SYSTEMS = 64,
    SAMPLE_BYTES = 1 << 20,
    STRETCHES = 8,              /* of which the sample is made, from all over a batch */
};

static const double most_deflate_seconds = 0.02;

static bool is_on(const struct disk_space *a, const struct disk_space *b)
{
    return a->known && b->known && a->device == b->device;
}

void space_look(struct space_places *places, const char *const *dirs, size_t n_dirs,
                const char *output, const char *also)
{
    dev_t seen[MOST_FILE_SYSTEMS];
    size_t n_seen = 0;
    uint64_t free_bytes = 0;
    *places = (struct space_places){.shared = false};
    if (output) (void)disk_space_look(output, &places->output);
    if (also) (void)disk_space_look(also, &places->also);
    for (size_t i = 0; i < n_dirs && n_seen < MOST_FILE_SYSTEMS; i++) {
        struct disk_space space;
        bool is_new = disk_space_look(dirs[i], &space);
        for (size_t k = 0; k < n_seen; k++) is_new = is_new && seen[k] != space.device;
        if (!is_new) continue;
        seen[n_seen++] = space.device;
        free_bytes += space.free_bytes;
        if (!places->temporary.known) places->temporary = space;
        if (is_on(&places->output, &space)) places->shared = true;
        if (is_on(&places->also, &space)) places->also_shared = true;
    }
    places->temporary.free_bytes = free_bytes;
}

static size_t compare_one(const char *what, double n_bytes, const struct disk_space *space,
                          const char *advice, char text[SPACE_TEXT_BYTES])
{
    char needed[SIZE_TEXT_BYTES], has[SIZE_TEXT_BYTES];
    if (!space->known || n_bytes <= (double)space->free_bytes) return 0;
    (void)snprintf(text, SPACE_TEXT_BYTES, "%s about %s, but file system '%s' has %s free%s", what,
                   size_format((uint64_t)n_bytes, needed), space->mount,
                   size_format(space->free_bytes, has), advice);
    return 1;
}

/* Compares temporary data and the output. */
static size_t compare_output(const struct space_places *places, double temporary, double output,
                             char (*texts)[SPACE_TEXT_BYTES])
{
    static const char advice[] = "; choose other places with -T";
    size_t n = 0;
    if (temporary > 0 && places->shared)
        n = compare_one("temporary data and output will need", temporary + output,
                        &places->temporary, advice, texts[0]);
    else if (temporary > 0)
        n = compare_one("temporary data will need", temporary, &places->temporary, advice,
                        texts[0]);
    if (n > 0 && places->shared) return n;
    return n + compare_one("the output will need", output, &places->output, "; free space there",
                           texts[n]);
}

size_t space_compare(const struct space_places *places, const struct estimate *estimate,
                     char texts[SPACE_MOST_TEXTS][SPACE_TEXT_BYTES])
{
    double temporary = estimate->needed_bytes, output = estimate->output_bytes;
    double also = estimate->also_bytes;
    size_t n = 0;
    if (is_on(&places->also, &places->output)) {
        output += also;
        also = 0;
    }
    if (also > 0)
        n = compare_one("the output of --also will need",
                        also + (places->also_shared ? temporary : 0), &places->also,
                        "; free space there", texts[0]);
    return n + compare_output(places, temporary, output, texts + n);
}

/* Copies some records from all over a sorted batch. */
static size_t take_sample(const struct batch *batch, uint8_t *out)
{
    size_t n_bytes = 0, each = SAMPLE_BYTES / STRETCHES;
    for (size_t i = 0; i < STRETCHES; i++) {
        size_t from = i * batch->n_records / STRETCHES;
        size_t to = (i + 1) * batch->n_records / STRETCHES;
        n_bytes += record_sample_gather(batch->rules->order, batch->entries + from, to - from,
                                        out + n_bytes, each);
    }
    return n_bytes;
}

/* Whether there is more space than any records need: twice their bytes, which are compacted
   perhaps, for temporary data, and once for each output, of which columns are the largest. */
static bool has_plenty(const struct space_places *places, uint64_t expected_bytes)
{
    double n_bytes = 1.4 * (double)expected_bytes;
    return (!places->temporary.known || (double)places->temporary.free_bytes > 4 * n_bytes) &&
           (!places->output.known || (double)places->output.free_bytes > 2 * n_bytes) &&
           (!places->also.known || (double)places->also.free_bytes > 2 * n_bytes);
}

void space_facts(const struct sort_settings *settings, struct estimate_facts *facts)
{
    facts->said_bytes = settings->input_bytes;
    facts->compaction = settings->compaction;
    facts->codec_auto = settings->codec_auto;
    facts->codec = settings->codec;
    facts->outputs[0] = (struct estimate_output){settings->output_format.kind, settings->level};
    facts->outputs[1] = (struct estimate_output){settings->also_format.kind, -1};
    facts->n_outputs = settings->also ? 2 : 1;
    if (settings->markdup)
        facts->view_memory_bytes = duplicates_view_memory(&settings->duplicate_rules,
                                                          settings->memory_bytes);
}

/* The facts of a sort, but for what its records tell. */
static void gather_facts(const struct sort_settings *settings, const struct space_sight *sight,
                         struct estimate_facts *facts)
{
    *facts = (struct estimate_facts){
        .budget = *sight->budget,
        .expected_bytes = sight->expected_bytes,
        .size_is_known = true,
        .n_dirs = 1,
        .n_lanes = 1,
        .exceeds_memory = store_layout_exceeds_memory(sight->expected_bytes,
                                                   mem_budget_scan_bytes(sight->budget)),
    };
    space_facts(settings, facts);
    if (sight->store) {
        facts->n_dirs = (unsigned)sight->n_dirs;
        facts->n_lanes = run_store_n_lanes(sight->store);
        run_store_look(sight->store, &facts->disks);
    }
    facts->most_files = store_layout_most_files(facts->n_dirs * facts->n_lanes);
}

/* Measures the batches. Returns 0, or -1 if they tell nothing. */
static int measure_batches(const struct sort_settings *s, struct batch *const *batches,
                           size_t n_batches, struct estimate_facts *facts)
{
    uint64_t n_runs = mem_budget_expect_runs(&facts->budget, facts->expected_bytes, 0, 0);
    const struct record_sample_settings settings = {
        .method = sort_settings_method(s),
        .measures_usual = estimate_needs_usual(facts->outputs, facts->n_outputs),
        .block_bytes = mem_budget_block_bytes(&facts->budget, 0, (unsigned)n_runs),
        .duplicates = batches[0]->rules->duplicates,
        .pack_bytes = facts->budget.pack_bytes,
        .most_deflate_seconds = most_deflate_seconds,
    };
    size_t raw_bytes = 0, used_bytes = 0;
    for (size_t i = 0; i < n_batches; i++) {
        raw_bytes += batch_raw_bytes(batches[i]);
        used_bytes += batch_used_bytes(batches[i]);
    }
    facts->traits.memory_ratio = (double)used_bytes / (double)raw_bytes;
    facts->batch_raw_bytes = (double)raw_bytes / (double)n_batches;
    uint8_t *sorted = xmalloc(SAMPLE_BYTES);
    size_t n_bytes = take_sample(batches[0], sorted);
    /* Records that are larger than a stretch are in no sample. */
    int r = n_bytes > 0 ? record_sample_measure(&settings, sorted, n_bytes, &facts->traits) : -1;
    free(sorted);
    return r;
}

void space_check(const struct sort_settings *s, const struct space_sight *sight,
                 struct batch *const *batches, size_t n_batches)
{
    struct space_places places;
    struct estimate_facts facts;
    struct estimate estimate;
    char texts[SPACE_MOST_TEXTS][SPACE_TEXT_BYTES];
    if (sight->expected_bytes == 0 || n_batches == 0) return;
    space_look(&places, sight->dirs, sight->store ? sight->n_dirs : 0,
               sight->output->final, sight->also->final);
    if (has_plenty(&places, sight->expected_bytes)) return;
    gather_facts(s, sight, &facts);
    if (measure_batches(s, batches, n_batches, &facts) < 0) return;
    estimate_make(&facts, &estimate);
    size_t n = space_compare(&places, &estimate, texts);
    for (size_t i = 0; i < n; i++) diag_warning("%s", texts[i]);
}
