"""A question word and a German noun are no names; a company that no text speaks of is one in any language."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from carag import Document, Engine, Session
from carag.index import tokenize
from carag.retrieval.reading import read_question, unheard

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = {
    "de": "Die Frist für eine Auskunft beträgt 30 Tage. Kreditinstitute melden Kunden der Deutschen Bundesbank. Die "
    "Nordlicht AG zahlt Gebühren. Frau Anna Sommer leitet die Meldestelle.",
    "fr": "Le délai de réponse est de 30 jours. La Banque de France et l'ACPR contrôlent des assureurs. Orme SA paie.",
    "es": "El plazo de respuesta es de 30 días. El Banco de España vigila. Olmo SA paga a los clientes.",
    "it": "Il termine di risposta è di 30 giorni. La Banca d'Italia e l'IVASS vigilano. Olmo SpA paga.",
    "nl": "De termijn voor een antwoord is 30 dagen. De Nederlandsche Bank houdt toezicht. Iep BV betaalt.",
}
ANSWERED = {
    "de": [
        "Welche Frist gilt für Auskünfte?",
        "Wie lange dauert eine Auskunft?",
        "Welches Kreditinstitut meldet?",
        "Wann müssen Banken Kunden informieren?",
        "Für welche Anträge gilt die Frist?",
        "Welcher Stelle ist der Vorfall zu melden?",
        "Wer leitet die Meldestelle?",
        "Wie hoch sind die Kosten der Anfrage nach DSGVO?",
        "Was zahlt die Nordlicht AG?",
        "Dürfen Sie Daten an Dritte weitergeben?",
        "Innerhalb welcher Frist ist Auskunft zu erteilen?",
        "Leitet Frau Sommer die Meldestelle?",
        "Muss ein Unternehmen Auskunft geben, und in welcher Frist?",
    ],
    "fr": [
        "Quel délai s'applique ?",
        "Quelles banques sont contrôlées par l'ACPR ?",
        "Qu'est-ce que la Banque de France contrôle ?",
        "Combien de jours Orme SA a-t-elle ?",
        "L'ACPR contrôle-t-elle les assureurs ?",
        "Dans quel délai faut-il répondre ?",
    ],
    "es": [
        "¿Qué plazo se aplica?",
        "¿Cuál es el plazo del Banco de España?",
        "¿Cuántos días tiene Olmo SA?",
        "¿A quién paga Olmo SA?",
        "¿En qué plazo se responde?",
    ],
    "it": [
        "Quale termine si applica?",
        "Qual è il termine secondo l'IVASS?",
        "Quanti giorni ha Olmo SpA?",
        "Che cosa vigila la Banca d'Italia?",
        "Entro quale termine si risponde?",
    ],
    "nl": [
        "Welke termijn geldt?",
        "Wie is de toezichthouder, De Nederlandsche Bank?",
        "Hoeveel dagen heeft Iep BV?",
        "Wanneer moet men antwoorden?",
        "Binnen welke termijn betaalt Iep BV?",
    ],
}
DECLINED = {
    "de": [
        ("Was verdient Muster AG?", "Muster AG"),
        ("Welche Frist gilt für die Tricolor GmbH?", "Tricolor GmbH"),
        ("Wie viele Kunden hat die Firma Tricolor?", "Firma Tricolor"),
        ("Was verdient Herr Zentner?", "Herr Zentner"),
        ("Wer leitet die Brisling SE in Kassel?", "Brisling SE"),
        ("Welche Gebühren zahlt die ZENTIVA?", "ZENTIVA"),
        ("Was verdient Angela Muster?", "Angela Muster"),
    ],
    "fr": [
        ("Que gagne Tricolor SA ?", "Tricolor SA"),
        ("Quel est le délai fixé par Zentiva ?", "Zentiva"),
        ("Quels sont les revenus de M. Lenoir ?", "M. Lenoir"),
        ("Combien paie l'ENTREMONT ?", "ENTREMONT"),
    ],
    "es": [
        ("¿Cuánto gana Tricolor SA?", "Tricolor SA"),
        ("¿Qué plazo fija el Banco Zentiva?", "Banco Zentiva"),
        ("¿Quién dirige Brisling?", "Brisling"),
    ],
    "it": [
        ("Quanto guadagna Tricolor SpA?", "Tricolor SpA"),
        ("Quale termine fissa la Zentiva?", "Zentiva"),
        ("Chi dirige la Banca Brisling?", "Banca Brisling"),
    ],
    "nl": [
        ("Hoeveel verdient Tricolor BV?", "Tricolor BV"),
        ("Welke termijn geldt voor Zentiva?", "Zentiva"),
        ("Wie is de directeur van Brisling?", "Brisling"),
    ],
}


def found(language: str, question: str) -> tuple[str, ...]:
    spoken = set(tokenize(TEXTS[language]))
    return unheard(question, read_question(question), lambda word: spoken.issuperset(tokenize(word)))


def test_the_table_is_of_54_questions() -> None:
    """Fewer could not fail in every language."""
    assert sum(len(said) for table in (ANSWERED, DECLINED) for said in table.values()) == 54


@pytest.mark.parametrize(
    ("language", "question"), [(one, said) for one in ANSWERED for said in ANSWERED[one]]
)
def test_what_names_nobody_declines_nothing(language: str, question: str) -> None:
    """Question words at the beginning, formal pronouns, nouns in German, and names that a text speaks of."""
    assert found(language, question) == ()


@pytest.mark.parametrize(
    ("language", "question", "name"), [(one, *said) for one in DECLINED for said in DECLINED[one]]
)
def test_a_company_that_no_text_speaks_of_is_told_by_its_name(
    language: str, question: str, name: str
) -> None:
    """In German by its legal form, a title or its capitals; elsewhere by one capital."""
    assert found(language, question) == (name,)


def test_a_german_question_is_answered_and_one_on_a_stranger_is_declined(tmp_path: Path) -> None:
    """The message names the company, and never a question word."""
    clerk = Session(role="employee", purpose="work")
    with Engine.open(tmp_path / "store", profile="generic") as engine:
        engine.add(
            [
                Document(
                    id="de", text="Die Frist für Auskünfte beträgt 30 Tage.", bits=["INTERNAL"], language="de"
                )
            ]
        )
        assert "30 Tage" in engine.ask("Welche Frist gilt für Auskünfte?", clerk).text
        declined = engine.ask("Was verdient Muster AG?", clerk)
    assert "is about Muster AG." in declined.text
