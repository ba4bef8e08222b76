/*
 * bgzf_engine.h -- what deflates and inflates: libdeflate, ISA-L's igzip, our own encoder, zlib.
 *
 * A build has our own (deflate.h) and zlib always, libdeflate if HAVE_LIBDEFLATE is defined, igzip
 * if HAVE_ISAL is. Our own is made for BAM records, and has levels 1 to 5; its level 3 makes the
 * size of libdeflate's 6, the usual one, in a third of the time. Igzip has only level 1, where it
 * takes half the time of libdeflate and makes files 3 to 6 % larger. Libdeflate is the best for
 * other data and the smallest files. The output depends on the version of the library only; igzip
 * may write a few bytes more or less from run to run (bgzf_engine.c).
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
                                   that has the level and is built in */
    BGZF_ENGINE_LIBDEFLATE,
    BGZF_ENGINE_IGZIP,
    BGZF_ENGINE_OWN,            /* the room deflate */
    BGZF_ENGINE_ZLIB,
    BGZF_ENGINE_COUNT
};

/* How blocks are deflated. */
struct bgzf_method {
    int level;                  /* 0 stored, 1-9; -1 or another number: the default of the engine */
    enum bgzf_engine engine;
    bool is_text;               /* there are no BAM records: auto is not our own */
};

struct bgzf_coder {
    void *decompressor;
    void *compressor;
    struct bgzf_method made_for;        /* of the compressor; never auto */
};

void bgzf_coder_release(struct bgzf_coder *coder);

/* "auto", "libdeflate", "igzip", "rocksort" or "zlib", as --deflate takes them. */
const char *bgzf_engine_name(enum bgzf_engine engine);

/* Returns 0, or -1 if no engine has this name. */
int bgzf_engine_parse(const char *name, enum bgzf_engine *engine);

/* Auto is always built in. */
bool bgzf_engine_is_built_in(enum bgzf_engine engine);

/* True if the engine, built in or not, has a level. Level 0 needs no engine, so each has it. */
bool bgzf_engine_has_level(enum bgzf_engine engine, int level);

/* The engine that deflates by a method, which is built in: auto becomes another. */
enum bgzf_engine bgzf_engine_choose(struct bgzf_method method);

/* Name and version of an engine's library, such as "ISA-L" and "2.30.0"; both are NULL if it is not
   built in, and for auto. Libdeflate and ISA-L do not tell the version that is loaded: it is
   that of their headers, with a remark if another is loaded and that can be known. */
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
uint32_t bgzf_engine_crc(const uint8_t *bytes, size_t n_bytes);

#endif
