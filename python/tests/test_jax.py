"""Meshes, PartitionSpecs and compiled functions of JAX, where JAX is there: eight devices of a CPU."""
import os
import subprocess
import sys

import pytest

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
if os.environ.get("SCALEMODEL_JAX"):  # where it was installed for these tests, they are not passed over
    import jax
else:
    jax = pytest.importorskip("jax")
import scalemodel as sm  # noqa: E402
import scalemodel.jax  # noqa: E402

P = jax.sharding.PartitionSpec


def test_arrays_of_the_notation():
    axes = {"X": "fsdp", "Y": "tensor"}
    assert scalemodel.jax.sharding("w[D_X,F_Y]", axes) == P("fsdp", "tensor")
    assert scalemodel.jax.sharding("x[B_XY,T,D]", axes) == P(("fsdp", "tensor"), None, None)
    with pytest.raises(ValueError):
        scalemodel.jax.sharding("w", axes)


def test_shardings_of_a_plan():
    s = scalemodel.jax.shardings("llama-3.1-8b", on="h100-sxm:8", batch="256k",
                                 plan={"fsdp": 4, "tensor": 2, "microbatch": 4})
    assert s.axes == {"fsdp": 4, "tensor": 2}
    assert s.mesh().shape == {"fsdp": 4, "tensor": 2}
    assert s.weights["layer"]["mixer.wq"] == P("fsdp", "tensor", None, None)
    assert s.weights["layer"]["ffn.wd"] == P("tensor", "fsdp")
    assert "h" in s.activations["layer"] and "h" not in s.weights["layer"]
    with pytest.raises(ValueError, match="8 devices"):
        s.mesh(jax.devices()[:2])


def test_the_mesh_of_an_answer():
    answer = sm.train("llama-3.1-8b", on="h100-sxm:8", batch="256k", plan={"fsdp": 4, "tensor": 2, "microbatch": 4})
    asked = scalemodel.jax.shardings("llama-3.1-8b", on="h100-sxm:8", batch=answer.batch.tokens, plan=answer.plans[0].plan)
    given = answer.jax()
    assert given.axes == {"fsdp": 4, "tensor": 2}
    assert (given.weights, given.activations) == (asked.weights, asked.activations)
    with pytest.raises(TypeError):
        sm.model("llama-3.1-8b").jax()


def test_a_compiled_function_has_a_price():
    mesh = jax.make_mesh((8,), ("data",))
    x = jax.ShapeDtypeStruct((1024, 512), "bfloat16", sharding=jax.sharding.NamedSharding(mesh, P("data")))
    w = jax.ShapeDtypeStruct((512, 2048), "bfloat16", sharding=jax.sharding.NamedSharding(mesh, P()))
    compiled = jax.jit(lambda x, w: x @ w).lower(x, w).compile()
    answer = scalemodel.jax.profile(compiled, on="tpu-v5e:2x4", mesh="data=8")
    assert answer.ok and sum(row["flops"] for row in answer.rows("ops")) == 2 * 128 * 512 * 2048
    text = scalemodel.jax.profile(compiled.as_text(), on="tpu-v5e:2x4", mesh="data=8")
    assert text.rows("ops") == answer.rows("ops")
    with pytest.raises(sm.ScalemodelError, match="module"):
        scalemodel.jax.profile("no module", on="tpu-v5e:2x4")


TOY = {"model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 8,
       "num_key_value_heads": 4, "vocab_size": 1024, "max_position_embeddings": 1024, "tie_word_embeddings": False}


def test_a_compiled_step_beside_its_plan(tmp_path):
    """The step that train --emit jax writes, compiled for eight devices, sends what the plan says."""
    answer = sm.train(TOY, on="tpu-v5e:2x4", batch="2048", seq=128, emit="jax",
                      plan={"data": 8, "zero": 0, "microbatch": 2, "recompute": "none", "gradient": "bf16", "optimizer": "sgd"})
    (tmp_path / "step.py").write_text(answer.emitted.text)
    subprocess.run([sys.executable, "step.py", "compiled.txt"], cwd=tmp_path, check=True, capture_output=True, timeout=300)
    compared = scalemodel.jax.compare((tmp_path / "compiled.txt").read_text(), answer)
    moves = [row for row in compared.rows("against.parts") if row["other_sent_bytes"] or row["this_sent_bytes"]]
    assert {row["part"] for row in moves} == {"all-reduce over data"}
    predicted, found = (sum(row[key] for row in moves) for key in ("other_sent_bytes", "this_sent_bytes"))
    assert predicted > 1e6 and predicted <= found <= 1.1 * predicted  # of K and V XLA reduces them in fp32 on a CPU
    with pytest.raises(TypeError, match="train"):
        scalemodel.jax.compare("", sm.chip("tpu-v5e"))
