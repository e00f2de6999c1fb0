"""JAX: a plan's mesh and PartitionSpecs, and what a compiled function costs (needs jax)."""
import os
import re
import tempfile

_ARRAY = re.compile(r"^(?P<name>[^\[:]+)\[(?P<dims>[^\]]*)\]")


def sharding(text, axes):
    """The PartitionSpec of one array of the notation: sharding("w[D_X,F_Y]", {"X": "fsdp", "Y":
    "tensor"}) is PartitionSpec("fsdp", "tensor"). A dimension over several axes has a tuple."""
    from jax.sharding import PartitionSpec
    found = _ARRAY.match(text)
    if not found:
        raise ValueError(f"{text!r} is no array of the notation, such as w[D_X,F_Y]")
    spec = []
    for dim in filter(None, found["dims"].split(",")):
        over = [axes[letter] for letter in dim.partition("_")[2]]
        spec.append(None if not over else over[0] if len(over) == 1 else tuple(over))
    return PartitionSpec(*spec)


class Shardings:
    """What a plan is in JAX: axes (name: size), and the PartitionSpec of each array by piece and
    name: weights["layer"]["mixer.wq"], activations["layer"]["h"]."""

    def __init__(self, answer):
        axes = {one.subscript: one.axis for one in answer.mesh}
        self.axes = {one.axis: int(one.size) for one in answer.mesh}
        self.weights, self.activations = {}, {}
        for kind in answer.kinds:
            for line in kind.lines:
                for text in [*line.operands, *line.results]:
                    found = _ARRAY.match(text)
                    if found:
                        into = self.weights if text in line.weights else self.activations
                        into.setdefault(kind.piece, {}).setdefault(found["name"],
                                                                   sharding(text, axes))

    def mesh(self, devices=None):
        """A jax.sharding.Mesh of these axes over the devices (all there are)."""
        import jax
        import numpy
        devices = list(jax.devices() if devices is None else devices)
        size = 1
        for n in self.axes.values():
            size *= n
        if len(devices) < size:
            raise ValueError(f"the plan is for {size} devices, and there are {len(devices)}")
        shaped = numpy.array(devices[:size]).reshape(tuple(self.axes.values()))
        return jax.sharding.Mesh(shaped, tuple(self.axes))


def shardings(model, *, on, batch, plan=None, **options):
    """The mesh and the PartitionSpec of every array of the best plan, or of the one given."""
    import scalemodel
    return Shardings(scalemodel.model(model, program=True, on=on, batch=batch, plan=plan, **options))


def profile(compiled, *, on, **options):
    """What a compiled function costs on a system: profile(jax.jit(f).lower(x).compile(),
    on="tpu-v5e:2x4"). Takes what has as_text(), or the text of the module."""
    import scalemodel
    text = compiled if isinstance(compiled, str) else compiled.as_text()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "compiled.hlo.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return scalemodel.profile(path, on=on, **options)


def compare(compiled, answer, **options):
    """A compiled step of training beside the step that `answer`, of train, predicts of its best plan:
    time, FLOPs and the collectives array by array. An answer of profile, whose
    rows("against.parts") have what both do: other_* is predicted, this_* is compiled. The mesh's
    axes must have the names of plans (data, fsdp, tensor), as those of answer.jax().mesh() have."""
    asked = answer.step()
    return profile(compiled, **{**asked, **options})
