/* measured_format: what measured rows call things: tables of data/formats/measured.json, which says
 * of each what it is. Private to truth. */
#pragma once
#include "named.h"
#include "scalemodel/shard.h"

typedef struct gemm_format {
    const char *name;
    sm_dtype compute;
    double a_bytes, b_bytes, c_bytes, starts;
} gemm_format;
typedef enum quantiser_chips { CHIPS_ANY, CHIPS_WITH_FP4, CHIPS_WITHOUT_FP4 } quantiser_chips;
typedef struct quantiser {
    const char *engine, *format;
    quantiser_chips chips;
    double starts, passes, row_core_s;
} quantiser;
/* A phase as printed: its mask, and whether the row gives the sizes of latent attention (MLA).
 * Prefill of MLA has 192 for queries and keys and 128 for values; decode is absorbed: all heads
 * read one key of 512 + 64 whose first 512 are the value (DeepSeek-V2 report, section 2.1). */
typedef struct attention_phase {
    const char *name;
    bool causal, decode, latent;
} attention_phase;
typedef struct attention_format {
    const char *name;
    sm_dtype compute;
    double kv_bytes;
} attention_format;
typedef struct measured_collective {
    const char *name;
    sm_collective op;
    bool per_rank, expert;
} measured_collective;
typedef struct measured_memop {
    const char *name;
    double passes, walks, cycles, host_s[2];
} measured_memop;
typedef struct measured_type {
    const char *name;
    sm_dtype dtype;
} measured_type;
typedef struct measured_chip {
    const char *name, *chip;
} measured_chip;
typedef struct measured_telling_row {
    const char *name, *measurement;
} measured_telling_row;

extern const gemm_format measured_gemm_formats[];
extern const quantiser measured_quantisers[];
extern const attention_phase measured_phases[];
extern const attention_format measured_attention_formats[];
extern const measured_collective measured_collectives[];
extern const measured_memop measured_memops[];
extern const measured_telling_row measured_telling[];
extern const measured_type measured_types[], measured_precisions[];
extern const measured_chip measured_chips[], measured_endings[], measured_makers[];
extern const size_t measured_gemm_formats_count, measured_quantisers_count, measured_phases_count,
    measured_attention_formats_count, measured_collectives_count, measured_memops_count,
    measured_types_count, measured_precisions_count, measured_chips_count, measured_endings_count,
    measured_makers_count, measured_telling_count;
