"""The package against the program: the same figures, the same errors; threads, forks, leaks."""
import doctest
import functools
import importlib
import json
import os
import pickle
import resource
import signal
import subprocess
import sys
import threading

import pytest
import scalemodel as sm

PROGRAM = os.environ.get("SCALEMODEL")
needs_program = pytest.mark.skipif(not PROGRAM, reason="SCALEMODEL does not name the program")
EINSUM = "bf16[B,D] bf16[D,F]"
SIZES = {"B": 128, "D": 4096, "F": 4096}

QUESTIONS = [
    lambda: sm.chip("tpu-v5p"),
    lambda: sm.chip(),
    lambda: sm.chip("h100-sxm", calibration=True, explain=True),
    lambda: sm.model("mixtral-8x7b", seq=8192),
    lambda: sm.model("llama-3.1-8b", program=True),
    lambda: sm.plan("fsdp=8,tensor=4,microbatch=2"),
    lambda: sm.roofline(EINSUM, on="tpu-v5e", dims=SIZES, critical="B"),
    lambda: sm.roofline(EINSUM, on="tpu-v5e", dims={**SIZES, "B": range(64, 513, 64)}),
    lambda: sm.einsum("A[I_X,J] B[J_X,K_Y] -> C[I_X,K_Y]", mesh={"X": 4, "Y": 4},
                      dims={"I": "8k", "J": 8192, "K": 8192}, on="tpu-v5e:4x4"),
    lambda: sm.collective("all-gather", "bf16[E_Y,F]", on="tpu-v5e:8x4", mesh={"X": 8, "Y": 4},
                          dims={"E": 2048, "F": 8192}, over="Y"),
    lambda: sm.train("llama-3.1-8b", on="tpu-v5e:4x4", batch="512k", seq=4096, threads=1),
    lambda: sm.train("llama-3.1-8b", on="h100-sxm:8", batch=1e6, threads=1,
                     plan={"fsdp": 8, "microbatch": 1, "seq": False}, explain=True),
    lambda: sm.serve("llama-3.1-8b", on="h100-sxm:2", prompt=1024, tpot=0.03),
    lambda: sm.serve("llama-3.1-8b", on="h100-sxm:2", weights=["int8", "bf16"], top=3),
    lambda: sm.simulate("llama-3.1-8b", on="h100-sxm:1", plan={"tensor": 1}, requests=50,
                        arrivals="poisson:4/s", ttft="1s"),
]


def without_clock(text):
    """Answers of a search say how long it took, which differs."""
    data = json.loads(text)
    data.get("search", {}).pop("seconds", None)
    return data


@needs_program
@pytest.mark.parametrize("ask", QUESTIONS)
def test_same_as_the_program(ask):
    answer = ask()
    out = subprocess.run([PROGRAM, *answer.words, "--json"], capture_output=True, text=True,
                         check=False)
    assert out.returncode == (0 if answer.ok else 1)
    if '"seconds"' in out.stdout:
        assert without_clock(out.stdout) == without_clock(answer.json)
    else:
        assert out.stdout == answer.json
    again = subprocess.run(["sh", "-c", answer.command_line().replace("scalemodel", PROGRAM, 1) + " --json"],
                           capture_output=True, text=True, check=False)
    assert without_clock(again.stdout) == without_clock(answer.json)


@needs_program
@pytest.mark.parametrize("words", [
    ["train", "llama-3.1-8", "--on", "h100-sxm:8", "--batch", "1M"],
    ["train", "llama-3.1-8b", "--on", "h100-sxm:8", "--batch", "1M", "--plan", "tensr=8"],
    ["roofline", "A[B", "--on", "tpu-v5e"],
    ["serve", "llama-3.1-8b", "--on", "h100-sxm:2", "--tpot", "30"],
    ["chip", "no-such-chip"],
    ["trian", "x"],
    ["model", "/no/such/config.json"],
])
def test_same_error_as_the_program(words):
    with pytest.raises(sm.ScalemodelError) as caught:
        sm.command(*words)
    out = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)
    assert out.returncode == caught.value.status and not out.stdout
    assert out.stderr.rstrip("\n").removeprefix("scalemodel: ") == str(caught.value)


def test_error_has_its_place():
    with pytest.raises(sm.ScalemodelError) as caught:
        sm.train("llama-3.1-8b", on="h100-sxm:8", batch="1M", plan={"tensr": 8})
    error = caught.value
    assert (error.source, error.line, error.column, error.span) == ("--plan", 1, 1, 5)
    assert "tensor" in error.sentence and isinstance(error, ValueError)


def test_arguments_that_python_refuses():
    with pytest.raises(TypeError, match=r"train\(\) has no argument 'bach'; the nearest is 'batch'"):
        sm.train("llama-3.1-8b", on="h100-sxm:8", bach="1M")
    with pytest.raises(TypeError):
        sm.serve("llama-3.1-8b", on="h100-sxm:2", eager="yes")
    with pytest.raises(ValueError):
        sm.chip("tpu\0v5p")


def test_answers_are_mappings_with_attributes():
    answer = sm.chip("tpu-v5p")
    assert answer.command == answer["command"] == "chip"
    assert answer.to_dict() == json.loads(answer.json) == dict(pickle.loads(pickle.dumps(answer.to_dict())))
    with pytest.raises(AttributeError):
        answer.nothing
    with pytest.raises(AttributeError):
        answer.x = 1


def test_a_config_is_a_model():
    config = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
              "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100,
              "tie_word_embeddings": False}

    class Config:
        def to_dict(self):
            return config

    assert sm.model(config).params == sm.model(Config()).params == 95040


def test_a_negative_answer_is_no_error():
    answer = sm.train("llama-3.1-70b", on="h100-sxm:1", batch="64k")
    assert not answer.ok and not answer and answer.text()


def test_rows_and_pictures():
    answer = sm.serve("llama-3.1-8b", on="h100-sxm:2", plot=True)
    assert answer.svg.startswith("<svg") and answer.plot()._repr_svg_() == answer.svg
    assert len(answer.rows()) == len(answer.frontier) > 3
    assert answer.rows()[0]["tpot_s.expected"] == answer.frontier[0].tpot_s.expected
    trained = sm.train("llama-3.2-1b", on="h100-sxm:2", batch="64k", timeline=True)
    assert json.loads(trained.timeline) and trained.svg is None


def test_progress_stops_a_search():
    seen = []

    def stop(fraction, best):
        seen.append((fraction, best))
        raise KeyboardInterrupt

    answer = sm.train("llama-3.1-8b", on="h100-sxm:8x8", batch="4M", progress=stop, threads=1)
    assert len(seen) == 1 and 0.0 <= seen[0][0] <= 1.0
    assert answer.search.optimal is False or not answer.ok

    def wrong(fraction, best):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        sm.train("llama-3.1-8b", on="h100-sxm:8x8", batch="4M", progress=wrong)


def test_ctrl_c_answers_with_the_best_so_far(tmp_path):
    """A signal, as a terminal sends it, while a long search runs."""
    (tmp_path / "ask.py").write_text("""
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
import scalemodel as sm
seen = []
def told(fraction, best):
    if not seen:
        print("searching", flush=True)
    seen.append(fraction)
answer = sm.train("deepseek-v3", on="h800:2048x8", batch="64M", chips="1024..16384", threads=1, progress=told)
print(answer.search.optimal, answer.ok, len(answer.pareto), flush=True)
""")
    child = subprocess.Popen([sys.executable, str(tmp_path / "ask.py")], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "searching\n"
    child.send_signal(signal.SIGINT)
    optimal, ok, plans = child.stdout.readline().split()
    assert child.wait() == 0 and (optimal, ok) == ("False", "True") and int(plans) > 0


def test_ctrl_c_ends_what_has_no_best_so_far(request):
    """A sweep has what it has; a simulation has no half answer."""
    def stop(fraction, best):
        raise KeyboardInterrupt

    swept = sm.sweep(sm.train, "llama-3.1-8b", on=["h100-sxm:8x8", "h200:8x8"], batch="4M", progress=stop, threads=1)
    assert len(swept) == 1 and swept.items[0][1].interrupted
    request.addfinalizer(functools.partial(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler)))
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        sm.simulate("llama-3.1-8b", on="h100-sxm", plan="tensor=1", qps=2, requests=500000)


def test_answers_go_to_other_processes():
    answer = sm.train("llama-3.2-1b", on="h100-sxm:2", batch="64k", plan="fsdp=2", timeline=True)
    again = pickle.loads(pickle.dumps(answer))
    assert type(again) is type(answer) is sm.TrainAnswer and not answer.interrupted
    assert (again.json, again.csv, again.text(), again.timeline) == (answer.json, answer.csv, answer.text(), answer.timeline)
    assert again.rows() == answer.rows() and "fsdp" in again.explain()


def test_eight_threads():
    alone = [without_clock(ask().json) for ask in QUESTIONS[:12]]
    wrong = []

    def work(shift):
        for i in range(len(alone)):
            at = (i + shift) % len(alone)
            if without_clock(QUESTIONS[at]().json) != alone[at]:
                wrong.append(at)

    threads = [threading.Thread(target=work, args=(shift,)) for shift in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_fork_after_import():
    expected = sm.roofline(EINSUM, on="tpu-v5e", dims=SIZES).json
    child = os.fork()
    if child == 0:
        same = sm.roofline(EINSUM, on="tpu-v5e", dims=SIZES).json == expected
        sm.train("llama-3.2-1b", on="h100-sxm:2", batch="64k")
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_no_leak():
    def some():
        for _ in range(300):
            sm.roofline(EINSUM, on="tpu-v5e", dims=SIZES).text()
            try:
                sm.chip("nothing")
            except sm.ScalemodelError:
                pass

    some()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    some()
    some()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096  # KiB


def test_steps_of_an_engine_are_those_of_simulate():
    asked = {"on": "h100-sxm:1", "plan": {"tensor": 1}, "prompt": 1000, "output": 1}
    engine = sm.Engine("llama-3.1-8b", **asked)
    simulated = sm.simulate("llama-3.1-8b", **asked, arrivals="uniform:1/s", requests=1,
                            timeline=True)
    steps = [e["dur"] for e in json.loads(simulated.timeline)["traceEvents"] if e["ph"] == "X"]
    assert 1e6 * engine.step_time([(1000, 0)]) == pytest.approx(steps[0], rel=1e-6)
    assert sm.step_time(engine, [(1, 500)] * 8) < sm.step_time(engine, [(1, 50000)] * 8)
    for wrong in ([], [(0, 5)], [(1, -1)], [(float("nan"), 0)]):
        with pytest.raises(sm.ScalemodelError, match="step"):
            engine.step_time(wrong)
    assert engine.step_time([(1, 500)]) > 0.0
    with pytest.raises(TypeError, match="bach"):
        sm.Engine("llama-3.1-8b", on="h100-sxm:1", bach=3)
    with pytest.raises(ValueError, match="fits"):
        sm.Engine("llama-3.1-70b", on="h100-sxm:1", plan={"tensor": 1})


def test_measurements_come_with_the_package():
    assert sm.validate(kind="gemm", by="chip").to_dict()


def test_sweep():
    swept = sm.sweep(sm.train, ["llama-3.2-1b", "llama-3.1-8b"], on=["tpu-v5e:4x4", "nothing:3"],
                     batch="512k")
    rows = swept.rows()
    assert [(row["model"], row["on"]) for row in rows][:2] == [("llama-3.2-1b", "tpu-v5e:4x4"),
                                                               ("llama-3.2-1b", "nothing:3")]
    assert rows[0]["step_time_s.expected"] < rows[2]["step_time_s.expected"]
    assert "unknown chip" in rows[1]["error"]
    assert repr(swept).startswith("Sweep over model, on: 4 answers, 2 of them errors")


def test_sweep_has_the_fleet_of_each_rate():
    swept = sm.sweep(sm.serve, "llama-3.1-8b", on="h100-sxm:8", tpot="30ms", qps=[5, 50])
    few, many = swept.rows()
    assert few["fleet.usd_per_hour"] < many["fleet.usd_per_hour"] and few["fleet.replicas"] < many["fleet.replicas"]
    assert many["plan"] == swept.items[1][1].best.plan


def test_rows_of_any_list():
    answer = sm.train("llama-3.1-8b", on="tpu-v5e:4x4", batch="512k", plan={"fsdp": 16, "microbatch": 1})
    assert answer.rows("plans.0.collectives")[0]["op"] == answer.plans[0].collectives[0].op
    assert answer.plans[0].mesh[0].to_dict()["parts"]
    step = answer.step()
    again = sm.train(step.pop("model"), **step)
    assert again.plans[0].step_time_s.expected == answer.plans[0].step_time_s.expected
    with pytest.raises(TypeError):
        sm.chip("tpu-v5e").step()


def test_every_verb_has_its_words():
    for name in ("chip", "model", "train", "serve", "simulate", "validate", "calibrate", "profile"):
        assert getattr(sm, name).__doc__ and name in sm.__all__
    with pytest.raises(sm.ScalemodelError, match="only the program"):
        sm.command("run", "matmul")


def test_examples_of_the_docstrings():
    for name in ("scalemodel", "scalemodel.sweep", "scalemodel.answer", "scalemodel.engine"):
        found = doctest.testmod(importlib.import_module(name))
        assert found.failed == 0


def test_frames():
    pandas = pytest.importorskip("pandas")
    frame = sm.train("llama-3.1-8b", on="tpu-v5e:4x4", batch="512k").to_frame()
    assert isinstance(frame, pandas.DataFrame) and frame["step_time_s.expected"].is_monotonic_increasing


def test_figures(tmp_path):
    pytest.importorskip("matplotlib")
    sm.train("llama-3.1-8b", on="tpu-v5e:4x4", batch="512k").plot().save(tmp_path / "train.png")
    sm.sweep(sm.train, "llama-3.2-1b", on="tpu-v5e:4x4", batch=["128k", "256k"]).plot(
        "step_time_s.expected").save(tmp_path / "s.png")
    sm.roofline(EINSUM, on="tpu-v5e", dims=SIZES).plot().save(tmp_path / "r.svg")
    assert "<svg" in (tmp_path / "r.svg").read_text()
    piped = sm.train("llama-3.2-1b", on="h100-sxm:4", batch="256k", plan={"pipeline": 4})
    axes = piped.plot("timeline").figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()][:5] == [*(f"stage {i}" for i in range(4)), "stage 3: ops"]
    assert axes.get_xlim()[1] >= 0.9 * piped.plans[0].step_time_s.expected
    for kind in ("breakdown", "memory"):
        assert len(piped.plot(kind).figure.axes) == 1
    simulated = sm.simulate("llama-3.1-8b", on="h100-sxm:1", plan={"tensor": 1}, qps=2, requests=20)
    simulated.plot("timeline").save(tmp_path / "timeline.png")
    with pytest.raises(ValueError, match="timeline"):
        piped.plot("nothing")
    with pytest.raises(ValueError, match="is SVG"):
        piped.plot("sensitivity").save(tmp_path / "sensitivity.png")
    assert "10 % more" in piped.plot("sensitivity").svg
    assert all((tmp_path / name).stat().st_size > 5000 for name in ("train.png", "s.png"))
