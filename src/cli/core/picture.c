/* picture: charts and timelines as files. */
#include "picture.h"
#include "scalemodel/io.h"
#include "scalemodel/render.h"
#include <stdlib.h>

/* One of the two is drawn. */
static sm_status write_picture(const sm_chart *chart, const sm_tracks *tracks, const char *path,
                               sm_error *err) {
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    if (!memory) return sm_fail_memory(err);
    sm_status status =
        chart ? sm_render_chart(chart, memory, err) : sm_render_tracks(tracks, memory, err);
    if (fclose(memory) != 0 && !status) status = sm_fail_memory(err);
    if (!status) status = sm_io_write(path, text, length, err);
    free(text);
    return status;
}

sm_status cli_write_chart(const sm_chart *chart, const char *path, sm_error *err) {
    return write_picture(chart, NULL, path, err);
}

sm_status cli_write_tracks(const sm_tracks *tracks, const char *path, sm_error *err) {
    return write_picture(NULL, tracks, path, err);
}
