#!/usr/bin/env python3
"""What `train --emit` prints for torchtitan (TOML) and DeepSpeed (JSON), read by the frameworks' own parsers.

  VENV/bin/pip install torch 'torchtitan<0.3' tyro deepspeed
  VENV/bin/python scripts/emitted-parsed.py SCALEMODEL [DRAWS]

Random jobs and plans (the best one of those with these degrees); status 1 when a parser refuses one. Not part of the suite;
docs/frameworks.md has what it found.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

os.environ.setdefault("DS_ACCELERATOR", "cpu")
MODELS = ["llama-3.1-8b", "llama-3.1-70b", "qwen3-8b"]
KEYS = {"torchtitan": {"dtype": ["bf16", "fp8"], "recompute": ["none", "full"], "tensor": [1, 2, 4, 8], "pipeline": [1, 2, 4]},
        "deepspeed": {"dtype": ["bf16", "fp16"], "offload": ["none", "optimizer"], "zero": [0, 1, 2, 3], "tensor": [1, 2]}}


def torchtitan(text, chips):
    from torchtitan.config import ConfigManager
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as f:
        f.write(text)
        f.flush()
        ConfigManager().parse_args(["--job.config_file", f.name])


def deepspeed(text, chips):
    from deepspeed.runtime import config
    config.dist.is_initialized = lambda: True
    config.dist.get_world_size = lambda *_: chips
    config.dist.get_rank = lambda *_: 0
    config.DeepSpeedConfig(json.loads(text))


def main():
    scalemodel, draws = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40
    rng = random.Random(3)
    refused = 0
    for name, parse in ("torchtitan", torchtitan), ("deepspeed", deepspeed):
        tried = 0
        for _ in range(draws):
            plan = ",".join(f"{key}={rng.choice(values)}" for key, values in KEYS[name].items())
            command = [scalemodel, "train", rng.choice(MODELS), "--on", "h100-sxm:8x8", "--batch", "128seqs", "--framework", name,
                       "--plan", plan, "--emit", name]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                continue
            tried += 1
            degrees = dict(part.split("=") for part in plan.split(","))
            try:
                parse(done.stdout, 64 // int(degrees["tensor"]) if name == "deepspeed" else 64)
            except BaseException as e:
                refused += 1
                print(f"{name} refuses {plan}: {type(e).__name__}: {str(e)[:300]}")
        print(f"{name}: {tried} read of {draws} drawn")
    return refused > 0


sys.exit(main())
