"""Pictures of answers: the library's own where a verb draws one, else matplotlib's."""
import io
import json
import os
import textwrap


class Picture:
    """What notebooks show, and what can be saved: an SVG, or a figure of matplotlib (.figure)."""

    def __init__(self, svg=None, figure=None):
        self._svg, self.figure = svg, figure

    @property
    def svg(self):
        if self._svg is None:
            text = io.StringIO()
            self.figure.savefig(text, format="svg")
            self._svg = text.getvalue()
        return self._svg

    def _repr_svg_(self):
        return self.svg

    def save(self, path):
        """As SVG; a figure also in the form that the name ends with: step.png, step.pdf."""
        if self.figure and not str(path).endswith(".svg"):
            self.figure.savefig(path)
            return
        if not str(path).endswith(".svg"):
            raise ValueError(f"{str(path)!r}: this picture is SVG; expected a name that ends with '.svg'")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)


def _asked(answer, option):
    """The same question with an output that was not asked for."""
    from ._ask import ask
    return ask([*answer.words, f"--{option}={os.devnull}"])


def of(answer, kind=None):
    """See Answer.plot."""
    verb = answer.words[0]
    kinds = {"train": {"breakdown": training, "memory": training, "timeline": timeline, "sensitivity": None},
             "simulate": {"timeline": timeline}}.get(verb, {})
    if kind is not None:
        if kind not in kinds:
            known = " or ".join(map(repr, kinds)) or "one picture"
            raise ValueError(f"there is no picture {kind!r} of {verb!r}, which has {known}")
        return Picture(figure=kinds[kind](answer, kind)) if kinds[kind] else Picture(_asked(answer, "plot").svg)
    if answer.svg:
        return Picture(answer.svg)
    if verb == "train" and getattr(answer, "plans", None):
        return Picture(figure=training(answer))
    from . import _verbs
    if any(row["name"] == "plot" for row in _verbs.verb_of(verb)["options"]):
        return Picture(_asked(answer, "plot").svg)
    raise ValueError(f"there is no picture of {verb!r}")


def _figure(**options):
    from matplotlib.figure import Figure  # no window and no global state
    return Figure(layout="constrained", **options)


def training(answer, kind=None):
    """Where the step of each plan goes, and what lies in the memory of its fullest chip."""
    plans = answer.rows("plans")
    figure = _figure(figsize=(5 if kind else 10, 1.8 + 1.0 * len(plans)))
    pictures = [("breakdown", "breakdown_s.", 1.0, ()),
                ("memory", "memory_bytes.", 1e9, ("total", "capacity", "host", "host_capacity"))]
    pictures = [picture for picture in pictures if kind in (None, picture[0])]
    several = figure.subplots(1, len(pictures), squeeze=False)[0]
    for axes, (what, prefix, scale, skip) in zip(several, pictures):
        names = [key[len(prefix):] for key in plans[0] if key.startswith(prefix)]
        left = [0.0] * len(plans)
        for name in (n for n in names if n not in skip):
            width = [(plan.get(prefix + name) or 0.0) / scale for plan in plans]
            axes.barh(range(len(plans)), width, height=0.5, left=left, label=name.replace("_", " "))
            left = [a + b for a, b in zip(left, width)]
        axes.set_ylim(len(plans) - 0.5, -0.6)
        axes.set_yticks([])
        axes.legend(fontsize="x-small", loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=3,
                    columnspacing=1, handlelength=1, frameon=False)
        if what == "memory":
            axes.axvline(plans[0]["memory_bytes.capacity"] / 1e9, color="black", linestyle="--")
        axes.set_xlabel("a step, s" if what == "breakdown" else "memory of a chip, GB (dashed: all)")
    for i, plan in enumerate(plans):
        words = textwrap.fill(plan["plan"].replace(",", ", "), 48 if kind else 95)
        several[0].text(0, i - 0.27, words, fontsize="xx-small", va="bottom", in_layout=False)
    return figure


def timeline(answer, _=None):
    """What `timeline=` writes for Perfetto: a lane for each stage or replica."""
    if not answer.timeline and answer.words[0] == "train":
        asked = answer.step()
        from . import train
        answer = train(asked.pop("model"), **asked, timeline=True)
    events = json.loads(answer.timeline or _asked(answer, "timeline").timeline)["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    busy = {e["tid"] for e in slices}
    lanes = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name" and e["tid"] in busy}
    figure = _figure(figsize=(10, 1.2 + 0.35 * len(lanes)))
    axes = figure.subplots()
    for i, kind in enumerate(dict.fromkeys(e["cat"] for e in slices)):
        for lane in lanes:
            spans = [(e["ts"] / 1e6, e["dur"] / 1e6) for e in slices if (e["cat"], e["tid"]) == (kind, lane)]
            axes.broken_barh(spans, (lane - 0.4, 0.8), facecolor=f"C{i}", edgecolor="white", linewidth=0.3 if len(spans) < 300 else 0,
                             label=kind if lane == min(lanes) else None)
    axes.set_yticks(list(lanes), list(lanes.values()), fontsize="small")
    axes.set_ylim(max(lanes) + 0.6, min(lanes) - 0.6)
    axes.set_xlabel("s")
    axes.legend(fontsize="x-small", loc="upper center", bbox_to_anchor=(0.5, -0.25 - 0.5 / len(lanes)), ncols=4, frameon=False)
    return figure


def lines(rows, x, y, names, **options):
    """One line of y over x for each combination of the other names."""
    figure = _figure(figsize=options.pop("figsize", (7, 4.5)))
    axes = figure.subplots()
    groups = {}
    for row in rows:
        if row.get(y) is not None:
            key = tuple(str(row[name]) for name in names if name != x)
            groups.setdefault(key, []).append((row[x], row[y]))
    if not groups:
        raise ValueError(f"no row has {y!r}")
    for key, points in groups.items():
        axes.plot(*zip(*points), marker="o", label=", ".join(key) or None, **options)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if any(groups):
        axes.legend(fontsize="small")
    return Picture(figure=figure)
