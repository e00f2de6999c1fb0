/* What bad texts and families are told: the whole error, with its place underlined. */
#include "unit.h"
#include "scalemodel/notation.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sm_status read_into(sm_library *library, const char *name, const char *text, sm_error *err) {
    sm_source source = sm_source_of(name, text);
    return sm_library_read(library, &source, err);
}

static void assert_error(const char *text, bool checked, const char *expected) {
    sm_arena *arena = sm_arena_new();
    sm_library *library;
    sm_error err = {0};
    char words[1200];
    assert_int_equal(sm_library_new(arena, NULL, &library, &err), SM_OK);
    sm_status status = read_into(library, "f", text, &err);
    if (checked) {
        assert_int_equal(status, SM_OK);
        status = sm_library_check(library, &err);
    }
    if (status != SM_BAD_INPUT) fail_msg("no error: %s", text);
    sm_error_format(&err, words, sizeof words);
    assert_string_equal(words, expected);
    sm_arena_free(arena);
}

static void errors_of_reading(void **state) {
    static const char *const cases[][2] = {
        {"rolls heads K",
         "f:1:1: a file of texts and families has no \"rolls\"; the nearest is \"roles\"\n"
         "  rolls heads K\n"
         "  ^~~~~"},
        {"roles headz K", "f:1:7: no role is called \"headz\"; the nearest is \"heads\"\n"
                          "  roles headz K\n"
                          "        ^~~~~"},
        {"roles heads K k", "f:1:15: expected a dimension or ';', found 'k'\n"
                            "  roles heads K k\n"
                            "                ^"},
        {"roles heads K; width K", "f:1:22: dimension K has the role heads already\n"
                                   "  roles heads K; width K\n"
                                   "                       ^"},
        {"sizes D = ", "f:1:11: expected a value, found the end of the file\n"
                       "  sizes D = \n"
                       "            ^"},
        {"sizes D 3", "f:1:9: expected '=' after D, found '3'\n"
                      "  sizes D 3\n"
                      "          ^"},
        {"sizes D = 1; D = 2", "f:1:14: D is set above already, to another value\n"
                               "  sizes D = 1; D = 2\n"
                               "               ^"},
        {"text f(x) y = x", "f:1:11: expected '->', ':' or the end of the line, found 'y'\n"
                            "  text f(x) y = x\n"
                            "            ^"},
        {"text f(x):", "f:1:11: expected a line of the text, found the end of the file\n"
                       "  text f(x):\n"
                       "            ^"},
        {"text f.g(x): y = x", "f:1:6: a text cannot be called f.g: its name has no dot\n"
                               "  text f.g(x): y = x\n"
                               "       ^~~"},
        {"text rmsnorm(x): y = x", "f:1:6: a text cannot be called rmsnorm: that is an op\n"
                                   "  text rmsnorm(x): y = x\n"
                                   "       ^~~~~~~"},
        {"text f(x): y = x\ntext f(x): z = x", "f:2:6: text f stands in f already\n"
                                               "  text f(x): z = x\n"
                                               "       ^"},
        {"text f(x, o=1): y = x", "f:1:12: expected ',', ';' or ')', found '='\n"
                                  "  text f(x, o=1): y = x\n"
                                  "             ^"},
        {"text f(x; o.p=1): y = x", "f:1:11: the name of an option has no dot\n"
                                    "  text f(x; o.p=1): y = x\n"
                                    "            ^~~"},
        {"text f(x; o): y = x", "f:1:12: expected '=' after o, found ')'\n"
                                "  text f(x; o): y = x\n"
                                "             ^"},
        {"text f(x) -> y[B]: y = x", "f:1:14: a result has no dimensions here: its line has them\n"
                                     "  text f(x) -> y[B]: y = x\n"
                                     "               ^~"},
        {"text f(x): a.b = x",
         "f:1:12: a dot reaches into another piece, whose arrays cannot be made here\n"
         "  text f(x): a.b = x\n"
         "             ^~~"},
        {"text f(x): y = x casual", "f:1:18: after an expression comes an operator, an attribute "
                                    "or if, not \"casual\"; the nearest is \"causal\"\n"
                                    "  text f(x): y = x casual\n"
                                    "                   ^~~~~~"},
        {"text f(x): y = x window",
         "f:1:24: expected a dimension or a number after window, found the end of the file\n"
         "  text f(x): y = x window\n"
         "                         ^"},
        {"text f(x): y = x over T",
         "f:1:23: expected an array with its dimensions after over, found 'T'\n"
         "  text f(x): y = x over T\n"
         "                        ^"},
        {"text f(x): y = x causal causal", "f:1:25: causal stands twice in this line\n"
                                           "  text f(x): y = x causal causal\n"
                                           "                          ^~~~~~"},
        {"text f(x): y[B,t] = x",
         "f:1:16: expected a dimension, which begins with a capital, found 't'\n"
         "  text f(x): y[B,t] = x\n"
         "                 ^"},
        {"text f(x): y[B,B] = x", "f:1:16: dimension B stands twice in one array; give it a second "
                                  "name of the same size under sizes\n"
                                  "  text f(x): y[B,B] = x\n"
                                  "                 ^"},
        {"text f(x): y[B]:fp31 = x",
         "f:1:17: no data type is called \"fp31\"; the nearest is \"fp32\"\n"
         "  text f(x): y[B]:fp31 = x\n"
         "                  ^~~~"},
        {"text f(x): y = x ++ x", "f:1:19: expected an array, a call or a number, found '+'\n"
                                  "  text f(x): y = x ++ x\n"
                                  "                    ^"},
        {"text f(x): y = \"w\"", "f:1:16: expected an array, a call or a number, found \"w\"\n"
                                 "  text f(x): y = \"w\"\n"
                                 "                 ^~~"},
        {"text f(x): y = (x\n  z = x", "f:2:3: expected an operator or ')', found 'z'\n"
                                       "    z = x\n"
                                       "    ^"},
        {"text f(x): y = x % 2",
         "f:1:18: expected an operator, an attribute, if or the end of the line, found '%'\n"
         "  text f(x): y = x % 2\n"
         "                   ^"},
        {"text f(x): y = x @ 2", "f:1:18: no token begins with '@'\n"
                                 "  text f(x): y = x @ 2\n"
                                 "                   ^"},
        {"text f(x): y = x \x80 2", "f:1:18: no token begins with byte 0x80\n"
                                    "  text f(x): y = x ? 2\n"
                                    "                   ^"},
        {"text f(x): y = x if", "f:1:20: expected a value, found the end of the file\n"
                                "  text f(x): y = x if\n"
                                "                     ^"},
        {"text f(x): text = x",
         "f:1:12: expected a line of the text, found the reserved word text\n"
         "  text f(x): text = x\n"
         "             ^~~~"},
        {"family", "f:1:7: expected the name of the family, found the end of the file\n"
                   "  family\n"
                   "        ^"},
        {"family f g f", "f:1:12: family f has this name already\n"
                         "  family f g f\n"
                         "             ^"},
        {"family f\nfamily g f", "f:2:10: family f stands in f already\n"
                                 "  family g f\n"
                                 "           ^"},
        {"family f filds a = 1", "f:1:18: expected a section of the family, found '='\n"
                                 "  family f filds a = 1\n"
                                 "                   ^"},
        {"family f fields A = 1", "f:1:17: expected a field and its default, found 'A'\n"
                                  "  family f fields A = 1\n"
                                  "                  ^"},
        {"family f fields a[j] = 1", "f:1:19: expected i, the number of the layer, found 'j'\n"
                                     "  family f fields a[j] = 1\n"
                                     "                    ^"},
        {"family f fields a = 1\nlaers layer 3",
         "f:2:7: expected '=' after laers, found 'layer'; the nearest section is layers\n"
         "  laers layer 3\n"
         "        ^~~~~"},
        {"family f dims d = 1", "f:1:15: expected a dimension and its size, found 'd'\n"
                                "  family f dims d = 1\n"
                                "                ^"},
        {"family f like g like h", "f:1:17: a family is like one other\n"
                                   "  family f like g like h\n"
                                   "                  ^~~~"},
        {"family f piece a model", "f:1:18: model stands before the first piece\n"
                                   "  family f piece a model\n"
                                   "                   ^~~~~"},
        {"family f piece a b", "f:1:18: expected '=', ':' or the end of the piece, found 'b'\n"
                               "  family f piece a b\n"
                               "                   ^"},
        {"family f stack s = 3", "f:1:18: expected ':' or the end of the line, found '='\n"
                                 "  family f stack s = 3\n"
                                 "                   ^"},
        {"family f layers l 3: = 4", "f:1:22: expected an option or a dimension, found '='\n"
                                     "  family f layers l 3: = 4\n"
                                     "                       ^"},
        {"family f dims D = rondup(3, 2)",
         "f:1:19: no function of values is called \"rondup\"; the nearest is \"roundup\"\n"
         "  family f dims D = rondup(3, 2)\n"
         "                    ^~~~~~"},
        {"family f dims D = roundup(3)", "f:1:19: roundup takes 2 arguments, not 1\n"
                                         "  family f dims D = roundup(3)\n"
                                         "                    ^~~~~~~"},
        {"family f dims D = a if b",
         "f:1:25: expected else and the other value, found the end of the file\n"
         "  family f dims D = a if b\n"
         "                          ^"},
        {"family f dims D = \"abc",
         "f:1:19: a word in quotes ends on its line, and has no control characters\n"
         "  family f dims D = \"abc\n"
         "                    ^~~~"},
        {"family f inert 3", "f:1:16: expected a field, found '3'\n"
                             "  family f inert 3\n"
                             "                 ^"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_error(cases[i][0], false, cases[i][1]);
}

static void errors_of_checking(void **state) {
    static const char *const cases[][2] = {
        {"text f(h[B,T]) -> a: b = h", "f:1:19: no line makes a\n"
                                       "  text f(h[B,T]) -> a: b = h\n"
                                       "                    ^"},
        {"roles positions T\ntext f(h[B,T]; qq=1) -> a: q = h * qq; a = q[B,T] * kq[B,T]",
         "f:2:53: no line above makes kq, and it is no weight, since T counts positions; the "
         "nearest is q\n"
         "  text f(h[B,T]; qq=1) -> a: q = h * qq; a = q[B,T] * kq[B,T]\n"
         "                                                      ^~~~~~~"},
        {"text f(x) -> y: y = x * z", "f:1:25: no line above makes z\n"
                                      "  text f(x) -> y: y = x * z\n"
                                      "                          ^"},
        {"text f(x) -> y: y = rmsnorn(x)", "f:1:21: no op, text or part that a family binds is "
                                           "called rmsnorn; the nearest is rmsnorm\n"
                                           "  text f(x) -> y: y = rmsnorn(x)\n"
                                           "                      ^~~~~~~"},
        {"text f(x) -> y: y = rotary(x, x)", "f:1:21: rotary takes 1 argument, not 2\n"
                                             "  text f(x) -> y: y = rotary(x, x)\n"
                                             "                      ^~~~~~"},
        {"text g(x) -> y: y = x\ntext f(x) -> y: y = g(x, x)", "f:2:21: g takes 1 argument, not 2\n"
                                                               "  text f(x) -> y: y = g(x, x)\n"
                                                               "                      ^"},
        {"text f(x; gated=false) -> y: y = x",
         "f:1:11: no line of the text reads the option gated\n"
         "  text f(x; gated=false) -> y: y = x\n"
         "            ^~~~~"},
        {"text f(x; gated=false) -> y: y = x if gatd",
         "f:1:39: no option of this text and no phase is called gatd; the nearest is gated\n"
         "  text f(x; gated=false) -> y: y = x if gatd\n"
         "                                        ^~~~"},
        {"text f(x) -> y: y, z = relu(x)",
         "f:1:17: 2 arrays before '=', and what stands after it makes 1\n"
         "  text f(x) -> y: y, z = relu(x)\n"
         "                  ^~~~~~~~~~~~~~"},
        {"text f(x[B,D]) -> y: y[B,F] = x[B,D] w[E,F]",
         "f:1:35: D stands in x alone: a product sums what two arrays have\n"
         "  text f(x[B,D]) -> y: y[B,F] = x[B,D] w[E,F]\n"
         "                                    ^"},
        {"text f(x[B,D]) -> y: y[B,F,G] = x[B,D] w[D,F]",
         "f:1:28: G stands in no array that y is a product of\n"
         "  text f(x[B,D]) -> y: y[B,F,G] = x[B,D] w[D,F]\n"
         "                             ^"},
        {"kernel f(x[B,T]) -> y: s[B,T] = state() along T; z = carry(s, x); y = x * z",
         "f:1:50: carry makes a state for the next step, and no line above has a state z\n"
         "  ... y: s[B,T] = state() along T; z = carry(s, x); y = x * z\n"
         "                                   ^"},
        {"text f(x[B]) -> y: y = x * w[D]; w = y",
         "f:1:34: w is a weight above, which no line makes\n"
         "  text f(x[B]) -> y: y = x * w[D]; w = y\n"
         "                                   ^"},
        {"family f like g", "f:1:15: no family is called g\n"
                            "  family f like g\n"
                            "                ^"},
        {"family f like g\nfamily g like f",
         "f:1:15: family f is like itself, by way of the families it is like\n"
         "  family f like g\n"
         "                ^"},
        {"family f all h", "f:1:14: no family is called h\n"
                           "  family f all h\n"
                           "               ^"},
        {"text emb(x) -> y: y = x\nfamily f piece embd",
         "f:2:16: no text is called embd; the nearest is emb\n"
         "  family f piece embd\n"
         "                 ^~~~"},
        {"text f(x; gated=false) -> y: y = x if gated or not gated\nfamily g piece f: gatd = true",
         "f:2:19: no option or part of a text is called gatd; the nearest is gated\n"
         "  family g piece f: gatd = true\n"
         "                    ^~~~"},
        {"text gqa(x) -> y: y = x\ntext f(x) -> y: y = mixer(x)\nfamily g fields deep = 1\n"
         "piece f: mixer = gqa if deep else gqua",
         "f:4:35: no text is called gqua; the nearest is gqa\n"
         "  piece f: mixer = gqa if deep else gqua\n"
         "                                    ^~~~"},
        {"text block(x) -> y: y = x\nfamily g piece f = blok",
         "f:2:20: no text is called blok; the nearest is block\n"
         "  family g piece f = blok\n"
         "                     ^~~~"},
        {"text f(x; gated=false) -> y: y = x if gated or not gated\nfamily g piece f: mixer.gated "
         "= true",
         "f:2:19: no text calls mixer\n"
         "  family g piece f: mixer.gated = true\n"
         "                    ^~~~~~~~~~~"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_error(cases[i][0], true, cases[i][1]);
}

/* One text of `n` times a piece between two ends. */
static void assert_limit(const char *before, const char *piece, int n, const char *after,
                         const char *sentence) {
    size_t room = strlen(before) + (size_t)n * strlen(piece) + strlen(after) + 1;
    char *text = malloc(room), *at = text;
    assert_non_null(text);
    at += sprintf(at, "%s", before);
    for (int i = 0; i < n; i++) at += sprintf(at, "%s", piece);
    sprintf(at, "%s", after);
    sm_arena *arena = sm_arena_new();
    sm_library *library;
    sm_error err = {0};
    assert_int_equal(sm_library_new(arena, NULL, &library, &err), SM_OK);
    assert_int_equal(read_into(library, "f", text, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, sentence);
    assert_true(err.line >= 1 && err.column >= 1);
    sm_arena_free(arena);
    free(text);
}

static void limits_are_errors(void **state) {
    assert_limit("text f(x): y = ", "(", 100, "x",
                 "expressions within expressions, deeper than 64");
    assert_limit("sizes D = ", "-", 100, "1", "expressions within expressions, deeper than 64");
    assert_limit("sizes D = 1 if 2", " else 1 if 2", 100, " else 3",
                 "expressions within expressions, deeper than 64");
    assert_limit("sizes D = 1", " + 1", 100, "", "an expression of more than 64 terms or levels");
    assert_limit("text f(x): y = f(x", ", x", 16, ")", "more arguments than 16, the most");
    assert_limit("text f(x): y", ", y", 16, " = x", "more arrays than 16, the most");
    assert_limit("text f(x): y = ", "a[D] ", 9, "", "more arrays side by side than 8, the most");
    assert_limit("text f(x): y[A", ",B", 8, "]",
                 "dimension B stands twice in one array; give it a "
                 "second name of the same size under sizes");
    assert_limit("text f(x): y[A,B,C,E,F,G,H,I", ",J", 1, "]", "more dimensions than 8, the most");
    assert_limit("text f(x)", "\ny = x", 401, "", "more lines in one text than 400, the most");
    assert_limit("text ", "n", 64, "(x)", "a name of 64 letters; here the most is 63");
    assert_limit("roles heads K", "k", 7, "", "a name of 8 letters; here the most is 7");
    assert_limit("sizes D = ", "9", 40, "", "a number of more than 39 digits");
    assert_limit("sizes D = ", "1e999", 1, "", "this number is too large");
    assert_limit("family f inert", " x", 2001, "",
                 "more words of one list than 2000, the most "
                 "that are read");
    assert_limit("#", "0123456789abcdef", 1 << 16, "",
                 "a file of 1048577 bytes; the most is "
                 "1048576");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_of_reading),
        cmocka_unit_test(errors_of_checking),
        cmocka_unit_test(limits_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
