/* sweep: any question of a verb for every combination of values, a row each. */
#include "program.h"
#include "sweep.h"
#include <stdlib.h>
#include <unistd.h>

enum { MOST_SHOWN = 100000 };

typedef struct values {
    sweep_values of;
    int64_t threads;
} threads_values;

/* ---- rows ---- */

typedef struct taking {
    const sweep *s;
    sweep_file *file;
    sweep_plot *plot; /* NULL: none */
    int64_t row;      /* the next */
    sm_report *r;
    sm_data *rows;
    sm_table *table;
    double yes, no, refused;
    const char *why; /* of the first that was refused */
} taking;

/* Is the cell a number as JSON has it? */
static bool is_number(const char *text) {
    char *end;
    strtod(text, &end);
    return *text && !*end && strspn(text, "0123456789.eE+-") == strlen(text);
}

/* A number of a column is shortened; a value of a key is shown as it was given. */
static const char *shown(const taking *t, int cell, const char *text) {
    if (!*text) return "-";
    return cell > t->s->axes && is_number(text) ? sm_show_number(t->r, strtod(text, NULL)) : text;
}

/* The page has as many columns as fit: keys, the few after the first, and last the first, the plan,
 * or why there is none. */
enum { FEW = 2 };

static int few(const sweep *s) { return s->columns - 1 < FEW ? s->columns - 1 : FEW; }

static sm_status take(void *context, const char *cells, sm_error *err) {
    taking *t = context;
    const char *cell[SWEEP_MOST_CELLS];
    sweep_part(t->s, cells, cell);
    const char verdict = *cell[t->s->axes]; /* of "yes", "no" and "refused" */
    *(verdict == 'y' ? &t->yes : verdict == 'n' ? &t->no : &t->refused) += 1.0;
    if (verdict == 'r' && !t->why) t->why = sm_textf(t->r, "%s", cell[sweep_cells(t->s) - 1]);
    sweep_plot_put(t->plot, t->row++, cell);
    if (t->file) return sweep_file_put(t->file, cell, err);
    const sweep *s = t->s;
    const int n = sweep_cells(s), first = s->axes + 1, last = s->axes + few(s);
    sm_data *row = sm_put_object(t->r, t->rows, NULL);
    for (int i = 0; i < n; i++)
        if (is_number(cell[i])) sm_put(t->r, row, sweep_head(s, i), strtod(cell[i], NULL));
        else sm_put(t->r, row, sweep_head(s, i), *cell[i] ? cell[i] : NULL);
    const char *tail = *cell[n - 1] ? cell[n - 1] : shown(t, first, cell[first]);
    for (int i = s->axes; i < last; i++) cell[i] = shown(t, i + 2, cell[i + 2]);
    cell[last] = tail;
    sm_page_cells(t->r, t->table, cell);
    return t->r->out_of_memory ? sm_fail_memory(err) : SM_OK;
}

static void begin_table(taking *t) {
    const sweep *s = t->s;
    const int last = s->axes + few(s);
    const char *heads = "";
    for (int i = 0; i <= last; i++)
        heads =
            sm_textf(t->r, "%s%s%s%s", heads, i ? "|" : "", i < s->axes || i == last ? "<" : ">",
                     sweep_head(s, i < s->axes ? i
                                   : i < last  ? i + 2
                                               : s->axes + 1));
    t->rows = sm_put_array(t->r, t->r->data, "rows");
    t->r->records = t->rows;
    t->table = sm_page_table(t->r, NULL, heads);
}

static void end_page(const taking *t, const char *output, int64_t before) {
    sm_report *r = t->r;
    sm_report_text(r, "%s%.0f answered; %.0f whose answer is no; %.0f refused%s%s.",
                   before ? sm_textf(r, "%lld were there already; ", (long long)before) : "",
                   t->yes, t->no, t->refused, t->why ? ": " : "", t->why ? t->why : "");
    if (output) sm_report_text(r, "%s has a row of CSV for each.", output);
    sm_put(r, r->data, "output|there_before|answered|negative|refused", output, (double)before,
           t->yes, t->no, t->refused);
}

sm_status sweep_new(const cli_call *call, const cli_list *over, const char *columns, int words,
                    const char *const *word, sweep **out, sm_error *err) {
    sweep *s = sm_arena_alloc(call->arena, sizeof *s);
    cli_memo *memo = sm_arena_alloc(call->arena, sizeof *memo);
    *out = NULL;
    if (!s || !memo) return sm_fail_memory(err);
    s->watch =
        (sm_command_watch){.size = sizeof s->watch, .stop = call->watch ? call->watch->stop : NULL};
    s->system_file = call->common.system_file;
    sm_status status = sweep_read(s, over, columns, words, word, call->arena, err);
    if (status) return status;
    s->brief = !s->asked.text;
    *memo = (cli_memo){.arena = call->arena};
    s->memo = memo;
    pthread_mutex_init(&memo->lock, NULL);
    *out = s;
    return SM_OK;
}

void sweep_end(sweep *s) { pthread_mutex_destroy(&s->memo->lock); }

static sm_status ask_all(const cli_call *call, const sweep_values *o, sweep *s,
                         const sweep_askers *askers, sm_report *r, sm_error *err) {
    int64_t before = 0;
    sm_status status = SM_OK;
    if (!o->output && s->rows > MOST_SHOWN)
        return sm_fail(err, SM_USAGE, "%lld questions: more than %d go to a file, with -o FILE",
                       (long long)s->rows, MOST_SHOWN);
    taking t = {.s = s, .r = r};
    const sweep_taker taker = {take, &t, !call->watch && isatty(STDERR_FILENO) == 1};
    sm_put(r, r->data, "command|verb|questions", "sweep", s->verb->about->name, (double)s->rows);
    sm_report_heading(r, "A sweep of %s: %lld question%s", s->verb->about->name, (long long)s->rows,
                      s->rows == 1 ? "" : "s");
    if (o->plot) status = sweep_plot_new(s, r->arena, &t.plot, err);
    if (!status && o->output)
        status = sweep_file_open(o->output, s, t.plot, call->arena, &t.file, &before, err);
    else if (!status) begin_table(&t);
    t.row = before;
    if (!status && r->out_of_memory) status = sm_fail_memory(err);
    if (!status) status = sweep_spread(s, before, askers, &taker, err);
    sm_error none = {.status = SM_OK};
    sm_status closed = sweep_file_close(t.file, !status, status ? &none : err);
    if (!status) status = closed;
    if (!status) end_page(&t, o->output, before);
    if (!status && t.plot) status = sweep_plot_draw(t.plot, r, err);
    return status ? status : t.yes > 0.0 || before > 0 ? SM_OK : SM_NEGATIVE;
}

sm_status sweep_run(const cli_call *call, const sweep_values *o, const sweep_askers *askers,
                    sm_report *r, sm_error *err) {
    sweep *s;
    sm_status status =
        sweep_new(call, &o->over, o->columns, call->positionals, call->positional, &s, err);
    if (status) return status;
    if (o->over.n > 0) status = ask_all(call, o, s, askers, r, err);
    else
        status = sm_fail(err, SM_USAGE,
                         "a sweep takes values from --over, as in --over batch=1M,4M; without it "
                         "this is one question of %s",
                         s->verb->about->name);
    sweep_end(s);
    return status;
}

static sm_status run_sweep(const cli_call *call, sm_report *r, sm_error *err) {
    const threads_values *o = call->values;
    const sweep_askers askers = {.threads = sm_search_threads((int)o->threads)};
    return sweep_run(call, &o->of, &askers, r, err);
}

const cli_verb cli_sweep = {
    .about = &verbs_sweep,
    CLI_VALUES(SWEEP_PLACES(of), AT("threads", threads)),
    .tells_progress = true,
    .asks = &cli_scalemodel,
    .run = run_sweep,
};
