/* column_request.c -- see column_request.h. */
#include "columns/column_request.h"

#include "util/diag.h"

bool column_request_needs_census(const struct column_request *request)
{
    const char *at = request->list;
    if (!at) return true;
    for (; at; at = strchr(at, ',')) {
        if (*at == ',') at++;
        if (strncmp(at, "all", 3) == 0 && (at[3] == ',' || at[3] == '\0')) return true;
    }
    return false;
}

struct column_schema *column_request_schema(const struct column_request *request,
                                            const struct tag_census *census)
{
    const char *problem, *part;
    size_t n_bytes;
    struct column_schema *schema = column_schema_create(request->list, census, &problem, &part,
                                                        &n_bytes);
    if (schema) return schema;
    if (n_bytes == 0)
        diag_error("option --columns has an empty name in '%s'", request->list);
    else
        diag_error("option --columns: '%.*s' %s", (int)(n_bytes < 40 ? n_bytes : 40), part, problem);
    return NULL;
}
