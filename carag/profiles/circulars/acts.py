"""Find what a sentence in a circular does to other circulars, by a table of verbs and their forms.

The object comes before the verb in "X stands repealed", and after it in "this circular supersedes X" and "in partial
modification of X". An act on a part, such as a paragraph, amends the whole. Negations, acts at another time or of a
law, and a mere "as amended from time to time" do not count.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from carag.labelling.document import ActKind
from carag.profiles.circulars.references import NUMBER


class Said(NamedTuple):
    """What a sentence does, in its words from ``start`` to ``end``."""

    kind: ActKind
    start: int
    end: int
    is_done_to: bool = False
    """Whether the object comes before the act: "X stands repealed"."""
    is_of_opening: bool = False
    """Whether the sentence names no object, but decides on the circular named at the opening."""
    compiles: bool = False


_VERBS: Final = {
    ActKind.WITHDRAWS: "withdraw/withdrawn repeal rescind revoke cancel/cancelled annul/annulled",
    ActKind.REPLACES: "supersede replace",
    ActKind.AMENDS: "amend modify/modified/modifies revise update substitute delete omit/omitted insert",
}
"""Base, participle and third person of the verbs; regular forms are left out."""
_NOUNS: Final = {
    ActKind.REPLACES: r"supersession|replacement",
    ActKind.AMENDS: r"(?:partial\s+)?modification|amendment",
}
_WHOLE: Final = (
    r"(?:circulars?|directions?|instructions?|guidelines|guidance\s+notes?|notifications?|master\s+\w+|MDs?|framework"
    r"|letters?|scheme)"
)
"""The possible objects of an act."""
PIECE: Final = re.compile(
    r"(?<!/)\b(?:para(?:graph|s)?\b\.?|sub-?para\w*|sections?|clauses?|footnotes?|words?|sentences?|definitions?"
    r"|(?:annex\w*|appendix)(?:\s+[-\dIVX]+)?\s+(?:to|of)\b|exemptions?|relaxations?|limits?|facility|requirements?"
    r"|conditions?|stipulations?)(?![^.]{0,12}\bstands?\b)",
    re.I,
)
"""Parts of a circular; an act on a part amends the whole."""
_BE: Final = (
    r"\b(?:stands?|is|are|be|been|being|may\s+be\s+treated\s+as)"
    r"(?:\s+(?!not\b|already\b|since\b|to\b|by\b|the\b)\w+,?){0,2}?\s+"
)
_BY_ANOTHER: Final = (
    r"(?!\s*(?:by|vide|through|in\s+terms\s+of|on|as\s+on)\b"
    r"(?!\s+(?:this|these|the\s+(?:following|issu)|revising|incl|incorp|insert|add|delet)))"
)
_DECIDED: Final = r"decided(?:,(?![^,]*\btime\b|[^,]*onetime)[^,.]{0,80},)?\s+to(?:,[^,.]{0,80},)?"
"""A one-time decision changes no rule."""


def _forms(kind: ActKind) -> list[tuple[re.Pattern[str], bool]]:
    """Return the verb forms of an act, and for each whether its object comes before it."""
    verbs = [verb.split("/") for verb in _VERBS[kind].split()]
    base = [verb[0] for verb in verbs]
    past = "|".join(verb[1] if verb[1:] else f"{verb[0].removesuffix('e')}ed" for verb in verbs)
    third = "|".join(verb[2] if verb[2:] else f"{verb[0]}s" for verb in verbs)
    doing = "|".join(f"{one.removesuffix('e')}ing" for one in base)
    will = "" if kind is ActKind.AMENDS else "shall|will|"  # "banks shall amend" is about their own policies
    done_to, acting = (
        [rf"{_BE}(?:{past})\b{_BY_ANOTHER}"],
        [
            rf"\b(?:hereby,?|{_DECIDED}|{will}{_WHOLE})\s+(?:(?:shall|will|also|hereby,?)\s+)*(?:{'|'.join(base)}|{third})\b"
        ],
    )
    if kind in _NOUNS:  # "withdrawal of" heads a withdrawal, or names a service
        acting.append(rf"\b(?:{_NOUNS[kind]})\s+of\b(?!\s+terms)")
    if kind is ActKind.AMENDS:
        done_to.append(r"\b(?:shall|may|will)\s+(?:now\s+)?be\s+read\s+as\b")
    else:
        acting.append(rf"\band\s+(?:{third})\b")
        done_to.append(rf"\b{_WHOLE}\s+(?:{past})\s+(?:by\s+this|with\s+the\s+issu)")
    if kind is ActKind.REPLACES:
        acting.append(rf"\b(?:{doing})\s+(?:the|all|any|earlier|existing)\b")
    if kind is ActKind.WITHDRAWS:
        done_to.append(
            r"\b(?:ceases?\s+to|no\s+longer)\s+(?:(?:be\s+)?(?:applicable|in\s+force|operative|valid)|apply|have\s+effect)"
        )
    return [(re.compile(form, re.I), form in done_to) for form in [*done_to, *acting]]


_FORMS: Final = [(kind, form, is_done_to) for kind in _VERBS for form, is_done_to in _forms(kind)]
REISSUES: Final = re.compile(
    r"\b(?:this|these|(?:the\s+)?enclosed|it\s+may\s+be\s+noted\s+that\s+the)\s+(?:revised\s+|updated\s+)?(?:Master\s+)?(?:Circular|Direction|Guidance\s+Note)s?\b"
    r"[^.]{0,120}?\b(?:consolidate|update)s?\s"
    r"|\battached\s+is\s+the\s+revised\s+Master\b|\bcompiled\s+in\s+this\b|\brevised\s+and\s+updated\s+the\s+Master\b|\bupdated\s+Master\s+(?:Circular|Direction)"
    r"|\bMaster\s+(?:Circular|Direction)s?\s+ha(?:s|ve)\s+been\s+(?:\w+\s+)?updated\s+(?:by|to)\s+incorporat",
    re.I,
)
"""The circular is a new issue of the circular named at its opening, or else a compilation."""
_CHANGES: Final = re.compile(
    r"(?<!subject\sto\sthe\s)\bfollowing\s+(?:\S+\s+){0,2}?(?:amendments|modifications|changes)\b"
    r"|\b(?P<lists>amendments?|modifications?|changes)\s+(?:to\s+[^.]{0,60}?\s+)?(?:is|are|being|been|have)\s+(?:\w+\s+){0,2}?(?:carried\s+out|made|effected)\b"
    r"|\bmodified\s+para\w+|\bnow\s+being\s+(?:revised|changed|raised|reduced)\b|\bas\s+(?:amended|modified|revised)\s+(?:is|are)\b",
    re.I,
)
_DECIDES: Final = re.compile(
    rf"\b{_DECIDED}\s+(?:\w+\s+)?(?:revise|review|raise|increase|enhance|extend|reduce|lower|shift|align|expand|include|relax|allow|permit|defer|dispense|discontinue|remove|rationali[sz]e|do\s+away)\b"
    r"|\bha(?:s|ve)\s+(?:\w+\s+)?been\s+(?:\w+\s+)?(?:extended|raised|increased|enhanced|reduced|lowered|relaxed|deferred)\b"
    r"|\brevised\s+(?:\w+\s+){1,5}?(?:is|are)\s+(?:given|furnished|enclosed|annexed|set\s+out|as\s+(?:under|follows))\b"
    r"|\bdecided\s+as\s+(?:under|follows)|\b(?:decided|directed|clarified)\s+that\b[^.]{0,80}?\b(?:aforementioned|aforesaid|above|existing|said)\b"
    r"|\bit\s+is\s+(?:\w+\s+)?directed\b|\bhereby\s+permitted\b|\b(?:will|shall|would)\s+now\s+(?:be|mean|read)\b",
    re.I,
)
_NOT_SAID: Final = re.compile(
    r"\b(?:not|nor|neither|may|might|already|since|continue|was|were|had|such|any|herewith)\b[^.;,]{0,24}$"
    r"|\b(?:to|can|could|should|would|must)\s*$"
    r"|\b(?:if|whether|unless|until|where(?:ver)?|in\s+case)\b(?:(?!\.\s|;|,\s\D).)*$"
    r"|\b(?:licen[cs]e|registration|approval|authori[sz]ation|certificate|permission|recognition|recommend\w*|propos\w+|suggest\w*|requests?|requested|draft|nothing|without)\b(?:(?!\.\s|;).)*$"
    r"|\bprior\s+to[^.;,]{0,30}$|\bthis\s+provision\s[^.;,]{0,12}$",
    re.I | re.S,
)
"""Words before an act that deny it, make it conditional, or place it in another time."""
_SAYS_NOTHING: Final = re.compile(
    r"(?:as|and)\s+(?:amended|updated|modified|revised)\s+(?:from\s+time|on|as|up\s*to|vide)|from\s+time\s+to\s+time"
    r"|\(?(?:amended|updated|substituted|inserted|deleted|modified)\s+(?:vide|as\s+on|on)\b",
    re.I,
)
_BY_LAW: Final = re.compile(
    r"\b(?:Act|Rules|Regulations|Government|Gazette|UNSC|Security\s+Council|Schedule|Sanctions\s+List|designated\s+list)\b"
)
_FINITE: Final = (
    r"\b(?:is|are|was|were|has|have|had|shall|will|would|(?-i:may)|must|should|which|who|whereby|wherein)\b"
)
_NEXT_CLAUSE: Final = re.compile(rf",(?=[^,;]*{_FINITE})", re.I)
"""The beginning of a clause with its own verb, whose nouns are not acted on."""
_HEAD: Final = re.compile(r"\b(?:issued|granted|given|in\s+terms|as\s+per)\b", re.I)
"""The superseded text comes before such words; what follows them describes that text."""
_INSTRUMENT: Final = re.compile(r"\b(?:Master|Directions?,?\s+\d{4}|circular)")
_AN_OTHER: Final = re.compile(rf"\b{_WHOLE}\b", re.I)
_OTHER_OR_PIECE: Final = re.compile(rf"\b{_WHOLE}\b|{PIECE.pattern}|\bprovisions\b", re.I)
_ACTOR: Final = re.compile(
    r"(?:communicated|repealed|amended|notified|deleted|substituted|inserted|conveyed)\s+(?:vide|by|through|under)\s+(?:\S+\s+){0,4}$"
    r"|\bas\s+(?:advised|informed|stated|mentioned|explained)\s+(?:\w+\s+){0,2}?(?:vide|in|by|through|under)\s+(?:\S+\s+){0,4}$"
    r"|\b(?:pursuant\s+to|by\s+virtue\s+of|under\s+the\s+authority\s+of)\s+(?:\S+\s+){0,3}$"
    r"|in\s+terms\s+of\s+(?:\S+\s+){0,3}$|\b(?:issue|issuance|commencement)\s+of\s+(?:the\s+)?$|(?:defined\s+in|in\s+accordance\s+with|in\s+alignment\s+with|as\s+per|read\s+with)"
    r"\s+(?:the\s+|our\s+)?$",
    re.I,
)
_ADVICE: Final = (
    r"\b(?:vide|(?:advised|informed|communicated|conveyed|defined|prescribed|mentioned|stated|explained|referred)\s+"
    r"(?:\w+\s+){0,2}?(?:vide|in|to|by|through|under)|read\s+(?:\w+\s+)?with|in\s+(?:terms|pursuance|exercise|accordance)"
    r"|pursuant\s+to|under|as\s+per|by\s+virtue|authority)\b"
)
"""Words before a circular that is only cited, for advice, authority or definition."""
_LEAVES: Final = re.compile(rf"[,;](?!\d{{4}}\b)[^;]*?(?:{_FINITE}|{_ADVICE})", re.I)
"""A comma before a clause with its own verb, or before a mere citation."""
_PREDICATE: Final = re.compile(rf"[^,;:]{{0,40}}?(?:{_FINITE}|\bappl(?:y|ies)\b|\bcontinues?\b)", re.I)
"""Words that turn the words before them into the subject of a clause."""
_JOINS: Final = re.compile(r"[,;/&]|\b(?:and|or|as\s+well\s+as|along\s+with)\b", re.I)
_ASIDE: Final = re.compile(r"\([^()]*\)")
"""A parenthesis between two circulars, such as a title."""
_NAMED_ON: Final = re.compile(
    rf"\s*(?:(?:the|our|its|all|other|earlier|existing|also|those|and|Bank[’']s)\s+)*"
    rf"(?:{PIECE.pattern}[^,;]{{0,30}}?\s(?:of|in|to)\s+(?:the\s+|our\s+)?)?"
    rf"(?:(?:revised|Master|earlier|\w+\s+circular)\s+)?(?:{_WHOLE}(?:\s+letters?)?)?"
    r"(?:\s+(?:issued|contained|given|conveyed|circulated))?(?:\s+(?:vide|in|under|through))?(?:\s+(?:the|our|its))?"
    rf"(?:\s+{_WHOLE})?(?:\s*(?:Refs?|Nos?)\b)?[\s.:(‘“\"'-]*",
    re.I,
)
"""Words between "and" and one more number: "the instructions issued vide circular No."."""
_MAY_ACT: Final = re.compile(
    r"withdr|repeal|rescind|revok|cancel|annul|superse[ds]|replac|amend|modif|revis|updat|substitut|delet|omit|insert|cease"
    r"|longer|read\s+as|consolidat|compiled|decided|directed|permitted|clarified|changes|\bnow\b|\bbeen\b",
    re.I,
)
"""A quick test: a sentence without any of these words does not act."""
_NEAR: Final = 250
"""Characters before or after an act in which its object is named."""
_ANNEX: Final = r"(?P<{}>(?:Annex(?:ure)?|Appendix|Schedule)(?:\s*[-–]?\s*(?:[IVX]+|\d+|[A-Z])\b)?)"
LISTED: Final = re.compile(
    r"\b(?:listed|mentioned|given|enumerated|indicated|contained|specified|provided|detailed|set\s+out|as\s+per|shown)\s+(?:below\s+)?"
    rf"(?:at|in|under)\s+(?:the\s+)?{_ANNEX.format('part')}"
    rf"|\blist\s+of\s+(?:such\s+|these\s+|the\s+)?circulars[^.]{{0,80}}?\bin\s+(?:the\s+)?{_ANNEX.format('other')}",
    re.I,
)


def said_in(sentence: str) -> Said | None:
    """Return what a sentence does; None if it does not act. Withdrawing and replacing come before amending."""
    if not _MAY_ACT.search(sentence):
        return None
    plain = _SAYS_NOTHING.sub(lambda one: " " * len(one[0]), sentence)
    for kind, form, is_done_to in _FORMS:
        if kind is ActKind.AMENDS and (again := REISSUES.search(plain)) and not _denied(plain, again.start()):
            return Said(ActKind.REPLACES, *again.span(), compiles=True)
        for one in form.finditer(plain):
            near = (
                plain[max(0, one.start() - _NEAR) : one.start()] if is_done_to else plain[one.end() :][:_NEAR]
            )
            if not is_done_to and kind is not ActKind.AMENDS:
                near = _HEAD.split(near, maxsplit=1)[0]
                clause = _NEXT_CLAUSE.split(near, maxsplit=1)[0]
                near = clause if NUMBER.search(clause) else near
            named = (_OTHER_OR_PIECE if kind is ActKind.AMENDS else _AN_OTHER).search(
                f"{near} {one[0]} {near}"
            )
            by_law = kind is ActKind.AMENDS and _BY_LAW.search(near) and not _INSTRUMENT.search(near)
            if not (named or NUMBER.search(near)) or by_law or _denied(plain, one.start()):
                continue
            return Said(
                ActKind.AMENDS if PIECE.search(LISTED.sub("", near + one[0])) else kind,
                *one.span(),
                is_done_to,
            )
    # Laws and lists are amended too, so the object must be named.
    changed = _CHANGES.search(plain)
    if changed and (_AN_OTHER.search(plain) or not (changed["lists"] or _BY_LAW.search(plain))):
        return Said(ActKind.AMENDS, *changed.span())
    if decided := _DECIDES.search(plain):
        return Said(ActKind.AMENDS, *decided.span(), is_of_opening=True)
    return None


def _denied(sentence: str, at: int) -> bool:
    return bool(_NOT_SAID.search(sentence[max(0, at - _NEAR) : at]))


def is_actor(text: str, start: int) -> bool:
    """Tell whether the circular named here is the one that acted, or a standard that was followed."""
    return bool(_ACTOR.search(text[max(0, start - 60) : start]))


def goes_on(between: str) -> bool:
    """Tell whether words coordinate two circulars: "X and circular Y", but not "X, as advised vide Y"."""
    if not re.search(r"[^\W\d_]", between):
        return True
    between = _ASIDE.sub("", between)
    *_, joint = [None, *_JOINS.finditer(between)]
    if joint is None or not _NAMED_ON.fullmatch(between, joint.end()):
        return False
    return not re.search(rf"{_ADVICE}|{_FINITE}", between[: joint.start()], re.I)


def leaves_clause(between: str) -> bool:
    """Tell whether the words after an act leave the clause that names its object."""
    return bool(_LEAVES.search(between))


def begins_clause(rest: str) -> bool:
    """Tell whether these words make the text before them the subject of a clause of its own, as "shall apply" does."""
    return bool(_PREDICATE.match(rest))
