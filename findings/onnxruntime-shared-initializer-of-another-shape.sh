#!/usr/bin/env bash
# onnxruntime 1.32.0: SessionOptions.add_initializer takes a tensor whose shape is not the one that the model states.
#
# The call exists so that sessions can share one copy of a weight, and the model states name, type and shape of each weight.
# One would expect a tensor of another shape to be refused when the session is made. It is taken without a word, and the
# graph runs with it: a table of two rows becomes one of five, an index that was out of
# bounds is answered, and a matrix with more columns gives an output that is wider than the one the session itself states
# (`get_outputs`). A wrong file of shared weights therefore shows in answers, or not at all.
set -euo pipefail
home=$(mktemp -d); trap 'rm -rf "$home"' EXIT
python3 -m venv "$home/env"
"$home/env/bin/pip" install --quiet --disable-pip-version-check onnxruntime==1.32.0 onnx==1.22.0 numpy==2.4.6 2>/dev/null
"$home/env/bin/python" - 2>/dev/null <<'PY'
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

table = numpy_helper.from_array(np.zeros((2, 3), np.float32), "table")
matrix = numpy_helper.from_array(np.ones((3, 4), np.float32), "matrix")
graph = helper.make_graph(
    [helper.make_node("Gather", ["table", "rows"], ["taken"]), helper.make_node("MatMul", ["taken", "matrix"], ["out"])],
    "g",
    [helper.make_tensor_value_info("rows", TensorProto.INT64, ["n"])],
    [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n", 4])],
    [table, matrix],
    value_info=[helper.make_tensor_value_info(one.name, TensorProto.FLOAT, list(one.dims)) for one in (table, matrix)],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
onnx.checker.check_model(model, full_check=True)


def session(**shared):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    kept = {name: ort.OrtValue.ortvalue_from_numpy(value) for name, value in shared.items()}
    for name, value in kept.items():
        options.add_initializer(name, value)
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]), kept


def run(made, row):
    try:
        return made[0].run(None, {"rows": np.array([row])})[0]
    except Exception as error:
        return type(error).__name__


plain = session()
assert run(plain, 1).shape == (1, 4)
print("row 4 of a table of two rows:", run(plain, 4))
assert isinstance(run(plain, 4), str)

larger = session(table=np.ones((5, 3), np.float32))
print("the same once a table of five rows is shared:", run(larger, 4))
assert run(larger, 4).tolist() == [[3.0, 3.0, 3.0, 3.0]]

wider = session(matrix=np.ones((3, 6), np.float32))
print("stated:", wider[0].get_outputs()[0].shape, "given:", run(wider, 0).shape)
assert wider[0].get_outputs()[0].shape[1] == 4 and run(wider, 0).shape == (1, 6)
PY
echo "as described"
