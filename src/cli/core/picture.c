/* picture: charts and timelines as files. */
#include "picture.h"
#include "scalemodel/io.h"
#include "scalemodel/render.h"

/* One of the two is drawn. */
static sm_status write_picture(const sm_chart *chart, const sm_tracks *tracks, const char *path,
                               sm_error *err) {
    sm_memory_stream memory;
    FILE *out = sm_memory_stream_open(&memory);
    if (!out) return sm_fail_memory(err);
    sm_status status =
        chart ? sm_render_chart(chart, out, err) : sm_render_tracks(tracks, out, err);
    status = sm_memory_stream_close(&memory, out, status, err);
    if (!status) status = sm_io_write(path, memory.text, memory.length, err);
    sm_free(memory.text);
    return status;
}

sm_status cli_write_chart(const sm_chart *chart, const char *path, sm_error *err) {
    return write_picture(chart, NULL, path, err);
}

sm_status cli_write_tracks(const sm_tracks *tracks, const char *path, sm_error *err) {
    return write_picture(NULL, tracks, path, err);
}
