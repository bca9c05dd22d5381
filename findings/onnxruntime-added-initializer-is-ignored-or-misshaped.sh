#!/usr/bin/env bash
# onnxruntime 1.32.0: what SessionOptions.add_initializer is given in place of a model's weight is ignored without a word
# where the weight goes into a constant, and taken without a word where its shape is another.
#
# The documentation says that the session uses the tensor given instead of the one in the model file. But constants are
# folded from the file's values first: in a model that keeps a matrix as int8 and multiplies it by a scale, as small models
# are published, neither matrix nor scale can be replaced, the session is made, and it answers with the old weights. With
# the pass ConstantFolding disabled the tensor is used.
# A tensor with another shape, where nothing is folded, is not refused although the model states the shape: a table of
# two rows becomes one of five, and a matrix with more columns gives an output that is wider than the one the session
# itself states (`get_outputs`).
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


def session(model=model, disabled=(), **shared):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    kept = {name: ort.OrtValue.ortvalue_from_numpy(value) for name, value in shared.items()}
    for name, value in kept.items():
        options.add_initializer(name, value)
    made = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"], disabled_optimizers=list(disabled)
    )
    return made, kept


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

whole = numpy_helper.from_array(np.ones((3, 2), np.int8), "whole")
scale = numpy_helper.from_array(np.full((1, 2), 0.5, np.float32), "scale")
folded = helper.make_model(
    helper.make_graph(
        [
            helper.make_node("Cast", ["whole"], ["cast"], to=TensorProto.FLOAT),
            helper.make_node("Mul", ["cast", "scale"], ["weight"]),
            helper.make_node("MatMul", ["x", "weight"], ["out"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n", 2])],
        [whole, scale],
    ),
    opset_imports=[helper.make_opsetid("", 17)],
    ir_version=9,
)
onnx.checker.check_model(folded, full_check=True)
given = {"whole": np.full((3, 2), 7, np.int8), "scale": np.full((1, 2), 2.0, np.float32)}
answers = {}
for name, disabled, shared in (
    ("as in the file", (), {}),
    ("both weights given", (), given),
    ("both given, no folding", ("ConstantFolding",), given),
):
    made = session(folded, disabled, **shared)
    answers[name] = made[0].run(None, {"x": np.ones((1, 3), np.float32)})[0].tolist()
print(answers)
assert answers == {
    "as in the file": [[1.5, 1.5]],
    "both weights given": [[1.5, 1.5]],
    "both given, no folding": [[42.0, 42.0]],
}
PY
echo "as described"
