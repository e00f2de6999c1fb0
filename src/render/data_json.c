/* The data of a report as JSON. */
#include "columns.h"
#include "scalemodel/json.h"
#include "scalemodel/render.h"

sm_status sm_render_json(const sm_report *report, FILE *out, sm_error *err) {
    if (report->out_of_memory) return sm_fail_memory(err);
    sm_status status = sm_json_write(out, report->data, SM_JSON_PAGE, err);
    return status ? status : sm_finish_stream(out, err);
}
