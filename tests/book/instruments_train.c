/* Questions about models, their programs, and training. */
#include "instruments.h"
#include "model_of.h"
#include "partition.h"
#include <math.h>
#include <string.h>

sm_error *book_error(void);

/* ---- models ---- */

sm_model book_model(const char *name) { return catalogue_with(name, ""); }

sm_model book_transformer_with(const int *sizes, const char *members) {
    char *config = sm_arena_printf(
        models_arena(),
        "{\"model_type\": \"transformer\", \"hidden_size\": %d, \"intermediate_size\": %d, "
        "\"num_attention_heads\": %d, \"num_key_value_heads\": %d, \"head_dim\": %d, "
        "\"num_hidden_layers\": %d, \"vocab_size\": %d, \"max_position_embeddings\": 1048576, "
        "\"final_norm\": false, \"causal\": false}",
        sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], sizes[6]);
    return model_with("of the question", config, members);
}

sm_model book_transformer(int D, int F, int N, int K, int H, int L, int V) {
    return book_transformer_with((const int[]){D, F, N, K, H, L, V}, "");
}

sm_model book_block(int D, int F) {
    return book_transformer_with((const int[]){D, F, 1, 1, 1, 1, 1}, "\"gated_mlp\": false");
}

sm_model book_of_params(double params) {
    enum { WIDTH = 100000 };
    return book_transformer_with((const int[]){WIDTH, 1, 1, 1, 1, 1, (int)lround(params / WIDTH)},
                                 BOOK_TIED);
}

const char *book_experts(int E, int k, int F) {
    return sm_arena_printf(models_arena(),
                           "\"num_experts\": %d, \"num_experts_per_tok\": %d, "
                           "\"moe_intermediate_size\": %d",
                           E, k, F);
}

/* ---- programs ---- */

const sm_partition *book_layer(const sm_model *model, double T) {
    static sm_program program;
    static sm_partition ring[BOOK_LAYERS];
    static int next;
    static const sm_rules rules = {.seq = true};
    sm_partition *layer = &ring[next++ % BOOK_LAYERS];
    sm_error *err = book_error();
    if (sm_program_build(model, SM_PIECE_LAYER, 0, T, &rules, &program, err) != SM_OK) return NULL;
    return sm_program_partition(&program, NULL, layer, err) == SM_OK ? layer : NULL;
}

double book_layer_size(const sm_partition *layer, const char *dimension) {
    for (int d = 0; layer && d < layer->program.dims; d++)
        if (strcmp(layer->program.dim[d].name, dimension) == 0) return layer->program.dim[d].size;
    return NAN;
}

book_degrees book_ones(void) {
    book_degrees degrees;
    for (int i = 0; i < SM_AXIS_COUNT; i++) degrees.axis[i] = 1;
    return degrees;
}

double book_size(sm_size size, const book_degrees *degrees, double sequences) {
    double value = size.base * (size.per_sequence ? sequences : 1);
    for (int i = 0; i < SM_AXIS_COUNT; i++)
        if (size.mask >> i & 1) value /= degrees->axis[i];
    return value;
}

static bool of_mlp(const char *op) {
    static const char *const ops[] = {"h.2", "u", "g", "m", "y", "u", "g", "o.2", "z"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(op, ops[i]) == 0) return true;
    return false;
}

double book_linear_flops(const sm_partition *layer, sm_phase phase, bool mlp_only,
                         const book_degrees *degrees, double sequences) {
    double flops = 0;
    for (int i = 0; layer != NULL && i < layer->works; i++) {
        const sm_work *w = &layer->work[i];
        if (w->linear && w->phase == phase && (!mlp_only || of_mlp(w->name)))
            flops += book_size(w->flops, degrees, sequences);
    }
    return layer != NULL ? flops : NAN;
}

double book_comm_bytes(const sm_partition *layer, sm_phase phase, sm_collective op, sm_axes axes,
                       double gradient_bytes, const book_degrees *degrees, double sequences) {
    double bytes = 0;
    for (int i = 0; layer != NULL && i < layer->comms; i++) {
        const sm_comm *c = &layer->comm[i];
        bool weights = !c->bytes.per_sequence;
        if (c->phase != phase || c->op != op || !(c->axes & axes)) continue;
        if (!weights && !of_mlp(layer->program.op[c->forward_op].name)) continue;
        bytes += book_size(c->bytes, degrees, sequences) * (c->gradient ? gradient_bytes : 1);
    }
    return layer != NULL ? bytes : NAN;
}

static bool named_in(const char *op, const char *keep) {
    size_t n = strlen(op);
    for (const char *at = keep; (at = strstr(at, op)) != NULL; at += n)
        if ((at == keep || at[-1] == '+') && (at[n] == '\0' || at[n] == '+')) return true;
    return false;
}

double book_kept_bytes_per_token(const sm_model *model, const char *keep) {
    sm_kept_array kept[SM_MAX_TENSORS];
    sm_bits set = 0, again;
    double bytes = 0;
    const sm_partition *layer = book_layer(model, 1);
    book_degrees ones = book_ones();
    for (int i = 0; layer != NULL && i < layer->program.ops; i++)
        if (!named_in(layer->program.op[i].name, keep)) set |= 1ull << i;
    int n = layer != NULL ? sm_recompute_kept(layer, set, SM_REGATHER_ALL, &again, kept) : 0;
    for (int i = 0; i < n; i++) bytes += book_size(kept[i].bytes, &ones, 1);
    return n > 0 ? bytes : NAN;
}

/* ---- training ---- */

bool book_price(const sm_model *model, const sm_system *system, double batch_tokens, double seq,
                const char *plan_text, sm_price_of_plan *price) {
    sm_plan plan;
    sm_train *train = NULL;
    sm_job job = {.size = sizeof(sm_job),
                  .model = model,
                  .system = system,
                  .batch_tokens = batch_tokens,
                  .seq = seq,
                  .usd_per_chip_hour = -1};
    sm_source source = sm_source_of("plan", plan_text);
    bool ok = sm_plan_parse(&source, &plan, book_error()) == SM_OK &&
              sm_train_new(&job, &train, book_error()) == SM_OK &&
              sm_train_price(train, &plan, price, book_error()) == SM_OK;
    if (train != NULL) sm_train_free(train);
    return ok;
}

double book_state_bytes(const sm_model *model, const char *plan) {
    sm_system one = book_system("tpu-v5p:1");
    sm_price_of_plan price;
    if (!book_price(model, &one, 4096, 4096, plan, &price)) return NAN;
    return price.memory.params + price.memory.optimizer;
}

double book_run_s(const sm_model *model, const sm_chip *chip, double chips, double tokens,
                  double mfu) {
    double flops = 3 * sm_model_forward_flops(model, 1, true).matmul * tokens;
    return flops / (chips * sm_chip_peak(chip, SM_BF16, NULL) * mfu);
}

double book_sequences(const sm_model *model, double batch_tokens, double seq) {
    sm_train *train = NULL;
    sm_system one = book_system("tpu-v5p:1");
    sm_job job = {.size = sizeof(sm_job),
                  .model = model,
                  .system = &one,
                  .batch_tokens = batch_tokens,
                  .seq = seq,
                  .usd_per_chip_hour = -1};
    if (sm_train_new(&job, &train, book_error()) != SM_OK) return NAN;
    double sequences = sm_train_sequences(train);
    sm_train_free(train);
    return sequences;
}
