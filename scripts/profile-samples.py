#!/usr/bin/env python3
"""Programs for the tests of `profile`, compiled by JAX, with what is known of them.

  python3 -m venv VENV && VENV/bin/pip install jax        (libtpu too, to compile for TPUs)
  VENV/bin/python scripts/profile-samples.py tests/cli/inputs/profile [PLATFORM]

PLATFORM: cpu (8 devices, the default) or a topology that libtpu knows, such as v5e:2x4.

Each program is a step of training of a small stack of layers, written here, under one sharding. For each it
writes NAME.hlo.txt.gz (the compiled module; of the scan also as protobuf) and NAME.json: FLOPs of the matrix products that a device must do,
counted by hand from the sizes, and what XLA says of memory. Not part of the suite: its results are.
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
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P  # noqa: E402
import numpy as np  # noqa: E402

B, T, D, F, L = 16, 128, 256, 1024, 4


def layer(x, w):
    with jax.named_scope("mlp"):
        h = jnp.einsum("btd,df->btf", x, w["up"])
        return x + jnp.einsum("btf,fd->btd", jax.nn.silu(h), w["down"])


def loss_unrolled(ws, x):
    for i in range(L):
        with jax.named_scope(f"layer{i}"):
            x = layer(x, {k: v[i] for k, v in ws.items()})
    return jnp.mean(jnp.square(x.astype(jnp.float32)))


def loss_scanned(ws, x, remat=False):
    body = layer if not remat else jax.checkpoint(layer)
    x, _ = jax.lax.scan(lambda c, w: (body(c, w), None), x, ws)
    return jnp.mean(jnp.square(x.astype(jnp.float32)))


def step(loss, ws, x):
    value, grads = jax.value_and_grad(loss)(ws, x)
    return value, jax.tree.map(lambda w, g: w - 1e-3 * g.astype(w.dtype), ws, grads)


def devices():
    if PLATFORM == "cpu":
        return np.array(jax.devices()[:8])
    from jax.experimental import topologies
    name, shape = PLATFORM.split(":")
    return np.array(topologies.get_topology_desc(platform="tpu", topology_name=PLATFORM).devices[:8])


# name, axes of the mesh, loss, sharding of up, of down, of x; passes over the products of a layer
PROGRAMS = [
    ("dp", {"data": 8}, loss_unrolled, P(), P(), P("data"), 6),
    ("fsdp", {"fsdp": 8}, loss_unrolled, P(None, "fsdp", None), P(None, None, "fsdp"), P("fsdp"), 6),
    ("tp", {"tensor": 8}, loss_unrolled, P(None, None, "tensor"), P(None, "tensor", None), P(), 6),
    ("fsdp_tp", {"fsdp": 2, "tensor": 4}, loss_unrolled, P(None, "fsdp", "tensor"), P(None, "tensor", "fsdp"), P("fsdp"), 6),
    ("scan", {"fsdp": 8}, loss_scanned, P(None, "fsdp", None), P(None, None, "fsdp"), P("fsdp"), 6),
    ("scan_remat", {"fsdp": 8}, functools.partial(loss_scanned, remat=True), P(None, "fsdp", None),
     P(None, None, "fsdp"), P("fsdp"), 7),
]


def main():
    folder = sys.argv[1]
    for name, axes, loss, up, down, at, passes in PROGRAMS:
        mesh = Mesh(devices().reshape(tuple(axes.values())), tuple(axes))
        spec = lambda shape, p: jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, p))
        ws = {"up": spec((L, D, F), up), "down": spec((L, F, D), down)}
        out = (None, {"up": NamedSharding(mesh, up), "down": NamedSharding(mesh, down)})
        compiled = jax.jit(functools.partial(step, loss), out_shardings=out, donate_argnums=0).lower(
            ws, spec((B, T, D), at)).compile()
        memory, cost = compiled.memory_analysis(), compiled.cost_analysis()
        # Forward 2 products, backward 4; remat the first one of each layer again. The gradient of x is not needed:
        # where layers are apart, the first one leaves its last product out.
        products = passes * L - (loss is loss_unrolled)
        facts = {
            "program": name, "platform": PLATFORM, "jax": jax.__version__, "mesh": axes,
            "flops": products * 2 * B * T * D * F // 8,
            "xla_flops": cost.get("flops"),
            "argument_bytes": memory.argument_size_in_bytes, "temporary_bytes": memory.temp_size_in_bytes,
            "result_bytes": memory.output_size_in_bytes - memory.alias_size_in_bytes,
        }
        prefix = os.path.join(folder, (PLATFORM.replace(":", "-") if PLATFORM != "cpu" else "cpu8") + "." + name)
        text = compiled.as_text().replace(os.path.abspath(__file__), "step.py")
        with gzip.GzipFile(prefix + ".hlo.txt.gz", "wb", mtime=0) as f:
            f.write(text.encode())
        if name == "scan":
            with gzip.GzipFile(prefix + ".hlo.pb.gz", "wb", mtime=0) as f:
                f.write(compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto())
        with open(prefix + ".json", "w") as f:
            json.dump(facts, f, indent=1)
            f.write("\n")
        print(name, facts)


main()
