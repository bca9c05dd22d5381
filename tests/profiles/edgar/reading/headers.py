"""Fictional submissions with EDGAR's field names."""

from __future__ import annotations

NUMBER = "0009999999-24-000007"


def header(form: str, period: str, *, items: tuple[str, ...] = (), extra: str = "") -> str:
    """The header of an Irish semiconductor company's filing of 2 May 2024; ``extra`` follows the business address."""
    described = "".join(f"ITEM INFORMATION:\t\t{item}\n" for item in items)
    return f"""<SEC-HEADER>{NUMBER}.hdr.sgml : 20240502
<ACCEPTANCE-DATETIME>20240502163105
ACCESSION NUMBER:\t\t{NUMBER}
CONFORMED SUBMISSION TYPE:\t{form}
CONFORMED PERIOD OF REPORT:\t{period}
{described}FILED AS OF DATE:\t\t20240502

FILER:

\tCOMPANY DATA:
\t\tCOMPANY CONFORMED NAME:\t\t\tEXAMPLE HOLDINGS PLC
\t\tCENTRAL INDEX KEY:\t\t\t0009000001
\t\tSTANDARD INDUSTRIAL CLASSIFICATION:\tSEMICONDUCTORS [3674]
\t\tSTATE OF INCORPORATION:\t\t\tL2

\tFILING VALUES:
\t\tSEC FILE NUMBER:\t001-09999

\tBUSINESS ADDRESS:
\t\tSTATE:\t\t\tL2
{extra}</SEC-HEADER>
"""


def document(kind: str = "10-K", text: str = "Item 1. Business", tags: str = "") -> str:
    """A document of a submission; ``tags`` are further lines after its type."""
    return f"<DOCUMENT>\n<TYPE>{kind}\n{tags}<TEXT>\n{text}\n</TEXT>\n</DOCUMENT>\n"
