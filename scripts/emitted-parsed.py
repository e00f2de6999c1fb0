#!/usr/bin/env python3
"""What `--emit` prints for Megatron-LM (arguments), torchtitan (TOML), DeepSpeed (JSON), Axolotl, TRL and LLaMA-Factory (YAML), SGLang and vLLM
(arguments), read by their own parsers.

  VENV/bin/pip install torch 'torchtitan<0.3' tyro deepspeed trl peft pillow datasets accelerate numpy packaging pyyaml einops typing_extensions
  VENV/bin/pip install --no-deps axolotl llamafactory
  VENV/bin/pip install --no-deps sglang vllm          # and what importing their parsers then asks for, no GPU
  MEGATRON=CHECKOUT VENV/bin/python scripts/emitted-parsed.py SCALEMODEL [DRAWS]
  VENV/bin/python scripts/emitted-parsed.py --record vllm|sglang      # the options of tests/engine_flags.txt

A framework that is not installed is passed over, and said so. Megatron-LM is read from a checkout, whose argument parser (and that of
pipeline layouts) needs no torch: where it is not installed, absent_torch stands in. Where it is, Megatron-LM's checks of arguments
against one another and of the Transformer's configuration are run too, as on the chips asked for; what they then miss is
Transformer Engine alone (fp8 of experts, fused rotary positions).

Random jobs and plans (the best one of those with these degrees); status 1 when a parser refuses one. Not part of the suite;
docs/frameworks.md has what it found.
"""
import importlib.util
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import types

os.environ.setdefault("DS_ACCELERATOR", "cpu")
MODELS = ["llama-3.1-8b", "llama-3.1-70b", "qwen3-8b"]
MEGATRON_MODELS = MODELS + ["mixtral-8x7b", "deepseek-v3", "qwen3-30b-a3b", "gpt3-175b", "llama-3.1-405b"]
KEYS = {"megatron-lm": {"dtype": ["bf16", "fp8"], "recompute": ["none", "full", "selective"], "tensor": [1, 2, 4, 8],
                        "pipeline": [1, 2, 4, 8], "optimizer": ["adam", "adam-bf16"], "gradient": ["fp32", "bf16"]},
        "torchtitan": {"dtype": ["bf16", "fp8"], "recompute": ["none", "full"], "tensor": [1, 2, 4, 8], "pipeline": [1, 2, 4]},
        "deepspeed": {"dtype": ["bf16", "fp16"], "offload": ["none", "optimizer"], "zero": [0, 1, 2, 3], "tensor": [1, 2]},
        "axolotl": {"dtype": ["bf16", "fp8"], "recompute": ["none", "full"], "context": [1, 1, 2, 4], "lora": [0, 0, 16], "offload": ["none", "activations"]},
        "trl": {"dtype": ["bf16", "fp16"], "recompute": ["none", "full"], "lora": [0, 0, 16], "optimizer": ["adam", "adam-8bit"]},
        "llama-factory": {"dtype": ["bf16", "fp16"], "recompute": ["none", "full"], "lora": [0, 0, 16], "optimizer": ["adam", "adam-8bit"]}}


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


def axolotl(text, chips):
    import yaml
    from axolotl.utils.schemas.config import AxolotlInputConfig
    sys.modules.setdefault("ring_flash_attn", types.ModuleType("ring_flash_attn")) # which needs a GPU
    AxolotlInputConfig(**yaml.safe_load(text), learning_rate=1e-5, output_dir="o", datasets=[{"path": "x", "type": "alpaca"}])


def yaml_file(text, more):
    """With the file of DeepSpeed that it names, which is emitted apart."""
    f = tempfile.NamedTemporaryFile("w", suffix=".yaml")
    for stage in re.findall(r"^deepspeed: .*z[ero]*(\d)", text, re.M):
        path = f.name + ".json"
        text = re.sub(r"^deepspeed: .*", f'deepspeed: "{path}"', text, flags=re.M)
        with open(path, "w") as settings:
            json.dump({"zero_optimization": {"stage": int(stage)}, "train_micro_batch_size_per_gpu": "auto"}, settings)
    f.write(text + more)
    f.flush()
    return f


def trl(text, chips):
    from trl import ModelConfig, ScriptArguments, SFTConfig, TrlParser
    with yaml_file(text, "\nuse_cpu: true\ndataset_name: x\noutput_dir: o\n") as f:
        TrlParser((ScriptArguments, SFTConfig, ModelConfig)).parse_args_and_config(["--config", f.name], fail_with_unknown_args=True)


def llama_factory(text, chips):
    from llamafactory.hparams.parser import _parse_train_args, read_args
    with yaml_file(text, "\nuse_cpu: true\ndataset: identity\ntemplate: llama3\noutput_dir: o\n") as f:
        sys.argv = ["llamafactory-cli", f.name]
        _parse_train_args(read_args())


def checks_of_megatron(read, text):
    """Its validation, which wants to know the processes, what their script exports, and the GPU."""
    import contextlib
    import torch
    from megatron.training.arguments import core_transformer_config_from_args, validate_args
    torch.cuda.is_available, torch.cuda.current_device = lambda: True, lambda: 0
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(major=9, minor=0, multi_processor_count=132)
    os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)
    os.environ.update(re.findall(r"^export (\w+)=(\S+)", text, re.M))
    node, nodes = re.search(r"--nproc_per_node (\d+) --nnodes (\d+)", text).groups()
    read.rank, read.world_size = 0, int(node) * int(nodes)
    with contextlib.redirect_stdout(None):
        validate_args(read)
        read.apply_rope_fusion = False
        core_transformer_config_from_args(read)
    if read.global_batch_size % (read.micro_batch_size * read.data_parallel_size):
        raise ValueError("the batch is no whole number of microbatches")


def megatron(text, chips):
    from megatron.core.transformer.pipeline_parallel_layer_layout import PipelineParallelLayerLayout
    from megatron.training.arguments import parse_args
    flags = text.split("ARGS=(")[1].split("\n)")[0]
    others = next(line for line in text.splitlines() if line.startswith("    --mock-data"))
    sys.argv = ["pretrain_gpt.py"] + shlex.split(flags, comments=True) + shlex.split(others)
    read = parse_args()
    if read.pipeline_model_parallel_layout:
        PipelineParallelLayerLayout(read.pipeline_model_parallel_layout,
                                    read.pipeline_model_parallel_size).validate_layer_layout(read.num_layers, None)
    if "absent_torch" not in sys.modules:
        checks_of_megatron(read, text)


SERVED = ["llama-3.1-8b", "llama-3.1-70b", "qwen3-32b", "qwen3-30b-a3b", "mixtral-8x7b", "deepseek-v3", "gpt-oss-120b"]
SERVING = {"tensor": [1, 2, 4, 8], "pipeline": [1, 1, 2], "data": [1, 1, 2], "expert": [1, 1, 4]}
TYPES = [[], [], ["--weights", "fp8"], ["--kv", "fp8"], ["--kv", "int8"], ["--kv", "int4"], ["--weights", "nvfp4", "--kv", "nvfp4"]]


def flags_of(text):
    """The words of each list of arguments."""
    for part in text.split("ARGS=(")[1:]:
        yield shlex.split(part.split("\n)")[0], comments=True)


def sglang_parser():
    import argparse
    from sglang.srt.server_args import ServerArgs
    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    return parser


def vllm_parser():
    from vllm import platforms
    from vllm.platforms.cpu import CpuPlatform
    platforms._current_platform = CpuPlatform()  # defaults of a device that is there
    from vllm.entrypoints.common.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser
    return make_arg_parser(FlexibleArgumentParser())


def sglang(text, chips):
    for flags in flags_of(text):
        sglang_parser().parse_args(flags)


def vllm(text, chips):
    for flags in flags_of(text):
        read = vllm_parser().parse_args(flags)
        from vllm.config import ParallelConfig # which checks degrees against one another
        ParallelConfig(**{key: getattr(read, key) for key in (
            "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "enable_expert_parallel",
            "decode_context_parallel_size", "prefill_context_parallel_size")})


def record(name, parser):
    """The options that data/frameworks/NAME.json writes, as the parser has them: lines of tests/engine_flags.txt."""
    with open(f"data/frameworks/{name}.json") as f:
        framework = json.load(f)
    launch = " ".join(framework["end"])
    keys = [key["key"] for key in framework["keys"] if "write" in key or key["key"] in launch]
    for action in parser._actions:
        for key in set(keys) & set(action.option_strings):
            words = action.choices or (action.metavar if isinstance(action.metavar, list) else None)
            kind = "|".join(map(str, words)) if words else "flag" if action.nargs == 0 else getattr(action.type, "__name__", "text")
            print(name, key, {"int": "int", "human_readable_int": "int", "human_readable_int_or_auto": "int", "float": "float"}.get(kind, kind if "|" in kind or kind == "flag" else "text"))


def judges():
    """Those that can be imported."""
    if "MEGATRON" in os.environ:
        if not importlib.util.find_spec("torch"):
            import absent_torch
            absent_torch.stand_in()
        sys.path.insert(0, os.environ["MEGATRON"])
    for name, package, parse in (("megatron-lm", "megatron.training.arguments", megatron), ("torchtitan", "torchtitan.config", torchtitan),
                                 ("deepspeed", "deepspeed.runtime.config", deepspeed), ("axolotl", "axolotl.utils.schemas.config", axolotl),
                                 ("trl", "trl", trl), ("llama-factory", "llamafactory.hparams.parser", llama_factory),
                                 ("sglang", "sglang.srt.server_args", sglang), ("vllm", "vllm.platforms.cpu", vllm)):
        try:
            __import__(package)
            yield name, parse
        except (ImportError, AttributeError, RuntimeError) as e:
            print(f"{name}: not installed ({e})")


def main():
    if sys.argv[1] == "--record":
        return record(sys.argv[2], {"vllm": vllm_parser, "sglang": sglang_parser}[sys.argv[2]]())
    scalemodel, draws = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40
    rng = random.Random(3)
    refused = 0
    for name, parse in judges():
        tried = 0
        for _ in range(draws):
            keys = KEYS.get(name, SERVING)
            plan = ",".join(f"{key}={rng.choice(values)}" for key, values in keys.items())
            models, on = (MEGATRON_MODELS, "h100-sxm:16x8") if name == "megatron-lm" else (MODELS, "h100-sxm:8x8")
            command = [scalemodel, "train", rng.choice(models), "--on", on, "--batch", "128seqs", "--framework", name,
                       "--plan", plan, "--emit", name, "--seconds", "5"]
            if keys is SERVING:
                command = [scalemodel, "serve", rng.choice(SERVED), "--on", "h100-sxm:2x8", "--framework", name, "--plan", plan, "--emit", name,
                           *rng.choice(TYPES)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode > 1 or not done.stdout.startswith(("#", "{")): # 1: it does not fit, and is emitted all the same
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
