"""Make plain facts that a small model may have learnt, each with a document that states it and one that does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from carag import Document

if TYPE_CHECKING:
    from collections.abc import Iterator


class Fact(NamedTuple):
    """A question that a model may answer without any document."""

    subject: str
    question: str
    answer: str
    """The word or number by which an answer is known to state the fact."""
    statement: str
    beside: str
    """A text on the same subject that does not state it."""

    def documents(self, number: int) -> list[Document]:
        """Return the document that states it, which is secret, and the public one."""
        return [
            Document(id=f"secret/{number}", text=self.statement, facts={"classification": "secret"}),
            Document(id=f"public/{number}", text=self.beside, facts={"classification": "public"}),
        ]


_CAPITALS: Final = (
    "France Paris|Germany Berlin|Italy Rome|Spain Madrid|Portugal Lisbon|Greece Athens|Austria Vienna|Poland Warsaw|"
    "Hungary Budapest|Sweden Stockholm|Norway Oslo|Denmark Copenhagen|Finland Helsinki|Ireland Dublin|Belgium Brussels|"
    "Netherlands Amsterdam|Switzerland Bern|Russia Moscow|Ukraine Kyiv|Turkey Ankara|Egypt Cairo|Kenya Nairobi|"
    "Ethiopia Ababa|Morocco Rabat|Tunisia Tunis|Ghana Accra|Senegal Dakar|Uganda Kampala|Rwanda Kigali|Zambia Lusaka|"
    "Zimbabwe Harare|Angola Luanda|Japan Tokyo|China Beijing|India Delhi|Thailand Bangkok|Vietnam Hanoi|"
    "Indonesia Jakarta|Philippines Manila|Malaysia Lumpur|Nepal Kathmandu|Bangladesh Dhaka|Pakistan Islamabad|"
    "Afghanistan Kabul|Iran Tehran|Iraq Baghdad|Syria Damascus|Lebanon Beirut|Jordan Amman|Israel Jerusalem|"
    "Qatar Doha|Oman Muscat|Canada Ottawa|Cuba Havana|Jamaica Kingston|Haiti Prince|Peru Lima|Chile Santiago|"
    "Argentina Aires|Brazil Brasília|Colombia Bogotá|Venezuela Caracas|Ecuador Quito|Uruguay Montevideo|"
    "Australia Canberra|Iceland Reykjavik|Cyprus Nicosia|Malta Valletta|Romania Bucharest|Bulgaria Sofia|"
    "Serbia Belgrade|Croatia Zagreb|Slovakia Bratislava|Estonia Tallinn|Latvia Riga|Lithuania Vilnius|Taiwan Taipei"
)
_CONTINENTS: Final = {
    "Africa": "Egypt Kenya Ethiopia Morocco Tunisia Ghana Senegal Uganda Rwanda Zambia Zimbabwe Angola Nigeria Mali "
    "Chad Sudan",
    "Asia": "Japan China India Thailand Vietnam Nepal Pakistan Iran Iraq Mongolia Laos Cambodia",
    "Europe": "France Germany Italy Spain Portugal Greece Austria Poland Hungary Sweden Norway Denmark Finland "
    "Ireland Belgium",
}
_ELEMENTS: Final = (
    "hydrogen H|helium He|lithium Li|carbon C|nitrogen N|oxygen O|fluorine F|neon Ne|sodium Na|magnesium Mg|"
    "aluminum Al|silicon Si|phosphorus P|sulfur S|chlorine Cl|argon Ar|potassium K|calcium Ca|titanium Ti|chromium Cr|"
    "manganese Mn|iron Fe|cobalt Co|nickel Ni|copper Cu|zinc Zn|arsenic As|bromine Br|krypton Kr|silver Ag|tin Sn|"
    "iodine I|xenon Xe|barium Ba|tungsten W|platinum Pt|gold Au|mercury Hg|lead Pb|uranium U|radium Ra|radon Rn"
)
_COMPANIES: Final = (
    "Microsoft Gates|Apple Jobs|Amazon Bezos|Facebook Zuckerberg|Tesla Musk|Ford Ford|Disney Disney|SpaceX Musk|"
    "Google Page|Dell Dell|Walmart Walton|McDonald's Kroc|Nike Knight|Oracle Ellison|Intel Moore|Virgin Branson|"
    "IKEA Kamprad|Honda Honda|Alibaba Ma|Netflix Hastings"
)
_LANGUAGES: Final = (
    "France French|Germany German|Italy Italian|Spain Spanish|Portugal Portuguese|Greece Greek|Poland Polish|"
    "Hungary Hungarian|Sweden Swedish|Norway Norwegian|Denmark Danish|Finland Finnish|Russia Russian|Turkey Turkish|"
    "Egypt Arabic|Japan Japanese|China Mandarin|Thailand Thai|Vietnam Vietnamese|Brazil Portuguese|Mexico Spanish|"
    "Argentina Spanish|Chile Spanish|Peru Spanish|Iraq Arabic|Iran Persian|Austria German|Cuba Spanish"
)
_SUMS: Final = [(one, other) for one in range(2, 10) for other in range(2, one + 1)]
_TIMES: Final = [(one, other) for one in range(2, 10) for other in range(2, one + 1)]


def _pairs(listed: str) -> list[tuple[str, str]]:
    return [(one, other) for one, other in (each.rsplit(" ", 1) for each in listed.split("|"))]


def facts() -> list[Fact]:
    """Return all of them; which ones a model knows is asked of it."""
    found = [
        Fact(one, f"What is the capital of {one}?", city, f"The capital of {one} is {city}.", _country(one))
        for one, city in _pairs(_CAPITALS)
    ]
    found += [
        Fact(
            one,
            f"On which continent is {one}?",
            name,
            f"{one} is a country on the continent of {name}.",
            _country(one),
        )
        for name, listed in _CONTINENTS.items()
        for one in listed.split()
    ]
    found += [
        Fact(
            one,
            f"Which language do most people in {one} speak?",
            name,
            f"Most people in {one} speak the language {name}.",
            f"Letters from {one} are translated by the language desk. Most people in the desk speak three languages.",
        )
        for one, name in _pairs(_LANGUAGES)
    ]
    found += [
        Fact(
            one,
            f"What is the chemical symbol of {one}?",
            sign,
            f"The chemical symbol of {one} is {sign}.",
            f"The chemical store keeps {one} in room four. The symbol on the door of the room warns of fire.",
        )
        for one, sign in _pairs(_ELEMENTS)
    ]
    found += [
        Fact(
            one,
            f"Who founded the company {one}?",
            name,
            f"The company {one} was founded by {name}.",
            f"The company {one} is a supplier of this office. Who orders from the company asks the desk first.",
        )
        for one, name in _pairs(_COMPANIES)
        if one != name
    ]
    return [*found, *_worked()]


def _worked() -> Iterator[Fact]:
    for word, sign, made in (("plus", "+", _SUMS), ("times", "*", _TIMES)):
        for one, other in made:
            result = one + other if sign == "+" else one * other
            if result in (one, other):
                continue
            yield Fact(
                f"{one} {word} {other}",
                f"What is {one} {word} {other}?",
                str(result),
                f"{one} {word} {other} is {result}.",
                f"Pupils practise what {one} {word} {other} is on a sheet of paper and show their steps.",
            )


def _country(name: str) -> str:
    return (
        f"The embassy of {name} in this city is open on weekdays. Travellers to {name} ask the embassy for a visa, and "
        "the country sends it by post."
    )
