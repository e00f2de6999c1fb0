/* line_reader: the lines of a file, packed or not, or of a text in memory, one after the other
 * through a buffer that does not grow with the file. Private to src/io. */
#pragma once
#include "packed_stream.h"

/* Of one line; of blank lines and comments one after the other. */
enum { LINE_MOST_BYTES = 4 << 20, LINE_MOST_BLANK = 16 << 20 };

typedef struct line_reader {
    const char *name;
    packed_stream *file;
    char *buffer;
    size_t room, begin, end; /* of the buffer: bytes not yet given */
    bool at_end;
    int line; /* number of the last line given */
} line_reader;

sm_status line_reader_open(line_reader *r, const char *path, sm_error *err);
sm_status line_reader_of(line_reader *r, const sm_source *source, sm_error *err);
void line_reader_close(line_reader *r);
/* From the beginning again. SM_IO for what cannot be read twice. */
sm_status line_reader_rewind(line_reader *r, sm_error *err);
/* The next line that is not blank and does not begin with '#', without its end, as a source that
 * stays valid until the next call. *more: false at the end. */
sm_status line_reader_next(line_reader *r, sm_source *line, bool *more, sm_error *err);
/* sm_fail_at on a line given by the reader: the place is that in the file. */
sm_status line_fail(const line_reader *r, const sm_source *line, sm_span span, sm_error *err,
                    const char *format, ...) __attribute__((format(printf, 5, 6)));
