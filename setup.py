"""Build the C core through cffi and put ``data/`` into the package; everything else is declared in pyproject.toml."""

import sysconfig

from setuptools import find_packages, setup

# One wheel for every CPython >= 3.11 (stable ABI); the free-threaded build has no stable ABI.
free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))

setup(
    cffi_modules=["carag/index/_build_core.py:ffi"],
    packages=[*find_packages(include=["carag*"]), "carag.data"],
    package_dir={"carag.data": "data"},  # the small corpus: one copy, at the top of the tree
    options={} if free_threaded else {"bdist_wheel": {"py_limited_api": "cp311"}},
)
