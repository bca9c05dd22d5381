"""Read with a user's own sequence classifier in ONNX."""

from __future__ import annotations

from carag.retrieval.cross_encoder import CrossEncoder


class OnnxReader:
    """A model from a folder with ``model.onnx`` and ``tokenizer.json``, as :class:`CrossEncoder` reads it.

    - ``label``: which of several logits says that the text answers.
    - ``threshold``: the least score that answers; needed unless the profile states one for ``onnx:`` and the folder.
    - ``every_language``: whether it reads questions in other languages than English.

    Raises as :class:`carag.retrieval.CrossEncoder` does.
    """

    remote = False

    def __init__(
        self,
        folder: str,
        *,
        label: str | int | None = None,
        threshold: float | None = None,
        every_language: bool = False,
    ) -> None:
        model = CrossEncoder(folder, label=label, threads=1)
        self.name, self.fingerprint, self.holds = model.name, model.fingerprint, model.rerank
        self.threshold, self.every_language = threshold, every_language
