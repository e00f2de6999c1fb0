/* Text measured in terminal columns: cut, wrapped, padded. Control characters and malformed UTF-8
 * count and print as one '?'. */
#pragma once
#include "scalemodel/base.h"
#include "scalemodel/render.h"

#include <string.h>

int sm_columns_of(const char *text, size_t length);
void sm_print_text(FILE *out, const char *text, size_t length);
void sm_print_repeated(FILE *out, const char *glyph, int times);

/* A line of at most `columns` columns from the start of text: its bytes, and in *next where the
 * line after it begins. Breaks at a newline, else at the last blank, else after the last of ",;/",
 * else anywhere; always moves on. */
size_t sm_next_line(const char *text, size_t length, int columns, size_t *next);

/* SM_OK, or SM_IO when the stream has failed. */
sm_status sm_finish_stream(FILE *out, sm_error *err);
