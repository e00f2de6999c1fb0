/* questions: what the page and the program are asked alike: [verb, fields of the form]. */
"use strict";
const EINSUM = "bf16[B,D] bf16[D,F] -> bf16[B,F]";
const models = ["llama-3.1-8b", "mixtral-8x7b", "deepseek-v3", "gemma-2-9b", "qwen3-32b", "llama-3.2-1b"];
const chips = ["tpu-v5p", "tpu-v5e", "h100-sxm", "b200", "mi300x", "a100-80"];

module.exports = [
  ...models.map((model) => ["model", {"@model": model}]),
  ["model", {"@model": "llama-3.1-8b", program: true}],
  ["model", {"@model": "llama-3.1-8b", program: true, phase: "decode"}],
  ["model", {"@model": "llama-3.1-8b", program: true, on: "h100-sxm:8", batch: "256k", plan: "fsdp=4,tensor=2,microbatch=4"}],
  ["model", {}],
  ...chips.map((name) => ["chip", {"@chip": name}]),
  ["chip", {"@chip": "tpu-v5e", calibration: true, explain: true}],
  ["chip", {}],
  ["plan", {"@plan": "fsdp=8,tensor=4,microbatch=2"}],
  ["roofline", {"@einsum": EINSUM, on: "tpu-v5e", dims: "B=1..4096,D=4096,F=4096"}],
  ["roofline", {"@einsum": EINSUM, on: "h100-sxm", dims: "D=4096,F=4096", critical: "B"}],
  ["roofline", {"@einsum": EINSUM, on: "tpu-v5e", dims: "B=8,D=4096,F=4096", explain: true}],
  ["matmul", {"@einsum": "A[I_X,J] B[J_X,K_Y] -> C[I_X,K_Y]", on: "tpu-v5e:4x4", mesh: "X=4,Y=4", dims: "I=8192,J=8192,K=8192"}],
  ["matmul", {"@einsum": "A[I,J_X] B[J_X,K] -> C[I,K]", on: "h100-sxm:8", mesh: "X=8", dims: "I=8k,J=8k,K=8k", top: "3"}],
  ["matmul", {"@einsum": "h[B,F] = x[B_X,D] w[D,F_Y]; y[B_X,D] = h[B,F] v[F_Y,D]", on: "h100-sxm:8", mesh: "X=2,Y=4", dims: "B=4096,D=4096,F=16384"}],
  ["collective", {"@op": "all-gather", "@array": "bf16[E_Y,F]", on: "tpu-v5e:8x4", mesh: "X=8,Y=4", over: "Y", dims: "E=2048,F=8192"}],
  ["collective", {"@op": "all-reduce", "@array": "bf16[E]", on: "h100-sxm:8x8", mesh: "X=8,Y=8", over: "XY", dims: "E=1M"}],
  ["train", {"@model": "llama-3.1-8b", on: "tpu-v5e:4x4", batch: "512k", seq: "4096"}],
  ["train", {"@model": "llama-3.1-8b", on: "h100-sxm:8", batch: "1M", plan: "fsdp=8,microbatch=1", explain: true}],
  ["train", {"@model": "mixtral-8x7b", on: "h100-sxm:8x8", batch: "4M", seq: "4096", top: "2"}],
  ["train", {"@model": "llama-3.2-1b", on: "tpu-v5e:2x2", batch: "128k", objective: "memory"}],
  ["serve", {"@model": "llama-3.1-8b", on: "h100-sxm:2", prompt: "1024", tpot: "30ms"}],
  ["serve", {"@model": "llama-3.1-70b", on: "h100-sxm:8", prompt: "2048", output: "256", plan: "tensor=8", batch: "64"}],
  ["serve", {"@model": "llama-3.1-8b", on: "tpu-v5e:2x4", weights: "int8,bf16", top: "3"}],
  ["simulate", {"@model": "llama-3.1-8b", on: "h100-sxm:1", plan: "tensor=1", arrivals: "poisson:4/s", requests: "100", ttft: "1s"}],
  ["simulate", {"@model": "llama-3.1-8b", on: "h100-sxm:2", plan: "tensor=2", arrivals: "uniform:2/s", requests: "100", policy: "chunked"}],
  ["reshard", {"@log": "bf16[16,4096]", on: "h100-sxm", from: "{devices=[8,1]<=[8]}", to: "{devices=[1,8]<=[8]}"}],
  ["mfu", {"@model": "llama-3.1-70b", "@system": "tpu-v5p:8x8x8", from: "maxtext@2025-06 46 %"}],
  ["support", {"@model": "qwen3-32b", "@system": "h100-sxm:8", software: "vllm-0.12", top: "3"}],
  /* What cannot be answered: the same sentence. */
  ["train", {"@model": "llama-3.1-8b", on: "h100-sxm:8", batch: "1M", plan: "tensr=8"}],
  ["train", {"@model": "llama-3.1-70b", on: "h100-sxm:1", batch: "64k"}],
  ["chip", {"@chip": "no-such-chip"}],
  ["roofline", {"@einsum": "A[B", on: "tpu-v5e"}],
  ["serve", {"@model": "llama-3.1-8b", on: "h100-sxm:2", tpot: "30"}],
];
