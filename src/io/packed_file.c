/* Whole files that may be packed. */
#include "packed_stream.h"
#include "scalemodel/io.h"

sm_status sm_io_read_packed(const char *path, size_t most, sm_arena *arena, sm_source *source,
                            sm_error *err) {
    packed_stream *s;
    sm_status status = packed_open(path, &s, err);
    if (status) return status;
    status = packed_rest(s, most, arena, source, err);
    packed_close(s);
    return status;
}
