/* column_type.c -- see column_type.h. */
#include "columns/column_type.h"

size_t column_type_bytes(enum column_type type)
{
    switch (type) {
    case COLUMN_UINT8:
    case COLUMN_INT8_LIST:
    case COLUMN_UINT8_LIST: return 1;
    case COLUMN_UINT16:
    case COLUMN_INT16_LIST:
    case COLUMN_UINT16_LIST: return 2;
    case COLUMN_INT32:
    case COLUMN_FLOAT32:
    case COLUMN_REFERENCE:
    case COLUMN_INT32_LIST:
    case COLUMN_UINT32_LIST:
    case COLUMN_FLOAT32_LIST: return 4;
    case COLUMN_INT64: return 8;
    default: return 0;
    }
}

bool column_type_of_tag(char type, char element, enum column_type *column)
{
    static const char elements[] = "cCsSiIf";
    const char *at = element ? strchr(elements, element) : NULL;
    switch (type) {
    case 'A': *column = COLUMN_CHAR; return true;
    case 'i': *column = COLUMN_INT64; return true;
    case 'f': *column = COLUMN_FLOAT32; return true;
    case 'Z':
    case 'H': *column = COLUMN_TEXT; return true;
    case 'B':
        if (at) *column = (enum column_type)(COLUMN_INT8_LIST + (at - elements));
        return at != NULL;
    default: return false;
    }
}

bool column_type_holds(enum column_type type, const struct bam_aux *aux)
{
    char tag_type = aux->type;
    if (strchr("cCsSI", tag_type)) tag_type = 'i';
    enum column_type of_tag;
    return column_type_of_tag(tag_type, tag_type == 'B' ? (char)aux->value[0] : 0, &of_tag) &&
           of_tag == type;
}
