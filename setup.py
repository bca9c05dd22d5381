"""Build the C core through cffi; everything else is declared in pyproject.toml."""

import sysconfig

from setuptools import setup

# One wheel for every CPython >= 3.11 (stable ABI); the free-threaded build has no stable ABI.
free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))

setup(
    cffi_modules=["carag/index/_build_core.py:ffi"],
    options={} if free_threaded else {"bdist_wheel": {"py_limited_api": "cp311"}},
)
