/*
 * transfers.c -- see transfers.h.
 *
 * In Debian's htslib, plug-ins use libcurl. So the real functions are found not by RTLD_NEXT, but
 * in the libraries of the caller.
 *
 * The time limit is long, because a server may need minutes to join the parts of a large object,
 * and sends nothing meanwhile. libcurl does not count the time in which nothing is requested.
 *
 * The functions of libcurl are declared here: their types and numbers have been fixed since 2004,
 * and libcurl's headers need not be installed.
 */
#define _GNU_SOURCE             /* dladdr, RTLD_NOLOAD */
#include "os/transfers.h"

#include "os/exception_guard.h"
#include "os/find_function.h"
#include "util/diag.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CURL_OK = 0,
    CURL_FAILED_INIT = 2,
    CURL_PARTIAL_FILE = 18,
    CURL_ABORTED = 42,
    CURL_GOT_NOTHING = 52,
    CURL_LOW_SPEED_LIMIT = 19,
    CURL_LOW_SPEED_TIME = 20,
    CURL_RESPONSE_CODE = 0x200000 + 2,
    CURL_SIZE_DOWNLOAD = 0x300000 + 8,
    CURL_EFFECTIVE_METHOD = 0x100000 + 58,      /* since libcurl 7.72 */
    CURL_MESSAGE_DONE = 1,
    SILENT_SECONDS = 300,
    FIRST_ERROR_STATUS = 300,   /* a redirection that was not followed */
};

/* CURLMsg of libcurl */
struct curl_message {
    int kind;
    void *easy;
    union {
        void *any;
        int result;
    } data;
};

/* A libcurl in the program itself takes precedence over these. */
int curl_easy_perform(void *easy) __attribute__((weak));
int curl_multi_add_handle(void *multi, void *easy) __attribute__((weak));
struct curl_message *curl_multi_info_read(void *multi, int *n_left) __attribute__((weak));

/* Functions of the libcurl that a library uses; NULL if they are not found. */
struct curl_functions {
    int (*easy_perform)(void *easy);
    int (*multi_add_handle)(void *multi, void *easy);
    struct curl_message *(*multi_info_read)(void *multi, int *n_left);
    int (*easy_setopt)(void *easy, int option, ...);
    int (*easy_getinfo)(void *easy, int info, ...);
    const char *(*easy_strerror)(int error);
};

static const char odd_answer[] = "the answer of the server is not what it should be";
static atomic_bool is_used;             /* curl_easy_perform below was called */
static _Thread_local struct {
    char failure[160];
    const char *opening;
    bool refuse, closing;
    bool performs;              /* within curl_easy_perform, which calls curl_multi_info_read */
} mine;

void transfers_tell(const char *failure)
{
    (void)snprintf(mine.failure, sizeof mine.failure, "%s", failure);
}

const char *transfers_failure(void)
{
    return mine.failure[0] ? mine.failure : NULL;
}

hFILE *transfers_open_output(const char *name)
{
    mine.failure[0] = '\0';
    mine.opening = name;
    errno = 0;
    hFILE *file = hopen(name, "w");
    mine.opening = NULL;
    if (!file && errno == 0) errno = EIO;       /* htslib's S3 does not set it */
    if (file) mine.failure[0] = '\0';           /* htslib asked again, in another region */
    return file;
}

int transfers_close_output(hFILE *file)
{
    mine.failure[0] = '\0';
    mine.closing = true;
    errno = EIO;
    int r = hclose(file);
    mine.closing = false;
    return r == 0 && !mine.failure[0] ? 0 : -1;
}

void transfers_abandon_output(const char *name, hFILE *file)
{
    if (strncmp(name, "s3", 2) != 0 || !atomic_load(&is_used)) return;
    mine.refuse = true;
    /* Without a byte to send there would be no request, and the upload would stay open. */
    if (hputc(0, file) == 0) (void)!hflush(file);
    hclose_abruptly(file);
    mine.refuse = false;
}

const char *transfers_problem(int error)
{
    if (mine.failure[0]) return mine.failure;
    return error == 0 || error == EIO ? odd_answer : strerror(error);
}

/* `caller`: an address in the library that calls libcurl. */
static struct curl_functions find_curl(void *caller)
{
    struct curl_functions curl = {0};
    Dl_info info;
    void *library = NULL;
    if (dladdr(caller, &info) && info.dli_fname)
        library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    void *where = library ? library : RTLD_NEXT;
    find_function(where, "curl_easy_perform", &curl.easy_perform);
    find_function(where, "curl_multi_add_handle", &curl.multi_add_handle);
    find_function(where, "curl_multi_info_read", &curl.multi_info_read);
    find_function(where, "curl_easy_setopt", &curl.easy_setopt);
    find_function(where, "curl_easy_getinfo", &curl.easy_getinfo);
    find_function(where, "curl_easy_strerror", &curl.easy_strerror);
    if (library) (void)dlclose(library);        /* the caller keeps it */
    return curl;
}

/* The variables are those of htslib 1.24, which sets the limit itself. */
static long number_of(const char *variable, long otherwise)
{
    const char *text = getenv(variable);
    long number = text ? strtol(text, NULL, 10) : 0;
    return number > 0 ? number : otherwise;
}

static void set_limit(const struct curl_functions *curl, void *easy)
{
    if (!curl->easy_setopt) return;
    (void)curl->easy_setopt(easy, CURL_LOW_SPEED_LIMIT, number_of("HTS_LOW_SPEED_LIMIT", 1));
    (void)curl->easy_setopt(easy, CURL_LOW_SPEED_TIME,
                            number_of("HTS_LOW_SPEED_TIME", SILENT_SECONDS));
}

static const char *status_text(long status)
{
    switch (status) {
    case 401:
    case 403: return " (permission denied: look at the credentials)";
    case 404: return " (not found: look at the name)";
    default: return "";
    }
}

static void keep_failure(const struct curl_functions *curl, void *easy, int r)
{
    long status = 0;
    mine.failure[0] = '\0';
    if (curl->easy_getinfo) (void)curl->easy_getinfo(easy, CURL_RESPONSE_CODE, &status);
    if (status >= FIRST_ERROR_STATUS)
        (void)snprintf(mine.failure, sizeof mine.failure, "the server answered %ld%s", status,
                       status_text(status));
    else if (r != CURL_OK)
        transfers_tell(curl->easy_strerror ? curl->easy_strerror(r) : "the transfer failed");
}

/* Returns the method of the last request, or NULL if libcurl is too old to tell. */
static const char *method_of(const struct curl_functions *curl, void *easy)
{
    const char *method = NULL;
    if (curl->easy_getinfo) (void)curl->easy_getinfo(easy, CURL_EFFECTIVE_METHOD, &method);
    return method;
}

static bool has_method(const struct curl_functions *curl, void *easy, const char *wanted)
{
    const char *method = method_of(curl, easy);
    return method && strcmp(method, wanted) == 0;
}

/* True if an upload was begun or completed and the answer is empty: htslib (1.16 and 1.24) searches
   it for words and crashes. */
static bool lacks_content(const struct curl_functions *curl, void *easy)
{
    double n_bytes = 1;
    if (curl->easy_getinfo) (void)curl->easy_getinfo(easy, CURL_SIZE_DOWNLOAD, &n_bytes);
    return n_bytes < 1 && (mine.opening || has_method(curl, easy, "POST"));
}

int curl_easy_perform(void *easy)
{
    struct curl_functions curl = find_curl(__builtin_return_address(0));
    if (!curl.easy_perform || curl.easy_perform == curl_easy_perform) return CURL_FAILED_INIT;
    atomic_store(&is_used, true);
    if (mine.refuse) {
        mine.refuse = false;
        return CURL_ABORTED;
    }
    set_limit(&curl, easy);
    /* Later requests, such as the one that aborts the upload, must not hide the failure. */
    char before[sizeof mine.failure];
    memcpy(before, mine.failure, sizeof before);
    mine.performs = true;
    int error = errno, r = curl.easy_perform(easy);
    mine.performs = false;
    /* libcurl sets errno to 0: see output_path_close. When htslib opens an output, errno may come
       from a missing file of credentials. */
    errno = mine.opening ? EIO : error;
    keep_failure(&curl, easy, r);
    if (r == CURL_OK && lacks_content(&curl, easy)) {
        r = CURL_GOT_NOTHING;
        if (!mine.failure[0]) transfers_tell("the answer of the server is empty");
    }
    if (mine.opening && r != CURL_OK) {
        diag_error("cannot create '%s': %s", mine.opening, mine.failure);
        exception_guard_give_up();
    }
    if (before[0]) memcpy(mine.failure, before, sizeof before);
    /* htslib aborts an upload if an answer lacks what it needs. */
    if (!mine.failure[0] && has_method(&curl, easy, "DELETE")) transfers_tell(odd_answer);
    return r;
}

int curl_multi_add_handle(void *multi, void *easy)
{
    struct curl_functions curl = find_curl(__builtin_return_address(0));
    if (!curl.multi_add_handle || curl.multi_add_handle == curl_multi_add_handle)
        return CURL_FAILED_INIT;
    set_limit(&curl, easy);
    return curl.multi_add_handle(multi, easy);
}

struct curl_message *curl_multi_info_read(void *multi, int *n_left)
{
    struct curl_functions curl = find_curl(__builtin_return_address(0));
    if (!curl.multi_info_read || curl.multi_info_read == curl_multi_info_read) return NULL;
    struct curl_message *message = curl.multi_info_read(multi, n_left);
    if (!message || message->kind != CURL_MESSAGE_DONE || mine.performs) return message;
    keep_failure(&curl, message->easy, message->data.result);
    if (!mine.closing || message->data.result != CURL_OK) return message;
    /* After status 303 libcurl reads from the new URL and uploads nothing. */
    const char *method = method_of(&curl, message->easy);
    if (!mine.failure[0] && method && strcmp(method, "PUT") != 0)
        transfers_tell("the server asked to read another place");
    if (mine.failure[0]) message->data.result = CURL_PARTIAL_FILE;
    return message;
}
