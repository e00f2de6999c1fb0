#!/usr/bin/env python3
"""Random chains of sharded einsums, partitioned by XLA and by scalemodel.

usage: chains-against-xla.py [--cases N] [--seed S] [--scalemodel PROGRAM] [--rows]

Needs JAX on CPU (pip install 'jax[cpu]'), which is given 8 devices. For each case: FLOPs of
products on a chip, and bytes that a chip sends, as a ring would: all-gather and reduce-scatter
(n-1)/n of the whole, all-reduce twice that, all-to-all (n-1)/n of what a chip holds, permute what
it holds. XLA is counted from the HLO of one partition, scalemodel from `matmul --json`. That takes the
plan of least expected time, so it is asked for eight A100s whose links are ten thousand times
slower: what takes least time sends least. --rows prints the cases as rows of tests/xla_chains.h.
"""
import argparse, json, os, random, re, subprocess, sys, tempfile

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

MESH = {"X": 2, "Y": 4}
DTYPE_BYTES = {"f32": 4, "bf16": 2, "pred": 1, "s32": 4, "f64": 8}
# operands > output, of one line or of several; t is made on the way
ONE_LINE = ["IJ,JK,KL>IL", "BIJ,JK,KL>BIL", "IJ,IK,KL>JL", "IJ,KJ,LK>LI", "IJ,JK,KL,LM>IM", "BIJ,JK,BIK>JK"]
TWO_LINES = [("BD,DF>BF", "BF,FD>BD"), ("BD,DF>BF", "BF,FE>BE"), ("ABD,DF>ABF", "ABF,FD>ABD"), ("BHT,BHS>BTS", "BTS,BHS>BTH")]


def random_axes(rng, dims):
    """Each axis on a dimension or none: {dim: "XY"}."""
    at = {}
    for axis in MESH:
        place = rng.randrange(len(dims) + 1)
        if place < len(dims):
            at[dims[place]] = at.get(dims[place], "") + axis
    return at


def written(name, dims, at, typed=False):
    inside = ",".join(d + ("_" + at[d] if d in at else "") for d in dims)
    return f"{name}[{inside}]:fp32" if typed else f"fp32 {name}[{inside}]"


def sharding(mesh, dims, at):
    return NamedSharding(mesh, PartitionSpec(*[tuple(at[d]) if d in at else None for d in dims]))


def made_by(spec):
    left, out = spec.split(">")
    return left.split(","), out


def case_of(rng, mesh):
    """(text, sizes, jitted function, shapes of its arguments)."""
    two = rng.random() < 0.5
    specs = list(rng.choice(TWO_LINES)) if two else [rng.choice(ONE_LINE)]
    letters = sorted(set("".join(specs)) - set(",>"))
    size = {d: rng.choice([64, 256, 1024, 4096]) for d in letters}
    operands, out = made_by(specs[0])
    inputs = list(operands)
    if two:
        more, out = made_by(specs[1])
        inputs.append(more[1])
    names = "pqrs"[: len(inputs)] if two else "PQRS"[: len(inputs)]
    at = [random_axes(rng, dims) for dims in inputs]
    out_at = random_axes(rng, out)
    while two and not out_at:  # in lines an output without axes is open
        out_at = random_axes(rng, out)
    if two:
        first = " ".join(written(n, d, a, True) for n, d, a in zip(names[:2], inputs, at))
        made = written("t", made_by(specs[0])[1], {}, True)
        second = written("y", out, out_at, True)
        text = f"{made} = {first}; {second} = {made} {written(names[2], inputs[2], at[2], True)}"
    else:
        text = " ".join(written(n, d, a) for n, d, a in zip(names, inputs, at))
        text += " -> " + written("Y", out, out_at)
    sizes = ",".join(f"{d}={size[d]}" for d in letters)

    def compute(*arrays):
        if not two:
            return jnp.einsum(specs[0].replace(">", "->"), *arrays, optimize="optimal")
        t = jnp.einsum(specs[0].replace(">", "->"), *arrays[:2])
        return jnp.einsum(specs[1].replace(">", "->"), t, arrays[2])

    jitted = jax.jit(
        compute,
        in_shardings=[sharding(mesh, d, a) for d, a in zip(inputs, at)],
        out_shardings=sharding(mesh, out, out_at),
    )
    shapes = [jax.ShapeDtypeStruct([size[d] for d in dims], jnp.float32) for dims in inputs]
    return text, sizes, jitted, shapes


def elements(shape):
    product = 1
    for n in shape.split(","):
        product *= int(n) if n else 1
    return product


def group_size(line):
    """Members of a group, in each of the forms that HLO has for groups."""
    named = re.search(r"replica_groups=mesh\[([^\]]*)\][^{]*\{([^}]*)\}", line)
    if named:
        axes = dict(re.findall(r"'(\w+)'=(\d+)", named.group(1)))
        parts = re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", named.group(2))
        product = 1
        for axis, part in parts:
            product *= int(part or axes[axis])
        return product
    iota = re.search(r"replica_groups=\[(\d+),(\d+)\]", line)
    if iota:
        return int(iota.group(2))
    return len(re.search(r"replica_groups=\{\{([\d,]+)\}", line).group(1).split(","))


def count_hlo(text):
    """FLOPs of the dots and bytes sent, of one partition."""
    shape, flops, sent = {}, 0.0, 0.0
    for line in text.splitlines():
        m = re.match(r"\s*(?:ROOT )?%?([\w.\-]+) = (.*?) ([\w\-]+)\((.*)", line)
        if not m:
            continue
        name, result, op, rest = m.groups()
        parts = re.findall(r"(\w+)\[([\d,]*)\]", result)
        shape[name] = parts[0][1] if parts else ""
        size = sum(elements(s) * DTYPE_BYTES.get(t, 4) for t, s in parts)
        n = group_size(line) if "replica_groups=" in line else 1
        if op == "dot":
            lhs = re.match(r"(?:\w+\[([\d,]*)\]\S* )?%?([\w.\-]+)", rest)
            left = (lhs.group(1) or shape.get(lhs.group(2), "")).split(",")
            dims = re.search(r"lhs_contracting_dims=\{([\d,]*)\}", line).group(1)
            over = 1
            for d in dims.split(","):
                over *= int(left[int(d)]) if d else 1
            flops += 2.0 * elements(parts[0][1]) * over
        elif op in ("all-gather", "all-to-all"):
            sent += size * (n - 1) / n
        elif op == "reduce-scatter":
            sent += size * (n - 1)
        elif op == "all-reduce":
            sent += 2.0 * size * (n - 1) / n
        elif op == "collective-permute":
            sent += size
    return flops, sent


def slow_chip():
    """A file with the chip, beside the catalogue's."""
    here = os.path.join(os.path.dirname(__file__), "../data/chips/a100-80.json")
    chip = json.load(open(here))
    chip["name"], chip["aliases"] = "slow-links", ""
    chip["tree"][0]["child_bytes_per_s_oneway"]["value"] /= 1e4
    file = tempfile.NamedTemporaryFile("w", suffix=".json", delete=False)
    json.dump(chip, file)
    file.close()
    return file.name


def count_ours(program, chip, text, sizes):
    mesh = ",".join(f"{a}={n}" for a, n in MESH.items())
    run = subprocess.run(
        [program, "matmul", text, "--mesh", mesh, "--dims", sizes, "--system", chip, "--on",
         "slow-links:8", "--json", "--top", "1"],
        capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{text} --dims {sizes}: {run.stdout}{run.stderr}")
    best = json.loads(run.stdout)["best"]
    sent = sum(s.get("wire_bytes", 0) for p in best["products"] for s in p["steps"])
    return best["flops_per_chip"], sent


def main():
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--cases", type=int, default=50)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--scalemodel", default="build/scalemodel")
    asked.add_argument("--rows", action="store_true")
    o = asked.parse_args()
    rng = random.Random(o.seed)
    devices = jax.devices()[:8]
    mesh = Mesh(__import__("numpy").array(devices).reshape(list(MESH.values())), tuple(MESH))
    won = lost = 0
    chip = slow_chip()
    for _ in range(o.cases):
        text, sizes, jitted, shapes = case_of(rng, mesh)
        flops, sent = count_hlo(jitted.lower(*shapes).compile().as_text())
        our_flops, our_sent = count_ours(o.scalemodel, chip, text, sizes)
        less = flops <= our_flops * 1.000001 and sent < our_sent * 0.999
        more = our_flops <= flops * 1.000001 and our_sent < sent * 0.999
        lost += less
        won += more
        if o.rows:
            print(f'    {{"{text}", "{sizes}", {flops:.0f}, {sent:.0f}}},')
        else:
            print(f"{'XLA' if less else 'ours' if more else '-':5} {text}  {sizes}  "
                  f"XLA {flops:.4g} FLOPs {sent:.4g} B, ours {our_flops:.4g} FLOPs {our_sent:.4g} B")
    os.unlink(chip)
    print(f"{o.cases} cases: at no more FLOPs XLA sends less in {lost}, scalemodel in {won}",
          file=sys.stderr if o.rows else sys.stdout)


main()
