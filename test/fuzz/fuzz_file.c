/* fuzz_file.c -- see fuzz_file.h. */
#include "fuzz_file.h"

#include "bam/bgzf_block.h"
#include "fuzz_record.h"
#include "util/byte_order.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_CONTENT = 1 << 18 };

void fuzz_file_create(struct fuzz_file *file)
{
    file->fd = memfd_create("fuzz", MFD_CLOEXEC);
    FUZZ_CHECK(file->fd >= 0);
    (void)snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", file->fd);
}

void fuzz_file_write(struct fuzz_file *file, const uint8_t *bytes, size_t n_bytes)
{
    FUZZ_CHECK(ftruncate(file->fd, 0) == 0);
    FUZZ_CHECK(n_bytes == 0 || pwrite(file->fd, bytes, n_bytes, 0) == (ssize_t)n_bytes);
}

uint8_t *fuzz_file_read(const struct fuzz_file *file, size_t *n_bytes)
{
    struct stat st;
    FUZZ_CHECK(fstat(file->fd, &st) == 0);
    uint8_t *bytes = fuzz_alloc((size_t)st.st_size);
    *n_bytes = (size_t)st.st_size;
    FUZZ_CHECK(pread(file->fd, bytes, *n_bytes, 0) == (ssize_t)*n_bytes);
    return bytes;
}

static size_t put_header(uint8_t *out)
{
    static const struct {
        const char *name;
        uint32_t length;
    } refs[FUZZ_N_REFS] = {{"a", 1000}, {"b", 1u << 29}, {"c", INT32_MAX}};
    size_t text_bytes = strlen(fuzz_header_text);
    memcpy(out, "BAM\1", 4);
    uint8_t *at = put_u32(out + 4, text_bytes);
    memcpy(at, fuzz_header_text, text_bytes);
    at = put_u32(at + text_bytes, FUZZ_N_REFS);
    for (int i = 0; i < FUZZ_N_REFS; i++) {
        at = put_u32(at, 2);
        memcpy(at, refs[i].name, 2);
        at = put_u32(at + 2, refs[i].length);
    }
    return (size_t)(at - out);
}

/* Cuts the content into stored blocks, whose size is taken from the input. */
static uint8_t *make_blocks(struct fuzz_input *in, const uint8_t *content, size_t n,
                            size_t *n_bytes)
{
    uint8_t step = fuzz_u8(in);
    size_t room = BGZF_MAX_BYTES + 2 * n + 64 * (n / (1 + step) + 4), at = 0;
    uint8_t *file = fuzz_alloc(room), *to = file;
    while (at < n) {
        size_t size = 1 + (size_t)step * (step < 128 ? 1 : 500);
        if (size > n - at) size = n - at;
        if (size > BGZF_PAYLOAD_BYTES) size = BGZF_PAYLOAD_BYTES;
        memcpy(to + BGZF_STORED_OFFSET, content + at, size);
        to += bgzf_block_store(to, size);
        at += size;
    }
    memcpy(to, bgzf_end_block, BGZF_END_BYTES);
    to += BGZF_END_BYTES;
    FUZZ_CHECK((size_t)(to - file) <= room);
    *n_bytes = (size_t)(to - file);
    return file;
}

/* Repeats the records: the fuzzer prefers small inputs, but only large files are spilled. */
static size_t repeat_records(uint8_t *content, size_t from, size_t n, size_t wanted)
{
    size_t once = n - from;
    while (once > 0 && n < wanted && n + once <= MAX_CONTENT) {
        memcpy(content + n, content + from, once);
        n += once;
    }
    return n;
}

uint8_t *fuzz_make_file(struct fuzz_input *in, enum fuzz_form form, size_t *n_bytes)
{
    *n_bytes = fuzz_left(in);
    if (form == FUZZ_AS_IT_IS) return fuzz_copy(in->at, *n_bytes);
    struct fuzz_input blocks = {in->at, in->at + (fuzz_left(in) > 0)};
    (void)fuzz_u8(in);
    size_t wanted = (size_t)fuzz_u8(in) << 10;
    OWNED uint8_t *content = fuzz_alloc(MAX_CONTENT + FUZZ_MAX_RECORD);
    size_t header_bytes = form == FUZZ_BLOCKS ? 0 : put_header(content), n = header_bytes;
    if (form == FUZZ_MADE) {
        while (n < MAX_CONTENT && fuzz_left(in) > 0) n += fuzz_make_record(in, content + n);
    } else {
        size_t left = fuzz_left(in) < MAX_CONTENT - n ? fuzz_left(in) : MAX_CONTENT - n;
        fuzz_fill(in, content + n, left);
        n += left;
    }
    if (form != FUZZ_BLOCKS) n = repeat_records(content, header_bytes, n, wanted);
    uint8_t *file = make_blocks(&blocks, content, n, n_bytes);
    return file;
}
