"""Write answers from evidence: prompts, generators, and the guard that checks their drafts."""

from __future__ import annotations

from carag.generation.basis import basis_of
from carag.generation.bedrock import NovaMicro
from carag.generation.extractive import Extractive
from carag.generation.generator import Draft, Generator, Stop
from carag.generation.guarded import (
    ANSWERED,
    MODEL_CALLED,
    Answered,
    Citation,
    DeclineCode,
    Declined,
    GuardedGenerator,
    citation_of,
)
from carag.generation.local import LocalLlama
from carag.generation.marks import cited_positions
from carag.generation.openai import OpenAiGenerator
from carag.generation.own import own_generator
from carag.generation.registry import GENERATORS, generator_by_name

__all__ = [
    "ANSWERED",
    "GENERATORS",
    "MODEL_CALLED",
    "Answered",
    "Citation",
    "DeclineCode",
    "Declined",
    "Draft",
    "Extractive",
    "Generator",
    "GuardedGenerator",
    "LocalLlama",
    "NovaMicro",
    "OpenAiGenerator",
    "Stop",
    "basis_of",
    "citation_of",
    "cited_positions",
    "generator_by_name",
    "own_generator",
]
