/* truth_tools: result files of AIPerf, `vllm bench serve` and InferenceX as rows of inference.
 * Private to src/io. */
#pragma once
#include "json_tree.h"
#include "truth_form.h"

typedef struct truth_tool truth_tool;
/* The tool whose result this is; NULL: none that is known. */
const truth_tool *truth_tool_of(const json_value *object);
/* A column of the row that it comes to. A key of a column that stands in the file itself, as
 * `--metadata chips=8` writes it, is taken where the tool says nothing. SM_INTERNAL when out of
 * memory. */
sm_status truth_tool_cell(const truth_tool *tool, const json_value *object, const char *key,
                          sm_arena *arena, sm_error *err, truth_cell *out);
