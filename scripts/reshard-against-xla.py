#!/usr/bin/env python3
"""Random reshardings and sharded products, with the bytes that XLA's partitioner puts on the wire.

usage: reshard-against-xla.py [CASES] [SEED] [padded] > tests/reshard_xla.csv

`padded`: sizes that axes do not divide. jit takes and returns no such arrays, so that they are
constrained within the program, which returns the sum of the result's cosines; the all-reduce of
that number is not counted.

Needs JAX (any platform; it compiles for 16 host devices and runs nothing). Each line is a case of
`scalemodel matmul`: mesh, sizes, einsum, and the bytes that one chip receives in the compiled
program. They are counted as `matmul` counts them: bytes (n-1)/n of an all-gather or reduce-scatter,
twice that of an all-reduce, what a chip holds times (n-1)/n of an all-to-all, all of a permute.
"""
import os
import random
import re
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=16"
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

MESHES = ["X=4,Y=4", "X=2,Y=4", "X=4,Y=2", "X=2,Y=8", "X=2,Y=2,Z=4", "X=2,Y=2,Z=2", "X=4,Y=2,Z=2"]
PADDED = len(sys.argv) > 3 and sys.argv[3] == "padded"
PRODUCTS = [("IJ", "JK", "IK"), ("BIJ", "BJK", "BIK"), ("IJ", "JKN", "IKN"), ("IJ", "KJ", "IK")]
SIZES = {"B": 16, "I": 64, "J": 128, "K": 64, "L": 32, "N": 32}
if PADDED:
    SIZES = {"B": 13, "I": 50, "J": 131, "K": 61, "L": 30, "N": 27}
BYTES = {"f32": 4, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "pred": 1, "s8": 1, "u8": 1}


def shape_bytes(shape):
    total = 0
    for dtype, dims in re.findall(r"(\w+)\[([\d,]*)\]", shape):
        n = 1
        for d in dims.split(","):
            n *= int(d) if d else 1
        total += n * BYTES[dtype]
    return total


def group_size(line, chips):
    listed = re.search(r"replica_groups=\{\{([\d,]*)\}", line)
    if listed:
        return len(listed.group(1).split(","))
    named = re.search(r"replica_groups=mesh\[([^\]]*)\][^{]*\{([^}]*)\}", line)
    if named:
        sizes = dict(re.findall(r"'(\w+)'=(\d+)", named.group(1)))
        n = 1
        for axis, part in re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", named.group(2)):
            n *= int(part or sizes[axis])
        return n
    iota = re.search(r"replica_groups=\[(\d+),(\d+)\]", line)
    return int(iota.group(2)) if iota else chips


def wire_bytes(hlo, chips):
    total = 0.0
    pattern = re.compile(
        r" = (.*?) (all-gather|reduce-scatter|all-reduce|all-to-all|collective-permute)\(")
    for line in hlo.splitlines():
        found = pattern.search(line)
        if not found:
            continue
        result, op = shape_bytes(found.group(1)), found.group(2)
        if PADDED and op == "all-reduce" and found.group(1) == "f32[]":
            continue
        n = group_size(line, chips)
        if op == "collective-permute":
            total += result
        elif op == "reduce-scatter":
            total += result * (n - 1)
        else:
            total += {"all-gather": 1, "all-reduce": 2, "all-to-all": 1}[op] * result * (n - 1) / n
    return total


def flops(hlo):
    """Of the dots of one chip: 2 x output x contracted."""
    shapes = dict(re.findall(r"%([\w.\-]+) = (\w+\[[\d,]*\])", hlo))
    total = 0
    for out, left, contracted in re.findall(
            r" = (\w+\[[\d,]*\])\S* dot\((?:\w+\[[\d,]*\]\S* )?%([\w.\-]+).*?lhs_contracting_dims=\{([\d,]*)\}", hlo):
        def dims(shape):
            return [int(d) for d in shape[shape.index("[") + 1:-1].split(",") if d]
        n = int(np.prod(dims(out), dtype=np.int64))
        for d in contracted.split(","):
            n *= dims(shapes[left])[int(d)] if d else 1
        total += 2 * n
    return total


def random_array(dims, axes, sizes):
    """Each axis on a random dimension that it divides, or on none; major first in random order."""
    on = {d: [] for d in dims}
    left = {d: SIZES[d] for d in dims}
    order = list(axes)
    random.shuffle(order)
    for a in order:
        d = random.choice(list(dims) + [None]) if random.random() < 0.85 else None
        if d and (PADDED or left[d] % sizes[a] == 0):
            on[d].append(a)
            left[d] //= sizes[a]
    return on


def written(name, dims, on):
    return name + "[" + ",".join(d + ("_" + "".join(on[d]) if on[d] else "") for d in dims) + "]"


def spec(dims, on):
    return PartitionSpec(*[tuple(on[d]) if on[d] else None for d in dims])


def one_case(product):
    mesh_text = random.choice(MESHES)
    sizes = {a[0]: int(a[2:]) for a in mesh_text.split(",")}
    axes = list(sizes)
    chips = int(np.prod(list(sizes.values())))
    mesh = Mesh(np.array(jax.devices()[:chips]).reshape(list(sizes.values())), axes)
    dims = random.choice(PRODUCTS) if product else 2 * (random.choice(["IJ", "IJK"]),)
    on = [random_array(d, axes, sizes) for d in dims]
    if not product and on[0] == on[1]:
        return None
    text = " ".join(written(n, d, o) for n, d, o in zip("AB", dims[:-1], on))
    text += " -> " + written("C", dims[-1], on[-1])
    shardings = [NamedSharding(mesh, spec(d, o)) for d, o in zip(dims, on)]
    args = [jax.ShapeDtypeStruct([SIZES[i] for i in d], jnp.float32, sharding=None if PADDED else s)
            for d, s in zip(dims[:-1], shardings)]
    notation = ",".join(dims[:-1]) + "->" + dims[-1]
    if product:
        def f(*operands):
            return jnp.einsum(notation, *operands)
    else:
        def f(operand):
            return operand

    def constrained(*operands):
        put = jax.lax.with_sharding_constraint
        moved = [put(jnp.sin(put(x, s)), s) for x, s in zip(operands, shardings)]
        return jnp.sum(jnp.cos(put(f(*moved), shardings[-1])))
    jitted = jax.jit(constrained) if PADDED else jax.jit(f, out_shardings=shardings[-1])
    hlo = jitted.lower(*args).compile().as_text()
    used = sorted(set("".join(dims)))
    size_text = ",".join("%s=%d" % (d, SIZES[d]) for d in used)
    return mesh_text, size_text, re.sub(r"([ABC]\[)", r"fp32 \1", text), wire_bytes(hlo, chips), flops(hlo)


def main():
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    random.seed(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    print("# made by scripts/reshard-against-xla.py %s, JAX %s on CPU" %
          (" ".join(sys.argv[1:]), jax.__version__))
    print("# mesh;sizes;einsum;bytes that a chip receives;FLOPs of a chip")
    done = 0
    while done < cases:
        case = one_case(product=done % 2 == 1)
        if case:
            print("%s;%s;%s;%.0f;%d" % case, flush=True)
            done += 1


main()
