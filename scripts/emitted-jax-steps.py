#!/usr/bin/env python3
"""What `train --emit jax` prints, trained by JAX on 8 CPU devices beside `run train`: both go on from one checkpoint, on the
same batches, and the losses of their steps are compared.

  JAX_PYTHON scripts/emitted-jax-steps.py SCALEMODEL TEXT [NAME...]

TEXT is any file, the bytes that both train on. The emitted step makes w - g; the rate and the clipping of `run train` are
applied here. Prints a row per plan; status 1 when a loss differs by more than 1e-4 of it. RECORD=FILE takes a row of JAX's losses for
each, which tests hold `run train` to. Not part of the suite; docs/frameworks.md has what it found.
"""
import csv
import json
import math
import os
import re
import subprocess
import sys
import tempfile

SEQ, SEQUENCES, STEPS, RATE, SEED, CLIP = 32, 16, 7, 0.3, 1, 1.0
INPUTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "cli", "inputs")
PLANS = {"dp": ("tiny-llama", "data=8,microbatch=2"), "zero1": ("tiny-llama", "data=8,zero=1,microbatch=1"),
         "fsdp_tp": ("tiny-llama", "data=2,fsdp=2,tensor=2,seq=on,microbatch=2,regather=none"),
         "ring": ("tiny-llama", "fsdp=2,context=2,tensor=2,seq=on,context_by=ring,microbatch=4,regather=none"),
         "heads": ("tiny-llama", "data=4,context=2,context_by=heads,zero=0,microbatch=4,regather=weights"),
         "pipeline": ("tiny-llama", "pipeline=2,data=2,tensor=2,seq=on,zero=0,microbatch=2,regather=weights"),
         "experts": ("tiny-experts", "data=2,expert=4,zero=1,microbatch=2")}
# Of each of these families what changes numbers or shapes: biases, norms of heads, stretched positions, tables that are tied, kinds
# of layers, shared experts. All plans but those that their sizes do not divide over.
WIDE = {"mixed": "data=2,fsdp=2,tensor=2,seq=on,microbatch=2,regather=none", "parts": "pipeline=2,fsdp=2,tensor=2,seq=off,microbatch=2,regather=none",
        "long": "fsdp=4,context=2,context_by=gather,microbatch=2,regather=activations"}
DEALT = {"dealt": "data=2,expert=4,zero=1,microbatch=2", "both": "data=2,expert=2,tensor=2,seq=on,microbatch=2,regather=weights"}
WHOLE_HEADS = {"replicas": "data=2,fsdp=4,zero=3,microbatch=2,regather=weights", "long": WIDE["long"]}
TURNS, SHORT, BARE, ONE = ({k: WIDE[k] for k in ("mixed", "long")}, {k: WIDE[k] for k in ("mixed", "parts")}, {"mixed": WIDE["mixed"]}, {"replicas": WHOLE_HEADS["replicas"]})
for family, plans in (("arcee", WIDE), ("llama-linear", WIDE), ("llama-tied", WIDE), ("llama3", WIDE), ("mixtral", DEALT), ("olmo2", WHOLE_HEADS),
                      ("olmoe", {"dealt": DEALT["dealt"]}), ("phi3", WIDE), ("qwen2", WIDE), ("qwen2_moe", DEALT), ("qwen3", WIDE),
                      ("qwen3_moe", DEALT), ("seed_oss", WIDE), ("smollm3", {k: v for k, v in WIDE.items() if k != "parts"}),
                      # scales, offsets, LayerNorms, windows, caps, a part of a head that turns, neighbours, tables of positions
                      ("cohere", ONE), ("cohere2", TURNS), ("ernie4_5", WIDE), ("exaone4", TURNS), ("gemma", WIDE), ("gemma2", TURNS),
                      ("gemma3", TURNS), ("llama-yarn", WIDE), ("glm4", WIDE), ("granite", SHORT), ("mistral", WIDE), ("nemotron", BARE),
                      ("olmo", SHORT), ("olmo3", ONE), ("opt", BARE), ("phi", ONE), ("stablelm", BARE), ("starcoder2", BARE)):
    PLANS |= {f"{family}.{name}": (f"jax/small/{family}", plan) for name, plan in plans.items()}

DRIVER = r"""
import json
job = json.load(open(sys.argv[3]))
raw = open(job["checkpoint"], "rb").read()
end = 8 + int.from_bytes(raw[:8], "little")
of = {k: numpy.frombuffer(raw[end + v["data_offsets"][0]:end + v["data_offsets"][1]], numpy.float32).reshape(v["shape"])
      for k, v in json.loads(raw[8:end]).items() if k != "__metadata__"}
# What a weight may be called; of several rows in one tensor which, {e} an expert.
FOUR = "n4" in WEIGHTS["layer"]
TENSORS = {"n1": "input_layernorm self_attn_layer_norm post_attention_layernorm",
           "n2": "post_self_attn_layernorm post_attention_layernorm" if FOUR else
                 "post_feedforward_layernorm final_layer_norm post_attention_layernorm",
           "n3": "pre_feedforward_layernorm post_attention_layernorm", "n4": "post_feedforward_layernorm post_mlp_layernorm",
           "mixer.wq": "self_attn.q_proj self_attn.qkv_proj", "mixer.wk": "self_attn.k_proj self_attn.qkv_proj",
           "mixer.wv": "self_attn.v_proj self_attn.qkv_proj", "mixer.wo": "self_attn.o_proj self_attn.dense self_attn.out_proj",
           "mixer.bq": "self_attn.q_proj", "mixer.bk": "self_attn.k_proj", "mixer.bv": "self_attn.v_proj",
           "mixer.nq": "self_attn.q_norm", "mixer.nk": "self_attn.k_norm",
           "ffn.wg": "mlp.gate_proj mlp.gate_up_proj block_sparse_moe.experts.{e}.w1 mlp.experts.{e}.gate_proj",
           "ffn.wu": "mlp.up_proj mlp.gate_up_proj mlp.c_fc mlp.fc1 fc1 block_sparse_moe.experts.{e}.w3 mlp.experts.{e}.up_proj",
           "ffn.wd": "mlp.down_proj mlp.c_proj mlp.fc2 fc2 block_sparse_moe.experts.{e}.w2 mlp.experts.{e}.down_proj",
           "ffn.wr": "block_sparse_moe.gate mlp.gate", "ffn.wsg": "mlp.shared_expert.gate_proj", "ffn.wsu": "mlp.shared_expert.up_proj",
           "ffn.wsd": "mlp.shared_expert.down_proj", "ffn.wsp": "mlp.shared_expert_gate"}
for m, n in (("m1", "n1"), ("m2", "n2"), ("mixer.bo", "mixer.wo"), ("ffn.bu", "ffn.wu"), ("ffn.bd", "ffn.wd")):
    TENSORS[m] = TENSORS[n]  # its ".bias"
BODY = next(body for body in ("model.decoder.", "model.") if body + "embed_tokens.weight" in of)
FUSED = ["mixer.wq", "mixer.wk", "mixer.wv"], ["ffn.wg", "ffn.wu"]

def rows(name):
    return int(numpy.prod([SIZE[d] for d in WEIGHTS["layer"][name][0].split() if d != "D"]))

def tensor(piece, name, dims, layer):
    if piece == "embedding":
        return of[BODY + ("embed_tokens.weight" if name == "w" else "embed_positions.weight")]
    end = ".bias" if name.split(".")[-1][0] in "bm" else ".weight"
    if piece == "head":
        norm = next(n for n in ("norm", "final_layernorm", "final_layer_norm") if BODY + n + ".weight" in of or n == "final_layer_norm")
        return of[BODY + norm + end] if name in "nm" else of["lm_head" + end].T
    for called in TENSORS[name].split():
        at = f"{BODY}layers.{layer}.{called}{end}"
        if "{e}" in called and at.format(e=0) in of:
            return numpy.stack([of[at.format(e=e)].T for e in range(SIZE["E"])])
        if at not in of:
            continue
        group = next((g for g in FUSED if name in g), ()) if "qkv" in called or "gate_up" in called else ()
        first = sum(rows(n) for n in group[:group.index(name)]) if group else 0
        part = of[at][first:first + rows(name)] if group else of[at]
        return part.T if name.split(".")[-1][0] == "w" else part

ORDER = []  # the kinds of layers, one of each layer
for piece in json.loads(job["kinds"]):
    ORDER += [piece] * LAYERS[piece]

def value_of(piece, name, dims, *_):
    s = shapes[piece][name]
    own = [i for i, of in enumerate(ORDER) if of == piece] if piece in LAYERS else [0]
    parts = [tensor(piece, name, dims, i) for i in own]
    return jax.device_put(jnp.asarray(numpy.stack(parts).reshape(s.shape), s.dtype), shardings[piece][name])

class Draws:
    def __init__(self, state): self.state = state
    def next(self):
        m = (1 << 64) - 1
        self.state = z = (self.state + 0x9E3779B97F4A7C15) & m
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & m
        z = (z ^ z >> 27) * 0x94D049BB133111EB & m
        return z ^ z >> 31
    def below(self, n):
        draw, unfair = self.next(), (1 << 64) % n
        while draw > (1 << 64) - 1 - unfair: draw = self.next()
        return draw % n

text = numpy.frombuffer(open(job["text"], "rb").read(), numpy.uint8).astype(numpy.int32)
def batch(step):
    rows = []
    for number in range(MICROBATCHES * SIZE["B"]):
        first = Draws(Draws(job["seed"]).next() ^ (step << 32 | number)).below(len(text) - SIZE["T"])
        rows.append(text[first:first + SIZE["T"] + 1])
    return numpy.stack(rows).reshape(MICROBATCHES, SIZE["B"], SIZE["T"] + 1)

weights = each_weight(value_of)
for step in range(job["from"], job["steps"]):
    tokens = batch(step)
    before = jax.tree.map(numpy.asarray, weights)
    value, _, after = compiled(weights, jax.device_put(tokens[..., :-1], placed(IDS)), jax.device_put(tokens[..., 1:], placed(LOSSES)))
    gradient = jax.tree.map(lambda w, a: w - numpy.asarray(a), before, after)
    norm = sum(float((g.astype(numpy.float64) ** 2).sum()) for g in jax.tree.leaves(gradient)) ** 0.5
    rate = job["rates"][step] * min(1.0, job["clip"] / norm)
    weights = jax.tree.map(lambda w, g, s: jax.device_put(jnp.asarray(w - rate * g), s), before, gradient, shardings)
    print(float(value))
"""


def main():
    scalemodel, text, only, wrong = sys.argv[1], sys.argv[2], sys.argv[3:], 0
    for name, (model, plan) in PLANS.items():
        if only and name not in only:
            continue
        config, whole = os.path.join(INPUTS, model + ".json"), plan + ",optimizer=sgd,recompute=none,dtype=fp32"
        with tempfile.TemporaryDirectory() as place:
            at = lambda file: os.path.join(place, file)
            run = [scalemodel, "run", "train", config, "--data", text, "--seq", str(SEQ), "--batch", str(SEQ * SEQUENCES), "--steps",
                   str(STEPS), "--rate", str(RATE), "--seed", str(SEED), "--with", "threads", "--plan", whole]
            subprocess.run(run + ["--until", "1", "--checkpoint", at("one.safetensors")], check=True, stdout=subprocess.DEVNULL)
            subprocess.run(run + ["--resume", at("one.safetensors"), "--curve", at("curve.csv")], check=True, stdout=subprocess.DEVNULL)
            ours = [float(row["loss"]) for row in csv.DictReader(open(at("curve.csv")))]
            program = subprocess.run([scalemodel, "train", config, "--on", "cpu-host:8", "--seq", str(SEQ), "--batch", f"{SEQUENCES}seqs",
                                      "--plan", whole, "--emit", "jax"], check=True, stdout=subprocess.PIPE, text=True).stdout
            program = program.replace("WHOLE = False", "WHOLE = True").replace("CAPACITY = 1.0", "CAPACITY = None")
            program = program.replace("RATE = 0.001", "RATE = 1.0")
            with open(at("steps.py"), "w") as f:
                f.write(program[:program.index("given = numpy.load")] + DRIVER)
            rates = [RATE * (0.55 + 0.45 * math.cos(math.pi * step / STEPS)) for step in range(STEPS)]
            with open(at("job.json"), "w") as f:
                json.dump({"kinds": json.dumps(re.findall(r'"(\w+)": \d+ if', program)), "checkpoint": at("one.safetensors"), "text": text, "seed": SEED, "from": 1, "steps": STEPS, "rates": rates,
                           "clip": CLIP}, f)
            said = subprocess.run([sys.executable, at("steps.py"), at("hlo.txt"), "-", at("job.json")], check=True, text=True,
                                  stdout=subprocess.PIPE, env=dict(os.environ, JAX_PLATFORMS="cpu")).stdout
            theirs = [float(line) for line in said.split()]
            off = max(abs(a / b - 1) for a, b in zip(theirs, ours, strict=True))
            print(f"{name:18} {plan:75} {ours[0]:.4f} -> {ours[-1]:.4f}, apart {off:.1e} at most", flush=True)
            wrong += off > 1e-4
            if os.environ.get("RECORD"):
                with open(os.environ["RECORD"], "a") as f:
                    print(model, whole, *(f"{loss:.6f}" for loss in theirs), file=f)
    return wrong > 0


sys.exit(main())
