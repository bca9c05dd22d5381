"""Typed face of the compiled module; ``csrc/carag.h`` says what each function promises."""

from typing import Any

# A C value: what cffi hands out has the fields of its C type, which mypy cannot know.
CData = Any

class _FFI:
    NULL: CData
    def new(self, cdecl: str, init: object = ...) -> CData: ...
    def gc(self, cdata: CData, destructor: object) -> CData: ...
    def from_buffer(self, cdecl: CData, buffer: object, require_writable: bool = ..., /) -> CData: ...
    def typeof(self, cdecl: str) -> CData: ...
    def sizeof(self, cdecl: str) -> int: ...
    def cast(self, cdecl: str | CData, cdata: CData) -> CData: ...
    def string(self, cdata: CData) -> bytes: ...
    def buffer(self, cdata: CData, size: int) -> memoryview: ...

class _Lib:
    CARAG_MAX_DIM: int
    CARAG_MIN_M: int
    CARAG_MAX_M: int
    CARAG_MAX_EF: int
    CARAG_MAX_THREADS: int
    CARAG_MAX_PREDICATES: int
    CARAG_NEVER_PUBLIC: int

    CARAG_OK: int
    CARAG_NO_MEMORY: int
    CARAG_BAD_ARGUMENT: int
    CARAG_NOT_FINITE: int
    CARAG_ZERO_VECTOR: int
    CARAG_BAD_WORD: int
    CARAG_BAD_KEY: int
    CARAG_DUPLICATE_KEY: int
    CARAG_UNKNOWN_KEY: int
    CARAG_BAD_PREDICATE: int
    CARAG_FULL: int
    CARAG_IO: int
    CARAG_CORRUPT: int
    CARAG_BAD_KERNEL: int
    CARAG_OVERLAP: int

    CARAG_PLAN_AUTO: int
    CARAG_PLAN_EXACT: int
    CARAG_PLAN_GRAPH: int
    CARAG_PLAN_SCAN: int
    CARAG_PLAN_CERTIFIED: int

    CARAG_WHY_ASKED: int
    CARAG_WHY_NOTHING: int
    CARAG_WHY_CHEAPEST: int
    CARAG_WHY_ALL: int
    CARAG_WHY_BUDGET: int
    CARAG_WHY_FILL: int

    CARAG_ANY_ENTITY: int
    CARAG_ONLY_ENTITIES: int
    CARAG_NOT_ENTITIES: int

    CARAG_FLOAT32: int
    CARAG_FLOAT16: int
    CARAG_INT8: int

    def carag_index_new(self, params: CData, out_index: CData, out_fault: CData) -> int: ...
    def carag_index_free(self, index: CData) -> None: ...
    def carag_index_info(self, index: CData, out_info: CData) -> None: ...
    def carag_index_add(self, index: CData, rows: CData, out_keys: CData, out_fault: CData) -> int: ...
    def carag_index_relabel(
        self,
        index: CData,
        keys: CData,
        words: CData,
        count: int,
        allow_quarantine: int,
        out_fault: CData,
    ) -> int: ...
    def carag_index_relabel_where(
        self,
        index: CData,
        predicate: CData,
        bits_to_set: int,
        bits_to_clear: int,
        out_relabelled: CData,
        out_fault: CData,
    ) -> int: ...
    def carag_index_delete(self, index: CData, keys: CData, count: int, out_fault: CData) -> int: ...
    def carag_index_consolidate(self, index: CData, threads: int, out_fault: CData) -> int: ...
    def carag_index_search_both(
        self,
        index: CData,
        queries: CData,
        nq: int,
        predicate: CData,
        params: CData,
        results: CData,
        wider: CData,
        out_fault: CData,
    ) -> int: ...
    def carag_index_count(
        self, index: CData, predicate: CData, out_admissible: CData, out_fault: CData
    ) -> int: ...
    def carag_index_get(
        self, index: CData, keys: CData, count: int, out_columns: CData, out_fault: CData
    ) -> int: ...
    def carag_index_similarities(
        self, index: CData, query: CData, keys: CData, count: int, out_similarities: CData, out_fault: CData
    ) -> int: ...
    def carag_index_keys(self, index: CData, out_keys: CData, room: int) -> int: ...
    def carag_index_contains(self, index: CData, key: int) -> int: ...
    def carag_index_save(self, index: CData, path: bytes, out_fault: CData) -> int: ...
    def carag_index_load(self, path: bytes, is_mapped: int, out_index: CData, out_fault: CData) -> int: ...
    def carag_index_verify(self, index: CData, out_fault: CData) -> int: ...
    def carag_index_check(self, index: CData, out_fault: CData) -> int: ...
    def carag_invariant_name(self, bit: int) -> CData: ...
    def carag_kernel_count(self) -> int: ...
    def carag_kernel_name(self, which: int) -> CData: ...
    def carag_kernel_is_available(self, which: int) -> int: ...
    def carag_kernel_active(self, out_name: CData, out_fault: CData) -> int: ...
    def carag_set_kernel(self, name: bytes, out_fault: CData) -> int: ...
    def carag_dot(self, a: CData, b: CData, n: int, out_dot: CData, out_fault: CData) -> int: ...
    def carag_text_new(self, out_text: CData, out_fault: CData) -> int: ...
    def carag_text_free(self, text: CData) -> None: ...
    def carag_text_get_info(self, text: CData, out_info: CData) -> None: ...
    def carag_text_add(self, text: CData, batch: CData, out_fault: CData) -> int: ...
    def carag_text_label(self, text: CData, labels: CData, out_fault: CData) -> int: ...
    def carag_text_delete(self, text: CData, chunks: CData, count: int, out_fault: CData) -> int: ...
    def carag_text_compact(self, text: CData, out_fault: CData) -> int: ...
    def carag_text_search(
        self,
        text: CData,
        query: CData,
        predicates: CData,
        predicate_count: int,
        out_found: CData,
        out_fault: CData,
    ) -> int: ...
    def carag_text_found_free(self, found: CData) -> None: ...
    def carag_text_count(
        self,
        text: CData,
        query: CData,
        predicates: CData,
        predicate_count: int,
        out_frequencies: CData,
        out_stats: CData,
        out_fault: CData,
    ) -> int: ...
    def carag_text_documents(
        self, text: CData, predicates: CData, predicate_count: int, out_found: CData, out_fault: CData
    ) -> int: ...
    def carag_text_admissible(
        self,
        text: CData,
        predicates: CData,
        predicate_count: int,
        documents: CData,
        count: int,
        out_found: CData,
        out_fault: CData,
    ) -> int: ...
    def carag_text_chunks(self, text: CData, out_keys: CData, room: int) -> int: ...
    def carag_text_label_keys(self, text: CData, out_keys: CData, room: int) -> int: ...
    def carag_text_save(self, text: CData, path: bytes, out_fault: CData) -> int: ...
    def carag_text_load(self, path: bytes, is_mapped: int, out_text: CData, out_fault: CData) -> int: ...
    def carag_text_verify(self, text: CData, out_fault: CData) -> int: ...
    def carag_status_text(self, status: int) -> CData: ...

ffi: _FFI
lib: _Lib
