/* Models of two stacks: the first reads its source once, as a request begins. */
#include "unit.h"
#include <math.h>
#include <stdio.h>
#include "scalemodel/load.h"
#include "scalemodel/simulate.h"
#include "serve_cases.h"

static void close_to(double value, double expected, double part) {
    if (!(fabs(value - expected) <= part * fabs(expected)))
        fail_msg("%.6g where %.6g was expected", value, expected);
}

static void t5_with(serve_case *c, int source) {
    char config[512];
    snprintf(config, sizeof config,
             "{\"model_type\": \"t5\", \"d_model\": 1024, \"d_kv\": 64, \"d_ff\": 2816, "
             "\"num_heads\": 16, \"num_layers\": 24, \"num_decoder_layers\": 24, "
             "\"vocab_size\": 32128, \"feed_forward_proj\": \"gated-gelu\", "
             "\"relative_attention_num_buckets\": 32, \"tie_word_embeddings\": false, "
             "\"source\": %d}",
             source);
    c->model = model_of("t5", config);
}

/* Bytes of all collectives of this kind in the prefill of one prompt. */
static double prefill_moves(serve_case *c, const char *plan_text, sm_collective op) {
    sm_error err = {0};
    sm_arena *arena = sm_arena_new();
    sm_serve *serve = serve_case_new(c);
    const sm_serve_point point = serve_point(serve, plan_text, 1);
    sm_serve_detail detail;
    assert_int_equal(sm_serve_detail_of(serve, &point, arena, &detail, &err), SM_OK);
    double bytes = 0;
    for (int i = 0; i < detail.prefill.collectives; i++) {
        const sm_plan_collective *row = &detail.prefill.collective[i];
        if (row->op == op) bytes += row->bytes * row->count;
    }
    sm_serve_free(serve);
    sm_arena_free(arena);
    return bytes;
}

/* What an encoder made moves once for a request, however many tokens its prompt has: keys and
 * values of 16 heads of 64 in 24 layers of each stack, in 2 bytes. */
static void an_encoder_moves_its_positions_once(void **state) {
    const double each = 24 * 2 * 1024 * 2.0;
    serve_case c;
    serve_case_fill(&c, "llama-3-8b", "h100-sxm:2");
    for (int source = 512; source <= 1024; source *= 2)
        for (int prompt = 16; prompt <= 256; prompt *= 4) {
            t5_with(&c, source);
            c.job.prompt = prompt;
            close_to(prefill_moves(&c, "context=2", SM_ALL_GATHER), (2 * source + prompt) * each,
                     1e-9); /* of the encoder, looked at by the decoder, of the decoder */
        }
    double few, many; /* partial sums: of the stream of each stack, 16 x 2 tokens a sequence more */
    c.job.prompt = 16;
    few = prefill_moves(&c, "tensor=2", SM_ALL_REDUCE);
    c.job.prompt = 32;
    many = prefill_moves(&c, "tensor=2", SM_ALL_REDUCE);
    assert_true(many > few && many < few + 24 * 4 * 16 * 1024 * 2.0);
}

/* The encoder of a request runs once, over positions of its own, and never between its tokens. */
static void an_encoder_runs_as_a_request_begins(void **state) {
    serve_case c;
    sm_serve_point p[2];
    serve_case_fill(&c, "llama-3-8b", "h100-sxm:1");
    for (int i = 0; i < 2; i++) {
        t5_with(&c, 512 << i);
        sm_serve *serve = serve_case_new(&c);
        p[i] = serve_point(serve, "tensor=1", 8);
        sm_serve_free(serve);
    }
    double layer = 24 * 2 * (4.0 * 1024 * 1024 + 3.0 * 1024 * 2816); /* FLOPs of a position */
    double more = p[1].prefill.flops - p[0].prefill.flops;
    assert_true(more > 512 * layer && more < 1.3 * 512 * layer + 512 * 4e6 * 24);
    close_to(p[1].decode.bound_weights_s, p[0].decode.bound_weights_s, 1e-12);
    assert_true(p[1].decode.flops < 1.2 * p[0].decode.flops); /* longer cross attention alone */
    assert_true(p[0].prefill.expected_s < 0.1 && p[0].decode.expected_s < 0.01);
}

/* A prompt in two chunks has its source read with the first. */
static void an_encoder_reads_with_the_first_chunk(void **state) {
    serve_case c;
    sm_error err = {0};
    sm_arena *arena = sm_arena_new();
    sm_engine engine;
    const sm_plan plan = serve_plan("tensor=1");
    const sm_sequence_step first = {64, 0}, second = {64, 64};
    double of_first[2], of_second[2], of_three;
    serve_case_fill(&c, "llama-3-8b", "h100-sxm:1");
    for (int i = 0; i < 2; i++) {
        t5_with(&c, 1024 << i);
        sm_serve *serve = serve_case_new(&c);
        const sm_engine_use use = {.mean_tokens = 2048, .step_tokens = 8192};
        assert_int_equal(sm_serve_engine(serve, &plan, &use, arena, &engine, &err), SM_OK);
        sm_serve_step_time(&engine, &first, 1, &of_first[i], &err);
        sm_serve_step_time(&engine, &second, 1, &of_second[i], &err);
        const sm_sequence_step three[] = {first, first, first};
        sm_serve_step_time(&engine, three, 3, &of_three, &err);
        sm_serve_free(serve);
    }
    const double reading = of_first[1] - of_second[1];
    assert_true(reading > of_second[1]);                       /* 2048 positions and 64 tokens */
    assert_true(reading > 1.7 * (of_first[0] - of_second[0])); /* work grows with the source */
    assert_true(of_second[1] < 1.5 * of_second[0]);            /* longer cross attention alone */
    assert_true(of_three > of_first[1] + 1.4 * reading);
    sm_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_encoder_runs_as_a_request_begins),
        cmocka_unit_test(an_encoder_moves_its_positions_once),
        cmocka_unit_test(an_encoder_reads_with_the_first_chunk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
