/* Questions about serving. */
#include "instruments_serve.h"
#include "partition.h"
#include <math.h>
#include <string.h>

sm_error *book_error(void);

static sm_serve_job job_of(const book_serving *q) {
    return (sm_serve_job){.size = sizeof(sm_serve_job),
                          .model = &q->model,
                          .system = &q->system,
                          .dtypes = {q->weights, q->kv, SM_BF16},
                          .prompt = q->cached - 1,
                          .output = 1,
                          .context = q->cached,
                          .imbalance = 1,
                          .reserve = 0,
                          .usd_per_chip_hour = -1};
}

static bool open_plan(const book_serving *q, const char *text, sm_serve **serve, sm_plan *plan) {
    sm_serve_job job = job_of(q);
    sm_source source = sm_source_of("plan", text);
    return sm_serve_plan_parse(&source, plan, book_error()) == SM_OK &&
           sm_serve_new(&job, serve, book_error()) == SM_OK;
}

sm_serve_point book_serving_point(const book_serving *q, const char *text, double batch) {
    sm_serve *serve = NULL;
    sm_plan plan;
    sm_serve_point point;
    if (!open_plan(q, text, &serve, &plan) ||
        sm_serve_point_of(serve, &plan, batch, &point, book_error()) != SM_OK) {
        memset(&point, 0, sizeof point);
        point.tpot_s[0] = point.memory.kv = point.decode.lower_s = NAN;
    }
    sm_serve_free(serve);
    return point;
}

double book_serving_most(const book_serving *q, const char *text) {
    sm_serve *serve = NULL;
    sm_plan plan;
    sm_serve_room room;
    bool known = open_plan(q, text, &serve, &plan) &&
                 sm_serve_room_of(serve, &plan, q->cached, 1, &room, NULL) == SM_OK;
    sm_serve_free(serve);
    return known ? room.most : NAN;
}

double book_prefill_flops(const book_serving *q, double prompt, double prefix) {
    sm_serve *serve = NULL;
    sm_plan plan;
    sm_step_price price = {.flops = NAN};
    sm_step_batch step = {.groups = 1, .group = {{1, prompt - prefix, prefix}}, .sampled = 1};
    if (open_plan(q, "tensor=1", &serve, &plan) &&
        sm_serve_step(serve, &plan, &step, &price, book_error()) != SM_OK)
        price.flops = NAN;
    sm_serve_free(serve);
    return price.flops;
}

const sm_partition *book_serving_layer(const sm_model *model, const sm_rules *rules) {
    static sm_program program;
    static sm_partition ring[2];
    static int next;
    sm_partition *layer = &ring[next++ % 2];
    sm_error *err = book_error();
    if (sm_program_build_serving(model, SM_PIECE_LAYER, 0, rules, &program, err) != SM_OK ||
        sm_program_partition_forward(&program, NULL, layer, err) != SM_OK)
        return NULL;
    return layer;
}

double book_serving_comm_bytes(const sm_partition *layer, sm_collective op, sm_axes axes,
                               const book_degrees *degrees, double tokens) {
    double bytes = 0;
    for (int i = 0; layer != NULL && i < layer->comms; i++) {
        const sm_comm *c = &layer->comm[i];
        const char *of = layer->program.op[c->forward_op].name;
        bool of_mlp = strcmp(of, "u") == 0 || strcmp(of, "y") == 0;
        if (of_mlp && c->op == op && (c->axes & axes))
            bytes += book_size(c->bytes, degrees, tokens);
    }
    return layer != NULL ? bytes : NAN;
}

sm_model book_model_30b(void) {
    /* a layer: 80 x 125 D in attention, 3 D F in the MLP: 6e8; its cache: 2 x 8 x 125 */
    return book_transformer_with((const int[]){6000, 30000, 32, 8, 125, 50, 16}, BOOK_TIED);
}
