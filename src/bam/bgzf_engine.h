/*
 * bgzf_engine.h -- deflates and inflates with libdeflate, ISA-L's igzip, our own encoder, or zlib.
 *
 * Every build has our own encoder (deflate.h) and zlib; it has libdeflate if HAVE_LIBDEFLATE is
 * defined, and igzip if HAVE_ISAL is. Our own is made for BAM records and has levels 1 to 5; its
 * level 3 gives the size of libdeflate's level 6, the usual one, in a third of the time. Igzip has
 * only level 1, where it takes half the time of libdeflate and makes files 3 to 6 % larger.
 * Libdeflate is best for other data and for the smallest files. The output depends only on the
 * version of the library, but igzip's size varies by a few bytes between runs (bgzf_engine.c).
 *
 * Ownership and threads: a bgzf_coder starts as {0} and is used by one thread at a time; its owner
 * calls bgzf_coder_release. It keeps one compressor: of igzip 404 KiB, of zlib 262 KiB, of
 * libdeflate 200 KiB at level 1, 650 up to level 7, 8.6 MiB at levels 8 and 9, of our own 600 KiB.
 * The other functions are pure.
 */
#ifndef ROCKSORT_BAM_BGZF_ENGINE_H
#define ROCKSORT_BAM_BGZF_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum bgzf_engine {
    BGZF_ENGINE_AUTO,           /* the first of igzip, our own (not for text), libdeflate and zlib
                                   that is built in and has the level */
    BGZF_ENGINE_LIBDEFLATE,
    BGZF_ENGINE_IGZIP,
    BGZF_ENGINE_OWN,            /* src/deflate */
    BGZF_ENGINE_ZLIB,
    BGZF_ENGINE_COUNT
};

/* How blocks are deflated. */
struct bgzf_method {
    int level;                  /* 0 stored, 1-9; -1 or another number: the default of the engine */
    enum bgzf_engine engine;
    bool is_text;               /* not BAM records: auto does not choose our own encoder */
};

struct bgzf_coder {
    void *decompressor;
    void *compressor;
    struct bgzf_method made_for;        /* the compressor's method; never auto */
};

void bgzf_coder_release(struct bgzf_coder *coder);

/* Returns the name that --deflate accepts: "auto", "libdeflate", "igzip", "rocksort" or "zlib". */
const char *bgzf_engine_name(enum bgzf_engine engine);

/* Returns 0, or -1 if no engine has this name. */
int bgzf_engine_parse(const char *name, enum bgzf_engine *engine);

/* Returns true for auto, too. */
bool bgzf_engine_is_built_in(enum bgzf_engine engine);

/* True if the engine, built in or not, has a level. All have level 0, which needs no engine. */
bool bgzf_engine_has_level(enum bgzf_engine engine, int level);

/* Returns the engine of a method, which must be built in; replaces auto with another engine. */
enum bgzf_engine bgzf_engine_choose(struct bgzf_method method);

/* Returns name and version of an engine's library, such as "ISA-L" and "2.30.0"; both are NULL for
   auto, or if it is not built in. For libdeflate and ISA-L it is the version of their headers, with
   a remark if the loaded library is known to be another version. */
const char *bgzf_engine_library(enum bgzf_engine engine, const char **version);

/*
 * Deflates raw_bytes, at most 65536, at a level of at least 1 into `out`, which has `room`. Returns
 * the size, 0 if there is too little room, or -1 if the library fails. The method is one that
 * bgzf_engine_choose allows.
 */
ssize_t bgzf_engine_deflate(struct bgzf_coder *coder, struct bgzf_method method,
                            const uint8_t *raw, size_t raw_bytes, uint8_t *out, size_t room);

/* Inflates to exactly out_bytes. Returns 0, or -1 if the data are damaged. */
int bgzf_engine_inflate(struct bgzf_coder *coder, const uint8_t *in, size_t in_bytes, uint8_t *out,
                        size_t out_bytes);

/* CRC-32, as in gzip. */
uint32_t bgzf_engine_crc(uint32_t crc, const uint8_t *bytes, size_t n_bytes);

#endif
