"""Build the C core through cffi and put ``data/`` into the package; everything else is declared in pyproject.toml."""

import sys
import sysconfig

from setuptools import find_packages, setup

# One wheel for every CPython >= 3.11 (stable ABI); the free-threaded build has no stable ABI.
free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))

# The small corpus: one copy, at the top of the tree. An editable install finds it there, and without this mapping it
# puts the clone on Python's path instead of hooking the import: a hook comes after the path, where the folder of a
# clone named `carag` is a namespace package to every program that starts beside it.
corpus = {} if "editable_wheel" in sys.argv else {"carag.data": "data"}

setup(
    cffi_modules=["carag/index/_build_core.py:ffi"],
    packages=[*find_packages(include=["carag*"]), *corpus],
    package_dir={"": ".", **corpus},
    options={} if free_threaded else {"bdist_wheel": {"py_limited_api": "cp311"}},
)
