/* picture: what an answer holds beside its page, as a file: a chart as SVG, a timeline for
 * Perfetto. */
#ifndef SCALEMODEL_CLI_PICTURE_H
#define SCALEMODEL_CLI_PICTURE_H
#include "scalemodel/report.h"

/* Drawn whole, then written: nothing half-written is left. SM_IO when the file refuses. */
sm_status cli_write_chart(const sm_chart *chart, const char *path, sm_error *err);
sm_status cli_write_tracks(const sm_tracks *tracks, const char *path, sm_error *err);
#endif
