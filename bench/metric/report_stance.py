"""Lay out what ``python -m bench.metric.answers`` measures of the variant stance."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["stance"]

_HEAD: Final = """\
## 0. The variant `stance`: it judges, or abstains

Written by `python -m bench.metric.answers` without the rest: what parts 1, 3 and 4 say of `stance` and `stance-head` is
of the rule before, which called compliant what nothing contradicted.

### Stated answers about the AI Act

One sentence each, half of them violations, with the verdict it deserves, over all articles and annexes. *Stated*: the
rule was made with them. *Blind*: written before the rule too, and measured when it was done; since then the rule was
changed twice, to abstain more: now a rule supports only what it accounts for word by word, and *blind* was looked at
when that was made. Brackets are 95 % intervals of Wilson.

| set | n | decided | of these right | violations called COMPLIANT |
|---|---|---|---|---|
"""
_CONTRACTS: Final = """
### ContractNLI, test part, three ways (NO_VERDICT counted as not mentioned)

Brackets, here and below, as in the other parts. Of a requirement that it never learnt `stance` is now silent more often
(before, 0.433 and 0.420): the first rule took whatever a contract mentions for support. The row of requirements not
learnt, and that of `stance` on AIReg-Bench below, were measured before the last change, which abstains more.

| system | macro-F1 | binary macro-F1 |
|---|---|---|
"""
_DOCUMENTATION: Final = """
### AIReg-Bench: n = {n} excerpts that the experts decide, of which {compliant} compliant

NO_VERDICT and IRRELEVANT are counted as wrong. The regression learns from the excerpts of the seven other uses.

| system | accuracy | kappa | compliant / not / irrelevant / no verdict |
|---|---|---|---|
"""


def stance(found: dict[str, Any]) -> str:
    """Return the part; nothing if it was not measured."""
    if (part := found.get("stance")) is None:
        return ""
    rows = [
        f"| {name} | {part[name]['n']} | {_share(part[name]['decided'])} | {_share(part[name]['right of decided'])} "
        f"| {_share(part[name]['violations called COMPLIANT'])} |\n"
        for name in ("stated", "blind")
    ]
    known = found["three-way"]["figures"]
    systems = part["contracts"] | {name: known[name] for name in ("always the majority", "TF-IDF regression")}
    contracts = [
        f"| {name} | {_shown(one['macro-F1'])} | {_shown(one['binary macro-F1'])} |\n"
        for name, one in systems.items()
    ]
    by_excerpt = part["documentation"]
    (ours,) = by_excerpt["figures"].values()
    said = " / ".join(str(count) for count in ours["said"].values())
    documentation = [
        f"| {name} | {_shown(one['accuracy'])} | {_shown(one['kappa'])} | {counts} |\n"
        for name, one, counts in (
            ("stance", ours, said),
            ("always the majority", by_excerpt["always compliant"], ""),
            ("TF-IDF regression", by_excerpt["TF-IDF regression"], ""),
        )
    ]
    head = _DOCUMENTATION.format(**by_excerpt)
    return "".join([_HEAD, *rows, _CONTRACTS, *contracts, head, *documentation, "\n"])


def _share(found: list[float]) -> str:
    count, low, high = found
    return f"{count:.0f} [{low:.2f}, {high:.2f}]"


def _shown(one: dict[str, Any]) -> str:
    return f"{one['value']:.3f} [{one['low']:.3f}, {one['high']:.3f}]"
