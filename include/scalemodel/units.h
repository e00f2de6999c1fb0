/* units: data types and the printing of SI quantities. */
#pragma once
#include "scalemodel/base.h"

SM_DECLARATIONS_BEGIN

/* name, alias, bits, help. mxfp4 carries one 8-bit scale per 32 elements, nvfp4 one
 * per 16. */
#define SM_DTYPES(X)                                                                               \
    X(BF16, "bf16", "bfloat16", 16.0, "bfloat16")                                                  \
    X(FP16, "fp16", "f16", 16.0, "IEEE half")                                                      \
    X(FP32, "fp32", "f32", 32.0, "IEEE single")                                                    \
    X(TF32, "tf32", "tf32", 32.0, "TensorFloat-32 (stored in 32 bits)")                            \
    X(FP64, "fp64", "f64", 64.0, "IEEE double")                                                    \
    X(FP8, "fp8", "f8", 8.0, "8-bit float (e4m3, e5m2)")                                           \
    X(INT8, "int8", "s8", 8.0, "8-bit integer")                                                    \
    X(INT4, "int4", "s4", 4.0, "4-bit integer")                                                    \
    X(FP4, "fp4", "f4", 4.0, "4-bit float (e2m1)")                                                 \
    X(MXFP4, "mxfp4", "mxfp4", 4.25, "fp4 with a shared 8-bit scale per 32")                       \
    X(NVFP4, "nvfp4", "nvfp4", 4.5, "fp4 with a shared 8-bit scale per 16")                        \
    X(INT32, "int32", "s32", 32.0, "32-bit integer")                                               \
    X(INT64, "int64", "s64", 64.0, "64-bit integer")                                               \
    X(BOOL, "bool", "pred", 8.0, "one byte")
#define SM_DTYPE_ID(id, ...) SM_##id,
typedef enum sm_dtype { SM_DTYPES(SM_DTYPE_ID) SM_DTYPE_COUNT } sm_dtype;

/* The name of a data type, "bf16"; "?" of none. Static text. */
const char *sm_dtype_name(sm_dtype dtype);
/* Bytes of an element: bits / 8, so 0.5 for fp4 and 4.25 / 8 for mxfp4 with its scales. 0 of no
 * data type. */
double sm_dtype_bytes(sm_dtype dtype);
/* Find the data type of this name or alias, in any case of letters. False, with *dtype untouched,
 * when there is none. */
bool sm_dtype_parse(const char *text, size_t length, sm_dtype *dtype);
extern const char *const sm_dtype_names[SM_DTYPE_COUNT]; /* for sm_nearest */

/* A count with three significant digits: 70.6B, 4.19M, 128. Like the five below it writes a short
 * human form into out, 0-terminated and at most size bytes, and returns out. */
char *sm_format_count(char *out, size_t size, double value);
/* Bytes with decimal prefixes: 95.7 GB. */
char *sm_format_bytes(char *out, size_t size, double bytes);
/* A time in the unit that suits it: 6.2 us, 310 ms, 2.19 s, 12 min, 20 h, 44.3 d. */
char *sm_format_seconds(char *out, size_t size, double seconds);
/* A rate per second in the unit given, with decimal prefixes: 459 TFLOP/s, 2.77 TB/s. */
char *sm_format_rate(char *out, size_t size, double per_s, const char *unit);
/* An amount of US dollars: $1.23M; to the cent from $1 to $100. */
char *sm_format_usd(char *out, size_t size, double usd);
/* A fraction in per cent: 0.453 is 45.3 %. */
char *sm_format_percent(char *out, size_t size, double fraction);
/* By the unit: "s", "B", "FLOP", "FLOP/s", "B/s", "OP/s", "bit/s", "USD" as above; any other unit
 * follows a count: 4.19M tokens. */
char *sm_format_value(char *out, size_t size, double value, const char *unit);
/* The shortest decimal that reads back to the same double ("inf" and "nan" never reach output:
 * callers check). */
char *sm_format_exact(char *out, size_t size, double value);

/* A line over bytes, seconds = latency_s + bytes x s_per_byte: what one message or collective takes
 * (the alpha-beta model of Hockney 1994). */
typedef struct sm_line {
    double latency_s, s_per_byte;
} sm_line;
/* Seconds of a message of so many bytes: latency_s + bytes x s_per_byte. */
static inline double sm_line_at(sm_line line, double bytes) {
    return line.latency_s + bytes * line.s_per_byte;
}
/* Does a take no less time than b, whatever the bytes? */
static inline bool sm_line_never_less(sm_line a, sm_line b) {
    return a.latency_s >= b.latency_s && a.s_per_byte >= b.s_per_byte;
}
/* The greatest common divisor of two numbers, not both 0. */
int sm_common_factor(int a, int b);
/* What is left of a whole number, n >= 1, when it is halved as often as it can be. */
double sm_odd_part(double n);
SM_DECLARATIONS_END
