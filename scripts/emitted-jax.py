#!/usr/bin/env python3
"""What `train --emit jax` prints, run by JAX on 8 CPU devices with the weights of a random model of the reference library
(transformers): the loss of each token must be its, and the collectives of the compiled step those that `train` predicts.

  JAX_PYTHON scripts/emitted-jax.py SCALEMODEL FOLDER REFERENCE_PYTHON [NAME...]

JAX_PYTHON has jax, and libtpu where TOPOLOGY=v5e:2x4 asks for the collectives of a compilation for TPUs instead of CPUs;
REFERENCE_PYTHON has torch and transformers. Prints a row per plan and each collective; status 1 when a loss differs by more
than 1e-3 in fp32, or a collective by more than half a percent where DIFFERS does not say why. For CPUs XLA widens 16 bits to 32 on
their way, so the program is compiled in fp32 there and half of its bytes are compared. Not part of the suite; docs/frameworks.md has what
it found.
"""
import collections
import json
import os
import re
import subprocess
import sys

T, B = 128, 16
CONFIGS = os.path.join(os.path.dirname(__file__), "..", "tests", "cli", "inputs", "jax")
# name: (config in tests/cli/inputs/jax, plan, microbatches)
PLANS = {"dp": ("llama", "data=8,zero=0", 1), "zero1": ("llama", "data=8,zero=1", 2),
         "fsdp": ("llama", "fsdp=8,zero=3,regather=weights", 1), "fsdp_kept": ("llama", "fsdp=8,zero=3,regather=none", 1),
         "hsdp": ("llama", "data=2,fsdp=4,zero=3,regather=none", 1),
         "tp": ("llama", "data=2,tensor=4,seq=off,zero=0", 1), "tp_seq": ("llama", "data=2,tensor=4,seq=on,zero=0,regather=weights", 1),
         "fsdp_tp": ("llama", "fsdp=2,tensor=4,seq=on,zero=3,regather=none", 1),
         "ring": ("llama", "fsdp=4,context=2,context_by=ring,zero=3,regather=activations", 1),
         "gather": ("llama", "data=2,context=4,context_by=gather,zero=0,regather=weights", 1),
         "heads": ("llama", "fsdp=2,context=2,context_by=heads,tensor=2,seq=on,zero=3,regather=none", 1),
         "experts": ("mixtral", "data=2,expert=4,zero=1", 1), "experts_tp": ("mixtral", "expert=4,tensor=2,seq=on,regather=weights", 1),
         "experts_whole": ("mixtral", "expert=4,tensor=2,seq=off", 1),
         "expert_tensor": ("mixtral", "expert=2,tensor=4,seq=on,expert_tensor=on,regather=weights", 1),
         "expert_ring": ("mixtral", "fsdp=2,expert=2,context=2,context_by=ring,regather=none", 1),
         "pipeline": ("llama", "pipeline=2,data=2,tensor=2,seq=on,zero=0,regather=weights", 4),
         "expert_pipeline": ("mixtral", "pipeline=2,expert=4,zero=0", 4),
         "stretched": ("stretched", "fsdp=4,data=2,zero=3,regather=none", 1),
         "qwen2": ("qwen2", "data=2,tensor=4,seq=off,zero=0", 1),
         "qwen3": ("qwen3", "data=2,fsdp=2,tensor=2,seq=off,zero=3,regather=none", 1)}
PIPELINE = "stages step together, and each has embedding and head"
ONCE = "XLA gathers the weights of the head once for both passes"
DIFFERS = {"fsdp": ONCE, "qwen3": ONCE, "pipeline": PIPELINE, "expert_pipeline": PIPELINE,
           "stretched": "the table that embedding and head share is gathered once", "experts_whole": "gradients of choices"}

REFERENCE = r"""
import json, sys, numpy, torch, transformers
config, npz, tokens, length = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
torch.manual_seed(0)
c = transformers.AutoConfig.from_pretrained(config)
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
       "layer/mixer.wv": layer("self_attn.v_proj", (D, K, H)),
       "layer/mixer.wo": layer("self_attn.o_proj", (K, G, H, D))}
if c.model_type == "mixtral":
    experts = lambda at: numpy.stack([at(f"model.layers.{i}.") for i in range(c.num_hidden_layers)])
    router = next(n for n in w if n.startswith("model.layers.0.") and n.endswith("gate.weight"))[len("model.layers.0."):]
    place = router[:-len("gate.weight")] + "experts."
    both = experts(lambda layer: w[layer + place + "gate_up_proj"])  # [layers, experts, 2 x width, D]
    out["layer/ffn.wr"] = experts(lambda layer: w[layer + router].T)
    out["layer/ffn.wg"], out["layer/ffn.wu"] = (half.swapaxes(2, 3) for half in numpy.split(both, 2, 2))
    out["layer/ffn.wd"] = experts(lambda layer: w[layer + place + "down_proj"]).swapaxes(2, 3)
else:
    out["layer/ffn.wg"], out["layer/ffn.wu"] = layer("mlp.gate_proj", (D, -1)), layer("mlp.up_proj", (D, -1))
    out["layer/ffn.wd"] = layer("mlp.down_proj", (-1, D))
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


def run(python, place, name, text, *others):
    """A program under that name in a folder, run; what it prints."""
    path = os.path.join(place, name)
    with open(path, "w") as f:
        f.write(text)
    environment = dict(os.environ, JAX_PLATFORMS="cpu", TPU_SKIP_MDS_QUERY="1")
    return subprocess.run([python, path, *others], check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout


def emitted(scalemodel, job):
    """The program with the sizes of the model, and what was predicted."""
    text = subprocess.run([scalemodel, *job, "--emit", "jax"], check=True, stdout=subprocess.PIPE, text=True).stdout
    answer = subprocess.run([scalemodel, *job, "--framework", "jax", "--json"], stdout=subprocess.PIPE, text=True).stdout
    return text.replace("WHOLE = False", "WHOLE = True"), json.loads(answer)


def differences(made, expected, scale, row):
    """Prints each collective; how many differ. RECORD=FILE takes rows that tests hold against what `train` predicts."""
    wrong, record = 0, os.environ.get("RECORD")
    for key in sorted(made.keys() | expected.keys()):
        got, wanted = made[key] * scale, expected[key]
        if max(got, wanted) < 16e3:  # sums of losses; small arrays that stay in 32 bits
            continue
        differs = abs(got - wanted) > 0.005 * wanted
        wrong += differs
        if record:
            with open(record, "a") as f:
                print(*row, *key, f"{got:.0f}", int(differs), file=f)
        print(f"   {key[0]:15} of {key[1]}: compiled {got / 1e6:9.3f} MB, predicted {wanted / 1e6:9.3f} MB{' differs' if differs else ''}")
    return wrong


def main():
    scalemodel, folder, reference, only = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
    topology, wrong = os.environ.get("TOPOLOGY"), 0
    for name, (config, plan, microbatches) in PLANS.items():
        if only and name not in only:
            continue
        place, source = os.path.join(folder, name), os.path.join(CONFIGS, config + ".json")
        os.makedirs(place, exist_ok=True)
        degree = lambda key: int(re.search(rf"(?:^|,){key}=(\d+)", plan)[1]) if re.search(rf"(?:^|,){key}=", plan) else 1
        microbatch = B // microbatches // (degree("data") * degree("fsdp") * degree("expert"))
        whole = f"{plan},microbatch={microbatch},recompute=none,optimizer=sgd,dtype=bf16,gradient=bf16,offload=none"
        text, answer = emitted(scalemodel, ["train", source, "--on", "tpu-v5e:2x4", "--batch", f"{B}seqs",
                                            "--seq", str(T), "--plan", whole])
        wide = text.replace("DTYPE = jnp.bfloat16", "DTYPE = jnp.float32")
        weights = os.path.join(folder, config + ".npz")
        if not os.path.exists(weights):
            subprocess.run([reference, "-c", REFERENCE, source, weights, str(B), str(T)], check=True, stderr=subprocess.DEVNULL)
        hlo, dropless = os.path.join(place, "step.hlo.txt"), wide.replace("CAPACITY = 1.0", "CAPACITY = None")
        said = run(sys.executable, place, "fp32.py", dropless, hlo, weights)
        if topology or "dispatch(h" in text:
            run(sys.executable, place, "step.py", for_topology(text, topology) if topology else wide, hlo)
        off = float(re.search(r"largest difference of a token's loss (\S+)", said)[1])
        print(f"{name:15} {plan:60} loss of a token differs by {off:.1e} at most", flush=True)
        read = subprocess.run([scalemodel, "profile", hlo, "--on", "tpu-v5e:2x4", "--json"], stdout=subprocess.PIPE, text=True).stdout
        differing = differences(compiled(json.loads(read)), predicted(answer), 1 if topology else 0.5,
                                (config, whole))
        if differing and name in DIFFERS:
            print(f"   {DIFFERS[name]}")
        wrong += off > 1e-3 or (differing and not topology and name not in DIFFERS)
    return wrong > 0


sys.exit(main())
