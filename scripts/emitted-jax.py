#!/usr/bin/env python3
"""What `train --emit jax` prints, run by JAX on 8 CPU devices with the weights of a random model of the reference library
(transformers): the loss of each token must be its, and the collectives of the compiled step those that `train` predicts.

  JAX_PYTHON scripts/emitted-jax.py SCALEMODEL FOLDER REFERENCE_PYTHON [PLAN...]

JAX_PYTHON has jax, and libtpu where TOPOLOGY=v5e:2x4 asks for the collectives of a compilation for TPUs instead of CPUs;
REFERENCE_PYTHON has torch and transformers. Prints a row per plan and each difference of collectives; status 1
when a loss differs by more than 1e-3 in fp32. Not part of the suite; docs/frameworks.md has what it found.
"""
import collections
import json
import os
import re
import subprocess
import sys

T, B = 128, 16
LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 512, "intermediate_size": 1408,
         "num_hidden_layers": 2, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 32, "vocab_size": 4096,
         "max_position_embeddings": 8 * T, "tie_word_embeddings": False, "rms_norm_eps": 1e-5, "hidden_act": "silu"}
STRETCHED = dict(LLAMA, tie_word_embeddings=True, rope_theta=500000.0, max_position_embeddings=256, rope_scaling={
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32})
QWEN = dict(LLAMA, model_type="qwen3", architectures=["Qwen3ForCausalLM"], tie_word_embeddings=True)
QWEN2 = dict(LLAMA, model_type="qwen2", architectures=["Qwen2ForCausalLM"])
PLANS = {"dp": (LLAMA, "data=8,zero=0"), "fsdp": (LLAMA, "fsdp=8,zero=3,regather=weights"),
         "tp": (LLAMA, "data=2,tensor=4,seq=off,zero=0"), "tp_seq": (LLAMA, "data=2,tensor=4,seq=on,zero=0,regather=none"),
         "fsdp_tp": (LLAMA, "fsdp=2,tensor=4,seq=on,zero=3,regather=weights"),
         "stretched": (STRETCHED, "fsdp=4,data=2,zero=3,regather=weights"),
         "qwen2": (QWEN2, "data=4,tensor=2,seq=off,zero=0"),
         "qwen3": (QWEN, "data=2,fsdp=2,tensor=2,seq=off,zero=3,regather=weights")}

REFERENCE = r"""
import json, sys, numpy, torch, transformers
folder, npz, tokens, length = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
torch.manual_seed(0)
c = transformers.AutoConfig.from_pretrained(folder)
m = transformers.AutoModelForCausalLM.from_config(c, dtype=torch.float32, attn_implementation="eager").eval()
for name, p in m.named_parameters():
    if p.dim() == 1:
        torch.nn.init.normal_(p, 0.0 if name.endswith("bias") else 1.0, 0.1)
w = {k: v.detach().numpy() for k, v in m.state_dict().items()}
D, K, H = c.hidden_size, c.num_key_value_heads, c.hidden_size // c.num_attention_heads
G = c.num_attention_heads // K
layer = lambda name, shape: numpy.stack([w[f"model.layers.{i}.{name}.weight"].T.reshape(shape) for i in range(c.num_hidden_layers)])
out = {"embedding/w": w["model.embed_tokens.weight"], "head/n": w["model.norm.weight"],
       "layer/n1": layer("input_layernorm", (D,)), "layer/n2": layer("post_attention_layernorm", (D,)),
       "layer/mixer.wq": layer("self_attn.q_proj", (D, K, G, H)), "layer/mixer.wk": layer("self_attn.k_proj", (D, K, H)),
       "layer/mixer.wv": layer("self_attn.v_proj", (D, K, H)), "layer/mixer.wo": layer("self_attn.o_proj", (K, G, H, D)),
       "layer/ffn.wg": layer("mlp.gate_proj", (D, -1)), "layer/ffn.wu": layer("mlp.up_proj", (D, -1)),
       "layer/ffn.wd": layer("mlp.down_proj", (-1, D))}
if not c.tie_word_embeddings:
    out["head/w"] = w["lm_head.weight"].T
if "model.layers.0.self_attn.q_norm.weight" in w:
    out["layer/mixer.nq"], out["layer/mixer.nk"] = layer("self_attn.q_norm", (H,)), layer("self_attn.k_norm", (H,))
for name, key, shape in (("q_proj", "bq", (K, G, H)), ("k_proj", "bk", (K, H)), ("v_proj", "bv", (K, H))):
    if f"model.layers.0.self_attn.{name}.bias" in w:
        out["layer/mixer." + key] = numpy.stack(
            [w[f"model.layers.{i}.self_attn.{name}.bias"].reshape(shape) for i in range(c.num_hidden_layers)])
out["tokens"] = numpy.random.default_rng(1).integers(0, c.vocab_size, (tokens, length + 1))
ids = torch.tensor(out["tokens"])
with torch.no_grad():
    logits = m(ids[:, :-1]).logits
out["losses"] = torch.nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none").numpy()
numpy.savez(npz, **out)
"""


def compiled(answer):
    """(kind, members of a group) -> bytes of the whole arrays in a step, of what XLA made, as `profile` reads it."""
    found = collections.Counter()
    for c in answer["collectives"]:
        found[c["op"], c["group"]] += c["bytes"]
    return found


def predicted(answer):
    """The same of the plan. The update of the weights is the program's own: no state is gathered at a step's ends."""
    found, best = collections.Counter(), answer["plans"][0]
    size = dict((m["axis"], m["size"]) for m in best["mesh"])
    for c in best["collectives"]:
        members = 1
        for axis in c["axis"].split(","):
            members *= size.get(axis, 1)
        found[c["op"], members] += c["count"] * c["bytes_per_chip"]
    return found


def for_topology(text, topology):
    """The program compiled for chips that are not there, and not run."""
    ahead = f"""from jax.experimental import topologies
DEVICES = topologies.get_topology_desc(platform="tpu", topology_name="{topology}").devices
"""
    text = text.replace("# What follows are", ahead + "# What follows are").replace("jax.devices()", "DEVICES")
    return text[:text.index("given = numpy.load")]


def main():
    scalemodel, folder, reference, only = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
    wrong = 0
    for name, (config, plan) in PLANS.items():
        if only and name not in only:
            continue
        place = os.path.join(folder, name)
        os.makedirs(place, exist_ok=True)
        with open(os.path.join(place, "config.json"), "w") as f:
            json.dump(config, f)
        tensor = int(plan.partition("tensor=")[2].partition(",")[0] or 1)
        whole = f"{plan},microbatch={B * tensor // 8},recompute=none,optimizer=sgd,dtype=bf16,gradient=bf16"
        job = ["train", os.path.join(place, "config.json"), "--on", "tpu-v5e:2x4", "--batch", f"{B}seqs", "--seq", str(T), "--plan", whole]
        text = subprocess.run([scalemodel, *job, "--emit", "jax"], check=True, capture_output=True, text=True).stdout
        answer = json.loads(subprocess.run([scalemodel, *job, "--json"], capture_output=True, text=True).stdout)
        text = text.replace("WHOLE = False", "WHOLE = True")
        for kind, body in ("bf16", text), ("fp32", text.replace("DTYPE = jnp.bfloat16", "DTYPE = jnp.float32")):
            with open(os.path.join(place, kind + ".py"), "w") as f:
                f.write(body)
        topology = os.environ.get("TOPOLOGY")
        if topology:
            with open(os.path.join(place, "bf16.py"), "w") as f:
                f.write(for_topology(text, topology))
        npz, hlo = os.path.join(place, "weights.npz"), os.path.join(place, "step.hlo.txt")
        subprocess.run([reference, "-c", REFERENCE, place, npz, str(B), str(T)], check=True, stderr=subprocess.DEVNULL)
        said = subprocess.run([sys.executable, os.path.join(place, "fp32.py"), os.devnull, npz], check=True, capture_output=True, text=True,
                              env=dict(os.environ, JAX_PLATFORMS="cpu")).stdout
        subprocess.run([sys.executable, os.path.join(place, "bf16.py"), hlo], check=True, capture_output=True,
                       env=dict(os.environ, JAX_PLATFORMS="cpu", TPU_SKIP_MDS_QUERY="1"))
        off = float(re.search(r"largest difference of a token's loss (\S+)", said)[1])
        wrong += off > 1e-3
        print(f"{name:10} {plan:50} loss of a token differs by {off:.1e} at most")
        read = subprocess.run([scalemodel, "profile", hlo, "--on", "tpu-v5e:2x4", "--json"], capture_output=True, text=True).stdout
        made, expected = compiled(json.loads(read)), predicted(answer)
        for key in sorted(made.keys() | expected.keys()):
            print(f"   {key[0]:18} of {key[1]}: compiled {made[key] / 1e6:9.3f} MB, predicted {expected[key] / 1e6:9.3f} MB")
    return wrong > 0


sys.exit(main())
