"""Train the reader on this CPU, in bfloat16 where the processor multiplies it; seeded, and going on where it stopped.

    python -m bench.reader.train --shared PATH --fitz fitz_gov.whl --conj adversarial_train_15k.tsv --work DIR

It needs PyTorch and scikit-learn beside CARAG. The last line says where the weights are. To try them, put them in the
place of ``carag/generation/reader/weights.npz``, and their SHA-256 with another name of the reader into ``minilm.py``
beside it. Two runs on one machine give the same weights; on another processor sums are rounded differently.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter, defaultdict
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch.nn import functional

from bench.reader import area
from bench.reader.net import Net, padded, rate
from bench.reader.sources import Pair, every_pair, part
from carag.generation.reader.pairs import Encoded, Pairs

if TYPE_CHECKING:
    from collections.abc import Sequence


BATCH: Final = 32
_PEAK: Final = 1.5e-4
_HEAD_PEAK: Final = 1e-3
_DROPOUT: Final = 0.1
_WEIGHTS: Final = {"holds": 1.5, "stance": 1.0, "order": 0.7}
_SAVED: Final = 100
"""Steps between two checkpoints."""
_KEPT_BACK: Final = 0.04
"""Part of the pairs that is only judged, chosen by the first text."""


def main() -> None:
    """Train, or go on training."""
    parser = argparse.ArgumentParser(prog="python -m bench.reader.train", description=__doc__)
    for name in ("--shared", "--fitz", "--conj", "--work"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--epochs", type=float, default=3.0)
    parser.add_argument("--sources", nargs="*", help="by default all")
    parser.add_argument(
        "--start", type=Path, help="a checkpoint of an earlier run, whose weights this one begins with"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    options.work.mkdir(parents=True, exist_ok=True)
    pairs = every_pair(options.shared, options.fitz, options.conj, options.seed)
    pairs = [one for one in pairs if not options.sources or one.source in options.sources]
    held = [one for one in pairs if part(f"v{one.first}") < _KEPT_BACK]
    shown = [one for one in pairs if part(f"v{one.first}") >= _KEPT_BACK]
    print(
        len(shown),
        len(held),
        sorted(Counter((one.head, one.source, one.label) for one in shown).items()),
        flush=True,
    )
    net = Net()
    if options.start:
        net.load_state_dict(torch.load(options.start)["net"])
    train(net, encoded(shown), encoded(held), options)
    exported: dict[str, Any] = net.exported()
    np.savez_compressed(options.work / "reader.npz", **exported)
    print(options.work / "reader.npz")


def encoded(pairs: Sequence[Pair]) -> list[tuple[Pair, Encoded]]:
    """Encode pairs; of a long text its first window."""
    made = Pairs()
    return [(one, made.windows(one.first, one.second)[0]) for one in pairs]


def train(
    net: Net, shown: list[tuple[Pair, Encoded]], held: list[tuple[Pair, Encoded]], options: Any
) -> None:
    """Take every step from the last checkpoint on."""
    heads = [one for name, one in net.named_parameters() if name.startswith(("heads", "types"))]
    body = [
        one
        for name, one in net.named_parameters()
        if one.requires_grad and not name.startswith(("heads", "types"))
    ]
    optimizer = torch.optim.AdamW(
        [{"params": body, "peak": _PEAK}, {"params": heads, "peak": _HEAD_PEAK}],
        lr=_PEAK, weight_decay=0.01, betas=(0.9, 0.98),
    )  # fmt: skip
    steps, saved = int(options.epochs * len(shown) / BATCH), options.work / "checkpoint.pt"
    first = 0
    if saved.exists():
        kept = torch.load(saved)
        net.load_state_dict(kept["net"])
        optimizer.load_state_dict(kept["optimizer"])
        torch.set_rng_state(kept["random"])
        first = kept["step"]
    begin, losses = time.perf_counter(), defaultdict(list)
    batches = order(shown, steps, options.seed)
    for step in range(first, steps):
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * rate(step, steps)
        loss, each = loss_of(net, [shown[row] for row in batches[step]])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([*body, *heads], 1.0)
        optimizer.step()
        for name, value in each.items():
            losses[name].append(value)
        if (step + 1) % _SAVED == 0 or step + 1 == steps:
            state = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}
            torch.save(state | {"random": torch.get_rng_state()}, saved)
            pace = (step + 1 - first) * BATCH / (time.perf_counter() - begin)
            means = {name: round(float(np.mean(some[-200:])), 3) for name, some in losses.items()}
            judged = judge(net, held) if (step + 1) % (5 * _SAVED) == 0 or step + 1 == steps else ""
            print(f"step {step + 1} of {steps}: {pace:.0f} pairs/s, loss {means} {judged}", flush=True)


def order(shown: list[tuple[Pair, Encoded]], steps: int, seed: int) -> list[list[int]]:
    """Draw the batches of all steps: of similar lengths, in random order."""
    draw = Random(seed)  # noqa: S311 - draws data, no secret
    batches: list[list[int]] = []
    lengths = [len(one.ids) for _, one in shown]
    while len(batches) < steps:
        rows = [*range(len(shown))]
        draw.shuffle(rows)
        epoch = []
        for at in range(0, len(rows), 40 * BATCH):
            some = sorted(rows[at : at + 40 * BATCH], key=lengths.__getitem__)
            epoch += [some[start : start + BATCH] for start in range(0, len(some), BATCH)]
        draw.shuffle(epoch)
        batches += epoch
    return batches


def loss_of(net: Net, batch: list[tuple[Pair, Encoded]]) -> tuple[torch.Tensor, dict[str, float]]:
    """Return the weighted mean loss of a batch, and that of each head."""
    net.train()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = net(*padded([one for _, one in batch]), _DROPOUT)
    total, each = torch.zeros(()), {}
    for name, weight in _WEIGHTS.items():
        rows = [at for at, (pair, _) in enumerate(batch) if pair.head == name]
        if not rows:
            continue
        labels = torch.tensor([batch[at][0].label for at in rows])
        given = logits[name][rows].float()
        if name == "stance":
            loss = functional.cross_entropy(given, labels, label_smoothing=0.05)
        else:
            loss = functional.binary_cross_entropy_with_logits(given[:, 0], 0.05 + 0.9 * labels.float())
        total = total + weight * loss * len(rows) / len(batch)
        each[name] = float(loss.detach())
    return total, each


def judge(net: Net, held: list[tuple[Pair, Encoded]]) -> dict[str, float]:
    """Return the area under the curve of each head with two labels, the accuracy of stance, by source."""
    net.eval()
    scores: dict[tuple[str, str], list[tuple[int, Any]]] = defaultdict(list)
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        for at in range(0, len(held), BATCH):
            some = held[at : at + BATCH]
            logits = net(*padded([one for _, one in some]))
            for row, (pair, _) in enumerate(some):
                scores[pair.head, pair.source].append((pair.label, logits[pair.head][row].float().numpy()))
    found = {}
    for (head, source), rows in sorted(scores.items()):
        if head == "stance":
            found[f"{head}:{source}"] = float(np.mean([row.argmax() == label for label, row in rows]))
        else:
            yes, no = ([float(row[0]) for label, row in rows if label == one] for one in (1, 0))
            found[f"{head}:{source}"] = area(yes, no)
    return {name: round(value, 3) for name, value in found.items()}


if __name__ == "__main__":
    main()
