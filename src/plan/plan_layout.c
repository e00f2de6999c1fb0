/* The layers of each chunk of a pipeline: "7.8*14.6". */
#include <stdlib.h>

#include "plan_row.h"

/* Runs of equal numbers, written as they end. */
typedef struct runs {
    char *out;
    size_t used;
    int64_t number, times;
} runs;

static void end_run(runs *r) {
    if (r->times == 0 || r->used >= SM_PLAN_LAYOUT_TEXT) return;
    r->used += (size_t)snprintf(r->out + r->used, SM_PLAN_LAYOUT_TEXT - r->used,
                                r->times > 1 ? "%s%d*%d" : "%s%d", r->used ? "." : "",
                                (int)r->number, (int)r->times);
}

static void add_run(runs *r, int64_t number, int64_t times) {
    if (r->times > 0 && r->number == number) {
        r->times += times;
        return;
    }
    end_run(r);
    r->number = number;
    r->times = times;
}

sm_status plan_layout_read(const sm_source *source, sm_span value, char *out, sm_error *err) {
    static const char *const even[] = {"even"};
    runs r = {.out = out};
    out[0] = '\0';
    if (sm_words_find((sm_words){even, 1}, source, value) == 0) return SM_OK;
    for (size_t at = value.offset; at <= value.offset + value.length;) {
        int64_t number = 0, times = 1;
        sm_span part = sm_next_part(source, value, '.', &at);
        size_t star = part.offset, end = part.offset + part.length;
        sm_span first = sm_next_part(source, part, '*', &star);
        sm_status status = sm_integer_parse(source, first, 0, SM_MAX_LAYERS, &number, err);
        if (!status && star <= end)
            status = sm_integer_parse(source, (sm_span){star, end - star}, 1, SM_MAX_LAYERS, &times,
                                      err);
        if (status) return status;
        add_run(&r, number, times);
    }
    end_run(&r);
    if (r.used < SM_PLAN_LAYOUT_TEXT) return SM_OK;
    return sm_fail_at(err, source, value, "a layout takes at most %d letters; 8*14 is 14 times 8",
                      SM_PLAN_LAYOUT_TEXT - 1);
}

/* Up to `most` of them; returns how many there are. */
static int read_back(const char *layout, int *layers, int most) {
    long n = 0;
    for (const char *at = layout; *at;) {
        char *end;
        long number = strtol(at, &end, 10), times = *end == '*' ? strtol(end + 1, &end, 10) : 1;
        for (long i = n; layers && i < n + times && i < most; i++) layers[i] = (int)number;
        n += times;
        at = *end ? end + 1 : end;
    }
    return (int)n;
}

int sm_plan_layout_chunks(const char *layout) { return read_back(layout, NULL, 0); }

void sm_plan_layout_fill(const sm_plan *plan, int layers, int chunks, int *of) {
    int base = layers / chunks, extra = layers % chunks;
    if (plan->layout[0] && read_back(plan->layout, of, chunks) == chunks) return;
    for (int c = 0; c < chunks; c++) {
        int rank = c == chunks - 1 ? chunks - 1 : c == 0 ? chunks - 2 : c - 1; /* middle first */
        of[c] = base + ((chunks == 1 ? 0 : rank) < extra ? 1 : 0);
    }
}

void plan_settle_layout(sm_plan *plan, int layers) {
    enum { MOST = 1024 };
    int given[MOST], even[MOST], chunks = sm_plan_layout_chunks(plan->layout);
    if (chunks < 1 || chunks > MOST) return;
    sm_plan with = {.use = plan->use};
    sm_plan_layout_fill(plan, layers, chunks, given);
    sm_plan_layout_fill(&with, layers, chunks, even);
    if (memcmp(given, even, (size_t)chunks * sizeof *given) == 0) plan->layout[0] = '\0';
}
