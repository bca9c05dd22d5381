"""Where readers could differ, three verifiers do not: canonical JSON, keys, signatures, paths and limits."""

from __future__ import annotations

import base64
import functools
import hashlib
import itertools
import json
import random
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.audit import (
    Checkpoint,
    InclusionProof,
    SigningKey,
)
from carag.audit.auditor.reader import LogReader
from carag.audit.tlog import merkle
from carag.audit.tlog.keys import MlDsaKey
from tests.audit.receipts import mutants
from tests.audit.receipts import test_two_verifiers as two
from tests.audit.receipts.alterations import altered, in_proof, signed_again
from tests.audit.receipts.page import Page, script
from tests.audit.receipts.test_three_verifiers import of_kind
from tests.sizes import examples

# -- canonical JSON


NEARLY_JSON = st.one_of(
    st.text('{}[]",:\\ub0129-+.eEtrufalsn_a \u00e9\ud7ff\U0001f600', max_size=24),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(1 << 54), 1 << 54) | st.floats() | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text("ab_1A\u00e9", max_size=3), inner, max_size=3)
        ),
        max_leaves=6,
    ).flatmap(lambda value: st.sampled_from([mutants.write(value), mutants.write(value, "escaped")])),
    st.sampled_from(
        [
            *(str(number) for number in mutants.NUMBERS),
            "-0",
            "1e3",
            "1.0",
            "1E+2",
            "1e21",
            "NaN",
            "Infinity",
            "01",
        ]
    ),
    st.sampled_from(mutants.TEXTS).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.integers(0, 40).map(lambda depth: "[" * depth + "]" * depth),
    st.integers(0, 40).map(lambda depth: '{"a":' * depth + "1" + "}" * depth),
    st.sampled_from(
        ['{"a":1,"a":1}', '{"b":1,"a":1}', '"\\ud800"', '"\\u0000"', '"\\u001F"', '"\\u001f"', '"\\/"']
    ),
)


@settings(max_examples=examples(100))
@given(NEARLY_JSON)
def test_what_is_canonical_json_is_the_same_for_both(page, text):
    """Duplicate keys, order, spellings of numbers and texts, depth, lone surrogates: by the same rules."""
    data = text.encode("utf-8", "surrogatepass")
    try:
        script.canonical(data, "it")
        wanted = True
    except script.CannotTell:
        wanted = False
    given = f"Uint8Array.from({json.dumps(list(data))})"
    read = f"(() => {{ try {{ canonical({given}, 'it'); return true }} catch {{ return false }} }})()"
    assert page.call(read) is wanted


@pytest.mark.parametrize("depth", [16, 17, 700, 100_000])
def test_no_depth_of_nesting_ends_the_page(page, key, depth):
    """It cannot tell, and says so."""
    nest = "[" * depth + "]" * depth
    for text in (nest, f'{{"format":{nest}}}', '{"a":' * depth + "1" + "}" * depth):
        assert page.says(text.encode() + b"\n", str(key.verifier))[0] == 2


def test_no_size_ends_the_page(page, key):
    """A byte too many is refused before it is read; a number of many digits, too."""
    vkey = json.dumps(str(key.verifier))
    said = page.call(f"verdictOn(new Uint8Array(MAX_BYTES + 1).fill(0x7b), {vkey}, '')")
    assert said == {"code": 2, "said": "cannot tell: the file has more than 67108864 bytes"}
    assert page.says(b'{"a":' + b"9" * 1_000_000 + b"}\n", str(key.verifier))[0] == 2


# -- keys, checkpoints and consistency proofs


def test_keys_are_read_alike(agreed, issued, build):
    """Several of one log, of several logs, twice, beside ML-DSA-44, misspelt, and lines signed by others."""
    data, vkey, *_ = issued
    other, foreign = SigningKey(build.ORIGIN, b"n" * 32), SigningKey("other.example", b"o" * 32).verifier
    quantum, both = MlDsaKey(build.ORIGIN, b"q" * 1312), f"{other.verifier}\n \n{vkey}\r\n"
    note = InclusionProof.parse(json.loads(data)["proof"]).checkpoint
    line = other.sign(note.text).signatures[0].to_line()
    signed, false, twice = (
        altered(data, lambda f, more=more: f.update(proof=f"{f['proof']}{more}\n"))
        for more in (line, f"{line[:-8]}AAAAAAA=", f"{line}\n{line}")
    )
    codes = [
        [agreed(file, keys) for keys in (vkey, str(other.verifier), both)] for file in (signed, false, twice)
    ]
    assert codes == [[0, 0, 0], [0, 1, 1], [2, 2, 2]]
    assert [agreed(data, keys) for keys in (vkey, f" {vkey}\t\n", f"{vkey}\n{quantum}", str(foreign))] == [
        0,
        0,
        0,
        2,
    ]


@pytest.mark.parametrize(
    "keys",
    [
        *(
            "",
            "log.example",
            "a+00000000+AAAA",
            "a+b+c+d",
            "{0}\n{0}",
            "{0}\n{1}",
            "\ufeff{0}",
            "{0}A",
            "x{0}",
        ),
        *("{2}", "{0}\n{2}A", "a b{0}", "\x1c{0}\x85x"),
    ],
)
def test_keys_that_are_none_are_read_by_neither(page, script_says, issued, keys):
    """And in the same words."""
    data, vkey, *_ = issued
    quantum = MlDsaKey(vkey.split("+")[0], b"q" * 1312)
    given_keys = keys.format(vkey, SigningKey("other.example", b"o" * 32).verifier, quantum)
    code, said = script_says(data, given_keys)
    assert (code, said) == (2, page.says(data, given_keys)[1])


def test_checkpoints_and_consistency_proofs_are_judged_alike(agreed, issued):
    """As the log wrote them, altered everywhere, and against a checkpoint of another size."""
    _, vkey, directory, old = issued
    with LogReader(directory, vkey=vkey) as reader:
        proof, new = reader.consistency(6), reader.checkpoint.to_text()
    assert (agreed(proof.encode(), vkey, old), agreed(proof.encode(), vkey, new)) == (0, 1)
    rng = random.Random(two.SEED)  # noqa: S311
    seen = Counter()
    for _ in range(examples(150, least=40)):
        file, kept = (with_a_change(text, rng) if rng.random() < 0.7 else text for text in (proof, old))
        seen[agreed(file.encode(), vkey, kept)] += 1
        seen[agreed(with_a_change(old, rng).encode(), vkey)] += 1
    assert min(seen[code] for code in (0, 1, 2)) > 0
    other = SigningKey("audit.example/one", b"k" * 32)
    for text in (
        "audit.example/two\n0\n" + "A" * 43 + "=\n",
        "no checkpoint\n",
        f"{other.name}\n01\n{'A' * 43}=\n",
    ):
        assert agreed(other.sign(text).to_text().encode(), str(other.verifier)) in {1, 2}


def with_a_change(text, rng):
    """Change, add or drop one character."""
    at = rng.randrange(len(text))
    more = rng.choice(
        ["", "", "A", "=", "\n", " ", "0", "\u2014", "\x00", "+", "'", '"', chr(ord(text[at]) ^ 1)]
    )
    return text[:at] + more + text[at + rng.randrange(2) :]


# -- signatures


def test_points_of_small_order_get_no_verdict(page, script_says):
    """On these RFC 8032 and browsers differ, so where the script verifies the page cannot tell."""
    ys = [int(y) for y in page.call("SMALL_ORDER.map(String)")]
    points = [
        p
        for y in ys
        for sign in (0, 1)
        if (p := script.point_decode((y | sign << 255).to_bytes(32, "little")))
    ]
    for point in points:
        eightfold = functools.reduce(lambda p, _: script.point_add(p, p), range(3), point)
        assert script.point_encode(eightfold) == script.point_encode(script.IDENTITY)
    assert len(points) == 8
    # Whatever the text, the identity as the key and as R and 0 as S fit the equation of RFC 8032.
    name, public = "log.example", script.point_encode(script.IDENTITY)
    note = Checkpoint(name, 0, hashlib.sha256(b"").digest()).to_text()
    typed = b"\x01" + public
    key_id = hashlib.sha256(name.encode() + b"\n" + typed).digest()[:4]
    vkey = f"{name}+{key_id.hex()}+{base64.b64encode(typed).decode()}"
    signature = base64.b64encode(key_id + public + bytes(32)).decode()
    file = f"{note}\n\u2014 {name} {signature}\n".encode()
    assert script_says(file, vkey) == (0, f"verified: {name} signed a checkpoint of 0 records")
    assert page.says(file, vkey) == (
        2,
        "cannot tell: the key or the signature has a point of small order, on which browsers differ",
    )


def test_a_signature_has_one_form_on_the_page(agreed, issued):
    """S + L verifies nowhere, nor does a signature that is cut or longer."""
    data, vkey, *_ = issued
    [encoded] = re.findall(r"\u2014 \S+ (\S+)\\n", data.decode())
    raw = base64.b64decode(encoded)
    s = int.from_bytes(raw[36:], "little") + script.L
    for other in (
        raw[:36] + s.to_bytes(32, "little"),
        raw[:-1],
        raw + b"\0",
        raw[:4] + b"\xff" * 32 + raw[36:],
    ):
        line = base64.b64encode(other).decode()
        changed = altered(data, in_proof(re.escape(encoded), line.replace("\\", r"\\")))
        assert agreed(changed, vkey) == 1


def test_points_are_decoded_alike(page):
    """RFC 8032 section 5.1.3: the same bytes are a point, at the edges and in between."""
    rng = random.Random(two.SEED)  # noqa: S311
    values = [
        0,
        1,
        2,
        script.P - 1,
        script.P,
        script.P + 1,
        (1 << 255) - 1,
        *(rng.getrandbits(256) for _ in range(60)),
    ]
    for value in values + [value | 1 << 255 for value in values]:
        data = (value % (1 << 256)).to_bytes(32, "little")
        found = page.call(f"pointY(Uint8Array.from({list(data)})) !== null")
        assert found is (script.point_decode(data) is not None), value


def test_what_an_engine_might_let_through_is_refused_before_it(issued):
    """S from L on, a signature of another length, an R that is not a point: even where the browser takes everything."""
    page = Page()
    page.call("(crypto.subtle.verify = async () => true, true)")
    good, low = bytes.fromhex(f"{'58' + '66' * 31}"), bytes(32)
    no_point = next(
        bytes([n]) + bytes(31) for n in range(2, 99) if script.point_decode(bytes([n]) + bytes(31)) is None
    )
    last, first = ((script.L - step).to_bytes(32, "little") for step in (1, 0))
    cases = [good + low, good + last, good + first, good + low + b"0", good, no_point + low]
    asked = ", ".join(
        f"ed25519Verify({in_page(good)}, new Uint8Array(), {in_page(signature)})" for signature in cases
    )
    with page.node:
        found = page.call(f"Promise.all([{asked}])")
        page.node.stdin.close()
    assert found == [True, True, False, False, False, False]


# -- edges


def in_page(data):
    return f"unbase64('{base64.b64encode(data).decode()}', '')"


def test_paths_hold_on_the_page_where_the_script_finds_them_to(page):
    """Every small proof, whole, cut and lengthened, under every index and size that somebody might claim for it."""
    leaves = [script.leaf_hash(bytes([n])) for n in range(6)]
    node = lambda level, n: script.tree_root(leaves[n << level : (n + 1) << level])  # noqa: E731
    changes = (
        lambda p: p,
        lambda p: p[:-1],
        lambda p: [*p, p[0] if p else leaves[0]],
        lambda p: [one[:31] for one in p],
    )
    asked, wanted = [], []
    for size in range(1, 7):
        root = script.tree_root(leaves[:size])
        for index, claimed, total, change in itertools.product(range(size), range(-1, 8), range(8), changes):
            path = list(change([*merkle.inclusion_proof(node, index, size)]))
            steps = list(change([*merkle.consistency_proof(node, index + 1, size)]))
            for name, arguments in (
                ("inclusionHolds", (leaves[index], claimed, total, path, root)),
                ("consistencyHolds", (claimed, total, steps, script.tree_root(leaves[: index + 1]), root)),
            ):
                asked.append([name, [as_given(one) for one in arguments]])
                wanted.append(getattr(script, NAMES[name])(*arguments))
    bytes_of = "(one) => unbase64(one, '')"
    read = f"Number.isInteger(it) ? BigInt(it) : Array.isArray(it) ? it.map({bytes_of}) : ({bytes_of})(it)"
    call = f"Promise.all({json.dumps(asked)}.map(([name, them]) => globalThis[name](...them.map((it) => {read}))))"
    assert page.call(call) == wanted
    assert sum(wanted) > 40


NAMES = {"inclusionHolds": "inclusion_holds", "consistencyHolds": "consistency_holds"}


def as_given(value):
    """Write an argument as JSON can carry it."""
    if isinstance(value, list):
        return [as_given(one) for one in value]
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def test_every_rule_has_the_same_edges(page):
    """Each rule by name, on the numbers at the ends of ranges and on texts that readers treat differently."""
    values = [number for number in mutants.NUMBERS if abs(number) <= script.MAX_INTEGER]
    values += [text for text in mutants.TEXTS if text != "\ud800"] + [
        "\U0001f600" * 200,
        "\U0001f600" * 201,
        None,
        [1, 2],
        [3, 1],
    ]
    pairs = [[value, rule] for rule in script.VALUES for value in values]
    found = page.call(f"{json.dumps(pairs)}.map(([value, rule]) => Boolean(fits(value, rule)))")
    assert found == [bool(script.fits(value, rule)) for value, rule in pairs]


@pytest.mark.parametrize(("count", "code"), [(99, 0), (100, 2)])
def test_a_note_has_a_hundred_signatures_for_all(agreed, issued, count, code):
    """And a signature line must have something after its key id."""
    data, vkey, *_ = issued
    lines = "".join(f"\u2014 other{n} AAAAAAA=\n" for n in range(count))
    assert agreed(altered(data, lambda f: f.update(proof=f["proof"] + lines)), vkey) == code
    assert agreed(altered(data, lambda f: f.update(proof=f"{f['proof']}\u2014 other AAAAAA==\n")), vkey) == 2


@pytest.mark.parametrize(("count", "code"), [(63, 1), (64, 2)])
def test_a_proof_has_sixty_three_hashes_for_all(agreed, issued, count, code):
    """With one more it cannot be read."""
    hashes = f"{base64.b64encode(bytes(32)).decode()}\n" * count
    assert agreed(altered(issued[0], in_proof(r"(index \d+\n)(\S+\n)+", rf"\1{hashes}")), issued[1]) == code


def test_a_text_of_one_letter_is_a_text(agreed):
    """Signed, and no checkpoint."""
    key = SigningKey("a", b"k" * 32)
    assert agreed(key.sign("a\n").to_text().encode(), str(key.verifier)) == 2


@pytest.mark.parametrize(("more", "code"), [(0, 0), (1, 1)])
def test_heads_may_end_with_the_text_for_all(agreed, originals, key, more, code):
    """And not after it."""
    fields = of_kind(originals, "query")
    heads = [[1, 2, 0, len(fields["hits"][1]["text"]) + more]]
    assert agreed(signed_again(fields, lambda it: it.update(heads=heads), key), str(key.verifier)) == code


@pytest.mark.parametrize(("size", "code"), [(60_000, 0), (60_001, 2)])
def test_a_record_has_sixty_thousand_bytes_for_all(agreed, originals, key, size, code):
    """And none more."""

    def fill(record):
        record["intents"] = ["I"]
        missing = size - len(json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode())
        while missing:
            long = missing if missing < 60 else 40 if missing < 110 else 50
            record["intents"].append(f"I{len(record['intents']):0{long - 4}}")
            missing -= long

    assert agreed(signed_again(of_kind(originals, "query"), fill, key), str(key.verifier)) == code
