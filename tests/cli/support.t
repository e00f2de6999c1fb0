#!/bin/sh
. "$(dirname "$0")/runner.sh"
run_file "$root/tests/cli/support.golden"
cd "$place/work" || exit 1

# The sentence is that of serve: one search for the nearest rows.
sentence() { tr "\n" " " | grep -o "Nearest measured: [^P]*Predicted without them they are off by [0-9.]* %"; }
check "serve says the same" "scalemodel support qwen3-32b h100-sxm:8 --software vllm-0.12 --prompt 4096 --output 1024 --concurrency 128 --weights bf16 | sed '/^Training/,\$d' >mine
    scalemodel serve qwen3-32b --on h100-sxm:8 --plan tensor=8 --concurrency 128 --prompt 4096 --output 1024 --software vllm-0.12 >theirs
    mine=\$(sentence <mine) && [ -n \"\$mine\" ] && [ \"\$mine\" = \"\$(sentence <theirs)\" ]"
check "numbers of the page are those of the data" "scalemodel support llama-3.1-8b h200:8 --json | awk -f '$root/tests/cli/flatten.awk' >flat
    grep -q '^serving.0.rows [1-9]' flat && grep -q '^training.0.expected_error 0\.' flat"
finish_tests
