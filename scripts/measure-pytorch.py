#!/usr/bin/env python3
"""Measures one GPU under PyTorch and writes rows that `scalemodel validate` reads (docs/truth-data.md):
training steps of Hugging Face Llamas (eager, torch.compile, gradient checkpointing), fused causal
attention, bf16 and fp8 products. The rows in data/truth/h100-pytorch-*.jsonl came from it.

usage: scripts/measure-pytorch.py CHIP PREFIX [training|attention|gemm]...
       CHIP: a chip as the rows name it (H100 SXM); writes PREFIX-training.jsonl and so on
needs: torch, transformers and an NVIDIA GPU; nothing of scalemodel is run
"""
import gc
import json
import statistics
import sys
import time

LLAMAS = {  # width, layers, heads, key heads, head size, MLP, words, tied
    "llama-3.2-1b": (2048, 16, 32, 8, 64, 8192, 128256, True),
    "llama-3.2-3b": (3072, 28, 24, 8, 128, 8192, 128256, True),
    "tinyllama-1.1b": (2048, 22, 32, 4, 64, 5632, 32000, False),
    "llama-2-7b-8-layers": (4096, 8, 32, 32, 128, 11008, 32000, False),
}
# model, tokens of a sequence, sequences, weights in bf16 (else fp32 under autocast), compiled, checkpointing
STEPS = [
    ("llama-3.2-1b", 4096, 1, False, False, False), ("llama-3.2-1b", 4096, 2, False, False, False),
    ("llama-3.2-1b", 4096, 4, True, False, False), ("llama-3.2-1b", 2048, 8, True, False, False),
    ("llama-3.2-1b", 8192, 1, True, False, False), ("llama-3.2-1b", 8192, 4, True, False, True),
    ("tinyllama-1.1b", 2048, 8, False, False, False), ("tinyllama-1.1b", 2048, 4, True, False, False),
    ("tinyllama-1.1b", 2048, 16, True, False, True), ("tinyllama-1.1b", 4096, 4, True, False, False),
    ("llama-3.2-3b", 4096, 1, True, False, False), ("llama-3.2-3b", 4096, 2, True, False, True),
    ("llama-3.2-3b", 2048, 4, True, False, False), ("llama-3.2-3b", 2048, 1, False, False, False),
    ("llama-3.2-3b", 4096, 1, False, False, True), ("llama-2-7b-8-layers", 4096, 2, True, False, False),
    ("llama-2-7b-8-layers", 4096, 4, True, False, False), ("llama-2-7b-8-layers", 4096, 8, True, False, True),
    ("llama-2-7b-8-layers", 2048, 2, False, False, False), ("llama-3.2-1b", 4096, 2, False, True, False),
    ("llama-3.2-1b", 4096, 4, True, True, False), ("tinyllama-1.1b", 2048, 8, False, True, False),
    ("llama-3.2-3b", 4096, 2, True, True, False), ("llama-2-7b-8-layers", 4096, 4, True, True, False),
    ("llama-3.2-1b", 8192, 4, True, True, False),
]
# sequences, heads, key heads, tokens, head size
ATTENTION = [(1, 32, 8, 2048, 64), (4, 32, 8, 4096, 64), (1, 32, 8, 16384, 64), (1, 32, 32, 1024, 128),
             (8, 32, 32, 1024, 128), (2, 32, 32, 4096, 128), (1, 24, 8, 8192, 128), (1, 64, 8, 16384, 128),
             (4, 16, 16, 2048, 128), (1, 8, 8, 32768, 128)]
PRODUCTS = [(1, 4096, 4096), (8, 8192, 8192), (64, 8192, 28672), (256, 10240, 8192), (1024, 8192, 8192),
            (2048, 57344, 8192), (4096, 14336, 4096), (4096, 4096, 14336), (8192, 6144, 4096),
            (16384, 8192, 1024), (8192, 128256, 4096), (333, 5000, 3000), (8192, 8192, 8192)]


def step_row(chip, source, job, seconds, peak_gib):
    """One training step of `seconds` (median), with the peak that PyTorch's allocator gave out."""
    name, seq, sequences, pure, compiled, again = job
    width, layers, heads, key_heads, head, mlp, words, tied = LLAMAS[name]
    words_of = ["eager", "compiled"][compiled], "bf16" if pure else "amp"
    return {"id": f"{name}-{seq}-{sequences}-{words_of[1]}-{words_of[0]}{'-checkpointing' if again else ''}",
            "source": source, "task": "pretrain", "quality": "A", "software": "huggingface",
            "model": {"name": name, "layers": layers, "d_model": width, "d_ff": mlp, "n_heads": heads,
                      "n_kv_heads": key_heads, "d_head": head, "vocab": words, "gated": True, "tied": tied},
            "hardware": {"chip": chip, "chips": 1}, "precision": "BF16", "precision_class": "bf16",
            "seq_len": seq, "global_batch_sequences": sequences, "microbatch": sequences,
            "recompute": "full" if again else "none", "attention_kernel": "PyTorch SDPA (flash)",
            "flash_attention": True, "optimizer": "AdamW",
            "plan": f"microbatch={sequences},recompute={'full' if again else 'none'},"
                    f"optimizer={'adam-pure-bf16,gradient=bf16' if pure else 'adam-no-master'}",
            "notes": ("weights, gradients and moments in bf16" if pure else "fp32 weights and moments, autocast")
            + (", torch.compile" if compiled else ""),
            "measured": {"step_time_s": seconds, "peak_memory_gib": round(peak_gib, 3)}}


def attention_row(chip, source, shape, kernel, microseconds):
    sequences, heads, key_heads, tokens, head = shape
    return {"chip": chip, "phase": "prefill", "batch": sequences,
            "q_len": tokens, "kv_len": tokens, "n_heads": heads, "n_kv_heads": key_heads, "d_head": head,
            "dtype": "bf16", "time_us": round(microseconds, 3), "source": source, "software": "pytorch",
            "kernel": kernel}


def gemm_row(chip, source, m, n, k, dtype, microseconds):
    return {"chip": chip, "dtype": dtype, "m": m, "n": n, "k": k, "time_us": round(microseconds, 3),
            "source": source, "software": "pytorch"}


def median_us(call, times):
    import torch
    for _ in range(4):
        call()
    found = []
    for _ in range(times):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(found)


def measure_steps(chip, source):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    for job in STEPS:
        name, seq, sequences, pure, compiled, again = job
        width, layers, heads, key_heads, head, mlp, words, tied = LLAMAS[name]
        torch._dynamo.reset()
        torch.cuda.reset_peak_memory_stats()
        config = LlamaConfig(hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
                             num_key_value_heads=key_heads, head_dim=head, intermediate_size=mlp,
                             vocab_size=words, tie_word_embeddings=tied, max_position_embeddings=16384,
                             attn_implementation="sdpa", use_cache=False)
        try:
            with torch.device("cuda"):
                torch.set_default_dtype(torch.bfloat16 if pure else torch.float32)
                model = LlamaForCausalLM(config).train()
                torch.set_default_dtype(torch.float32)
            if again:
                model.gradient_checkpointing_enable()
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
            forward = torch.compile(model) if compiled else model
            ids = torch.randint(0, words, (sequences, seq), device="cuda")
            taken = []
            while len(taken) < 14 and (len(taken) < 7 or sum(taken[4:]) < 6):
                torch.cuda.synchronize()
                begun = time.perf_counter()
                with torch.autocast("cuda", torch.bfloat16, enabled=not pure):
                    loss = forward(input_ids=ids, labels=ids).loss
                loss.backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                torch.cuda.synchronize()
                taken.append(time.perf_counter() - begun)
            yield step_row(chip, source, job, statistics.median(taken[4:]),
                           torch.cuda.max_memory_allocated() / 2**30)
        except torch.cuda.OutOfMemoryError:
            print(f"{name} {seq} x {sequences}: out of memory", file=sys.stderr)
        model = forward = optimizer = loss = ids = None
        gc.collect()
        torch.cuda.empty_cache()


def measure_attention(chip, source):
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    for backend, kernel in ((SDPBackend.FLASH_ATTENTION, "flash2"), (SDPBackend.CUDNN_ATTENTION, "cudnn")):
        for shape in ATTENTION:
            sequences, heads, key_heads, tokens, head = shape
            q, k, v = (torch.randn(sequences, n, tokens, head, device="cuda", dtype=torch.bfloat16)
                       for n in (heads, key_heads, key_heads))

            def attend():
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True,
                                                                        enable_gqa=heads != key_heads)
            with sdpa_kernel(backend):
                yield attention_row(chip, source, shape, kernel, median_us(attend, 20))


def measure_products(chip, source):
    import torch
    for m, n, k in PRODUCTS:
        a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
        b = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
        yield gemm_row(chip, source, m, n, k, "bf16", median_us(lambda: a @ b.t(), 30))
        if m % 16 or k % 16:
            continue
        a8, b8, one = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn), torch.ones((), device="cuda")
        yield gemm_row(chip, source, m, n, k, "fp8", median_us(
            lambda: torch._scaled_mm(a8, b8.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16), 30))


def main():
    import torch
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    chip, prefix, kinds = sys.argv[1], sys.argv[2], sys.argv[3:] or ["training", "attention", "gemm"]
    source = f"own measurement: PyTorch {torch.__version__} on {torch.cuda.get_device_name()}"
    makers = {"training": measure_steps, "attention": measure_attention, "gemm": measure_products}
    for kind in kinds:
        with open(f"{prefix}-{kind}.jsonl", "w") as out:
            for row in makers[kind](chip, source):
                out.write(json.dumps(row) + "\n")
                out.flush()


if __name__ == "__main__":
    main()
