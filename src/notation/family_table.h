/* The files of data/families, embedded as text when the library is built, and where in them each
 * statement stands: who asks for a family reads it, and not the others. */
#pragma once
#include "scalemodel/text.h"

extern const sm_source sm_family_table[];
extern const size_t sm_family_table_count;

/* A statement: its keyword (a token_kind), its file, the byte after the keyword. */
typedef struct family_statement {
    uint8_t keyword, file;
    uint32_t at;
} family_statement;
extern const family_statement sm_family_statement[];
extern const size_t sm_family_statement_count;

/* A name of a text or a family: its letters in the file of its statement. Those of texts first, by
 * their letters. */
typedef struct family_name {
    uint32_t at;
    uint16_t length, statement;
} family_name;
extern const family_name sm_family_name[];
extern const size_t sm_family_text_count, sm_family_name_count;
