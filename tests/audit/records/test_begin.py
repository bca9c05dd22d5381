"""Begin records: durable before a remote model is called, named by the request's record, or reported."""

from __future__ import annotations

import pytest

from carag.audit import Begin, Models, PolicyApplied, Record, Recovery, SessionSource, Verdict, verify_receipt
from carag.errors import CorruptFile, InvalidArgument


def begin(**changes):
    values = {
        "started": 1_763_755_555_123_456,
        "role": "buy_side",
        "purpose": "invest",
        "source": SessionSource.VERIFIED,
        "as_of": 29_395_925,
        "policy": PolicyApplied(table=b"T" * 32, masks=((0x20, 0x10000),)),
        "models": Models("minilm", "bedrock:amazon.nova-micro-v1:0", "bucket-prompt-1"),
    }
    return Begin(**{**values, **changes})


def start(log, build, **changes):
    secrets = {name: build.SECRETS[name] for name in ("query", "subject")}
    return log.append(begin(**changes), secrets=secrets)


def test_a_begin_has_a_receipt_and_comes_back_as_it_was(tmp_path, build):
    """It is a record like any other, small, and commits to the question."""
    with build.open_log(tmp_path) as log:
        receipt = start(log, build)
        assert verify_receipt(receipt.to_bytes(), log.vkey).verdict is Verdict.VERIFIED
        assert log.record(0).event == begin()
        assert len(receipt.record) < 800
        log.append(build.access(begun=0), secrets=build.SECRETS, passages=build.passages())


def test_a_record_without_a_begin_keeps_its_bytes(build):
    """The new field is encoded only where there is one, so older records read and hash as before."""
    assert b"begun" not in build.record().to_bytes()
    assert b"begins" not in build.record(event=Recovery("DRILL"), commitments={}, hits=()).to_bytes()


def test_an_ended_begin_leaves_nothing_to_recover(tmp_path, build):
    """The request's record names its begin, and the next opening adds no record."""
    with build.open_log(tmp_path) as log:
        seq = start(log, build).seq
        assert log._backend.unended() == (seq,)
        log.append(build.access(begun=seq), secrets=build.SECRETS, passages=build.passages())
        assert log._backend.unended() == ()
        assert log.verify().size == 2
    with build.open_log(tmp_path) as log:
        assert log.size == 2
        assert log.record(1).event.begun == seq


def test_unended_begins_are_named_once_at_the_next_opening(tmp_path, build):
    """A process that died between the call and the record cannot hide that it called."""
    with build.open_log(tmp_path) as log:
        seqs = [start(log, build).seq for _ in range(3)]
        log.append(build.access(begun=seqs[1]), secrets=build.SECRETS, passages=build.passages())
    with build.open_log(tmp_path) as log:
        assert log.record(4).event == Recovery("UNENDED_BEGINS", (seqs[0], seqs[2]))
        assert log.verify().size == log.size == 5
    with build.open_log(tmp_path) as log:
        assert log.size == 5


def test_many_unended_begins_fit_their_records(tmp_path, build, monkeypatch):
    """However many there are, each is named and no record is too long."""
    monkeypatch.setattr("carag.audit.log.log._MAX_BEGINS_A_RECORD", 2)
    with build.open_log(tmp_path) as log:
        seqs = tuple(start(log, build).seq for _ in range(5))
    with build.open_log(tmp_path) as log:
        named = [log.record(seq).event.begins for seq in range(5, log.size)]
        assert named == [seqs[:2], seqs[2:4], seqs[4:]]


def test_the_most_begins_a_record_names_fit(build):
    """Four thousand of the largest numbers a log of a hundred million records has."""
    from carag.audit.log.log import _MAX_BEGINS_A_RECORD

    event = Recovery("UNENDED_BEGINS", tuple(range(99_999_999 - _MAX_BEGINS_A_RECORD, 99_999_999)))
    body = build.record(event=event, commitments={}, hits=()).to_bytes()
    assert Record.parse(body).event == event


@pytest.mark.parametrize("begun", [0, 1, 7], ids=["an ended one", "no begin", "none yet"])
def test_only_an_open_begin_can_be_ended(tmp_path, build, begun):
    """A record cannot end a begin twice, nor a record that is not a begin; nothing is written."""
    with build.open_log(tmp_path) as log:
        start(log, build)
        log.append(build.access(begun=0), secrets=build.SECRETS, passages=build.passages())
        with pytest.raises(InvalidArgument, match="not open begin"):
            log.append(build.access(begun=begun), secrets=build.SECRETS, passages=build.passages())
        assert log.size == 2
        assert build.ask(log).seq == 2


def test_a_begin_commits_to_its_question_and_to_no_answer(tmp_path, build):
    """What was asked is known before the call, what is answered is not."""
    with build.open_log(tmp_path) as log:
        for secrets, message in (({}, "no question"), (build.SECRETS, "commit to")):
            with pytest.raises(InvalidArgument, match=message):
                log.append(begin(), secrets=secrets)
        assert log.size == 0


def test_a_record_cannot_name_a_later_begin(build):
    """The verifier refuses a record that claims to follow what came after it."""
    receipt, vkey = build.forge(build.record(event=build.access(begun=1)))
    checked = verify_receipt(receipt.to_bytes(), vkey)
    assert checked.verdict is Verdict.FAILED
    assert "begin" in checked.reason


@pytest.mark.parametrize(
    "changes", [{"role": "a b"}, {"started": -1}, {"source": "x"}, {"as_of": None}], ids=str
)
def test_a_malformed_begin_is_refused(changes):
    """Fields are checked like those of an access."""
    with pytest.raises(InvalidArgument):
        begin(**changes)


def test_a_begin_struck_from_the_list_is_noticed(tmp_path, build):
    """The list of open begins is a convenience; verify() makes it again from the records."""
    with build.open_log(tmp_path) as log:
        start(log, build)
        build.edit(tmp_path / "audit.db", "DELETE FROM begun")
        with pytest.raises(CorruptFile, match="stored begins"):
            log.verify()


@pytest.mark.parametrize("table", ["begun", "node"])
def test_a_missing_table_is_damage(tmp_path, build, table):
    """Also that of the begins without an end: an empty one in its place would hide them."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
    build.edit(tmp_path / "audit.db", f"DROP TABLE {table}")
    with pytest.raises(CorruptFile, match="tables"):
        build.open_log(tmp_path)
