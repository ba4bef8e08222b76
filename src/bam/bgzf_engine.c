/*
 * bgzf_engine.c -- see bgzf_engine.h. No other file knows which libraries are built in.
 *
 * Igzip has its own levels, 0 to 3. Our level 1 is its level 2: on real reads it takes half the
 * time of libdeflate's level 1 and makes files 5.6 % larger. Its level 1 is as fast but makes
 * larger files; its level 3 is almost as slow as libdeflate's level 1; its level 0 makes files a
 * fifth larger.
 *
 * From level 1 on, the output of igzip (ISA-L 2.30) depends on the address of its stream: about 6
 * of 12,000 small blocks differ if the stream is elsewhere in memory, both with isal_deflate and
 * with isal_deflate_stateless. They inflate to the same bytes.
 */
#define _GNU_SOURCE             /* RTLD_DEFAULT */
#include "bam/bgzf_engine.h"

#include "deflate/deflate.h"
#include "util/version.h"
#include "util/xalloc.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#ifdef HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif
#ifdef HAVE_ISAL
#include <isa-l.h>
#endif

enum { DEFAULT_LEVEL = 6, IGZIP_LEVEL = 1, OWN_DEFAULT_LEVEL = 3, OWN_MOST_LEVEL = 5 };

/* ---- libdeflate ---- */

#ifdef HAVE_LIBDEFLATE

static const char *libdeflate_version(void)
{
    /* Version 1.19 has a function that older ones lack. */
    const bool is_old = LIBDEFLATE_VERSION_MAJOR == 1 && LIBDEFLATE_VERSION_MINOR < 19;
    return is_old && dlsym(RTLD_DEFAULT, "libdeflate_alloc_compressor_ex")
               ? LIBDEFLATE_VERSION_STRING " (1.19 or newer is loaded)"
               : LIBDEFLATE_VERSION_STRING;
}

static void *make_libdeflate(int level)
{
    /* The same levels as in htslib: they give about the same sizes as zlib's levels 0 to 9. */
    static const int libdeflate_level[10] = {0, 1, 2, 3, 5, 6, 7, 8, 10, 12};
    struct libdeflate_compressor *made = libdeflate_alloc_compressor(libdeflate_level[level]);
    xalloc_require(made != NULL);
    return made;
}

static void free_libdeflate(void *compressor)
{
    libdeflate_free_compressor(compressor);
}

static ssize_t run_libdeflate(void *compressor, const uint8_t *raw, size_t raw_bytes, uint8_t *out,
                              size_t room)
{
    return (ssize_t)libdeflate_deflate_compress(compressor, raw, raw_bytes, out, room);
}

int bgzf_engine_inflate(struct bgzf_coder *coder, const uint8_t *in, size_t in_bytes, uint8_t *out,
                        size_t out_bytes)
{
    if (!coder->decompressor) coder->decompressor = libdeflate_alloc_decompressor();
    xalloc_require(coder->decompressor);
    return libdeflate_deflate_decompress(coder->decompressor, in, in_bytes, out, out_bytes,
                                         NULL) == LIBDEFLATE_SUCCESS ? 0 : -1;
}

#endif

/* ---- igzip ---- */

#ifdef HAVE_ISAL

enum { ISAL_LEVEL = 2, ISAL_BUFFER_BYTES = ISAL_DEF_LVL2_DEFAULT };

#define TEXT_OF(macro) #macro
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

struct igzip {
    struct isal_zstream stream;
    uint8_t buffer[ISAL_BUFFER_BYTES];
};

static void *make_igzip(int level)
{
    (void)level;
    return xcalloc(1, sizeof(struct igzip));
}

static ssize_t run_igzip(void *compressor, const uint8_t *raw, size_t raw_bytes, uint8_t *out,
                         size_t room)
{
    struct igzip *igzip = compressor;
    struct isal_zstream *stream = &igzip->stream;
    isal_deflate_stateless_init(stream);
    stream->level = ISAL_LEVEL;
    stream->level_buf = igzip->buffer;
    stream->level_buf_size = sizeof igzip->buffer;
    stream->end_of_stream = 1;
    stream->flush = NO_FLUSH;
    stream->gzip_flag = IGZIP_DEFLATE;
    stream->next_in = (uint8_t *)(uintptr_t)raw;
    stream->avail_in = (uint32_t)raw_bytes;
    stream->next_out = out;
    stream->avail_out = (uint32_t)room;
    int r = isal_deflate_stateless(stream);
    if (r == STATELESS_OVERFLOW) return 0;
    return r == COMP_OK && stream->avail_in == 0 ? (ssize_t)(room - stream->avail_out) : -1;
}

#endif

/* ---- our own ---- */

static void *make_own(int level)
{
    return deflater_create(level <= 2 ? DEFLATE_FASTEST : level - 1);
}

static ssize_t run_own(void *compressor, const uint8_t *raw, size_t raw_bytes, uint8_t *out,
                       size_t room)
{
    return (ssize_t)deflater_run(compressor, raw, raw_bytes, out, room);
}

/* ---- zlib ---- */

static void *make_zlib(int level)
{
    z_stream *stream = xcalloc(1, sizeof *stream);
    xalloc_require(deflateInit2(stream, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    return stream;
}

static void free_zlib(void *compressor)
{
    (void)deflateEnd(compressor);       /* fails if a block did not fit */
    free(compressor);
}

static ssize_t run_zlib(void *compressor, const uint8_t *raw, size_t raw_bytes, uint8_t *out,
                        size_t room)
{
    z_stream *stream = compressor;
    if (deflateReset(stream) != Z_OK) return -1;
    stream->next_in = (Bytef *)(uintptr_t)raw;
    stream->avail_in = (uInt)raw_bytes;
    stream->next_out = out;
    stream->avail_out = (uInt)room;
    int r = deflate(stream, Z_FINISH);
    if (r == Z_STREAM_END) return (ssize_t)(room - stream->avail_out);
    return r == Z_OK || r == Z_BUF_ERROR ? 0 : -1;
}

#ifndef HAVE_LIBDEFLATE

int bgzf_engine_inflate(struct bgzf_coder *coder, const uint8_t *in, size_t in_bytes, uint8_t *out,
                        size_t out_bytes)
{
    (void)coder;
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)in, .avail_in = (uInt)in_bytes,
                       .next_out = out, .avail_out = (uInt)out_bytes};
    if (inflateInit2(&stream, -15) != Z_OK) return -1;
    int r = inflate(&stream, Z_FINISH);
    size_t n = stream.total_out;
    if (inflateEnd(&stream) != Z_OK) return -1;
    return r == Z_STREAM_END && n == out_bytes ? 0 : -1;
}

#endif

/* ---- all of them ---- */

struct engine {
    const char *name;
    const char *library;                /* NULL: the engine is not built in */
    const char *version_text;           /* NULL: `version` returns it */
    const char *(*version)(void);
    void *(*make)(int level);           /* makes a compressor */
    void (*release)(void *compressor);
    ssize_t (*run)(void *compressor, const uint8_t *raw, size_t raw_bytes, uint8_t *out,
                   size_t room);
};

static const struct engine engines[BGZF_ENGINE_COUNT] = {
    [BGZF_ENGINE_AUTO] = {.name = "auto"},
    [BGZF_ENGINE_LIBDEFLATE] = {
        .name = "libdeflate",
#ifdef HAVE_LIBDEFLATE
        .library = "libdeflate", .version = libdeflate_version, .make = make_libdeflate,
        .release = free_libdeflate, .run = run_libdeflate,
#endif
    },
    [BGZF_ENGINE_IGZIP] = {
        .name = "igzip",
#ifdef HAVE_ISAL
        .library = "ISA-L", .make = make_igzip, .release = free, .run = run_igzip,
        .version_text = VERSION_TEXT(ISAL_MAJOR_VERSION, ISAL_MINOR_VERSION, ISAL_PATCH_VERSION),
#endif
    },
    [BGZF_ENGINE_OWN] = {
        .name = "rocksort",
        .library = "rocksort", .version_text = ROCKSORT_VERSION, .make = make_own, .release = free,
        .run = run_own,
    },
    [BGZF_ENGINE_ZLIB] = {
        .name = "zlib",
        .library = "zlib", .version = zlibVersion, .make = make_zlib, .release = free_zlib,
        .run = run_zlib,
    },
};

static int plain_level(enum bgzf_engine engine, int level)
{
    if (level >= 0 && level <= 9) return level;
    return engine == BGZF_ENGINE_OWN ? OWN_DEFAULT_LEVEL : DEFAULT_LEVEL;
}

const char *bgzf_engine_name(enum bgzf_engine engine)
{
    return engines[engine].name;
}

int bgzf_engine_parse(const char *name, enum bgzf_engine *engine)
{
    for (int i = 0; i < BGZF_ENGINE_COUNT; i++) {
        if (strcmp(name, engines[i].name) != 0) continue;
        *engine = (enum bgzf_engine)i;
        return 0;
    }
    return -1;
}

bool bgzf_engine_is_built_in(enum bgzf_engine engine)
{
    return engine == BGZF_ENGINE_AUTO || engines[engine].library;
}

bool bgzf_engine_has_level(enum bgzf_engine engine, int level)
{
    if (engine == BGZF_ENGINE_IGZIP) return level == 0 || level == IGZIP_LEVEL;
    return engine != BGZF_ENGINE_OWN || level <= OWN_MOST_LEVEL;
}

enum bgzf_engine bgzf_engine_choose(struct bgzf_method method)
{
    static const enum bgzf_engine best_first[] = {BGZF_ENGINE_IGZIP, BGZF_ENGINE_OWN,
                                                  BGZF_ENGINE_LIBDEFLATE};
    if (method.engine != BGZF_ENGINE_AUTO) return method.engine;
    for (size_t i = 0; i < sizeof best_first / sizeof *best_first; i++)
        if (bgzf_engine_is_built_in(best_first[i]) &&
            bgzf_engine_has_level(best_first[i], method.level) &&
            !(method.is_text && best_first[i] == BGZF_ENGINE_OWN))
            return best_first[i];
    return BGZF_ENGINE_ZLIB;
}

const char *bgzf_engine_library(enum bgzf_engine engine, const char **version)
{
    const struct engine *found = &engines[engine];
    *version = found->version ? found->version() : found->version_text;
    return found->library;
}

static void release_compressor(struct bgzf_coder *coder)
{
    if (coder->compressor) engines[coder->made_for.engine].release(coder->compressor);
    coder->compressor = NULL;
}

void bgzf_coder_release(struct bgzf_coder *coder)
{
    release_compressor(coder);
#ifdef HAVE_LIBDEFLATE
    libdeflate_free_decompressor(coder->decompressor);
#endif
    *coder = (struct bgzf_coder){0};
}

ssize_t bgzf_engine_deflate(struct bgzf_coder *coder, struct bgzf_method method,
                            const uint8_t *raw, size_t raw_bytes, uint8_t *out, size_t room)
{
    struct bgzf_method use = {.engine = bgzf_engine_choose(method)};
    const struct engine *engine = &engines[use.engine];
    use.level = plain_level(use.engine, method.level);
    if (use.level != coder->made_for.level || use.engine != coder->made_for.engine)
        release_compressor(coder);
    if (!coder->compressor) coder->compressor = engine->make(use.level);
    coder->made_for = use;
    return engine->run(coder->compressor, raw, raw_bytes, out, room);
}

uint32_t bgzf_engine_crc(uint32_t crc, const uint8_t *bytes, size_t n_bytes)
{
    if (n_bytes == 0) return crc;
#if defined HAVE_ISAL
    return crc32_gzip_refl(crc, bytes, n_bytes);
#elif defined HAVE_LIBDEFLATE
    return libdeflate_crc32(crc, bytes, n_bytes);
#else
    return (uint32_t)crc32(crc, bytes, (uInt)n_bytes);
#endif
}
