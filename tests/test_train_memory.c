/* What software holds in memory beside what a plan says, each part against its equation. */
#include "unit.h"
#include "model_of.h"
#include "scalemodel/train.h"
#include "search_copy.h"
#include <math.h>
#include <string.h>

enum { L = 4, D = 4096, F = 14336, V = 128256, HEADS_WIDTH = 4096, T = 8192 };

/* A Llama of four layers whose software holds nothing else. */
static sm_model model;
static const sm_software_memory plain = {.software = "plain", .loss_bytes = 8};

static int load_model(void **state) {
    model = catalogue_with("llama-3.1-8b", "\"num_hidden_layers\": 4");
    return 0;
}

static sm_train *train_on(const char *chips, const char *text, double sequences,
                          const sm_software_memory *software, sm_plan *plan) {
    sm_error err = {0};
    sm_system system;
    sm_source on = sm_source_of("--on", chips), words = sm_source_of("--plan", text);
    sm_train *train = NULL;
    if (sm_system_parse(&on, NULL, 0, &system, &err)) fail_msg("%s", err.sentence);
    sm_job job = {sizeof(sm_job), &model, &system, sequences * T, T, 0, -1, NULL};
    if (sm_train_new(&job, &train, &err)) fail_msg("%s", err.sentence);
    if (software) sm_train_set_software_memory(train, software);
    if (sm_plan_parse(&words, plan, &err)) fail_msg("%s: %s", text, err.sentence);
    return train;
}

static sm_price_of_plan price_on(const char *chips, const char *text, double sequences,
                                 const sm_software_memory *software) {
    sm_error err = {0};
    sm_plan plan;
    sm_train *train = train_on(chips, text, sequences, software, &plan);
    sm_price_of_plan price = {0};
    if (sm_train_price(train, &plan, &price, &err)) fail_msg("%s: %s", text, err.sentence);
    sm_train_free(train);
    return price;
}

static sm_memory memory_of(const char *text, double sequences, const sm_software_memory *software) {
    return price_on("h100-sxm:8", text, sequences, software).memory;
}

static void is_about(double got, double want) {
    if (got > want * (1 + 1e-9) + 1 || got < want * (1 - 1e-9) - 1)
        fail_msg("%.15g, not %.15g", got, want);
}

/* ---- the table ---- */

static void unknown_software_holds_what_megatron_does(void **state) {
    assert_string_equal(sm_software_memory_of("no such thing", NULL, 0)->software, "megatron-core");
    assert_string_equal(sm_software_memory_of("nanotron", NULL, 0)->software, "nanotron");
}

static void a_new_job_has_them_too(void **state) {
    sm_memory of_default = memory_of("data=8", 8, NULL);
    sm_memory of_megatron = memory_of("data=8", 8, sm_software_memory_of("megatron-core", NULL, 0));
    is_about(of_default.total, of_megatron.total);
    is_about(of_default.capacity, of_megatron.capacity);
}

/* ---- the loss ---- */

/* Half of its bytes is held (activations), half is work (buffers). */
static void the_loss_holds_its_bytes_per_token_and_word(void **state) {
    sm_software_memory twice = plain;
    twice.loss_bytes = 16;
    sm_memory one = memory_of("data=8", 8, &plain), two = memory_of("data=8", 8, &twice);
    is_about(two.activations - one.activations, 4.0 * T * V);
    is_about(two.buffers - one.buffers, 4.0 * T * V);
}

static void whole_logits_are_not_divided_by_tensor(void **state) {
    sm_software_memory whole = plain;
    whole.loss_whole = true;
    sm_memory parts = memory_of("tensor=8", 1, &plain), all = memory_of("tensor=8", 1, &whole);
    is_about(all.activations - parts.activations, 4.0 * T * V * 7 / 8);
    is_about(memory_of("data=8", 8, &whole).total, memory_of("data=8", 8, &plain).total);
}

/* Under full alone: the last product of each layer, and its sum over tensor. */
static void layers_run_again_to_their_end(void **state) {
    sm_software_memory whole = plain;
    whole.runs_whole = true;
    const char *text = "tensor=8,recompute=full";
    sm_price_of_plan a = price_on("h100-sxm:8", text, 1, &plain);
    sm_price_of_plan b = price_on("h100-sxm:8", text, 1, &whole);
    double flops = a.model_flops_per_s_per_chip * a.expected_s * 8;
    is_about((b.hfu * b.expected_s - a.hfu * a.expected_s) / (a.mfu * a.expected_s) * flops,
             2.0 * L * T * F * D);
    assert_true(b.breakdown.network_exposed > a.breakdown.network_exposed);
    is_about(b.memory.total, a.memory.total);
    is_about(price_on("h100-sxm:8", "tensor=8,recompute=selective", 1, &whole).expected_s,
             price_on("h100-sxm:8", "tensor=8,recompute=selective", 1, &plain).expected_s);
}

/* One sum over tensor more in each layer, as many as one that runs to its end has; where seq
 * shards the norms what both read is one scatter. */
static void gate_and_up_sum_their_gradients_apart(void **state) {
    sm_software_memory apart = plain, whole = plain;
    apart.gate_reduced = whole.runs_whole = true;
    const char *none = "tensor=8,seq=off", *full = "tensor=8,seq=off,recompute=full";
    double more = price_on("h100-sxm:8", none, 1, &apart).breakdown.network_exposed -
                  price_on("h100-sxm:8", none, 1, &plain).breakdown.network_exposed;
    is_about(more * 1e9, (price_on("h100-sxm:8", full, 1, &whole).breakdown.network_exposed -
                          price_on("h100-sxm:8", full, 1, &plain).breakdown.network_exposed) *
                             1e9);
    is_about(price_on("h100-sxm:8", "tensor=8,seq=on", 1, &apart).expected_s * 1e9,
             price_on("h100-sxm:8", "tensor=8,seq=on", 1, &plain).expected_s * 1e9);
}

static double adding_s(const char *text, double sequences, double bytes) {
    sm_software_memory adds = plain;
    adds.adding_bytes = bytes;
    return price_on("h100-sxm:8", text, sequences, &adds).expected_s -
           price_on("h100-sxm:8", text, sequences, &plain).expected_s;
}

/* As often as there are microbatches, of what a chip holds of the matrices; of what fsdp shards
 * nothing. */
static void gradients_are_added_after_each_microbatch(void **state) {
    double once = adding_s("data=8", 8, 6), all = 1e9 * once;
    const double matrices = L * (D * (2.0 * HEADS_WIDTH + 2 * HEADS_WIDTH / 4) + 3.0 * D * F);
    is_about(1e9 * adding_s("data=8", 8, 12), 2 * all);
    is_about(1e9 * adding_s("data=8", 32, 6), 4 * all);
    is_about(1e9 * adding_s("tensor=8", 1, 6), all / 8);
    is_about(1e9 * adding_s("fsdp=8", 8, 6), 0);
    assert_true(once > 6 * (matrices + (double)V * D) / 3.4e12 &&
                once < 6 * (matrices + 2.0 * V * D) / 3.35e12 * 1.2);
}

/* Bytes of all but weights that are gathered in a step. */
static double gathered_bytes(const char *text, const sm_software_memory *software) {
    sm_error err = {0};
    sm_plan plan;
    sm_plan_detail detail;
    sm_arena *arena = sm_arena_new();
    sm_train *train = train_on("h100-sxm:8", text, 8, software, &plan);
    double bytes = 0;
    if (sm_train_detail(train, &plan, arena, &detail, &err)) fail_msg("%s", err.sentence);
    for (int i = 0; i < detail.lines.collectives; i++) {
        const sm_plan_collective *c = &detail.lines.collective[i];
        if (c->op == SM_ALL_GATHER && c->array[0] != 'w') bytes += c->bytes * c->count;
    }
    sm_train_free(train);
    sm_arena_free(arena);
    return bytes;
}

/* Four heads of queries share one of keys: around the ring, and there alone. */
static void keys_go_round_as_many_heads_as_queries(void **state) {
    sm_software_memory whole = plain;
    whole.keys_whole = true;
    is_about(gathered_bytes("context=8", &whole), 4 * gathered_bytes("context=8", &plain));
    assert_true(gathered_bytes("context=8", &plain) > 0);
    assert_true(price_on("h100-sxm:8", "context=8", 1, &whole).expected_s >
                price_on("h100-sxm:8", "context=8", 1, &plain).expected_s);
    const char *other[] = {"context=8,context_by=gather", "tensor=8,seq=on"};
    for (int i = 0; i < 2; i++)
        is_about(price_on("h100-sxm:8", other[i], 1, &whole).expected_s * 1e9,
                 price_on("h100-sxm:8", other[i], 1, &plain).expected_s * 1e9);
}

static void what_is_kept_gathered_is_not_gathered_again(void **state) {
    sm_software_memory kept = plain;
    kept.gathered_kept = true;
    double usual = price_on("h100-sxm:8", "tensor=8,seq=on", 1, &plain).expected_s,
           once = price_on("h100-sxm:8", "tensor=8,seq=on", 1, &kept).expected_s;
    assert_true(once < usual);
    is_about(once * 1e9,
             price_on("h100-sxm:8", "tensor=8,seq=on,regather=weights", 1, &plain).expected_s *
                 1e9);
}

static void sharded_logits_have_a_number_of_their_own(void **state) {
    sm_software_memory sharded = plain;
    sharded.loss_sharded_bytes = 16;
    double more = memory_of("tensor=8", 1, &sharded).total - memory_of("tensor=8", 1, &plain).total;
    is_about(more, 8.0 * T * V / 8);
    is_about(memory_of("data=8", 8, &sharded).total, memory_of("data=8", 8, &plain).total);
}

/* ---- broadcasts ---- */

/* Fewer weights than chips: twice the chips go round a ring twice as long, once for each weight. */
static void no_weight_is_broadcast_twice(void **state) {
    sm_software_memory sends = plain;
    sends.broadcasts = true;
    double some = price_on("h100-sxm:64x8", "data=512", 512, &sends).breakdown.optimizer;
    double more = price_on("h100-sxm:128x8", "data=1024", 1024, &sends).breakdown.optimizer;
    assert_true(more > 1.2 * some && more < 2.0 * some);
}

/* ---- ops of several kernels ---- */

static void norms_of_several_kernels_keep_more(void **state) {
    sm_software_memory eager = plain;
    eager.norm_bytes = 6;
    sm_memory a = memory_of("data=8", 8, &plain), b = memory_of("data=8", 8, &eager);
    double norms = 2 * L + 2; /* two of a layer; the head's counts as its logits do, twice */
    is_about(b.total - a.total, norms * 6.0 * T * D);
}

/* Recomputed norms keep nothing: only the layer at work has them. */
static void recomputed_norms_are_kept_for_one_layer(void **state) {
    sm_software_memory eager = plain;
    eager.norm_bytes = 6;
    sm_memory a = memory_of("data=8,recompute=full,loss=chunked", 8, &eager);
    eager.norm_bytes = 16;
    sm_memory b = memory_of("data=8,recompute=full,loss=chunked", 8, &eager);
    is_about(b.total - a.total, 2 * 10.0 * T * D);
}

/* Logits are gone before the first layer is computed again; with it come the gradients of gate and
 * up, which an array of XLA's takes the place of. */
static void loss_and_recomputed_layer_are_two_moments(void **state) {
    const double stream = 2.0 * T * D;
    sm_memory loss = memory_of("data=8,recompute=full", 8, &plain);
    is_about(loss.activations, L * stream + 4.0 * T * V + 4.0 * T * D);
    sm_software_memory eager = plain; /* whose layer outweighs a chunk of the loss */
    eager.norm_bytes = 16;
    double layer = memory_of("data=8,loss=chunked", 8, &eager).activations / L;
    sm_memory m = memory_of("data=8,recompute=full,loss=chunked", 8, &eager);
    is_about(m.activations, (L - 1) * stream + layer + 4.0 * T * F);
    is_about(m.logits, 0);
    m = price_on("tpu-v5p:2x2x2", "data=8,recompute=full,loss=chunked", 8, &eager).memory;
    is_about(m.activations, (L - 1) * stream + layer);
}

/* Where tensor shards the sequence: 2 bytes of the 7/8 that other chips hold. */
static void gathered_results_of_norms_are_whole(void **state) {
    sm_software_memory gathered = plain;
    gathered.gathered_kept = true;
    sm_memory a = memory_of("tensor=8,seq=on", 1, &plain);
    sm_memory b = memory_of("tensor=8,seq=on", 1, &gathered);
    is_about(b.total - a.total, (2 * L + 2) * 2.0 * T * D * 7 / 8);
    a = memory_of("tensor=8,seq=off", 1, &plain);
    is_about(memory_of("tensor=8,seq=off", 1, &gathered).total, a.total);
}

static void a_gate_apart_is_an_array_more(void **state) {
    sm_software_memory apart = plain;
    apart.gate_apart = true;
    double more = memory_of("data=8", 8, &apart).total - memory_of("data=8", 8, &plain).total;
    is_about(more, 2.0 * L * T * F);
    more = memory_of("tensor=8", 1, &apart).total - memory_of("tensor=8", 1, &plain).total;
    is_about(more, 2.0 * L * T * F / 8);
}

/* With adapters on attention alone nothing reads the gated product again: what a checkpoint drops
 * and does not run again is not kept either, but of the layer at work. */
static void what_is_dropped_for_good_is_not_kept(void **state) {
    sm_software_memory apart = plain;
    apart.gate_apart = true;
    const char *plan = "data=8,recompute=full,loss=chunked,lora=16,targets=attention";
    double more = memory_of(plan, 8, &apart).total - memory_of(plan, 8, &plain).total;
    is_about(more, 2.0 * T * F);
}

static void heads_copied_to_another_layout_count(void **state) {
    sm_software_memory copies = plain;
    copies.heads_bytes = 8;
    double more = memory_of("tensor=8", 1, &copies).total - memory_of("tensor=8", 1, &plain).total;
    is_about(more, 8.0 * L * T * HEADS_WIDTH / 8);
}

/* Of a layer matmuls alone read: both norms' results and the product of gate and up; attention's
 * backward pass reads its own result, rotation has no need of what it rotates. The head: its norm's
 * result, counted twice as the logits are. */
static void inputs_of_narrow_matmuls_are_narrow(void **state) {
    sm_software_memory narrow = plain;
    narrow.operands_narrow = true;
    sm_memory wide = memory_of("data=8,dtype=fp8", 8, &plain);
    sm_memory less = memory_of("data=8,dtype=fp8", 8, &narrow);
    is_about(wide.total - less.total, 1.0 * T * (L * (2.0 * D + F) + 2.0 * D));
    is_about(memory_of("data=8", 8, &narrow).total, memory_of("data=8", 8, &plain).total);
}

/* Two experts of 4096 wide results for each token and layer. */
static void experts_weighted_early_keep_no_results(void **state) {
    sm_model dense = model;
    sm_software_memory early = plain;
    early.weighted_early = true;
    model = catalogue_with("mixtral-8x7b", "\"num_hidden_layers\": 4");
    sm_memory late = memory_of("expert=8", 8, &plain), now = memory_of("expert=8", 8, &early);
    is_about(late.total - now.total, 2.0 * L * 2 * T * D);
    now = memory_of("expert=8,recompute=full", 8, &early); /* but of the layer at work */
    late = memory_of("expert=8,recompute=full", 8, &plain);
    is_about(late.total - now.total, 2.0 * 2 * T * D);
    model = dense;
}

/* With zero=3 the chips of experts share the weights outside experts, each a part, and gather them
 * layer by layer, or hold all of them from the forward pass to the backward. */
static void weights_outside_experts_are_shards_too(void **state) {
    sm_model dense = model;
    model = catalogue_with("mixtral-8x7b", "\"num_hidden_layers\": 4");
    double experts = 2.0 * L * 3 * D * F * 8, all = 2 * sm_model_params(&model).total;
    sm_memory whole = memory_of("expert=8,zero=2", 8, &plain);
    sm_memory part = memory_of("expert=8,zero=3", 8, &plain);
    sm_memory kept = memory_of("expert=8,zero=3,regather=activations", 8, &plain);
    is_about(whole.params, experts / 8 + all - experts);
    is_about(part.optimizer, whole.optimizer);
    if (!(part.params < 1.001 * all / 8)) fail_msg("%g of %g", part.params, all);
    if (!(kept.gathered > all - experts && kept.gathered < 2 * (all - experts)))
        fail_msg("%g gathered of %g", kept.gathered, all - experts);
    model = dense;
}

/* FSDP2's shards stay beside what was gathered of them; experts keep 8-bit copies both ways. */
static void copies_beside_shards(void **state) {
    sm_model dense = model;
    sm_software_memory beside = plain;
    beside.shards_beside = true;
    sm_memory a = memory_of("data=8", 8, &plain), b = memory_of("data=8", 8, &beside);
    is_about(b.total - a.total, a.params / 8);
    beside = plain, beside.narrow_bytes = 2;
    model = catalogue_with("mixtral-8x7b", "\"num_hidden_layers\": 4");
    a = memory_of("data=2,expert=4,dtype=fp8", 8, &plain);
    b = memory_of("data=2,expert=4,dtype=fp8", 8, &beside);
    is_about(b.total - a.total, 2.0 * L * 3 * D * F * 8 / 4);
    model = dense;
}

/* Whole sums of gradients stand in place of their shards where a step has several microbatches. */
static void sums_are_whole_until_the_last_microbatch(void **state) {
    sm_software_memory sums = plain;
    sums.sums_bytes = 4;
    sm_memory a = memory_of("fsdp=8,zero=3,microbatch=1", 16, &plain);
    sm_memory b = memory_of("fsdp=8,zero=3,microbatch=1", 16, &sums);
    is_about(b.total - a.total, 7 * a.gradients);
    is_about(memory_of("fsdp=8,zero=3", 8, &sums).total,
             memory_of("fsdp=8,zero=3", 8, &plain).total);
    is_about(memory_of("data=8", 16, &sums).total, memory_of("data=8", 16, &plain).total);
}

/* The last stage receives what its layers read of each of four microbatches, and keeps the logits
 * of three that are done. */
static void stages_keep_all_microbatches(void **state) {
    sm_software_memory keeps = plain;
    keeps.stages_keep = true;
    sm_memory a = memory_of("data=4,pipeline=2,microbatch=1", 16, &plain);
    sm_memory b = memory_of("data=4,pipeline=2,microbatch=1", 16, &keeps);
    assert_int_equal(a.stage, 1);
    assert_int_equal(b.stage, 1);
    is_about(b.total - a.total, 4 * 2.0 * T * D + 3 * 2.0 * T * V);
    is_about(memory_of("data=8", 8, &keeps).total, memory_of("data=8", 8, &plain).total);
}

/* With one microbatch a step there is no gradient yet where the loss is differentiated; with two
 * there are those of the first. */
static void first_gradients_come_after_the_loss(void **state) {
    sm_software_memory fresh = plain;
    fresh.gradients_new = true;
    sm_memory a = memory_of("data=8", 8, &plain), b = memory_of("data=8", 8, &fresh);
    is_about(a.total - b.total, a.gradients);
    is_about(memory_of("data=8", 16, &fresh).total, memory_of("data=8", 16, &plain).total);
    a = memory_of("data=8,recompute=full,loss=chunked", 8, &plain); /* at the last layer */
    b = memory_of("data=8,recompute=full,loss=chunked", 8, &fresh);
    is_about(b.gradients, a.gradients);
    if (!(b.total < a.total)) fail_msg("%g of %g", b.total, a.total);
}

/* ---- trainers of Hugging Face ---- */

/* After the last backward pass: weights, gradients, two moments, and one as large beside them. */
static void an_update_has_an_array_beside_its_moments(void **state) {
    const char *plan = "data=8,zero=0,recompute=full,loss=chunked,optimizer=adam-pure-bf16,"
                       "gradient=bf16";
    sm_software_memory foreach = plain;
    foreach
        .moment_beside = true;
    sm_memory a = memory_of(plan, 8, &plain), b = memory_of(plan, 8, &foreach);
    if (!(a.activations > 0)) fail_msg("no activations");
    is_about(b.activations, 0);
    is_about(b.total, 5 * a.params);
    b = memory_of("data=8,zero=0,recompute=full,loss=chunked", 8,
                  &foreach); /* a third of 12 bytes */
    is_about(b.total, b.params + b.gradients + b.optimizer * 4 / 3);
}

static void shards_may_be_the_optimizers_own(void **state) {
    sm_software_memory single = plain;
    single.shards_single = true;
    sm_memory a = memory_of("fsdp=8", 8, &plain);
    is_about(a.total - memory_of("fsdp=8", 8, &single).total, a.params);
    static const char *const same[] = {"data=8", "fsdp=8,optimizer=adam-pure-bf16"};
    for (size_t i = 0; i < 2; i++)
        is_about(memory_of(same[i], 8, &plain).total, memory_of(same[i], 8, &single).total);
    a = memory_of("fsdp=8,lora=16", 8, &plain); /* frozen weights have no optimizer */
    if (!(memory_of("fsdp=8,lora=16", 8, &single).params > 0.98 * a.params)) fail_msg("frozen");
}

/* What entered each layer is there at the end of the step still, and its gradient beside it. */
static void frozen_layers_hold_what_entered(void **state) {
    sm_software_memory holds = plain;
    holds.inputs_held = true;
    const char *plan = "fsdp=8,lora=16,recompute=full,loss=chunked";
    sm_memory few = memory_of(plan, 8, &holds);
    sm_model dense = model;
    model = catalogue_with("llama-3-8b", "\"num_hidden_layers\": 9");
    is_about(memory_of(plan, 8, &holds).activations - few.activations, (9 - L) * 2 * 2.0 * T * D);
    model = dense;
    static const char *const same[] = {"data=8,lora=16,recompute=full,loss=chunked",
                                       "fsdp=8,recompute=full,loss=chunked"};
    for (size_t i = 0; i < 2; i++)
        is_about(memory_of(same[i], 8, &plain).total, memory_of(same[i], 8, &holds).total);
}

/* ---- mixtures on TPUs, and masks of attention ---- */

enum { E = 8, TOP = 2 }; /* of Mixtral */

static double step_of(const char *text, const sm_software_memory *software) {
    return price_on("tpu-v5p:1", text, 2, software).expected_s;
}

/* A share of 100 % is what experts have that drop nothing; of 200 % they do twice the work, and
 * their arrays, of which two of width F and one of D are kept, are twice as long. */
static void a_capacity_is_slots(void **state) {
    sm_model dense = model;
    model = catalogue_with("mixtral-8x7b", "\"num_hidden_layers\": 4");
    is_about(step_of("data=1,capacity=100", &plain) * 1e9, step_of("data=1", &plain) * 1e9);
    sm_price_of_plan all = price_on("tpu-v5p:1", "data=1", 2, &plain),
                     twice = price_on("tpu-v5p:1", "data=1,capacity=200", 2, &plain);
    double peak = sm_chip_peak(sm_chip_find("tpu-v5p", 7), SM_BF16, NULL);
    double products = 3 * 2.0 * TOP * 2 * T * 3.0 * D * F * L; /* thrice: forward and backward */
    is_about((twice.lower_s - all.lower_s) * 1e9, products / peak * 1e9);
    assert_true(twice.memory.activations - all.memory.activations > 2.0 * L * TOP * T * 2 * F);
    model = dense;
}

/* Five products: dispatch forward and for its gradient, combine forward and for two. */
static void masks_of_ones_are_multiplied(void **state) {
    sm_model dense = model;
    sm_software_memory masked = plain;
    masked.masked = true;
    model = catalogue_with("mixtral-8x7b", "\"num_hidden_layers\": 4");
    const sm_chip *chip = sm_chip_find("tpu-v5p", 7);
    sm_calibration c = sm_calibration_ahead(sm_calibration_of(chip));
    sm_product_shape s = {1, 2.0 * T, D, 1.25 * TOP * T};
    double each = sm_matmul_cost(chip, &c, SM_BF16, s, 2 * s.m * s.k).expected_s;
    double more = step_of("data=1,capacity=125,microbatch=2", &masked) -
                  step_of("data=1,capacity=125,microbatch=2", &plain);
    is_about(more * 1e9, 5 * L * each * 1e9);
    is_about(step_of("data=1", &masked), step_of("data=1", &plain)); /* nothing is dropped */
    model = dense;
}

/* Of eight experts seven begin within a tile, which the kernel goes through once more: as if each
 * had 7/8 of a tile more of rows, in nine products of a layer. Not on GPUs. */
static void tiles_are_done_for_each_expert_in_them(void **state) {
    sm_model dense = model;
    sm_software_memory tiles = plain;
    tiles.tile_rows = 1024;
    model = catalogue_with("mixtral-8x7b", "\"num_hidden_layers\": 4");
    double more = step_of("data=1", &tiles) - step_of("data=1", &plain);
    const sm_chip *chip = sm_chip_find("tpu-v5p", 7);
    sm_calibration c = sm_calibration_ahead(sm_calibration_of(chip));
    double peak = sm_chip_peak(chip, SM_BF16, NULL) * c.matmul_efficiency;
    double rows = E * 1024 * 7.0 / 8, least = 9 * L * 2.0 * rows * D * F / peak;
    more /= 2; /* of two microbatches */
    if (!(more > least && more < 1.15 * least)) fail_msg("%g, not %g", more, least);
    is_about(price_on("tpu-v5p:1", "data=1", 2, &tiles).lower_s,
             price_on("tpu-v5p:1", "data=1", 2, &plain).lower_s);
    is_about(price_on("h100-sxm:1", "data=1", 2, &tiles).expected_s,
             price_on("h100-sxm:1", "data=1", 2, &plain).expected_s);
    model = dense;
}

/* By this software a step on one H100 takes as much longer as these FLOPs need at the rate of
 * matmuls, which is returned, and its bound is as it was. */
static double takes_longer_by(const sm_software_memory *software, double flops) {
    sm_price_of_plan slow = price_on("h100-sxm:1", "data=1", 2, software),
                     quick = price_on("h100-sxm:1", "data=1", 2, &plain);
    const sm_chip *chip = sm_chip_find("h100-sxm", 8);
    double peak = sm_chip_peak(chip, SM_BF16, NULL) * sm_calibration_of(chip)->matmul_efficiency;
    double least = flops / peak, more = slow.expected_s - quick.expected_s;
    if (!(more > least && more < 1.2 * least)) fail_msg("%g, not %g", more, least);
    is_about(slow.lower_s * 1e9, quick.lower_s * 1e9);
    return least;
}

/* At half of the rate of matmuls the nine products of a layer's experts take as long again; a dense
 * layer has none. */
static void grouped_products_have_a_rate_of_their_own(void **state) {
    sm_model dense = model;
    sm_software_memory half = plain;
    half.grouped_rate = 0.5;
    is_about(price_on("h100-sxm:1", "data=1", 2, &half).expected_s * 1e9,
             price_on("h100-sxm:1", "data=1", 2, &plain).expected_s * 1e9);
    model = catalogue_with("mixtral-8x7b", "\"num_hidden_layers\": 4");
    takes_longer_by(&half, 9 * L * 2.0 * 2 * T * TOP * D * F);
    model = dense;
}

/* A head of a word more than a multiple of 8 takes three times as long where nothing pads its rows:
 * its product and those of both gradients; tokens are no row's length. */
static void products_of_odd_rows_have_a_third_of_the_rate(void **state) {
    sm_model even = model;
    sm_software_memory odd = plain;
    odd.rows_odd = true;
    is_about(price_on("h100-sxm:1", "data=1", 2, &odd).expected_s * 1e9,
             price_on("h100-sxm:1", "data=1", 2, &plain).expected_s * 1e9);
    model = catalogue_with("llama-3.1-8b", "\"num_hidden_layers\": 4, \"vocab_size\": 128257");
    double least = takes_longer_by(&odd, 2 * 3 * 2.0 * 2 * T * D * 128257);
    /* of two chips each has 64,128 words and a half */
    sm_price_of_plan slow = price_on("h100-sxm:2", "tensor=2", 2, &odd),
                     quick = price_on("h100-sxm:2", "tensor=2", 2, &plain);
    assert_true(slow.expected_s - quick.expected_s > least / 2);
    model = even;
}

/* Products in 8 bits take as long again at half of their rate, the head's in 16 bits do not; a step
 * in 16 bits has none. */
static void narrow_products_have_a_rate_of_their_own(void **state) {
    sm_software_memory half = plain;
    half.narrow_rate = 0.5;
    is_about(price_on("h100-sxm:1", "data=1", 2, &half).expected_s * 1e9,
             price_on("h100-sxm:1", "data=1", 2, &plain).expected_s * 1e9);
    sm_price_of_plan slow = price_on("h100-sxm:1", "data=1,dtype=fp8", 2, &half),
                     quick = price_on("h100-sxm:1", "data=1,dtype=fp8", 2, &plain);
    const sm_chip *chip = sm_chip_find("h100-sxm", 8);
    double peak = sm_chip_peak(chip, SM_FP8, NULL) * sm_calibration_of(chip)->matmul_efficiency_fp8;
    double matrices = D * (2.0 * HEADS_WIDTH + 2 * 1024 + 3.0 * F),
           least = L * 3 * 2.0 * 2 * T * matrices / peak, more = slow.expected_s - quick.expected_s;
    if (!(more > least && more < 1.2 * least)) fail_msg("%g, not %g", more, least);
    is_about(slow.lower_s * 1e9, quick.lower_s * 1e9);
}

/* Of a causal mask half a block more than is kept; of a window of 512 whole blocks on either side
 * of an edge, eight times what it keeps. */
static void masks_are_followed_block_by_block(void **state) {
    const sm_chip *chip = sm_chip_find("tpu-v5p", 7);
    const sm_calibration *c = sm_calibration_of(chip);
    sm_attention_shape s = {.batch = 64, .q_len = T, .keys = (T + 1) / 2.0, .kv_len = T};
    s.heads = s.kv_heads = 32, s.head_size = s.v_head_size = 128;
    s.dtype = SM_BF16, s.kv_bytes = 2, s.one_kernel = s.head_blocks = true;
    double usual = sm_attention_cost(chip, c, &s, false).expected_s;
    s.block = 2048;
    double blocks = sm_attention_cost(chip, c, &s, false).expected_s;
    assert_true(fabs(blocks / usual / ((s.keys + 1024) / (s.keys + 160)) - 1) < 0.002);
    s.keys = sm_keys_met(T, T, true, 512, 0);
    double window = sm_attention_cost(chip, c, &s, false).expected_s;
    assert_true(fabs(window / blocks / (4096 / ((T + 1) / 2.0 + 1024)) - 1) < 0.002);
    assert_true(step_of("data=1", sm_software_memory_of("maxtext", NULL, 0)) >
                step_of("data=1", sm_software_memory_of("maxtext", NULL, 12 * 2023 + 12)));
}

/* ---- gradients and the allocator ---- */

static void gradients_beside_their_sums(void **state) {
    sm_software_memory beside = plain;
    beside.gradient_bytes = 2, beside.shard_bytes = 4;
    sm_memory a = memory_of("data=8", 8, &plain), b = memory_of("data=8", 8, &beside);
    is_about(b.buffers - a.buffers, a.params);
    a = memory_of("data=8,gradient=bf16", 8, &plain);
    b = memory_of("data=8,gradient=bf16", 8, &beside);
    is_about(b.buffers - a.buffers, 4 * a.params / 2 / 8);
}

static void the_allocator_takes_its_part(void **state) {
    sm_software_memory loose = plain;
    loose.fragmentation = 0.5, loose.reserved_bytes = 3e9;
    sm_memory a = memory_of("data=8", 8, &plain), b = memory_of("data=8", 8, &loose);
    is_about(b.buffers - a.buffers, 0.5 * a.activations + 3e9);
}

static void what_is_outside_lowers_the_capacity_or_counts(void **state) {
    sm_software_memory context = plain;
    context.outside_bytes = 2e9;
    sm_memory a = memory_of("data=8", 8, &plain), b = memory_of("data=8", 8, &context);
    is_about(a.capacity - b.capacity, 2e9);
    is_about(a.total, b.total);
    context.outside_counted = true;
    b = memory_of("data=8", 8, &context);
    is_about(a.capacity, b.capacity);
    is_about(b.total - a.total, 2e9);
}

static void compiled_memory_of_tpus_has_no_allocator(void **state) {
    sm_software_memory loose = plain;
    loose.fragmentation = 0.5, loose.reserved_bytes = 3e9, loose.outside_bytes = 2e9;
    sm_memory a = price_on("tpu-v5p:2x2x2", "data=8", 8, &plain).memory;
    sm_memory b = price_on("tpu-v5p:2x2x2", "data=8", 8, &loose).memory;
    is_about(a.total, b.total);
    is_about(a.capacity, b.capacity);
}

static void a_plan_fits_what_is_left_of_the_card(void **state) {
    sm_software_memory full = plain;
    sm_price_of_plan p = price_on("h100-sxm:8", "data=8", 8, &plain);
    assert_true(p.fits);
    full.outside_bytes = p.memory.capacity - p.memory.total + 1;
    assert_false(price_on("h100-sxm:8", "data=8", 8, &full).fits);
}

/* ---- what fsdp gathers ---- */

/* The head is larger than a layer: it and the last layer are whole at the loss, 2 bytes of weight
 * and 4 of gradient each; another 2 and 1 where XLA scatters one layer at a time in 16 bits. */
static void head_and_last_layer_are_whole_at_the_loss(void **state) {
    double layer = D * (2.0 * HEADS_WIDTH + 2.0 * 1024) + 3.0 * D * F + 2 * D;
    double head = (double)V * D + D;
    double loss = 4.0 * T * V + 4.0 * T * D; /* gradients of logits, norm and stream */
    sm_memory m = memory_of("fsdp=8", 8, &plain);
    is_about(m.buffers, 6 * (layer + head) + loss);
    sm_software_memory root = plain;
    root.root_whole = true;
    is_about(memory_of("fsdp=8", 8, &root).buffers, m.buffers + 2.0 * V * D);
    root.norm_bytes = 16; /* then a layer computed again needs most, and two are whole beside it */
    m = memory_of("fsdp=8,recompute=full,loss=chunked", 8, &root);
    is_about(m.buffers, 6 * (2 * layer + head) + 2.0 * V * D);
    m = price_on("tpu-v5p:2x2x2", "fsdp=8", 8, &plain).memory;
    is_about(m.buffers, 3 * (layer + head) + loss);
}

/* ---- adapters ---- */

/* Elements of A and B beside each matrix: its inputs and its outputs, times the rank. */
enum { RANK = 16, KV_WIDTH = 1024 };
static const double attention_sides = 4 * D + 2 * HEADS_WIDTH + 2 * KV_WIDTH, /* q k v o */
    mlp_sides = 3.0 * (D + F);

static sm_price_of_plan price_of(const char *text) {
    return price_on("h100-sxm:8", text, 8, &plain);
}

/* 13,631,488 and 41,943,040 of 32 layers: what PEFT prints for Llama 3.1 8B. */
static void adapters_alone_have_gradients_and_state(void **state) {
    sm_price_of_plan whole = price_of("data=8"), own = price_of("data=8,lora=16,targets=attention");
    sm_price_of_plan all = price_of("data=8,lora=16");
    double trained = L * RANK * attention_sides;
    assert_true(trained * 32 / L == 13631488);
    is_about(own.trained, trained);
    is_about(all.trained, trained + L * RANK * mlp_sides);
    assert_true(all.trained * 32 / L == 41943040);
    is_about(own.memory.gradients, 4 * trained);
    is_about(own.memory.optimizer, 12 * trained / 8);
    is_about(own.memory.params, whole.memory.params + 2 * trained);
    is_about(whole.trained, whole.memory.params / 2);
}

/* Full training reads the inputs of all matrices again. With adapters on attention alone those of
 * the MLP, the second norm's result and the gated product, are not kept, nor is that of the head;
 * what is kept beside is the narrow array between A and B of each. */
static void inputs_of_frozen_matrices_are_not_kept(void **state) {
    sm_price_of_plan whole = price_of("data=8"), own = price_of("data=8,lora=16,targets=attention");
    double kept = 2.0 * T * L;
    is_about(own.memory.activations,
             whole.memory.activations - kept * (D + F) - 2.0 * T * D + kept * 4 * RANK);
}

/* No product makes the gradient of a frozen weight; of the adapters' own there is next to none. */
static void frozen_weights_spare_a_third_of_the_products(void **state) {
    sm_price_of_plan whole = price_of("data=8"), own = price_of("data=8,lora=1,targets=qv");
    double flops = whole.hfu * whole.expected_s, left = own.hfu * own.expected_s;
    double model_flops = whole.mfu * whole.expected_s, model_left = own.mfu * own.expected_s;
    assert_true(left > 0.66 * flops && left < 0.72 * flops);
    assert_true(model_left < left && model_left > 0.95 * left);
    assert_true(model_left / model_flops > 0.66 && model_left / model_flops < 0.72);
}

/* Matrices of layers in 4.127 bits, embedding, head and norms in 16; gathered as they are stored.
 */
static void a_quantised_base_is_held_and_gathered_narrow(void **state) {
    double matrices = L * (D * (2.0 * HEADS_WIDTH + 2.0 * KV_WIDTH) + 3.0 * D * F);
    sm_price_of_plan wide = price_of("fsdp=8,lora=16"),
                     narrow = price_of("fsdp=8,lora=16,parameters=nf4");
    double spared = matrices * (2 - 4.127 / 8);
    is_about(narrow.memory.params, wide.memory.params - spared / 8);
    is_about(narrow.memory.buffers, wide.memory.buffers - spared / L);
    assert_true(narrow.breakdown.network_exposed < wide.breakdown.network_exposed);
    assert_true(narrow.breakdown.memory > wide.breakdown.memory); /* to 16 bits before each use */
}

static void refuses(const char *text, const char *because) {
    sm_error err = {0};
    sm_system system;
    sm_source on = sm_source_of("--on", "h100-sxm:8"), words = sm_source_of("--plan", text);
    sm_plan plan;
    sm_train *train = NULL;
    sm_price_of_plan price;
    assert_int_equal(sm_system_parse(&on, NULL, 0, &system, &err), SM_OK);
    sm_job job = {sizeof(sm_job), &model, &system, 8.0 * T, T, 0, -1, NULL};
    assert_int_equal(sm_train_new(&job, &train, &err), SM_OK);
    assert_int_equal(sm_plan_parse(&words, &plan, &err), SM_OK);
    assert_int_equal(sm_train_price(train, &plan, &price, &err), SM_BAD_INPUT);
    if (!strstr(err.sentence, because)) fail_msg("%s", err.sentence);
    sm_train_free(train);
}

static void what_cannot_be_trained_is_refused(void **state) {
    refuses("data=8,parameters=nf4", "lora=16");
    refuses("data=8,parameters=fp8", "dtype=fp8");
}

/* Weights kept in fp8 beside their fp32 masters: gathered in half the bytes. */
static void parameters_in_fp8_are_half(void **state) {
    double matrices = L * (D * (2.0 * HEADS_WIDTH + 2.0 * KV_WIDTH) + 3.0 * D * F);
    sm_price_of_plan wide = price_of("fsdp=8,dtype=fp8"),
                     narrow = price_of("fsdp=8,dtype=fp8,parameters=fp8");
    is_about(narrow.memory.params, wide.memory.params - matrices / 8);
    is_about(narrow.memory.optimizer, wide.memory.optimizer);
    assert_true(narrow.expected_s < wide.expected_s);
}

/* The search passes what a plan's price passes. */
static void the_search_knows_what_is_left_of_the_card(void **state) {
    sm_error err = {0};
    sm_system system;
    sm_source on = sm_source_of("--on", "h100-sxm:8");
    static search_copy result;
    sm_train *train = NULL;
    sm_search_options o;
    sm_software_memory most = plain;
    assert_int_equal(sm_system_parse(&on, NULL, 0, &system, &err), SM_OK);
    sm_job job = {sizeof(sm_job), &model, &system, 64.0 * T, T, 0, -1, NULL};
    assert_int_equal(sm_train_new(&job, &train, &err), SM_OK);
    most.outside_bytes = 76e9; /* leaves 10 GB */
    sm_train_set_software_memory(train, &most);
    sm_search_defaults(&o);
    o.top = 8;
    assert_int_equal(search_copied(train, &o, &result, &err), SM_OK);
    for (int i = 0; i < result.n; i++) assert_true(result.found[i].price.fits);
    sm_train_free(train);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_software_holds_what_megatron_does),
        cmocka_unit_test(a_new_job_has_them_too),
        cmocka_unit_test(the_loss_holds_its_bytes_per_token_and_word),
        cmocka_unit_test(whole_logits_are_not_divided_by_tensor),
        cmocka_unit_test(norms_of_several_kernels_keep_more),
        cmocka_unit_test(recomputed_norms_are_kept_for_one_layer),
        cmocka_unit_test(loss_and_recomputed_layer_are_two_moments),
        cmocka_unit_test(layers_run_again_to_their_end),
        cmocka_unit_test(gate_and_up_sum_their_gradients_apart),
        cmocka_unit_test(keys_go_round_as_many_heads_as_queries),
        cmocka_unit_test(gradients_are_added_after_each_microbatch),
        cmocka_unit_test(what_is_kept_gathered_is_not_gathered_again),
        cmocka_unit_test(sharded_logits_have_a_number_of_their_own),
        cmocka_unit_test(gathered_results_of_norms_are_whole),
        cmocka_unit_test(a_gate_apart_is_an_array_more),
        cmocka_unit_test(what_is_dropped_for_good_is_not_kept),
        cmocka_unit_test(heads_copied_to_another_layout_count),
        cmocka_unit_test(inputs_of_narrow_matmuls_are_narrow),
        cmocka_unit_test(weights_outside_experts_are_shards_too),
        cmocka_unit_test(copies_beside_shards),
        cmocka_unit_test(sums_are_whole_until_the_last_microbatch),
        cmocka_unit_test(stages_keep_all_microbatches),
        cmocka_unit_test(an_update_has_an_array_beside_its_moments),
        cmocka_unit_test(shards_may_be_the_optimizers_own),
        cmocka_unit_test(frozen_layers_hold_what_entered),
        cmocka_unit_test(first_gradients_come_after_the_loss),
        cmocka_unit_test(experts_weighted_early_keep_no_results),
        cmocka_unit_test(a_capacity_is_slots),
        cmocka_unit_test(masks_of_ones_are_multiplied),
        cmocka_unit_test(tiles_are_done_for_each_expert_in_them),
        cmocka_unit_test(grouped_products_have_a_rate_of_their_own),
        cmocka_unit_test(products_of_odd_rows_have_a_third_of_the_rate),
        cmocka_unit_test(narrow_products_have_a_rate_of_their_own),
        cmocka_unit_test(masks_are_followed_block_by_block),
        cmocka_unit_test(gradients_beside_their_sums),
        cmocka_unit_test(the_allocator_takes_its_part),
        cmocka_unit_test(what_is_outside_lowers_the_capacity_or_counts),
        cmocka_unit_test(compiled_memory_of_tpus_has_no_allocator),
        cmocka_unit_test(head_and_last_layer_are_whole_at_the_loss),
        cmocka_unit_test(adapters_alone_have_gradients_and_state),
        cmocka_unit_test(inputs_of_frozen_matrices_are_not_kept),
        cmocka_unit_test(frozen_weights_spare_a_third_of_the_products),
        cmocka_unit_test(a_quantised_base_is_held_and_gathered_narrow),
        cmocka_unit_test(what_cannot_be_trained_is_refused),
        cmocka_unit_test(parameters_in_fp8_are_half),
        cmocka_unit_test(the_search_knows_what_is_left_of_the_card),
        cmocka_unit_test(no_weight_is_broadcast_twice),
        cmocka_unit_test(a_plan_fits_what_is_left_of_the_card),
    };
    return cmocka_run_group_tests(tests, load_model, NULL);
}
