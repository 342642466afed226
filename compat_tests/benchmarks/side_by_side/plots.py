"""The pictures of docs/benchmarks.md, drawn with matplotlib."""

from __future__ import annotations

from pathlib import Path
from statistics import median, quantiles
from typing import Any

from compat_tests.benchmarks.side_by_side.cases import CASES
from compat_tests.benchmarks.side_by_side.targets import IN_LOOP, IN_THREAD, RABBITMQ, SERVE

__all__ = ["PLOTS", "draw"]

IMAGES = Path(__file__).parents[3] / "docs" / "images"
PLOTS = {
    "benchmarks-pika.svg": "Rates with pika, relative to the best RabbitMQ",
    "benchmarks-aio-pika.svg": "Rates with aio-pika, relative to the best RabbitMQ",
}
"""The files, and what they show."""
_COLOURS = {
    IN_THREAD: "#1b6ca8",
    IN_LOOP: "#3fa7d6",
    SERVE: "#9bd1e5",
    **dict(zip(RABBITMQ, ("#f4a259", "#e07a3f", "#b5532a"), strict=True)),
}


def draw(found: dict[str, Any], folder: Path = IMAGES) -> None:
    """Draw all pictures of some results; without matplotlib those that are there stay.

    Bars are medians; the thin lines on them reach from one quartile to the other.
    """
    try:
        import matplotlib
    except ImportError:
        print(f"Without matplotlib (pip install '.[bench]') the pictures in {folder} stay as they are.")
        return
    # The same figures give the same file, and its text can be searched.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "fakeamqp"})
    for file, title in PLOTS.items():
        client = file.removeprefix("benchmarks-").removesuffix(".svg")
        _draw(found, f"{client}: ", title, folder / file)


def _draw(found: dict[str, Any], start: str, title: str, file: Path) -> None:
    from matplotlib.figure import Figure

    names = [case.name for case in CASES if case.name.startswith(start) and case.only is None]
    # From below to above, as the axis goes.
    cases = {name: found["cases"][name] for name in reversed(names) if name in found["cases"]}
    targets = [target for target in _COLOURS if any(target in each for each in cases.values())]
    if not targets:
        return
    figure = Figure(figsize=(9, 1 + 0.16 * len(cases) * (len(targets) + 1)), layout="constrained")
    axes = figure.add_subplot()
    height = 1 / (len(targets) + 1)
    for number, target in enumerate(targets):
        places, lengths, spreads = [], [], []
        for row, measured in enumerate(cases.values()):
            if target not in measured:
                continue
            rivals = [each for each in measured if each in RABBITMQ] or list(measured)
            best = min(median(measured[each]["time"]) for each in rivals)
            rates = [best / time for time in measured[target]["time"]]
            # Twice, because there must be two of them.
            low, middle, high = quantiles(rates * 2, n=4, method="inclusive")
            places.append(row - (number - (len(targets) - 1) / 2) * height)
            lengths.append(middle)
            spreads.append((middle - low, high - middle))
        axes.barh(
            places,
            lengths,
            height,
            color=_COLOURS[target],
            label=found["versions"].get(target, target) if target in RABBITMQ else target,
            xerr=list(zip(*spreads, strict=True)),
            error_kw={"elinewidth": 0.8, "ecolor": "#444444"},
        )
    axes.axvline(1, color="#444444", linewidth=0.8, linestyle="--")
    axes.set_yticks(range(len(cases)), [name.removeprefix(start) for name in cases])
    axes.set_ylim(-0.6, len(cases) - 0.4)
    axes.set_title(title)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    file.parent.mkdir(exist_ok=True)
    figure.savefig(file, metadata={"Date": None})
