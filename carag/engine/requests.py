"""Take every request from its check to its durable record, in one order; nothing is returned without that record."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from carag.audit import Models, Outcome, RecordKind
from carag.engine.follow_ups import explain, record_answer, record_successors, turns_of
from carag.engine.recorder import (
    Egress,
    Finding,
    Request,
    Retrieved,
    no_text_in_traceback,
    proven,
    shortened,
    stated,
)
from carag.engine.results import Answer, Explanation, Retrieval
from carag.errors import InvalidArgument, Refused, StoreLocked
from carag.generation import ANSWERED, Declined, ToldCode
from carag.limits import check_question, quoted
from carag.policy import Session, Where, as_of_minutes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from carag.audit import Receipt
    from carag.engine.collection import Collection
    from carag.engine.configuration import InForce
    from carag.engine.directory import Lifetime
    from carag.engine.follow_ups import Turn
    from carag.engine.recorder import Recorder, Searched
    from carag.generation import GuardedGenerator
    from carag.policy import Decision, Identity
    from carag.retrieval import Evidence, Retriever
    from carag.retrieval.authority import Authority


DEFAULT_K: Final = 8
"""How many passages a question gets, as in the paper."""
_MAX_K: Final = 400
"""Passages that one record can hold."""


class Requests:
    """Answers, retrieves and explains, each on record; every call goes through :meth:`on_record`."""

    def __init__(
        self,
        collection: Collection,
        recorder: Recorder,
        in_force: InForce,
        retriever: Retriever,
        guarded: GuardedGenerator,
        lifetime: Lifetime,
        authority: Authority | None = None,
    ) -> None:
        self.collection = collection
        self.recorder = recorder
        self.in_force = in_force
        self.retriever = retriever
        self.guarded = guarded
        self._lifetime = lifetime
        self._authority = authority

    def answer(
        self,
        question: str,
        session: Session,
        where: Mapping[str, Any] | None = None,
        *,
        guarded: GuardedGenerator | None = None,
    ) -> Answer:
        """Answer as :meth:`carag.Engine.ask` does, behind the gate in force or a different one."""
        behind = guarded or self.guarded

        def work(egress: Egress, decision: Decision) -> Finding:
            if behind.check is not None and not behind.check.reads(egress.request.read):
                egress.models = replace(egress.models, read=None)
            if (about := self._about_documents(egress, decision, behind)) is not None:
                return about
            searched = self._search(egress, decision, DEFAULT_K)
            result = behind.answer(egress.request.read, searched.evidence, before_remote=egress.leaving)
            if isinstance(result, Declined):
                return Finding(
                    Outcome.DECLINE,
                    result.code.value,
                    result.message,
                    egress.models,
                    searched,
                    left_out=result.left_out,
                )
            return Finding(
                Outcome.ANSWER,
                ANSWERED,
                result.text,
                egress.models,
                searched,
                citations=result.citations,
                complete=result.complete,
                left_out=result.left_out,
            )

        asked = self.on_record(RecordKind.QUERY, question, session, self.models, work, where)
        found, receipt, _ = asked
        superseded, follows = record_successors(self.collection, self.recorder, asked)
        return Answer.of(found, receipt, gate=behind.gate, superseded=superseded, follows=follows)

    def _about_documents(
        self, egress: Egress, decision: Decision, guarded: GuardedGenerator
    ) -> Finding | None:
        """Answer a question about the documents themselves; None if it is not certain to be one."""
        from carag.generation.collection.answering import about_documents  # loaded when a question is asked
        from carag.retrieval.listing.admitted import Scope

        request = egress.request
        scope = Scope(self.collection, self.retriever, decision, request.where, request.inquiry)

        def search(question: str) -> Evidence:
            return self._evidence(egress, decision, DEFAULT_K, question)

        told = about_documents(request.read, scope, guarded, search, egress.leaving)
        if told is None:
            return None
        self.check_groups(request, decision)
        return Finding(
            Outcome.DECLINE if told.code is ToldCode.NONE_LISTED else Outcome.ANSWER,
            told.code.value,
            told.text,
            egress.models if told.code is ToldCode.COMPARED else Models(),
            proven(self.collection.state, request, told.evidence),
            citations=told.citations,
            complete=told.complete,
        )

    def retrieve(
        self,
        question: str,
        session: Session,
        k: int = DEFAULT_K,
        where: Mapping[str, Any] | None = None,
    ) -> Retrieval:
        """See :meth:`carag.Engine.retrieve`."""
        if type(k) is not int or not 1 <= k <= _MAX_K:
            raise InvalidArgument(f"k is {quoted(k)}; want 1 to {_MAX_K}, as many as one record can hold")

        def work(egress: Egress, decision: Decision) -> Finding:
            searched = self._search(egress, decision, k)
            if searched.evidence.passages:
                return Finding(Outcome.ANSWER, "RETRIEVED", models=egress.models, searched=searched)
            return Finding(Outcome.DECLINE, "NO_ADMISSIBLE_EVIDENCE", models=egress.models, searched=searched)

        found, receipt, request = self.on_record(
            RecordKind.RETRIEVE, question, session, self._searching, work, where
        )
        searched = found.searched
        asked = None if searched is None else Retrieved(self.recorder.mark, request, searched, receipt)
        return Retrieval(
            found.outcome,
            found.why,
            receipt,
            found.passages,
            found.withheld,
            understood=found.understood,
            asked_day=found.asked_day,
            asked=asked,
        )

    @no_text_in_traceback
    def record_answer(self, retrieval: Retrieval, text: str, *, model: str) -> Receipt:
        """See :meth:`carag.Engine.record_answer`."""
        self._lifetime.check()
        return record_answer(
            self.collection, self.recorder, retrieval, text, model=model, searched=self._searching
        )

    def explain(self, chunk_id: str, session: Session) -> Explanation:
        """See :meth:`carag.Engine.explain`."""

        def work(egress: Egress, decision: Decision) -> Finding:
            return explain(self.collection.store, chunk_id, decision, egress.request.inquiry)

        found, receipt, _ = self.on_record(RecordKind.EXPLAIN, chunk_id, session, Models(), work, names=True)
        return Explanation(
            found.outcome,
            found.why,
            receipt,
            text=found.text,
            reasons=found.reasons,
            causes=found.causes,
            regulation=found.regulation,
        )

    @property
    def models(self) -> Models:
        """The models in use, for records."""
        generator, check = self.guarded.generator, self.guarded.check
        return replace(
            self._searching,
            generate=generator.name,
            prompt=shortened(generator.fingerprint),
            read=None if check is None else f"{stated(check.reader)} {check.threshold}",
        )

    @property
    def paces(self) -> tuple[str, str]:
        """How slow searching is, alone and with answering: ``quick``, ``local`` (a model reads all) or ``remote``."""
        from carag.generation.extractive import Extractive

        generator, reranker = self.guarded.generator, self.retriever.reranker
        check = self.guarded.check
        is_remote = self.collection.embedder.remote or (reranker is not None and reranker.remote)
        searching = "remote" if is_remote else "quick" if reranker is None else "local"
        answering = (
            "remote" if generator.remote else "quick" if isinstance(generator, Extractive) else "local"
        )
        reading = "quick" if check is None else "remote" if check.reader.remote else "local"
        return searching, max(searching, answering, reading, key=("quick", "local", "remote").index)

    def keep_to_admissible_rows(self) -> None:
        """Search no graph for sessions that may not know what is hidden, so that hidden rows cannot make it slower."""
        self.retriever.certifies = True

    @property
    def _searching(self) -> Models:
        found = self.retriever
        return Models(self.collection.embedder.name, rerank=stated(found.reranker), rank=stated(found.ranker))

    @no_text_in_traceback
    def on_record(
        self,
        kind: RecordKind,
        text: str,
        session: Session,
        models: Models,
        work: Callable[[Egress, Decision], Finding],
        where: Mapping[str, Any] | None = None,
        *,
        names: bool = False,
    ) -> tuple[Finding, Receipt, Request]:
        """Take a request from its check to its durable record; return the finding, the receipt and the request.

        - ``models``: what ``work`` may send the question to.
        - ``names``: the text names what is wanted, and is not read as a question.
        """
        self._lifetime.check()
        check_question("id" if names else "question", text)
        if type(session) is not Session:  # a subclass could give other values each time it is read
            raise InvalidArgument(
                f"session is a {type(session).__name__}; want a carag.Session, not a subclass"
            )
        recorder, rules = self.recorder, self.in_force.rules
        narrowed = Where.of(where, rules.table.vocabulary.metadata)
        request = Request(kind, text, session, recorder.clock(), rules, narrowed)
        recorder.check(request, self.models)
        with recorder.failures(request):
            request = replace(request, rules=self.in_force.keep_up())
        with recorder.failures(request):
            question = None if names else text
            try:
                request = request if names else self._carried(request)
                decision = request.rules.decide(question, session, request.started, read=request.read)
            except Refused as refusal:
                found = Finding(Outcome.REFUSE, refusal.code, str(refusal))
                return found, recorder.access(request, found), request
            decision = replace(decision, identity=self._identity(request))
        asking = None if self._authority is None else self._authority.inquiry(decision.identity.denied)
        request = replace(request, decision=decision, inquiry=asking)
        egress, erasures = Egress(recorder, request, models), self.collection.erasures
        with recorder.failures(request, egress):
            found = replace(work(egress, decision), asked_day=decision.asked_day, carried=request.carried)
            with self.collection.unerased(erasures, found.chunk_ids):
                return found, recorder.access(request, found, begun=egress.begun), request

    def _search(self, egress: Egress, decision: Decision, k: int) -> Searched:
        evidence = self._evidence(egress, decision, k, egress.request.read)
        return proven(self.collection.state, egress.request, evidence)

    def _evidence(self, egress: Egress, decision: Decision, k: int, question: str) -> Evidence:
        """Find evidence for the request's question, or for a part of it."""
        request = egress.request
        if self.collection.embedder.remote:
            egress.leaving()
        evidence = self.retriever.retrieve(
            question,
            decision,
            k,
            request.where,
            before_remote=egress.leaving,
            authority=request.inquiry,
        )
        self.check_groups(request, decision)
        return evidence

    def check_groups(self, request: Request, decision: Decision) -> None:
        """Check that the session is in the groups that the decision knows; StoreLocked if not.

        A document that is newer than the change may have been found, and be denied to a group of now.
        """
        now, then = self._identity(request), decision.identity
        if (now.allowed, now.barred) != (then.allowed, then.barred):
            raise StoreLocked("groups of this session changed while documents were searched; ask again")

    def _carried(self, request: Request) -> Request:
        """Read a follow-up after the earlier questions of its conversation."""
        if request.session.conversation is None:
            return request
        from carag.retrieval.reading.follow_up import carried, leans

        if not leans(request.text):
            return request
        catalogue = self.collection.catalogue
        found = carried(
            request.text,
            [one.question for one in self.turns(request.session)],
            names=catalogue.public_names,
            instants=catalogue.declared.as_of is not None,
        )
        return replace(request, carried=found) if found.taken else request

    def turns(self, session: Session) -> tuple[Turn, ...]:
        """Return the questions that this caller asked in this conversation, role and purpose, oldest first."""
        return turns_of(self.recorder.log, session, self.recorder.clock())

    def _identity(self, request: Request) -> Identity:
        """Find the groups that hold the session's principals now, whatever instant the question is about."""
        return self.collection.store.groups.identity(request.session, as_of_minutes(request.started))
