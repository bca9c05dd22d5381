"""Read the gate of a store that is not calibrated: from ``gate.toml`` of its profile, else a baseline."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from carag.errors import InvalidArgument
from carag.policy import Profile
from carag.policy.shipped import GATE_FILE
from carag.policy.toml_lines import Toml, a_number
from carag.retrieval.confidence.gate import BASELINE, ConfidenceGate

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self


_BASELINE_FILE: Final = "baseline.toml"
_MEASURED: Final = "edgar"
"""The profile whose documents ``python -m bench.embedders`` measures thresholds on."""
_Count = Annotated[int, Field(ge=0)]


class Calibration(BaseModel):
    """A threshold, and how many questions it declined when it was measured."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    threshold: Annotated[float, Field(ge=-1, le=1)]
    measured_on: Annotated[str, Field(pattern=r"^[ -~]+$", max_length=200)]
    """The documents, in words."""
    calibrated: bool
    """Whether these documents are like those that the profile is for."""
    in_scope: _Count
    """Questions that the documents answer."""
    in_scope_declined: _Count
    out_of_scope: _Count
    """Questions that the documents do not answer."""
    out_of_scope_declined: _Count

    @model_validator(mode="after")
    def _counts(self) -> Self:
        if self.in_scope_declined > self.in_scope or self.out_of_scope_declined > self.out_of_scope:
            raise ValueError("more questions were declined than asked; give the counts of one measurement")
        return self


class _Point(BaseModel):
    """The baseline for a number of passages, and what it declined over all corpora when it was measured."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    passages: Annotated[int, Field(ge=1)]
    threshold: Annotated[float, Field(ge=-1, le=1)]
    corpora: _Count
    in_scope: _Count
    in_scope_declined: Annotated[float, Field(ge=0, le=1)]
    """A share, because the passages other than the one that answers were drawn many times."""
    out_of_scope: _Count
    out_of_scope_declined: Annotated[float, Field(ge=0, le=1)]


class _Baselines(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    schema_: Annotated[Literal[1], BeforeValidator(a_number)] = Field(alias="schema")
    measured_on: str
    embedder: dict[str, list[_Point]]


class _GateFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    schema_: Annotated[Literal[1], BeforeValidator(a_number)] = Field(alias="schema")
    embedder: Annotated[dict[str, Calibration], Field(max_length=100)] = {}
    reader: Annotated[dict[str, Calibration], Field(max_length=100)] = {}
    """Thresholds of readers (:mod:`carag.generation.reader`), by name."""


def calibrations_of(profile: Profile) -> Mapping[str, Calibration]:
    """Return calibrations by the embedder's name, none without ``gate.toml``; InvalidArgument if that is not valid."""
    text = profile.reading.get(GATE_FILE)
    return {} if text is None else _read(text).embedder


def reader_thresholds_of(profile: Profile) -> Mapping[str, float]:
    """Return the least score that answers, by the reader's name; errors as for :func:`calibrations_of`."""
    text = profile.reading.get(GATE_FILE)
    return {} if text is None else {name: one.threshold for name, one in _read(text).reader.items()}


@cache
def _read(text: str) -> _GateFile:
    return Toml(GATE_FILE, text).read(_GateFile)


def gate_for(profile: Profile, embedder: str) -> ConfidenceGate:
    """Return the gate that a profile ships for a named embedder, or else a baseline, which says that it is one."""
    found = calibrations_of(profile).get(embedder)
    if found is not None:
        return ConfidenceGate(found.threshold, found.calibrated, found.measured_on)
    baselines = _baselines()
    points = tuple((one.passages, one.threshold) for one in baselines.embedder.get(embedder, ()))
    if not points:
        return ConfidenceGate(BASELINE, calibrated=False)
    return ConfidenceGate(points[-1][1], calibrated=False, measured_on=baselines.measured_on, points=points)


@cache
def _baselines() -> _Baselines:
    text = files("carag").joinpath("retrieval", "confidence", _BASELINE_FILE).read_text("utf-8")
    return Toml(_BASELINE_FILE, text).read(_Baselines)


def threshold_for(embedder: str) -> float:
    """Return the threshold of an embedder that was calibrated on SEC filings; InvalidArgument if this one was not."""
    found = calibrations_of(Profile.open(_MEASURED)).get(embedder)
    if found is None:
        raise InvalidArgument(
            f"no gate is calibrated for the embedder {embedder!r}; calibrate one on your own questions: "
            "carag gate calibrate"
        )
    return found.threshold
