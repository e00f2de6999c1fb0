/* Plans as text: what they mean, that they read back, and what bad ones are told. */
#include "unit.h"
#include "model_of.h"
#include "scalemodel/train.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sm_plan plan_of(const char *text) {
    sm_plan plan;
    sm_error err = {0};
    sm_source source = sm_source_of("--plan", text);
    if (sm_plan_parse(&source, &plan, &err) != SM_OK) fail_msg("%s: %s", text, err.sentence);
    return plan;
}

static void prints(const char *text, const char *expected) {
    sm_plan plan = plan_of(text);
    char out[512];
    size_t n = sm_plan_format(&plan, 3, out, sizeof out);
    assert_string_equal(out, expected);
    assert_int_equal(n, strlen(expected));
}

static void is_told(const char *text, const char *expected) {
    sm_plan plan;
    sm_error err = {0};
    char out[1024];
    sm_source source = sm_source_of("--plan", text);
    assert_int_equal(sm_plan_parse(&source, &plan, &err), SM_BAD_INPUT);
    assert_int_equal(err.status, SM_BAD_INPUT);
    sm_error_format(&err, out, sizeof out);
    assert_string_equal(out, expected);
}

/* ---- meaning ---- */

static void the_empty_plan_is_the_default(void **state) {
    static const uint8_t order[] = {SM_PLAN_TENSOR, SM_PLAN_CONTEXT, SM_PLAN_EXPERT,
                                    SM_PLAN_FSDP,   SM_PLAN_DATA,    SM_PLAN_PIPELINE};
    sm_plan plan = plan_of("  ");
    assert_int_equal(plan.given, 0);
    assert_int_equal(plan.data * plan.fsdp * plan.tensor * plan.context, 1);
    assert_int_equal(plan.expert * plan.pipeline * plan.virtual_stages * plan.microbatch, 1);
    assert_int_equal(plan.zero, 1);
    assert_true(plan.seq && !plan.expert_tensor);
    assert_int_equal(plan.context_by, SM_CONTEXT_RING);
    assert_int_equal(plan.recompute, SM_RECOMPUTE_NONE);
    assert_string_equal(plan.recompute_ops, "");
    assert_int_equal(plan.regather, SM_REGATHER_ALL);
    assert_int_equal(plan.schedule, SM_SCHEDULE_1F1B);
    assert_int_equal(plan.offload, SM_OFFLOAD_NONE);
    assert_int_equal(plan.dtype, SM_BF16);
    assert_int_equal(plan.optimizer, SM_OPTIMIZER_ADAM);
    assert_int_equal(plan.gradient, SM_FP32);
    assert_memory_equal(plan.order, order, sizeof order);
    assert_true(plan.dims[0] == 0 && plan.dims[1] == 1 && plan.dims[2] == 2);
}

static void keys_are_read_and_marked(void **state) {
    sm_plan plan = plan_of(" data = 4 , fsdp=64,tensor=8,\n seq=off,context=2,expert=8,pipeline=4,"
                           "virtual=2,microbatch=1k,recompute=selective,schedule=zb-v,dtype=fp8,"
                           "gradient=bf16,optimizer=adam-8bit,offload=both,context_by=heads,"
                           "expert_tensor=on,regather=activations");
    assert_int_equal(plan.data, 4);
    assert_int_equal(plan.fsdp, 64);
    assert_int_equal(plan.tensor, 8);
    assert_int_equal(plan.context, 2);
    assert_int_equal(plan.expert, 8);
    assert_int_equal(plan.pipeline, 4);
    assert_int_equal(plan.virtual_stages, 2);
    assert_int_equal(plan.microbatch, 1000);
    assert_true(!plan.seq && plan.expert_tensor);
    assert_int_equal(plan.recompute, SM_RECOMPUTE_SELECTIVE);
    assert_int_equal(plan.regather, SM_REGATHER_ACTIVATIONS);
    assert_int_equal(plan.schedule, SM_SCHEDULE_ZB_V);
    assert_int_equal(plan.dtype, SM_FP8);
    assert_int_equal(plan.gradient, SM_BF16);
    assert_int_equal(plan.optimizer, SM_OPTIMIZER_ADAM_8BIT);
    assert_int_equal(plan.offload, SM_OFFLOAD_BOTH);
    assert_int_equal(plan.context_by, SM_CONTEXT_HEADS);
    static const sm_plan_key keys[] = {
        SM_PLAN_DATA,       SM_PLAN_FSDP,         SM_PLAN_TENSOR,   SM_PLAN_SEQ,
        SM_PLAN_CONTEXT,    SM_PLAN_EXPERT,       SM_PLAN_PIPELINE, SM_PLAN_VIRTUAL,
        SM_PLAN_MICROBATCH, SM_PLAN_RECOMPUTE,    SM_PLAN_SCHEDULE, SM_PLAN_DTYPE,
        SM_PLAN_GRADIENT,   SM_PLAN_OPTIMIZER,    SM_PLAN_OFFLOAD,  SM_PLAN_CONTEXT_BY,
        SM_PLAN_REGATHER,   SM_PLAN_EXPERT_TENSOR};
    uint64_t given = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) given |= UINT64_C(1) << keys[i];
    assert_int_equal(plan.given, given);
    assert_int_equal(plan_of("dtype=bfloat16").dtype, SM_BF16);
    assert_int_equal(plan_of("tensor=1048576").tensor, 1 << 20);
    assert_int_equal(plan_of("virtual=64").virtual_stages, 64);
}

static void permutations_are_completed(void **state) {
    static const uint8_t order[] = {SM_PLAN_PIPELINE, SM_PLAN_DATA,   SM_PLAN_TENSOR,
                                    SM_PLAN_CONTEXT,  SM_PLAN_EXPERT, SM_PLAN_FSDP};
    sm_plan plan = plan_of("order=pipeline.data,dims=2.0");
    assert_memory_equal(plan.order, order, sizeof order);
    assert_true(plan.dims[0] == 2 && plan.dims[1] == 0 && plan.dims[2] == 1);
    plan = plan_of("dims=1");
    assert_true(plan.dims[0] == 1 && plan.dims[1] == 0 && plan.dims[2] == 2);
}

/* Runs join, whoever wrote them; what they say is what each chunk gets, and else the layers are
 * even. */
static void layouts_are_read(void **state) {
    (void)state;
    int of[8];
    sm_plan plan = plan_of("pipeline=4,layout=7.8.8.7");
    assert_string_equal(plan.layout, "7.8*2.7");
    assert_int_equal(sm_plan_layout_chunks(plan.layout), 4);
    sm_plan_layout_fill(&plan, 30, 4, of);
    assert_true(of[0] == 7 && of[1] == 8 && of[2] == 8 && of[3] == 7);
    assert_string_equal(plan_of("pipeline=4,layout=2*2.2*1.0").layout, "2*3.0");
    plan = plan_of("pipeline=2,layout=0.5*2.0");
    assert_int_equal(plan.virtual_stages, 2);
    assert_int_equal(plan.schedule, SM_SCHEDULE_INTERLEAVED);
    char text[256] = "layout=";
    for (int i = 0; i < 50; i++) strcat(text, i % 2 ? "1." : "2.");
    sm_source long_one = sm_source_of("--plan", strcat(text, "3"));
    sm_error err = {0};
    assert_int_equal(sm_plan_parse(&long_one, &plan, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "a layout takes at most 95 letters; 8*14 is 14 times 8");
    plan = plan_of("pipeline=4,layout=even");
    assert_true(!plan.layout[0] && plan.given >> SM_PLAN_LAYOUT & 1);
    sm_plan_layout_fill(&plan, 30, 4, of);
    assert_true(of[0] == 7 && of[1] == 8 && of[2] == 8 && of[3] == 7);
    sm_plan_layout_fill(&plan, 6, 8, of);
    assert_true(of[0] == 0 && of[1] == 1 && of[6] == 1 && of[7] == 0);
}

static void one_plan_has_one_form(void **state) {
    sm_plan plan = plan_of("data=8,zero=3,tensor=2");
    assert_int_equal(plan.fsdp, 8);
    assert_int_equal(plan.data, 1);
    assert_true(plan.given >> SM_PLAN_FSDP & 1 && plan.given >> SM_PLAN_DATA & 1);
    plan = plan_of("data=8,fsdp=1,zero=3");
    assert_int_equal(plan.fsdp, 8);
    plan = plan_of("data=2,fsdp=4,zero=3");
    assert_true(plan.data == 2 && plan.fsdp == 4);
    assert_int_equal(plan_of("fsdp=4").zero, 3);
    assert_int_equal(plan_of("fsdp=4,zero=1").zero, 3);
    plan = plan_of("zero=3");
    assert_true(plan.zero == 3 && plan.fsdp == 1 && !(plan.given >> SM_PLAN_FSDP & 1));
    assert_int_equal(plan_of("pipeline=4,virtual=2").schedule, SM_SCHEDULE_INTERLEAVED);
    assert_int_equal(plan_of("virtual=2,schedule=1f1b").schedule, SM_SCHEDULE_INTERLEAVED);
    assert_int_equal(plan_of("virtual=2,schedule=zb-v").schedule, SM_SCHEDULE_ZB_V);
    plan = plan_of("pipeline=4,schedule=dualpipe");
    assert_int_equal(plan.virtual_stages, 2);
    assert_false(plan.given >> SM_PLAN_VIRTUAL & 1);
    assert_int_equal(plan_of("schedule=dualpipe,virtual=1").virtual_stages, 1);
    assert_int_equal(plan_of("schedule=zb-h1").virtual_stages, 1);
}

static void sets_of_ops_are_read(void **state) {
    sm_plan plan = plan_of("recompute= o + q.2");
    assert_int_equal(plan.recompute, SM_RECOMPUTE_NONE);
    assert_string_equal(plan.recompute_ops, "o+q.2");
    assert_string_equal(plan_of("recompute=o").recompute_ops, "o");
    assert_string_equal(plan_of("recompute=h+qd.2+sy").recompute_ops, "h+qd.2+sy");
    assert_string_equal(plan_of("recompute=full").recompute_ops, "");
}

/* Whatever op a program has can be named in recompute=. */
static void names_its_ops(const char *members, sm_piece piece) {
    static sm_program program;
    static const sm_rules rules = {0};
    static const char config[] =
        "{\"model_type\": \"transformer\", \"hidden_size\": 64, \"num_hidden_layers\": 1, "
        "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"vocab_size\": 96, "
        "\"intermediate_size\": 128}";
    sm_model model = model_with("named", config, members);
    sm_error err = {0};
    assert_int_equal(sm_program_build(&model, piece, 0, 128, &rules, &program, &err), SM_OK);
    for (int i = 0; i < program.ops; i++) {
        char text[64];
        snprintf(text, sizeof text, "recompute=%s", program.op[i].name);
        assert_string_equal(plan_of(text).recompute_ops, program.op[i].name);
    }
}

static void every_op_can_be_named(void **state) {
#define EXPERTS "\"num_experts\": 8, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 32, "
#define LATENT                                                                                     \
    "\"n_shared_experts\": 1, \"kv_lora_rank\": 32, \"qk_rope_head_dim\": 8, "                     \
    "\"qk_nope_head_dim\": 8, \"v_head_dim\": 16"
    names_its_ops("", SM_PIECE_EMBEDDING);
    names_its_ops("", SM_PIECE_HEAD);
    names_its_ops("\"norms_per_layer\": 4", SM_PIECE_LAYER);
    names_its_ops("\"norms_per_layer\": 4, \"use_parallel_residual\": true", SM_PIECE_LAYER);
    names_its_ops(EXPERTS "\"gated_mlp\": false", SM_PIECE_LAYER);
    names_its_ops(EXPERTS LATENT, SM_PIECE_LAYER);
    names_its_ops(EXPERTS LATENT ", \"q_lora_rank\": 16", SM_PIECE_LAYER);
}

/* ---- printing ---- */

static void plans_print_what_matters(void **state) {
    prints("", "microbatch=1,zero=1,recompute=none");
    prints("fsdp=2048,tensor=4", "fsdp=2048,tensor=4,microbatch=1,zero=3,seq=on,recompute=none");
    prints("data=8,zero=3", "fsdp=8,microbatch=1,zero=3,recompute=none");
    prints("data=8,fsdp=2,state_copies=8",
           "data=8,fsdp=2,microbatch=1,zero=3,state_copies=8,recompute=none");
    prints("data=8,zero=0,state_copies=4", "data=8,microbatch=1,zero=0,recompute=none");
    prints("seq=off,schedule=gpipe,virtual=3,context_by=heads,expert_tensor=on",
           "microbatch=1,zero=1,recompute=none");
    /* what is not gathered is not gathered again, whoever keeps what */
    prints("data=8,tensor=2,seq=off,regather=none",
           "data=8,tensor=2,microbatch=1,zero=1,seq=off,recompute=none");
    prints("fsdp=8,context=2,regather=none",
           "fsdp=8,context=2,microbatch=1,zero=3,context_by=ring,recompute=none,"
           "regather=activations");
    prints("tensor=8,regather=none,offload=both",
           "tensor=8,microbatch=1,zero=1,seq=on,recompute=none,offload=both");
    prints("fsdp=2,tensor=4,regather=none",
           "fsdp=2,tensor=4,microbatch=1,zero=3,seq=on,recompute=none,regather=none");
    prints("pipeline=16,virtual=2,tensor=8,expert=2,context=2,expert_tensor=on,recompute=full",
           "tensor=8,context=2,expert=2,pipeline=16,virtual=2,microbatch=1,zero=1,seq=on,"
           "expert_tensor=on,context_by=ring,recompute=full,schedule=interleaved");
    prints("offload=optimizer,dtype=fp8,optimizer=sgd,gradient=bf16,order=data,dims=0.2",
           "microbatch=1,zero=1,recompute=none,offload=optimizer,dtype=fp8,optimizer=sgd,"
           "gradient=bf16,order=data.tensor.context.expert.fsdp.pipeline,dims=0.2.1");
}

static void printing_respects_its_room(void **state) {
    sm_plan plan = plan_of("tensor=4");
    char out[8] = "zzzzzzz";
    size_t whole = sm_plan_format(&plan, 0, NULL, 0);
    assert_int_equal(whole, strlen("tensor=4,microbatch=1,zero=1,seq=on,recompute=none"));
    assert_int_equal(sm_plan_format(&plan, 0, out, 5), whole);
    assert_string_equal(out, "tens");
    assert_int_equal(out[5], 'z');
    assert_int_equal(sm_plan_format(&plan, 0, out, 1), whole);
    assert_string_equal(out, "");
}

static void dims_print_for_tori_alone(void **state) {
    sm_plan plan = plan_of("dims=1.0.2");
    char out[128];
    sm_plan_format(&plan, 2, out, sizeof out);
    assert_non_null(strstr(out, ",dims=1.0"));
    assert_null(strstr(out, "1.0.2"));
    sm_plan_format(&plan, 0, out, sizeof out);
    assert_null(strstr(out, "dims"));
}

/* Dimensions that are named must be there; those that follow by themselves need not. */
static void dims_are_those_of_the_system(void **state) {
    static const struct {
        const char *plan;
        int dims;
        const char *sentence;
    } cases[] = {{"dims=2.1", 2, "dims names dimension 2, and here has dimensions 0 and 1"},
                 {"dims=1.0.2", 2, "dims names dimension 2, and here has dimensions 0 and 1"},
                 {"dims=1", 1, "dims names dimension 1, and here has dimension 0 alone"},
                 {"dims=0", 0,
                  "dims names dimension 0, and here has no torus: no dims order its "
                  "levels"},
                 {"dims=1.0", 2, NULL},
                 {"dims=2.1.0", 3, NULL},
                 {"data=2", 0, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sm_system system = {.torus_dims = cases[i].dims, .text = "here"};
        sm_plan plan = plan_of(cases[i].plan);
        char room[128];
        const char *why = sm_plan_refuse_dims(&plan, &system, room, sizeof room);
        if (cases[i].sentence) assert_string_equal(why, cases[i].sentence);
        else assert_null(why);
    }
}

/* ---- the table of keys ---- */

static void rows_describe_their_keys(void **state) {
    char text[256];
    sm_plan usual[SM_PLAN_USES];
    sm_plan_defaults(&usual[SM_PLAN_TRAINING]);
    sm_serve_plan_defaults(&usual[SM_PLAN_SERVING]);
    for (int key = 0; key < SM_PLAN_KEY_COUNT; key++) {
        const sm_plan_key_row *row = sm_plan_key_row_of((sm_plan_key)key);
        assert_true(row->name[0] && row->meaning[0] && row->shards && row->uses);
        assert_true(sm_plan_key_values((sm_plan_key)key, text, sizeof text)[0]);
        for (int use = 0; use < SM_PLAN_USES; use++) {
            char one[128], item[256];
            sm_plan read;
            sm_error err = {0};
            sm_plan_key_print(&usual[use], (sm_plan_key)key, 3, one, sizeof one);
            snprintf(item, sizeof item, "%s=%s", row->name, one);
            sm_source source = sm_source_of("row", item);
            sm_status status = use == SM_PLAN_TRAINING ? sm_plan_parse(&source, &read, &err)
                                                       : sm_serve_plan_parse(&source, &read, &err);
            assert_int_equal(status, row->uses >> use & 1 ? SM_OK : SM_BAD_INPUT);
        }
    }
    assert_string_equal(sm_plan_key_values(SM_PLAN_DATA, text, sizeof text), "1..1048576");
    assert_string_equal(sm_plan_key_values(SM_PLAN_CACHE_BY, text, sizeof text),
                        "copies|batch|sequence");
    assert_int_equal(sm_plan_key_of_nickname("tp", 2), SM_PLAN_TENSOR);
    assert_int_equal(sm_plan_key_of_nickname("tpx", 3), -1);
}

/* ---- parse(format(x)) = x over random plans ---- */

static void shuffle(sm_rng *rng, uint8_t *list, int n) {
    for (int i = n - 1; i > 0; i--) {
        int j = (int)sm_rng_below(rng, (uint64_t)i + 1);
        uint8_t t = list[i];
        list[i] = list[j];
        list[j] = t;
    }
}

static int degree(sm_rng *rng) {
    return sm_rng_below(rng, 2) ? 1 : 1 + (int)sm_rng_below(rng, 1 << 20);
}

/* Keys without a meaning (a schedule without pipeline, ...) keep their defaults: those are the
 * canonical plans, which the text stands for. */
static sm_plan random_plan(sm_rng *rng) {
    static const sm_dtype dtypes[] = {SM_BF16, SM_FP16, SM_FP32, SM_FP8, SM_MXFP4};
    static const char *const ops[] = {"", "o", "o+m", "qd.2+h"};
    sm_plan p;
    sm_plan_defaults(&p);
    int *degrees[] = {&p.data, &p.fsdp, &p.tensor, &p.context, &p.expert, &p.pipeline};
    for (size_t i = 0; i < 6; i++) *degrees[i] = degree(rng);
    p.microbatch = degree(rng);
    p.zero = p.fsdp > 1 ? 3 : (int)sm_rng_below(rng, 3);
    if (p.data > 1 && p.zero > 0 && sm_rng_below(rng, 2)) p.state_copies = p.data;
    if (p.tensor > 1) p.seq = sm_rng_below(rng, 2);
    if (p.tensor > 1) p.expert_tensor = sm_rng_below(rng, 2);
    if (p.context > 1) p.context_by = (sm_context_by)sm_rng_below(rng, 3);
    snprintf(p.recompute_ops, sizeof p.recompute_ops, "%s", ops[sm_rng_below(rng, 4)]);
    if (p.recompute_ops[0] == '\0')
        p.recompute = (sm_recompute)sm_rng_below(rng, SM_RECOMPUTE_COUNT);
    if (p.fsdp > 1 && sm_rng_below(rng, 2)) p.regather = SM_REGATHER_ACTIVATIONS;
    if (p.pipeline > 1) {
        p.schedule = (sm_schedule)sm_rng_below(rng, SM_SCHEDULE_COUNT);
        p.virtual_stages = p.schedule == SM_SCHEDULE_1F1B ? 1 : 1 + (int)sm_rng_below(rng, 64);
    }
    p.offload = (int)sm_rng_below(rng, SM_OFFLOAD_COUNT);
    p.dtype = dtypes[sm_rng_below(rng, 5)];
    p.optimizer = (sm_optimizer)sm_rng_below(rng, SM_OPTIMIZER_COUNT);
    p.gradient = sm_rng_below(rng, 2) ? SM_FP32 : SM_BF16;
    if (sm_rng_below(rng, 2)) shuffle(rng, p.order, SM_PLAN_DEGREES);
    if (sm_rng_below(rng, 2)) shuffle(rng, p.dims, 3);
    return p;
}

static void same_plan(const sm_plan *a, const sm_plan *b) {
    assert_int_equal(a->data, b->data);
    assert_int_equal(a->fsdp, b->fsdp);
    assert_int_equal(a->tensor, b->tensor);
    assert_int_equal(a->context, b->context);
    assert_int_equal(a->expert, b->expert);
    assert_int_equal(a->pipeline, b->pipeline);
    assert_int_equal(a->virtual_stages, b->virtual_stages);
    assert_int_equal(a->microbatch, b->microbatch);
    assert_int_equal(a->zero, b->zero);
    assert_int_equal(a->state_copies, b->state_copies);
    assert_int_equal(a->seq, b->seq);
    assert_int_equal(a->expert_tensor, b->expert_tensor);
    assert_int_equal(a->context_by, b->context_by);
    assert_int_equal(a->recompute, b->recompute);
    assert_string_equal(a->recompute_ops, b->recompute_ops);
    assert_int_equal(a->regather, b->regather);
    assert_int_equal(a->schedule, b->schedule);
    assert_int_equal(a->offload, b->offload);
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->optimizer, b->optimizer);
    assert_int_equal(a->gradient, b->gradient);
    assert_memory_equal(a->order, b->order, sizeof a->order);
    assert_memory_equal(a->dims, b->dims, sizeof a->dims);
}

static void plans_read_back(void **state) {
    sm_rng rng = {2};
    for (int i = 0; i < 20000; i++) {
        char text[512], again[512];
        sm_plan plan = random_plan(&rng);
        assert_true(sm_plan_format(&plan, 3, text, sizeof text) < sizeof text);
        sm_plan read = plan_of(text);
        same_plan(&plan, &read);
        sm_plan_format(&read, 3, again, sizeof again);
        assert_string_equal(again, text);
    }
}

/* ---- errors ---- */

static void bad_keys_are_named(void **state) {
    is_told("fsdp=8,tensr=4", "--plan:1:8: a plan has no key \"tensr\"; the nearest is \"tensor\"\n"
                              "  fsdp=8,tensr=4\n"
                              "         ^~~~~");
    is_told("Tensor=4", "--plan:1:1: a plan has no key \"Tensor\"; the nearest is \"tensor\"\n"
                        "  Tensor=4\n"
                        "  ^~~~~~");
    is_told("qqq=4", "--plan:1:1: a plan has no key \"qqq\"; expected data, fsdp, tensor, context, "
                     "expert, pipeline, virtual, microbatch, zero, state_copies, seq, "
                     "expert_tensor, context_by, recompute, regather, schedule, offload, dtype, "
                     "optimizer, gradient, attention, norms, loss, embedding, lora, targets, "
                     "parameters, capacity, order, dims or layout\n"
                     "  qqq=4\n"
                     "  ^~~");
    is_told("data=2,seq=on,data=4", "--plan:1:15: data is given twice\n"
                                    "  data=2,seq=on,data=4\n"
                                    "                ^~~~");
    is_told("fsdp", "--plan:1:1: expected KEY=VALUE, as in fsdp=64,tensor=8,recompute=selective\n"
                    "  fsdp\n"
                    "  ^~~~");
    is_told("fsdp=8,",
            "--plan:1:8: expected KEY=VALUE, as in fsdp=64,tensor=8,recompute=selective\n"
            "  fsdp=8,\n"
            "         ^");
}

static void bad_values_are_named(void **state) {
    is_told("schedule=1f2b", "--plan:1:10: schedule cannot be \"1f2b\"; the nearest is \"1f1b\"\n"
                             "  schedule=1f2b\n"
                             "           ^~~~");
    is_told("seq=yes", "--plan:1:5: seq cannot be \"yes\"; expected off or on\n"
                       "  seq=yes\n"
                       "      ^~~");
    is_told("dtype=int32",
            "--plan:1:7: dtype cannot be \"int32\"; expected bf16, fp16, fp32, tf32, fp64, fp8, "
            "int8, fp4, mxfp4 or nvfp4\n"
            "  dtype=int32\n"
            "        ^~~~~");
    is_told("gradient=fp8", "--plan:1:10: gradient cannot be \"fp8\"; expected fp32 or bf16\n"
                            "  gradient=fp8\n"
                            "           ^~~");
    is_told("optimizer=adan", "--plan:1:11: optimizer cannot be \"adan\"; the nearest is \"adam\"\n"
                              "  optimizer=adan\n"
                              "            ^~~~");
    is_told("offload=,seq=on", "--plan:1:9: offload cannot be \"\"; expected none, optimizer, "
                               "activations or both\n"
                               "  offload=,seq=on\n"
                               "          ^");
}

static void bad_numbers_are_named(void **state) {
    is_told("tensor=0", "--plan:1:8: expected a whole number from 1 to 1048576, found 0\n"
                        "  tensor=0\n"
                        "         ^");
    is_told("zero=4", "--plan:1:6: expected a whole number from 0 to 3, found 4\n"
                      "  zero=4\n"
                      "       ^");
    is_told("virtual=65", "--plan:1:9: expected a whole number from 1 to 64, found 65\n"
                          "  virtual=65\n"
                          "          ^~");
    is_told("layout=7.8*0", "--plan:1:12: expected a whole number from 1 to 1024, found 0\n"
                            "  layout=7.8*0\n"
                            "             ^");
    is_told("data=2.5", "--plan:1:6: expected a whole number from 1 to 1048576, found 2.5\n"
                        "  data=2.5\n"
                        "       ^~~");
}

static void bad_recomputation_is_named(void **state) {
    is_told("recompute=selectiv",
            "--plan:1:11: recompute cannot be \"selectiv\"; the nearest is \"selective\"\n"
            "  recompute=selectiv\n"
            "            ^~~~~~~~");
    is_told("recompute=m+m", "--plan:1:13: m is named twice\n"
                             "  recompute=m+m\n"
                             "              ^");
    is_told("recompute=m+2.q+x", "--plan:1:13: no model has an op \"2.q\"\n"
                                 "  recompute=m+2.q+x\n"
                                 "              ^~~");
    sm_plan plan;
    sm_error err = {0};
    char text[SM_PLAN_OPS_TEXT + 16] = "recompute=";
    while (strlen(text) < SM_PLAN_OPS_TEXT + 8)
        snprintf(text + strlen(text), 8, "%sq.%zu", text[10] ? "+" : "", strlen(text));
    sm_source source = sm_source_of("--plan", text);
    assert_int_equal(sm_plan_parse(&source, &plan, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "this set of ops has more than 159 letters; "
                                      "recompute=full names them all");
}

static void bad_permutations_are_named(void **state) {
    is_told("order=tensor.data.tensor", "--plan:1:19: tensor is named twice\n"
                                        "  order=tensor.data.tensor\n"
                                        "                    ^~~~~~");
    is_told("order=tensor.pipe",
            "--plan:1:14: no axis is named \"pipe\"; the nearest is \"pipeline\"\n"
            "  order=tensor.pipe\n"
            "               ^~~~");
    is_told("order=zero", "--plan:1:7: no axis is named \"zero\"; expected data, fsdp, tensor, "
                          "context, expert or pipeline\n"
                          "  order=zero\n"
                          "        ^~~~");
    is_told("dims=0.0", "--plan:1:8: 0 is named twice\n"
                        "  dims=0.0\n"
                        "         ^");
    is_told("dims=3", "--plan:1:6: no dimension has the number \"3\"; expected 0, 1 or 2\n"
                      "  dims=3\n"
                      "       ^");
}

/* Any bytes give a plan or an error with a sentence; never anything else. */
static void noise_is_answered(void **state) {
    static const char letters[] = "datfspenor=,.+0123456789- \t\n\0\xff=1f1b";
    sm_rng rng = {5};
    for (int i = 0; i < 50000; i++) {
        char text[40];
        size_t n = sm_rng_below(&rng, sizeof text);
        for (size_t j = 0; j < n; j++) text[j] = letters[sm_rng_below(&rng, sizeof letters - 1)];
        sm_source source = {"noise", text, n};
        sm_plan plan;
        sm_error err = {0};
        sm_status status = sm_plan_parse(&source, &plan, &err);
        assert_true(status == SM_OK || (status == SM_BAD_INPUT && err.sentence[0] != '\0'));
        assert_true(sm_plan_parse(&source, &plan, NULL) == status);
    }
}

static void refused(const sm_model *model, const char *text, const char *why) {
    char room[256];
    sm_plan plan = plan_of(text);
    const char *said = sm_plan_refuse(&plan, model, room, sizeof room);
    if (!said != !why || (why && !strstr(said, why)))
        fail_msg("%s: %s, expected %s", text, said ? said : "nothing", why ? why : "nothing");
}

/* Heads are those of every mixer: 8 groups of 16 heads of a state, 28 = 4 x 7 of attention. */
static void heads_are_dealt_out_or_copied(void **state) {
    sm_model scan = model_of("scan", "{\"model_type\": \"mamba2\", \"hidden_size\": 4096, "
                                     "\"num_hidden_layers\": 2, \"vocab_size\": 32000, "
                                     "\"n_groups\": 8}");
    refused(&scan, "context=8", "each waiting for the one before it");
    refused(&scan, "context=8,context_by=heads", NULL);
    refused(&scan, "context=8,tensor=2,context_by=heads", "heads of a state (8)");
    refused(&scan, "tensor=128", NULL);
    sm_plan plan = plan_of("tensor=128");
    assert_int_equal(sm_plan_heads_times(&plan, &scan), 1);
    plan = plan_of("tensor=256");
    assert_int_equal(sm_plan_heads_times(&plan, &scan), 2);
    sm_model attends = catalogue_with("qwen2-7b", "");
    sm_degrees d;
    refused(&attends, "tensor=8", NULL);
    refused(&attends, "tensor=3", "MLP width");
    plan = plan_of("tensor=8");
    sm_degrees_set(&d, &plan, &attends);
    assert_true(d.axis[SM_AXIS_TENSOR] == 4 && d.axis[SM_AXIS_TENSOR_Q] == 1 &&
                d.axis[SM_AXIS_TENSOR_W] == 2);
    plan = plan_of("tensor=28");
    assert_int_equal(sm_plan_heads_times(&plan, &attends), 1);
}

/* Nodes that hold any of k experts dealt one after the other, token by token, counted. */
static void experts_in_order_lie_on_few_nodes(void **state) {
    static const struct {
        int experts, k;
    } of[] = {{256, 8}, {128, 4}, {384, 8}, {16, 8}, {32, 6}, {96, 8}};
    sm_system system;
    sm_error err = {0};
    sm_source source = sm_source_of("--on", "h100-sxm:8x8");
    sm_group g = {2, {{0, 8, 1}, {1, 8, 1}}, 64};
    (void)state;
    if (sm_system_parse(&source, NULL, 0, &system, &err) != SM_OK) fail_msg("%s", err.sentence);
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        int experts = of[i].experts, k = of[i].k, reached = 0;
        for (int token = 0; token < experts; token++)
            for (int e = 0, last = -1; e < k; e++) {
                int node = (token * k + e) % experts / (experts / 8);
                reached += node != last;
                last = node;
            }
        double want = (double)reached / experts / k;
        double got = sm_ragged_part(&system, k, experts, &g);
        if (got > want * (1 + 1e-12) || got < want * (1 - 1e-12))
            fail_msg("%d of %d experts: %g, not %g", k, experts, got, want);
        assert_true(got <= sm_ragged_part(&system, k, 0, &g));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(experts_in_order_lie_on_few_nodes),
        cmocka_unit_test(rows_describe_their_keys),
        cmocka_unit_test(the_empty_plan_is_the_default),
        cmocka_unit_test(keys_are_read_and_marked),
        cmocka_unit_test(permutations_are_completed),
        cmocka_unit_test(layouts_are_read),
        cmocka_unit_test(one_plan_has_one_form),
        cmocka_unit_test(sets_of_ops_are_read),
        cmocka_unit_test(every_op_can_be_named),
        cmocka_unit_test(plans_print_what_matters),
        cmocka_unit_test(printing_respects_its_room),
        cmocka_unit_test(dims_print_for_tori_alone),
        cmocka_unit_test(dims_are_those_of_the_system),
        cmocka_unit_test(plans_read_back),
        cmocka_unit_test(heads_are_dealt_out_or_copied),
        cmocka_unit_test(bad_keys_are_named),
        cmocka_unit_test(bad_values_are_named),
        cmocka_unit_test(bad_numbers_are_named),
        cmocka_unit_test(bad_recomputation_is_named),
        cmocka_unit_test(bad_permutations_are_named),
        cmocka_unit_test(noise_is_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
