"""Pictures of answers: the library's own where a verb draws one, else matplotlib's."""
import io
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
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)


def of(answer):
    """See Answer.plot."""
    if answer.svg:
        return Picture(answer.svg)
    from . import _verbs
    from ._ask import ask
    verb = next(v for v in _verbs.described()["verbs"] if v["name"] == answer.words[0])
    if any(row["name"] == "plot" for row in verb["options"]):
        import os
        return Picture(ask([*answer.words, f"--plot={os.devnull}"]).svg)
    if answer.words[0] != "train":
        raise ValueError(f"there is no picture of {answer.words[0]!r}")
    return Picture(figure=training(answer))


def _figure(**options):
    from matplotlib.figure import Figure  # no window and no global state
    return Figure(layout="constrained", **options)


def training(answer):
    """Where the step of each plan goes, and what lies in the memory of its fullest chip."""
    plans = answer.rows("plans")
    figure = _figure(figsize=(10, 1.8 + 1.0 * len(plans)))
    time, memory = figure.subplots(1, 2)
    for axes, prefix, scale, skip in ((time, "breakdown_s.", 1.0, ()),
                                      (memory, "memory_bytes.", 1e9,
                                       ("total", "capacity", "host", "host_capacity"))):
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
    for i, plan in enumerate(plans):
        words = textwrap.fill(plan["plan"].replace(",", ", "), 95)
        time.text(0, i - 0.27, words, fontsize="xx-small", va="bottom", in_layout=False)
    time.set_xlabel("a step, s")
    memory.axvline(plans[0]["memory_bytes.capacity"] / 1e9, color="black", linestyle="--")
    memory.set_xlabel("memory of a chip, GB (dashed: all)")
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
