/* Derivation trees as text:
 *   step time 2.19 s = max(math, network)
 *   ├─ math 2.19 s = FLOPs / speed
 *   │  └─ peak 459 TFLOP/s [datasheet]
 */
#include <string.h>

#include "blocks.h"
#include "columns.h"
#include "scalemodel/render.h"

#define TEE "\xE2\x94\x9C\xE2\x94\x80 "    /* U+251C U+2500 */
#define CORNER "\xE2\x94\x94\xE2\x94\x80 " /* U+2514 U+2500 */
#define BAR "\xE2\x94\x82  "               /* U+2502 */
#define BLANK "   "
#define INDENT 3 /* columns of each of them */
#define ROOM_FOR_TEXT 24
#define MOST_LEVELS 64

typedef struct drawing {
    sm_arena *arena; /* for prefixes and lines */
    FILE *out;
    int width, levels; /* levels: deeper nodes are only counted */
} drawing;

/* One node and all below. `first` leads its first line, `rest` the lines after and its children. */
static bool draw_node(const drawing *d, const sm_why *why, const char *first, const char *rest,
                      int level) {
    char value[128];
    sm_format_value(value, sizeof value, why->value, why->unit != NULL ? why->unit : "");
    const char *label = why->label != NULL ? why->label : "";
    const char *line = sm_arena_printf(
        d->arena, "%s %s%s%s%s%s%s", label, value, why->formula != NULL ? " = " : "",
        why->formula != NULL ? why->formula : "", why->source != NULL ? " [" : "",
        why->source != NULL ? why->source : "", why->source != NULL ? "]" : "");
    const char *hang = sm_arena_printf(d->arena, "%s%s", rest, why->first != NULL ? BAR : BLANK);
    if (line == NULL || hang == NULL) return false;
    sm_print_wrapped(d->out, line, d->width, first, hang);
    if (why->first != NULL && level >= d->levels) {
        fprintf(d->out, "%s" CORNER "...\n", rest);
        return true;
    }
    for (const sm_why *child = why->first; child != NULL; child = child->next) {
        bool last = child->next == NULL;
        const char *lead = sm_arena_printf(d->arena, "%s%s", rest, last ? CORNER : TEE);
        const char *below = sm_arena_printf(d->arena, "%s%s", rest, last ? BLANK : BAR);
        if (lead == NULL || below == NULL || !draw_node(d, child, lead, below, level + 1))
            return false;
    }
    return true;
}

sm_status sm_draw_why(const sm_why *why, int width, FILE *out, sm_error *err) {
    drawing d = {sm_arena_new(), out, width, (width - ROOM_FOR_TEXT) / INDENT};
    if (d.levels > MOST_LEVELS) d.levels = MOST_LEVELS;
    bool drawn = d.arena != NULL && draw_node(&d, why, "", "", 0);
    sm_arena_free(d.arena);
    return drawn ? SM_OK : sm_fail_memory(err);
}

sm_status sm_render_why(const sm_why *why, int width, FILE *out, sm_error *err) {
    if (width <= 0) width = 80;
    if (width < NARROWEST_PAGE) width = NARROWEST_PAGE;
    sm_status status = why != NULL ? sm_draw_why(why, width, out, err) : SM_OK;
    return status == SM_OK ? sm_finish_stream(out, err) : status;
}
