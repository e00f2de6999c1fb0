"""What a type checker sees of the package: mypy --strict."""
import scalemodel as sm

answer = sm.train("llama-3.1-8b", on="tpu-v5e:4x4", batch=512e3, plan={"tensor": 4}, top=2)
page: str = answer.text(80)
rows: list[dict[str, object]] = sm.serve({"model_type": "llama"}, on="h100-sxm:2").rows()
swept: sm.Sweep = sm.sweep(sm.train, "llama-3.1-8b", on=["tpu-v5e:4x4"], batch="512k")
version: str = sm.__version__
plan = answer.plans[0]
tokens_a_day: float = plan.tokens_per_s_per_chip * plan.chips * 86400
moved: int = plan.collectives[0].count
best: sm.ServeAnswer = sm.serve("llama-3.1-8b", on="h100-sxm:2", qps=5)
cost: float = best.best.usd_per_million_tokens
