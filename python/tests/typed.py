"""What a type checker sees of the package: mypy --strict."""
import scalemodel as sm

answer = sm.train("llama-3.1-8b", on="tpu-v5e:4x4", batch=512e3, plan={"tensor": 4}, top=2)
page: str = answer.text(80)
rows: list[dict[str, object]] = sm.serve({"model_type": "llama"}, on="h100-sxm:2").rows()
swept: sm.Sweep = sm.sweep(sm.train, "llama-3.1-8b", on=["tpu-v5e:4x4"], batch="512k")
version: str = sm.__version__
