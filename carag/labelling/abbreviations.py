"""Tell whether a full stop ends an abbreviation rather than a sentence: English, German, French, and Indian English.

Texts mix languages, so there is one list: ``Acme Ltd. The bank`` is two sentences, ``Acme Ltd. Mumbai`` part of one.
"""

from __future__ import annotations

import re
from typing import Final

_REACH: Final = 40
"""Characters examined before and after a full stop."""
_BRACKETS: Final = 400
"""Greatest number of characters between brackets."""


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


_TITLES: Final = _listed(
    "Adv Capt Col Dipl Dr Fr Frl Gen Gov Hon Hr Ing Justice Km Lt M Me Messrs Mgr Mlle MM Mme Mr Mrs Ms Mt "
    "Prof Rep Rev Rt Sen Sgt Sh Shri Smt"
)
"""Words that stand before a name; the name may be any capitalised word: ``Dr. No``, ``M. Le Goff``."""
_GOES_ON: Final = _listed(
    # English and Indian English
    "addl admin approx assoc asst atty cf commr dept distt excl govt incl intl natl notif regd regn resp secy "
    "sl supt viz vs "
    # German
    "abl abs abschn abzgl allg anh anl anm artt aufl az banz bd beschl betr bgbl bspw buchst bzgl bzw ca drs "
    "einschl entspr evtl fa fn gebr gem ggf ggü hrsg inkl insb kap lfd nr nrn rdnr rn rspr rz sog tel tz uabs "
    "unterabs urt verb vgl ziff zzgl "
    # French
    "alin cass env ets réf sté "
    # of several letters
    "a.k.a c.àd d.h e.g i.d.r i.e i.h.v i.r.o i.s.d i.s.v i.v.m p.ex w.e.f w.r.t z.b"
)
"""Words that never end a sentence."""
_BEFORE_NUMBER: Final = _listed(
    # English and Indian English
    "app appx apr art arts aug ch chs circ cl cls dec eq est feb fig figs fol fols jan jul jun mar no nos nov "
    "oct p para paras pars pp pt pts reg regs sch schs sec secs sect sep sept ser subs supp vol vols "
    # German
    "dez erg jän lit mär okt pos ss "
    # French
    "al ann avr bull chap déc fasc févr janv juil par éd "
    # currencies
    "aud cad chf cny eur gbp inr jpy sgd usd"
)
"""Words that are abbreviations only before a number or some other sign of a place; many are also whole words."""
_MAY_END: Final = _listed(
    "al anr assn av ave bd blvd bros cie cir civ co comm corp cos crim dgl dist div ed eds esq fax fed ff ges "
    "inc ins jr llc llp ltd max min mind mio mrd ord ors plc pty pub pvt rd re ref rs sr st stat ste tsd"
)
"""Words that may end a sentence, and do if the next word begins one."""
_PLACES: Final = re.compile(
    r"(?<!\w)(?:Annex|Appendix|Schedule|Form|Part|Class|Category|Table|Tier|Group|Type|Option|Level|Series|Exhibit|Chapter|"
    r"Section|Title|Item|Note|Rule|Article|Clause|Regulation|"
    r"Anhang|Anlage|Teil|Klasse|Gruppe|Kategorie|Tabelle|Artikel|Kapitel|Abschnitt|"
    r"Annexe|Tableau|Partie|Catégorie|Groupe|Formulaire|Titre|Chapitre|Point|lit\.|Buchst\.|al\.|Art\.|"
    r"Sec\.|No\.|Nr\.|§)\s$",
    re.IGNORECASE,
)
"""Things numbered by a letter, which is then not an initial: ``set out in Annex B.``"""
_NUMBER: Final = re.compile(r"\(?(?:\d{1,3}(?:\.\d{1,3})*[A-Za-z]?|[IVXL]{1,6}|[ivx]{1,5}|[A-Za-z])\)?\.")
_CODE: Final = re.compile(r"\bart\.\s[ADLR]\.$")
"""French codes number their articles like this: ``art. L. 511-33``."""
_ITEM: Final = re.compile(r"\bItem\s\d{1,2}[A-Z]?\.$", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\s(\[{\"'“‘’„«/–—-]+(?=\.$)")
_LETTERS: Final = re.compile(r"(?<![\w.])(?:[^\W\d_]\.(?:\s|-(?=à)|(?<=-)à-)?|à-)*[^\W\d_]\.$")
"""One letter, or several with full stops: ``J.``, ``i. V. m.``, ``c.-à-d.``"""
_BLANK: Final = re.compile(r"[\s-]")
_DOTTED: Final = re.compile(r"(?:[^\W\d_]{1,3}\.)+[^\W\d_]{1,4}")
_NO_VOWEL: Final = re.compile(r"[^\W\d_aeiouyäöüáéèêà]{2,5}", re.IGNORECASE)
_UNIT: Final = re.compile(r"(?:\d\s?|/)\w+\.$")
_DEGREE: Final = re.compile(r"\b(?:Dr|lic|[DM]ag)\.(?:\s[a-z]+\.){1,3}$")
_ORDINAL: Final = re.compile(
    r"\b(?:am|ab|bis|beim|im|vom|zum|zur|der|die|das|dem|den|des|jede[rsmn]?|seit|und|oder)\s\d{1,3}\.$",
    re.IGNORECASE,
)
_ORDINAL_OF: Final = re.compile(
    r"\s(?:Jan|Jän|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez|Senat|Kammer|Quartal|Halbjahr|Auflage|Abschnitt|Kapitel|"
    r"Titel|Teil|Tag|Werktag|Monat|Jahr|Unterabsatz|Spiegelstrich|Erwägungsgrund)"
)
_FIGURE: Final = re.compile(r"\s*[(\[]?[€$£₹]?\s?\d")
_PLACE: Final = re.compile(
    r"\s+[(\[]?(?:[IVXLC]{2,6}|[a-z]|[B-Z]|[AI](?=[-/.)]|\s\d|\sof\b))(?![\w'’])|\s+\([a-z\d]{1,4}\)|\s+[(\[]?§|\s*[-/]\w"
    r"|\s+[A-Z]{2,6}[./(-]\s?[\w(]"
)
_REFERENCE: Final = re.compile(r"\s?(?:Nos?\.|[A-Z]{2,6}\.|\d{1,4}\s?/\s?\d)")
"""How the reference number of a letter continues: ``DBX. No. CRD. BC. 60/20``."""
_FOLLOWS: Final = re.compile(
    r"[\"'”’“»)\]]*\s+[\"'“‘„«(\[]*(?P<word>[^\W\d_]+)(?P<mark>[.'’]?)(?:\s(?P<next>\w+))?"
)
_ELIDED: Final = _listed("C D J L N Qu S")
_STARTS: Final = _listed(
    # English
    "A After All Also An And Another Any As At Because Before Both But By Each Either Every Except For From He "
    "Her His However If In It Its Neither No Nothing On Or Other Otherwise Our Provided She Since So Some Such "
    "That The Their Then There These They This Those Though Thus To Under Unless Until Upon We What When Where "
    "Whether Which While Who With You Your "
    # German
    "Aber Alle Als Am Auch Auf Aus Bei Beide Da Daher Danach Das Dem Den Der Des Die Dies Diese Dieser Dieses "
    "Durch Ein Eine Einem Einen Einer Er Es Ferner Für Gegen Gilt Hat Ihr Ihre Im Ist Jede Jeder Jedes Kann "
    "Kein Keine Mit Muss Nach Nur Ob Oder Sie Sind So Sofern Soll Soweit Und Vom Von Vor Was Weitere Wenn Wer "
    "Wie Wir Wird Zu Zum Zur Über "
    # French
    "Au Aucun Aucune Aux Ce Cela Ces Cet Cette Chacun Chaque Dans De Des Du Elle Elles En Est Et Il Ils Je La "
    "Le Les Leur Lorsque Mais Ne Nous Nul On Ou Où Par Pour Quand Qui Sa Sans Sauf Se Ses Si Son Sous Sur Tous "
    "Tout Toute Toutes Un Une À"
)
"""Words that begin a sentence and are not names."""


def abbreviates(text: str, stop: int) -> bool:
    """Tell whether the full stop at ``text[stop - 1]`` belongs to an abbreviation, so that no sentence ends there."""
    *_, word = text[max(0, stop - _REACH) : stop].split()
    return (_NUMBER.fullmatch(word) is not None and _begins(text, stop - len(word))) or _is_known(text, stop)


def _begins(text: str, start: int) -> bool:
    """Tell whether a number begins a line or a sentence, alone or after the word it numbers (``Section 5.``)."""
    if start and not text[start - 1].isspace():
        return False
    ahead = text[max(0, start - _REACH) : start]
    if place := _PLACES.search(ahead):
        ahead = ahead[: place.start()]
    ahead = ahead.rstrip(" \t\u00a0\"'“‘„«(")
    if not ahead or ahead[-1] in "\n!?:;":
        return True
    return ahead[-1] == "." and not _is_known(text, text.rindex(".", 0, start) + 1)


def _is_known(text: str, stop: int) -> bool:
    """Tell whether the word before a full stop is an abbreviation there, or an ordinal."""
    before, behind = text[max(0, stop - _REACH) : stop], text[stop : stop + _REACH]
    if not (found := _WORD.search(before.rsplit(None, 1)[-1])) or not behind.strip():
        return False
    word, folded = found[0], found[0].casefold()
    letters = None if before[-3:-2].isalnum() else _LETTERS.search(before)  # as after most words
    joined = _BLANK.sub("", letters[0])[:-1].casefold() if letters else folded
    if letters and len(word) == 1 and _PLACES.search(before[:-2]) and not _CODE.search(before):
        return False
    if word in _TITLES or joined in _GOES_ON or (word[0].isdigit() and _ITEM.search(before)):
        return True
    if folded in _BEFORE_NUMBER and not (letters and word.isupper()):
        return bool(_FIGURE.match(behind) or _PLACE.match(behind))
    ends = not _in_sentence(text, stop) if behind[0] in ")]" else _starts(behind)
    figure = _FIGURE.match(behind) is not None
    if folded in _MAY_END or letters or _DOTTED.fullmatch(word) or _DEGREE.search(before):
        return figure or not ends
    if word.isdigit():
        return not ends and bool(_ORDINAL.search(before) or _ORDINAL_OF.match(behind))
    if word.isupper():
        return _REFERENCE.match(behind) is not None
    if _NO_VOWEL.fullmatch(word):
        return figure or not (ends or _UNIT.search(before))
    return figure and folded.endswith("str")


def _in_sentence(text: str, stop: int) -> bool:
    """Tell whether a bracketed remark that ends with the full stop stands inside a sentence: ``(once Acme Corp.)``."""
    at = max(text.rfind(opening, max(0, stop - _BRACKETS), stop) for opening in "([")
    return at > 0 and text[max(0, at - _REACH) : at].rstrip()[-1:] not in (*'.!?"”»', "")


def _starts(behind: str) -> bool:
    follows = _FOLLOWS.match(behind)
    if follows is None:
        return False
    word, mark = follows["word"], follows["mark"]
    if mark in ("'", "’"):
        return word in _ELIDED
    return word in _STARTS and mark != "." and (word, follows["next"]) != ("The", "Hague")
