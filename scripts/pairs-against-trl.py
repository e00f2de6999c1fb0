#!/usr/bin/env python3
"""What TRL makes of pairs (DPO): loss and slope of a small model whose weights follow from their
names, held against another whose weights follow from "reference." and their names.

    scripts/pairs-against-trl.py tests/trl_pairs.json

The loss is that of DPOTrainer itself, on the batch that its collator makes. Needs torch,
transformers, accelerate and trl; the versions are noted in the file.
"""
import importlib.util
import json
import pathlib
import sys
import tempfile
from collections import defaultdict

import torch
import transformers
import trl
from accelerate import Accelerator
from transformers import AutoModelForCausalLM
from trl import DPOTrainer
from trl.trainer.dpo_trainer import DataCollatorForPreference, add_fused_lm_head

BETA = 0.3
PAIRS = (("a plan ", "is good", "was"), ("The p", "rice.", "rogram"), ("o", "k", "ther wo"),
         ("is a ", "sharding", "x"))


def answers_of():
    at = pathlib.Path(__file__).with_name("reference-answers.py")
    spec = importlib.util.spec_from_file_location("reference_answers", at)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def model_of(of, shapes, prefix, config):
    with tempfile.TemporaryDirectory() as folder:
        of.save_file({k: of.numbers(prefix + k, s) for k, s in shapes.items()},
                     pathlib.Path(folder) / "model.safetensors", metadata={"format": "pt"})
        config.save_pretrained(folder)
        return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32,
                                                    attn_implementation="eager").eval()


def main():
    of = answers_of()
    told = json.loads((pathlib.Path(__file__).parents[1] / "tests/reference/llama.json").read_text())
    config = transformers.AutoConfig.for_model(**told["config"])
    shapes = {t["name"]: t["shape"] for t in told["tensors"]}
    policy = model_of(of, shapes, "", config)
    trainer = DPOTrainer.__new__(DPOTrainer)
    args = trl.DPOConfig(output_dir="/tmp", use_cpu=True)
    trainer.__dict__.update(
        model=policy, ref_model=model_of(of, shapes, "reference.", config), beta=BETA,
        loss_types=["sigmoid"], loss_weights=[1.0], ld_alpha=None, f_divergence_type="reverse_kl",
        precompute_ref_logps=False, use_weighting=False, label_smoothing=0.0, aux_loss_enabled=False,
        accelerator=Accelerator(cpu=True), args=args,
        _metrics=dict(train=defaultdict(list), eval=defaultdict(list)), _total_train_tokens=0,
        _is_vlm=False)
    add_fused_lm_head(trainer.model, outputs=("log_probs", "entropy", "is_top1", "mean_logits"))
    add_fused_lm_head(trainer.ref_model)
    batch = DataCollatorForPreference(pad_token_id=0)([
        dict(prompt_ids=list(p.encode()), chosen_ids=list(c.encode()), rejected_ids=list(r.encode()))
        for p, c, r in PAIRS])
    loss = trainer._compute_loss(policy, batch, False)
    loss.backward()
    slope = of.slope_along(policy, model_of(of, shapes, "direction.", config))
    pathlib.Path(sys.argv[1]).write_text(json.dumps(dict(
        made_by=f"trl {trl.__version__}, transformers {transformers.__version__}", beta=BETA,
        pairs=PAIRS, loss=round(loss.item(), 6), slope=slope), indent=1) + "\n")


if __name__ == "__main__":
    main()
