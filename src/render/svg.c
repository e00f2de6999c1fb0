/* What the pictures share. */
#include "svg.h"

#include <string.h>

#include "scalemodel/base.h"

enum { TEXT_ROOM = 200 };
const char svg_grey[] = "#666666", svg_pale[] = "#dddddd", svg_ink[] = "#222222";

const char *svg_colour(size_t n) {
    static const char *const colours[] = {"#1a5fb4", "#c64600", "#26a269", "#813d9c", "#a51d2d",
                                          "#e5a50a", "#0891b2", "#63452c", "#d6338a", "#5e7d0c"};
    return colours[n % (sizeof colours / sizeof colours[0])];
}

void svg_text(svg_anchored at, const char *words, FILE *out) {
    if (!words) return;
    fprintf(out, "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"%s\" fill=\"%s\" font-size=\"%d\">",
            at.x, at.y, at.anchor, at.fill, at.size);
    char clean[TEXT_ROOM];
    sm_utf8_clean(clean, sizeof clean, words, strlen(words));
    for (const char *c = clean; *c; c++) {
        if (*c == '&') fputs("&amp;", out);
        else if (*c == '<') fputs("&lt;", out);
        else if (*c == '>') fputs("&gt;", out);
        else if (*c == '"') fputs("&quot;", out);
        else fputc(*c, out);
    }
    fputs("</text>\n", out);
}

void svg_line(double x1, double y1, double x2, double y2, const char *stroke, FILE *out) {
    fprintf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x1, y1,
            x2, y2, stroke);
}

void svg_open(int width, int height, FILE *out) {
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\""
            " viewBox=\"0 0 %d %d\" font-family=\"Helvetica, Arial, sans-serif\">\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
            width, height, width, height, width, height);
}
