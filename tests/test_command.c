/* A command line answered inside this program: in every form, with its errors, watched, and with
 * each allocation refused. What it says is held against the program's by the Python tests. */
#include "unit.h"
#include <stdbool.h>
#include <string.h>

#include "failing_alloc.h"
#include "scalemodel/command.h"

#define WORDS(...)                                                                                 \
    (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)), (const char *[]) { __VA_ARGS__ }
#define EINSUM "A[I,J] B[J,K] -> C[I,K]"

static void forms(void **state) {
    sm_command *c = sm_command_ask(
        WORDS("roofline", EINSUM, "--on", "h100-sxm", "--dims=I=64,J=64,K=64", "--explain"), NULL);
    assert_int_equal(sm_command_status(c), SM_OK);
    const char *json = sm_command_text(c, SM_FORM_JSON, 0);
    assert_non_null(strstr(json, "\"command\": \"roofline\""));
    assert_non_null(strstr(json, "\"inputs\""));
    assert_ptr_equal(sm_command_text(c, SM_FORM_JSON, 0), json);
    assert_non_null(strstr(sm_command_text(c, SM_FORM_CSV, 0), ","));
    size_t narrow = strlen(sm_command_text(c, SM_FORM_TEXT, 60));
    assert_int_equal(strlen(sm_command_text(c, SM_FORM_TEXT, 60)), narrow);
    assert_int_not_equal(strlen(sm_command_text(c, SM_FORM_TEXT, 120)), narrow);
    for (int form = SM_FORM_CHART; form < SM_FORM_COUNT; form++)
        assert_null(sm_command_text(c, (sm_form)form, 0));
    assert_null(sm_command_text(c, SM_FORM_COUNT, 0));
    assert_null(sm_command_text(c, (sm_form)-1, 0));
    assert_null(sm_command_text(NULL, SM_FORM_JSON, 0));
    sm_command_free(c);
    sm_command_free(NULL);
    assert_int_equal(sm_command_status(NULL), SM_INTERNAL);
}

static void pictures(void **state) {
    sm_command *c = sm_command_ask(WORDS("train", "llama-3.2-1b", "--on=h100-sxm:2", "--batch=64k",
                                         "--plan=data=2,microbatch=1", "--timeline=/dev/null"),
                                   NULL);
    assert_int_equal(sm_command_status(c), SM_OK);
    assert_int_equal(sm_command_text(c, SM_FORM_TIMELINE, 0)[0], '{');
    sm_command_free(c);
    c = sm_command_ask(WORDS("serve", "llama-3.2-1b", "--on=h100-sxm:1", "--plot=/dev/null"), NULL);
    assert_memory_equal(sm_command_text(c, SM_FORM_CHART, 0), "<svg", 4);
    sm_command_free(c);
}

static void holds_error(sm_command *c, sm_status status, const char *said) {
    assert_int_equal(sm_command_status(c), status);
    assert_null(sm_command_text(c, SM_FORM_JSON, 0));
    assert_non_null(strstr(sm_command_text(c, SM_FORM_ERROR, 0), said));
    assert_non_null(strstr(sm_command_text(c, SM_FORM_ERROR_JSON, 0), said));
    sm_command_free(c);
}

static void errors(void **state) {
    holds_error(sm_command_ask(0, NULL, NULL), SM_USAGE, "there is no verb");
    holds_error(sm_command_ask(WORDS("trian"), NULL), SM_USAGE, "train");
    holds_error(sm_command_ask(WORDS("run", "matmul"), NULL), SM_USAGE, "only the program");
    holds_error(sm_command_ask(WORDS("train", "--help"), NULL), SM_USAGE, "sm_command_describe");
    holds_error(sm_command_ask(WORDS("chip", "no-chip"), NULL), SM_BAD_INPUT, "no-chip");
    holds_error(sm_command_ask(WORDS("model", "{\"model_type\": 3}"), NULL), SM_BAD_INPUT, "MODEL");
    sm_command_watch old = {.size = 1};
    holds_error(sm_command_ask(WORDS("chip"), &old), SM_USAGE, "size");
}

static void a_negative_answer_is_one(void **state) {
    sm_command *c =
        sm_command_ask(WORDS("train", "llama-3.1-70b", "--on=h100-sxm:1", "--batch=64k"), NULL);
    assert_int_equal(sm_command_status(c), SM_NEGATIVE);
    assert_non_null(sm_command_text(c, SM_FORM_TEXT, 0));
    assert_null(sm_command_text(c, SM_FORM_ERROR, 0));
    sm_command_free(c);
}

typedef struct watched {
    int times;
    int stop;
    double last;
} watched;

static void stop_at_once(double fraction, double best, void *context) {
    watched *w = context;
    assert_true(fraction >= w->last && fraction <= 1.0 && best >= 0.0);
    w->last = fraction;
    w->times++;
    w->stop = 1;
}

static void a_search_is_watched_and_stopped(void **state) {
    watched w = {0};
    sm_command_watch watch = {
        .size = sizeof watch, .stop = &w.stop, .progress = stop_at_once, .context = &w};
    sm_command *c = sm_command_ask(
        WORDS("train", "llama-3.1-8b", "--on=h100-sxm:8x8", "--batch=4M", "--threads=1"), &watch);
    assert_true(w.times >= 1);
    const char *json = sm_command_text(c, SM_FORM_JSON, 0);
    assert_non_null(json);
    assert_true(sm_command_status(c) == SM_NEGATIVE || strstr(json, "\"optimal\": false"));
    sm_command_free(c);
}

/* The engine of an answer of simulate, asked for a prefill and a decode step: what it says once it
 * says again, and an allocation that fails is told or changes nothing. */
static void steps_of_an_engine(void **state) {
    sm_command_watch watch = {.size = sizeof watch, .keep_engine = 1};
    const sm_sequence_step step[] = {{512.0, 0.0}, {1.0, 2000.0}}, none = {0.0, 1.0};
    double first = 0.0, seconds;
    const char *const words[] = {"simulate",        "llama-3.2-1b", "--on=h100-sxm:1",
                                 "--plan=tensor=1", "--requests=1", "--arrivals=uniform:1/s"};
    sm_command *c = sm_command_ask(6, words, &watch);
    assert_int_equal(sm_command_step_time(c, step, 2, &first), SM_OK);
    assert_true(first > 0.0);
    assert_int_equal(sm_command_step_time(c, &none, 1, &seconds), SM_BAD_INPUT);
    assert_non_null(strstr(sm_command_text(c, SM_FORM_ERROR, 0), "0 new tokens"));
    assert_int_equal(sm_command_step_time(c, step, 2, &seconds), SM_OK);
    assert_null(sm_command_text(c, SM_FORM_ERROR, 0));
    assert_true(seconds == first);
    sm_command_free(c);
    FOR_EACH_FAILING_ALLOCATION(loop) {
        c = sm_command_ask(6, words, &watch);
        sm_status status = sm_command_step_time(c, step, 2, &seconds);
        assert_true(seconds == (status ? 0.0 : first));
        if (!failing_alloc_refused(&loop)) assert_int_equal(status, SM_OK);
        sm_command_free(c);
    }
    c = sm_command_ask(WORDS("chip", "h100-sxm"), &watch);
    assert_int_equal(sm_command_step_time(c, step, 2, &first), SM_USAGE);
    sm_command_free(c);
}

static void all_verbs_are_described(void **state) {
    static const char *const said[] = {"\"train\"", "\"simulate\"",       "\"kind\": \"seconds\"",
                                       "\"words\"", "\"required\": true", "\"version\""};
    sm_command *c = sm_command_describe();
    assert_int_equal(sm_command_status(c), SM_OK);
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        assert_non_null(strstr(sm_command_text(c, SM_FORM_JSON, 0), said[i]));
    sm_command_free(c);
}

static void out_of_memory(void **state) {
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_command *c =
            sm_command_ask(WORDS("collective", "all-gather", "A[I_X]", "--on=tpu-v5e:4x4",
                                 "--mesh=X=4", "--dims=I=1024", "--over=X"),
                           NULL);
        bool whole = c && sm_command_status(c) == SM_OK && sm_command_text(c, SM_FORM_JSON, 0);
        if (c && sm_command_status(c) > SM_NEGATIVE) {
            const char *why = sm_command_text(c, SM_FORM_ERROR, 0);
            assert_true(!why || strstr(why, "out of memory"));
        }
        if (!failing_alloc_refused(&loop)) assert_true(whole);
        sm_command_free(c);
    }
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_command *c = sm_command_describe();
        bool whole = c && sm_command_status(c) == SM_OK && sm_command_text(c, SM_FORM_JSON, 0);
        if (!failing_alloc_refused(&loop)) assert_true(whole);
        sm_command_free(c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms),
        cmocka_unit_test(pictures),
        cmocka_unit_test(errors),
        cmocka_unit_test(a_negative_answer_is_one),
        cmocka_unit_test(a_search_is_watched_and_stopped),
        cmocka_unit_test(steps_of_an_engine),
        cmocka_unit_test(all_verbs_are_described),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
