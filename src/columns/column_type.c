/* column_type.c -- see column_type.h. */
#include "columns/column_type.h"

/* In the order of the types of lists. */
static const char elements[] = "cCsSiIf";

struct column_number column_type_number(enum column_type type)
{
    static const struct column_number numbers[] = {
        [COLUMN_UINT8] = {1, false, false, false},
        [COLUMN_UINT16] = {2, false, false, false},
        [COLUMN_INT32] = {4, false, false, true},
        [COLUMN_INT64] = {8, false, false, true},
        [COLUMN_FLOAT32] = {4, false, true, true},
        [COLUMN_REFERENCE] = {4, false, false, true},
        [COLUMN_INT8_LIST] = {1, true, false, true},
        [COLUMN_UINT8_LIST] = {1, true, false, false},
        [COLUMN_INT16_LIST] = {2, true, false, true},
        [COLUMN_UINT16_LIST] = {2, true, false, false},
        [COLUMN_INT32_LIST] = {4, true, false, true},
        [COLUMN_UINT32_LIST] = {4, true, false, false},
        [COLUMN_FLOAT32_LIST] = {4, true, true, true},
        [COLUMN_MAP] = {0, false, false, false},
    };
    return numbers[type];
}

/* The place of a letter, or NULL. */
static const char *element_at(uint8_t letter)
{
    return memchr(elements, letter, sizeof elements - 1);
}

bool column_type_is_element(uint8_t letter)
{
    return element_at(letter) != NULL;
}

bool column_type_of_tag(char type, char element, enum column_type *column)
{
    const char *at = element_at((uint8_t)element);
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
