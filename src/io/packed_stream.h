/* packed_stream: the bytes of a file or of standard input ("-"), unpacked on the way where gzip,
 * zstd or xz packed them, through buffers that do not grow. Private to src/io. What is read of
 * files is read here. */
#pragma once
#include "scalemodel/text.h"

/* Bytes that are looked at before all others; of what is packed: what its bytes may become, each
 * and, before that is looked at, all together. */
enum { PACKED_PEEK = 1 << 12, PACKED_MOST_RATIO = 250, PACKED_FREE_BYTES = 64 << 20 };

typedef struct packed_stream packed_stream;

/* Open and read the first bytes. SM_IO with the reason; SM_BAD_INPUT when what is packed is damaged
 * or was packed by something else. */
sm_status packed_open(const char *path, packed_stream **out, sm_error *err);
/* A file whose bytes are taken as they are, packed or not; "-" is a file like any other. */
sm_status packed_open_plain(const char *path, packed_stream **out, sm_error *err);
/* The same of bytes in memory, which stay in place. */
sm_status packed_of(const sm_source *bytes, packed_stream **out, sm_error *err);
/* From the beginning again. SM_IO for what cannot be read twice. */
sm_status packed_rewind(packed_stream *s, sm_error *err);
void packed_close(packed_stream *s);
/* Its first bytes, at most PACKED_PEEK, which reading gives again. */
sm_source packed_first(const packed_stream *s);
/* What reads it; lives as long as the stream. */
sm_bytes packed_bytes(packed_stream *s);
/* Is what it becomes out of all proportion to what was read? */
bool packed_swells(const packed_stream *s);
/* All that is left. SM_IO when that is more than `most` bytes. */
sm_status packed_rest(packed_stream *s, size_t most, sm_arena *arena, sm_source *out,
                      sm_error *err);
