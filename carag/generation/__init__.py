"""Write answers from evidence: prompts, generators, and the guard that checks their drafts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.lazy import lazily

if TYPE_CHECKING:
    from carag.generation.basis import basis_of as basis_of
    from carag.generation.bedrock import NovaMicro as NovaMicro
    from carag.generation.extractive import Extractive as Extractive
    from carag.generation.generator import Draft as Draft
    from carag.generation.generator import Generator as Generator
    from carag.generation.generator import Stop as Stop
    from carag.generation.guarded import ANSWERED as ANSWERED
    from carag.generation.guarded import MODEL_CALLED as MODEL_CALLED
    from carag.generation.guarded import UNGATED as UNGATED
    from carag.generation.guarded import Answered as Answered
    from carag.generation.guarded import Citation as Citation
    from carag.generation.guarded import DeclineCode as DeclineCode
    from carag.generation.guarded import Declined as Declined
    from carag.generation.guarded import GuardedGenerator as GuardedGenerator
    from carag.generation.guarded import ToldCode as ToldCode
    from carag.generation.guarded import citation_of as citation_of
    from carag.generation.held.judge import Unheld as Unheld
    from carag.generation.local import LocalLlama as LocalLlama
    from carag.generation.marks import cited_positions as cited_positions
    from carag.generation.openai import OpenAiGenerator as OpenAiGenerator
    from carag.generation.own import own_generator as own_generator
    from carag.generation.reader.port import Reader as Reader
    from carag.generation.reader.port import own_reader as own_reader
    from carag.generation.registry import GENERATORS as GENERATORS
    from carag.generation.registry import READERS as READERS
    from carag.generation.registry import generator_by_name as generator_by_name
    from carag.generation.registry import reader_by_name as reader_by_name
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "basis": "basis_of",
            "bedrock": "NovaMicro",
            "extractive": "Extractive",
            "generator": "Draft Generator Stop",
            "guarded": "ANSWERED Answered Citation DeclineCode Declined GuardedGenerator MODEL_CALLED ToldCode UNGATED "
            "citation_of",
            "held.judge": "Unheld",
            "local": "LocalLlama",
            "marks": "cited_positions",
            "openai": "OpenAiGenerator",
            "own": "own_generator",
            "reader.port": "Reader own_reader",
            "registry": "GENERATORS READERS generator_by_name reader_by_name",
        },
    )
