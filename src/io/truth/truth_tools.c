/* Result files of benchmarks of serving, as their tools write them: one row of inference each, by
 * where its columns stand in them.
 *
 * Of first tokens the median is taken where there is one: the mean holds the opening burst of all
 * clients, whose share hangs on how long the benchmark ran. All of these tools count from when the
 * client sends a request, and leave the first token out of the time per token. None says which
 * chips and which plan served: --set does (truth_given). */
#include "truth_form.h"

#include <math.h>
#include <string.h>

/* A column: the value at `at`, times `times`; over, plus: what it is divided by, what is added.
 * says: this text, where the value is there. only: where this flag is set. Of several lines of one
 * column the first that has a value counts. */
typedef struct tool_field {
    const char *key, *at;
    double times;
    const char *over, *plus, *says, *only;
} tool_field;

static const tool_field vllm[] = {
    {"model.name", .at = "model_id"},
    {"framework", .at = "backend"},
    {"framework", .at = "endpoint_type"},
    {"date", .at = "date"},
    {"concurrency", .at = "max_concurrency"},
    {"request_rate_per_s", .at = "request_rate"},
    {"input_len", .at = "total_input_tokens", .over = "completed"},
    {"output_len", .at = "total_output_tokens", .over = "completed"},
    {"measured.ttft_ms", .at = "median_ttft_ms"},
    {"measured.ttft_ms", .at = "mean_ttft_ms"},
    {"measured.ttft_is", .at = "median_ttft_ms", .says = "median"},
    {"measured.tpot_ms", .at = "mean_tpot_ms"},
    {"measured.latency_ms", .at = "mean_e2el_ms"},
    {"measured.tokens_per_s", .at = "output_throughput"},
    {"tokens_counted", .at = "output_throughput", .says = "output"},
};
static const tool_field aiperf[] = {
    {"model.name", .at = "input_config.endpoint.model_names[0]"},
    {"model.name", .at = "input_config.model_names[0]"},
    {"model.name", .at = "input_config.model"},
    {"date", .at = "start_time"},
    {"concurrency", .at = "input_config.loadgen.concurrency"},
    {"concurrency", .at = "input_config.phases[0].concurrency"},
    {"concurrency", .at = "input_config.concurrency"},
    {"request_rate_per_s", .at = "input_config.loadgen.request_rate"},
    {"request_rate_per_s", .at = "input_config.phases[0].request_rate"},
    {"input_len", .at = "input_sequence_length.avg"},
    {"output_len", .at = "output_sequence_length.avg"},
    {"measured.ttft_ms", .at = "time_to_first_token.p50"},
    {"measured.ttft_ms", .at = "time_to_first_token.avg"},
    {"measured.ttft_is", .at = "time_to_first_token.p50", .says = "median"},
    {"measured.tpot_ms", .at = "inter_token_latency.avg"},
    {"measured.latency_ms", .at = "request_latency.avg"},
    {"measured.tokens_per_s", .at = "output_token_throughput.avg"},
    {"tokens_counted", .at = "output_token_throughput.avg", .says = "output"},
};
/* Seconds; a worker of pools of its own has its degrees by name. Lengths are drawn from 0.8 of
 * those that are told to all of them. */
static const tool_field inferencex[] = {
    {"model.name", .at = "model"},
    {"chip", .at = "hw"},
    {"framework", .at = "framework"},
    {"weight_dtype", .at = "precision"},
    {"spec_decode", .at = "spec_decoding"},
    {"concurrency", .at = "conc"},
    {"input_len", .at = "isl"},
    {"output_len", .at = "osl"},
    {"len_sampling", .at = "isl", .says = "uniform[0.8L,L]"},
    {"chips", .at = "num_prefill_gpu", .plus = "num_decode_gpu"},
    {"chips", .at = "tp"},
    {"parallel.tp", .at = "decode_tp"},
    {"parallel.tp", .at = "tp"},
    {"parallel.ep", .at = "decode_ep"},
    {"parallel.ep", .at = "ep"},
    {"parallel.attention_dp", .at = "decode_tp", .only = "decode_dp_attention"},
    {"parallel.attention_dp", .at = "tp", .only = "dp_attention"},
    {"disagg", .at = "disagg"},
    {"disagg_layout.prefill.workers", .at = "prefill_num_workers"},
    {"disagg_layout.prefill.tp", .at = "prefill_tp"},
    {"disagg_layout.prefill.ep", .at = "prefill_ep"},
    {"disagg_layout.prefill.gpus", .at = "num_prefill_gpu"},
    {"disagg_layout.prefill.dp_attention", .at = "prefill_dp_attention"},
    {"disagg_layout.decode.workers", .at = "decode_num_workers"},
    {"disagg_layout.decode.tp", .at = "decode_tp"},
    {"disagg_layout.decode.ep", .at = "decode_ep"},
    {"disagg_layout.decode.gpus", .at = "num_decode_gpu"},
    {"disagg_layout.decode.dp_attention", .at = "decode_dp_attention"},
    {"measured.ttft_ms", .at = "median_ttft", .times = 1e3},
    {"measured.ttft_ms", .at = "mean_ttft", .times = 1e3},
    {"measured.ttft_is", .at = "median_ttft", .says = "median"},
    {"measured.tpot_ms", .at = "mean_tpot", .times = 1e3},
    {"measured.tpot_ms", .at = "median_tpot", .times = 1e3},
    {"measured.latency_ms", .at = "mean_e2el", .times = 1e3},
    {"measured.latency_ms", .at = "median_e2el", .times = 1e3},
    {"measured.tokens_per_s_per_chip", .at = "output_tput_per_gpu"},
    {"tokens_counted", .at = "output_tput_per_gpu", .says = "output"},
    {"total_tokens_per_s_per_chip", .at = "tput_per_gpu"},
};

struct truth_tool {
    const char *title;
    const char *sign[3]; /* what tells its files */
    const tool_field *field;
    size_t n;
};
#define FIELDS(list) list, sizeof(list) / sizeof(list)[0]
static const truth_tool tools[] = {
    {"vllm bench serve", {"model_id", "total_input_tokens", "output_throughput"}, FIELDS(vllm)},
    {"AIPerf", {"request_latency.avg", "request_throughput.avg", "input_config"}, FIELDS(aiperf)},
    {"InferenceX", {"hw", "conc", "output_tput_per_gpu"}, FIELDS(inferencex)},
};

const truth_tool *truth_tool_of(const json_value *object) {
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        int k = 0;
        while (k < 3 && json_find(object, tools[i].sign[k])) k++;
        if (k == 3) return &tools[i];
    }
    return NULL;
}

/* A list of one, as loads of several are told, counts as what is in it. */
static const json_value *value_at(const json_value *object, const char *path) {
    const json_value *v = path ? json_find(object, path) : NULL;
    if (json_is(v, IS_LIST) && v->n == 1) v = &v->item[0];
    return v && v->kind != IS_NULL ? v : NULL;
}

static bool is_set(const json_value *v) {
    const char *text = json_text(v);
    return text ? strcmp(text, "true") == 0 || strcmp(text, "True") == 0
                : json_is(v, IS_BOOL) && v->truth;
}

/* AIPerf tells its units. */
static double milliseconds(const json_value *object, const char *at) {
    char unit[64];
    snprintf(unit, sizeof unit, "%.*s.unit", (int)strcspn(at, "."), at);
    const char *text = json_text(json_find(object, unit));
    return !text                                                ? 1.0
           : strcmp(text, "s") == 0 || strcmp(text, "sec") == 0 ? 1e3
           : strcmp(text, "us") == 0                            ? 1e-3
           : strcmp(text, "ns") == 0                            ? 1e-6
                                                                : 1.0;
}

static bool take(const json_value *object, const tool_field *f, sm_arena *arena, truth_cell *out) {
    const json_value *v = value_at(object, f->at), *over = value_at(object, f->over),
                     *plus = value_at(object, f->plus);
    if (!v || (f->only && !is_set(value_at(object, f->only)))) return false;
    if (f->says) {
        *out = (truth_cell){.kind = CELL_TEXT, .text = f->says};
        return true;
    }
    if (v->kind == IS_BOOL) {
        *out =
            (truth_cell){.kind = CELL_FLAG, .text = v->truth ? "true" : "false", .yes = v->truth};
        return true;
    }
    if (v->kind == IS_TEXT) { /* "inf" requests a second: all at once */
        /* hw may say whose machines they are: "h200-nb" */
        size_t n = strcmp(f->key, "chip") == 0 ? strcspn(v->text, "-_") : v->n;
        if (strcmp(v->text, "inf") == 0) return false;
        *out = (truth_cell){.kind = CELL_RAW, .text = sm_arena_copy(arena, v->text, n)};
        return true;
    }
    if (v->kind != IS_NUMBER || !isfinite(v->number)) return false;
    double number = v->number * (f->times > 0 ? f->times : 1.0);
    if (strncmp(f->key, "measured.", 9) == 0) number *= milliseconds(object, f->at);
    if (plus) number += json_number(plus);
    if (f->over && !(json_number(over) > 0)) return false;
    if (f->over) number /= json_number(over);
    *out = (truth_cell){
        .kind = CELL_NUMBER, .number = number, .text = sm_arena_printf(arena, "%.15g", number)};
    return true;
}

sm_status truth_tool_cell(const truth_tool *tool, const json_value *object, const char *key,
                          sm_arena *arena, sm_error *err, truth_cell *out) {
    *out = (truth_cell){.kind = CELL_NONE, .text = ""};
    if (strcmp(key, "source") == 0) *out = (truth_cell){.kind = CELL_TEXT, .text = tool->title};
    for (size_t i = 0; i < tool->n; i++)
        if (strcmp(tool->field[i].key, key) == 0 && take(object, &tool->field[i], arena, out))
            break;
    if (out->kind == CELL_RAW || out->kind == CELL_NONE) { /* as of --metadata, or not stated */
        const json_value *own = out->kind == CELL_NONE ? json_get(object, key) : NULL;
        if (json_text(own))
            *out = (truth_cell){.kind = CELL_RAW, .text = sm_arena_copy(arena, own->text, own->n)};
        else if (json_is(own, IS_NUMBER))
            *out = (truth_cell){.kind = CELL_NUMBER,
                                .number = own->number,
                                .text = sm_arena_printf(arena, "%.15g", own->number)};
    }
    return out->text ? SM_OK : sm_fail_memory(err);
}

enum { TOOLS = sizeof tools / sizeof *tools };
const char *sm_truth_tool_name(size_t i) { return i < TOOLS ? tools[i].title : NULL; }

const char *sm_truth_tool_key(size_t i, const char *column, double *times) {
    for (size_t k = 0; i < TOOLS && k < tools[i].n; k++) {
        const tool_field *f = &tools[i].field[k];
        if (strcmp(f->key, column) != 0 || f->says) continue;
        *times = f->times > 0 ? f->times : 1.0;
        return f->at;
    }
    return NULL;
}
