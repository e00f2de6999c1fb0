/* file_parts: how files are written, and what is said where the system refuses. A file written
 * under a temporary name beside its place, which takes the place at once when all of it is on the
 * disk. Private to src/io. */
#pragma once
#include "scalemodel/text.h"

#include <string.h>

typedef struct replacement replacement;
/* A symbolic link is kept and its target replaced; devices and pipes are written in place. path
 * must outlive it. */
sm_status replacement_begin(const char *path, replacement **out, sm_error *err);
int replacement_file(const replacement *r); /* the descriptor to write to */
/* reason: 0, or the errno of a write that failed, which leaves what was there. Frees r. */
sm_status replacement_end(replacement *r, int reason, sm_error *err);
void replacement_abandon(replacement *r); /* leaves what was there; frees r; NULL is fine */

/* Every byte, however the system cuts it up: 0 or errno. */
int write_bytes(int file, const void *bytes, size_t length);

/* ---- what the operating system refused, as one sentence ---- */
/* "cannot VERB PATH: reason"; reason: an errno. SM_IO. */
sm_status sm_fail_system(sm_error *err, const char *verb, const char *path, int reason);

/* The bytes of a file or of standard input ("-"), unpacked on the way where gzip,
 * zstd or xz packed them, through buffers that do not grow. Private to src/io. What is read of
 * files is read here. */
/* Bytes that are looked at before all others; of what is packed: what its bytes may become, each
 * and, before that is looked at, all together. */
enum { PACKED_PEEK = 1 << 12, PACKED_MOST_RATIO = 250, PACKED_FREE_BYTES = 64 << 20 };

typedef struct packed_stream packed_stream;

/* Open and read the first bytes. SM_IO with the reason; SM_BAD_INPUT when what is packed is damaged
 * or was packed by something else. plain: bytes as they are, and "-" is a file like any other. */
sm_status packed_open(const char *path, bool plain, packed_stream **out, sm_error *err);
/* The same of bytes in memory, which stay in place. */
sm_status packed_of(const sm_source *bytes, packed_stream **out, sm_error *err);
/* From the beginning again. SM_IO for what cannot be read twice. */
sm_status packed_rewind(packed_stream *s, sm_error *err);
void packed_close(packed_stream *s);
/* Its first bytes, at most PACKED_PEEK, which reading gives again. */
sm_source packed_first(const packed_stream *s);
/* What reads it; lives as long as the stream. */
sm_bytes packed_bytes(packed_stream *s);
/* All that is left. SM_IO when that is more than `most` bytes. */
sm_status packed_rest(packed_stream *s, size_t most, sm_arena *arena, sm_source *out,
                      sm_error *err);

/* The lines of a file, packed or not, or of a text in memory, one after the other
 * through a buffer that does not grow with the file. Private to src/io. */
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
/* The next line that is not blank and does not begin with '#', without its end, as a source that
 * stays valid until the next call. *more: false at the end. */
sm_status line_reader_next(line_reader *r, sm_source *line, bool *more, sm_error *err);
/* sm_fail_at on a line given by the reader: the place is that in the file. */
sm_status line_fail(const line_reader *r, const sm_source *line, sm_span span, sm_error *err,
                    const char *format, ...) __attribute__((format(printf, 5, 6)));
