#!/usr/bin/env python3
"""Training steps of small Transformers, compiled by JAX under the shardings of plans: what `train` predicts of
their collectives and products is held against them by `profile --model --plan`.

  VENV/bin/python scripts/train-against-jax.py FOLDER [PLATFORM] [NAME...]

PLATFORM: cpu (8 devices, the default) or a topology that libtpu knows, such as v5e:2x4. For each plan it writes
NAME.hlo.txt.gz and NAME.json, the config of its model; PLAN, tokens and sequence length are printed as the options of
`profile`. The layers are written as JAX users write them: weights sharded, activations constrained where a framework
(MaxText) constrains them, the rest left to the compiler's partitioner. Not part of the suite.
"""
import functools
import gzip
import json
import os
import sys

PLATFORM = sys.argv[2] if len(sys.argv) > 2 else "cpu"
if PLATFORM == "cpu":
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    os.environ["JAX_PLATFORMS"] = "cpu"
else:
    os.environ["TPU_SKIP_MDS_QUERY"] = "1"
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P  # noqa: E402

# Sizes that all differ, so that a product is known by its FLOPs.
L, D, H, K, Hd, F, V, T, B = 2, 1280, 16, 8, 64, 3328, 20480, 384, 16
E, TOP = 8, 2


def norm(x, g):
    y = x.astype(jnp.float32)
    return (y * jax.lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-5) * g).astype(x.dtype)


def rope(x):
    t, h = x.shape[1], x.shape[-1] // 2
    angle = jnp.arange(t)[:, None] / 10000 ** (jnp.arange(h) / h)
    cos, sin = jnp.cos(angle)[None, :, None], jnp.sin(angle)[None, :, None]
    a, b = x[..., :h].astype(jnp.float32), x[..., h:].astype(jnp.float32)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1).astype(x.dtype)


def attention(x, w, at):
    q = at(rope(jnp.einsum("btd,dnh->btnh", x, w["q"])), "heads")
    k = at(rope(jnp.einsum("btd,dkh->btkh", x, w["k"])), "heads")
    v = at(jnp.einsum("btd,dkh->btkh", x, w["v"]), "heads")
    q = q.reshape(q.shape[:2] + (K, H // K, Hd))
    s = jnp.einsum("btkgh,bskh->bkgts", q, k).astype(jnp.float32) / Hd ** 0.5
    s = jnp.where(jnp.tril(jnp.ones((T, T), bool)), s, -1e30)
    o = jnp.einsum("bkgts,bskh->btkgh", jax.nn.softmax(s).astype(x.dtype), v)
    return jnp.einsum("btnh,nhd->btd", at(o.reshape(o.shape[:2] + (H, Hd)), "heads"), w["o"])


def mlp(x, w, at):
    h = at(jax.nn.silu(jnp.einsum("btd,df->btf", x, w["gate"])) * jnp.einsum("btd,df->btf", x, w["up"]), "wide")
    return jnp.einsum("btf,fd->btd", h, w["down"])


def experts(x, w, at):
    """Slots by capacity, as Switch and MaxText have them: C = T * TOP / E of each expert and sequence."""
    C = T * TOP // E
    p = jax.nn.softmax(jnp.einsum("btd,de->bte", x, w["router"]).astype(jnp.float32))
    score, which = jax.lax.top_k(p, TOP)
    one = jax.nn.one_hot(which, E, dtype=jnp.float32)
    place = jnp.cumsum(one.reshape(x.shape[0], T * TOP, E), 1).reshape(one.shape) * one - 1
    slot = jax.nn.one_hot(place.astype(jnp.int32), C, dtype=x.dtype) * one[..., None].astype(x.dtype)
    send = jnp.sum(slot, 2)
    back = jnp.sum(slot * score[..., None, None].astype(x.dtype), 2)
    y = at(at(jnp.einsum("btec,btd->ebcd", send, x), "slots"), "experts")
    h = jax.nn.silu(jnp.einsum("ebcd,edf->ebcf", y, w["gate"])) * jnp.einsum("ebcd,edf->ebcf", y, w["up"])
    y = at(at(jnp.einsum("ebcf,efd->ebcd", at(h, "expert width"), w["down"]), "experts"), "slots")
    return jnp.einsum("ebcd,btec->btd", y, back)


def loss(ws, ids, moe, at):
    x = at(ws["embed"][ids[:, :-1]], "stream")

    def layer(x, w):
        x = at(x + at(attention(at(norm(x, w["ln1"]), "input"), w, at), "stream"), "stream")
        return at(x + at((experts if moe else mlp)(at(norm(x, w["ln2"]), "input"), w, at), "stream"), "stream"), None

    x, _ = jax.lax.scan(layer, x, ws["layers"])
    logits = at(jnp.einsum("btd,dv->btv", at(norm(x, ws["ln"]), "input"), ws["head"]), "logits").astype(jnp.float32)
    target = jax.nn.one_hot(ids[:, 1:], V, dtype=jnp.float32)
    return jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.sum(logits * target, -1))


def step(moe, at, ws, ids):
    value, grads = jax.value_and_grad(loss)(ws, ids, moe, at)
    return value, jax.tree.map(lambda w, g: (w - 1e-3 * g.astype(w.dtype)).astype(w.dtype), ws, grads)


def devices():
    if PLATFORM == "cpu":
        return np.array(jax.devices()[:8])
    from jax.experimental import topologies
    return np.array(topologies.get_topology_desc(platform="tpu", topology_name=PLATFORM).devices[:8])


# name, mesh, plan, experts?, sequence parallel?
PLANS = [
    ("dp", {"data": 8}, "data=8,zero=0", False, False),
    ("fsdp", {"fsdp": 8}, "fsdp=8,zero=3", False, False),
    ("tp", {"data": 2, "tensor": 4}, "data=2,tensor=4,seq=off,zero=0", False, False),
    ("sp", {"data": 2, "tensor": 4}, "data=2,tensor=4,seq=on,zero=0", False, True),
    ("fsdp_sp", {"fsdp": 2, "tensor": 4}, "fsdp=2,tensor=4,seq=on,zero=3", False, True),
    ("ep", {"expert": 8}, "expert=8,zero=0", True, False),
]


def sharded(axes, seq):
    """Of each weight, and of each activation that is constrained."""
    have = lambda *names: tuple(n for n in names if n in axes) or None
    f, t, e, b = have("fsdp"), have("tensor"), have("expert"), have("data", "fsdp", "expert")
    batch = tuple(n for n in b or () if n != "expert") or None
    weights = {"q": P(None, f, t, None), "k": P(None, f, t, None), "v": P(None, f, t, None), "o": P(None, t, None, f),
               "ln1": P(), "ln2": P(), "gate": P(None, f, t), "up": P(None, f, t), "down": P(None, t, f),
               "router": P(None, f, None)}
    if "expert" in axes:
        weights |= {"gate": P(None, e, f, t), "up": P(None, e, f, t), "down": P(None, e, t, f)}
    acts = {"stream": P(b, t if seq else None, None), "input": P(b, None, None), "heads": P(b, None, t, None),
            "wide": P(b, None, t), "logits": P(b, None, t), "slots": P(None, b, None, None), "experts": P(e, batch, None, None),
            "expert width": P(e, batch, None, t)}
    return weights, {"embed": P(t, f), "head": P(f, t), "ln": P()}, acts, P(b, None)


def model(moe):
    ex = ((E,) if moe else ())
    layer = {"q": (D, H, Hd), "k": (D, K, Hd), "v": (D, K, Hd), "o": (H, Hd, D), "ln1": (D,), "ln2": (D,),
             "gate": ex + (D, F), "up": ex + (D, F), "down": ex + (F, D)}
    if moe:
        layer["router"] = (D, E)
    config = {"model_type": "mixtral" if moe else "llama", "hidden_size": D, "intermediate_size": F,
              "num_hidden_layers": L, "num_attention_heads": H, "num_key_value_heads": K, "head_dim": Hd,
              "vocab_size": V, "max_position_embeddings": T, "tie_word_embeddings": False, "rms_norm_eps": 1e-5}
    config |= {"num_local_experts": E, "num_experts_per_tok": TOP} if moe else {}
    return layer, config


def main():
    folder, only = sys.argv[1], sys.argv[3:]
    os.makedirs(folder, exist_ok=True)
    for name, axes, plan, moe, seq in PLANS:
        if only and name not in only:
            continue
        mesh = Mesh(devices().reshape(tuple(axes.values())), tuple(axes))
        layer, config = model(moe)
        of_layer, of_rest, acts, of_ids = sharded(axes, seq)
        at = lambda x, what: jax.lax.with_sharding_constraint(x, NamedSharding(mesh, acts[what]))
        spec = lambda shape, p, dtype=jnp.bfloat16: jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, p))
        ws = {"layers": {k: spec((L,) + s, of_layer[k]) for k, s in layer.items()},
              "embed": spec((V, D), of_rest["embed"]), "head": spec((D, V), of_rest["head"]), "ln": spec((D,), P())}
        out = (None, jax.tree.map(lambda w: w.sharding, ws))
        lowered = jax.jit(functools.partial(step, moe, at), out_shardings=out, donate_argnums=0).lower(
            ws, spec((B, T + 1), of_ids, jnp.int32))
        compiled = lowered.compile()
        prefix = os.path.join(folder, (PLATFORM.replace(":", "-") if PLATFORM != "cpu" else "cpu8") + "." + name)
        texts = {".hlo.txt.gz": compiled.as_text(), ".mlir.gz": lowered.as_text(debug_info=True)}
        for ending, text in texts.items():
            with gzip.GzipFile(prefix + ending, "wb", mtime=0) as f:
                f.write(text.replace(os.path.abspath(__file__), "step.py").encode())
        with open(prefix + ".json", "w") as f:
            json.dump(config, f, indent=1)
            f.write("\n")
        print(f"profile {prefix}.hlo.txt.gz --model {prefix}.json --plan {plan},microbatch={B // np.prod([n for a, n in axes.items() if a != 'tensor'])},optimizer=sgd,gradient=bf16"
              f" --batch {B * T} --seq {T} --mesh {','.join(f'{a}={n}' for a, n in axes.items())}", flush=True)


main()
