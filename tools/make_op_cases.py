#!/usr/bin/env python3
"""Writes tests/data/ops: cases of operations of vision, signals and recurrent networks with the
results of PyTorch and of ONNX's reference evaluator, as op_cases reads them.

Usage: make_op_cases.py FOLDER [SEED [COUNT]]
Needs torch, onnx and numpy. COUNT: cases of each operation; more of them, of other seeds, are for
searching. Results are computed in float64 from inputs that are float32 numbers.
"""
import json
import os
import random
import struct
import sys

import numpy as np
import onnx
import torch
from onnx.reference import ReferenceEvaluator

WORDS = {"float32": "F32", "float64": "F64", "int64": "I64", "uint32": "U32"}


class Writer:
    def __init__(self):
        self.arrays, self.cases, self.counts = [], [], {}

    def array(self, name, x):
        self.arrays.append((name, np.ascontiguousarray(x)))
        return name

    def add(self, op, attrs, inputs, outputs, grads=None, grad_output=None):
        """inputs: (role, array); grads: {input number: array}."""
        number = self.counts[op] = self.counts.get(op, 0) + 1
        name = f"{op}.{number:02d}"
        most = max([float(np.abs(y).max()) for y in outputs if y.size and y.dtype.kind == "f"],
                   default=0)
        case = {"id": name, "op": op, "attrs": attrs,
                "inputs": [{"tensor": self.array(f"{name}.in{i}", x), "role": role}
                           for i, (role, x) in enumerate(inputs)],
                "outputs": [self.array(f"{name}.out{i}", as_stored(y))
                            for i, y in enumerate(outputs)],
                "tolerance": {"abs": round_up(1e-5 * max(most, 1e-3)), "rel": 1e-4}}
        if grads:
            case["grad_output"] = self.array(f"{name}.gout", as_stored(grad_output))
            case["grads"] = {str(i): self.array(f"{name}.grad{i}", as_stored(g))
                             for i, g in grads.items()}
            most = max(float(np.abs(g).max()) if g.size else 0 for g in grads.values())
            case["grad_tolerance"] = {"abs": round_up(4e-5 * max(most, 1e-3)), "rel": 2e-4}
        self.cases.append(case)

    def write(self, folder):
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "cases.jsonl"), "w") as file:
            for case in self.cases:
                file.write(json.dumps(case) + "\n")
        header, at = {}, 0
        for name, x in self.arrays:
            header[name] = {"dtype": WORDS[str(x.dtype)], "shape": list(x.shape),
                            "data_offsets": [at, at + x.nbytes]}
            at += x.nbytes
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(os.path.join(folder, "data.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for _, x in self.arrays:
                file.write(x.tobytes())


def round_up(x):
    return float(f"{x:.1e}") * 1.05


def as_stored(x):
    return x.astype(np.float32) if x.dtype == np.float64 else x


def floats(*shape, scale=1.0):
    return (np.random.standard_normal(shape) * scale).astype(np.float32)


def with_gradients(w, op, attrs, inputs, fn, wanted):
    """fn of float64 tensors; gradients of the inputs of these numbers."""
    x = [torch.tensor(a, dtype=torch.float64 if a.dtype.kind == "f" else None,
                      requires_grad=i in wanted) for i, (_, a) in enumerate(inputs)]
    y = fn(*x)
    g = torch.tensor(floats(*y.shape), dtype=torch.float64)
    if y.numel() == 0:
        w.add(op, attrs, inputs, [y.detach().numpy()])
        return
    grads = torch.autograd.grad((y * g).sum(), [x[i] for i in wanted])
    w.add(op, attrs, inputs, [y.detach().numpy()],
          {i: grads[k].numpy() for k, i in enumerate(wanted)}, g.numpy())


def onnx_run(op, inputs, n_outputs, attrs, opset=20):
    """inputs: arrays or None."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    outs = [f"y{i}" for i in range(n_outputs)]
    node = onnx.helper.make_node(op, names, outs, **attrs)
    kinds = {i: onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
             for i, x in enumerate(inputs) if x is not None}
    graph = onnx.helper.make_graph(
        [node], "g",
        [onnx.helper.make_tensor_value_info(names[i], kinds[i], list(inputs[i].shape))
         for i in kinds],
        [onnx.helper.make_empty_tensor_value_info(y) for y in outs])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    return ReferenceEvaluator(model).run(None, {names[i]: inputs[i] for i in kinds})


# --- Operations ---

def grid_sample(w, r):
    n_dims = r.choice([2, 2, 2, 3])
    mode = r.choice(["nearest", "bilinear", "bicubic"] if n_dims == 2 else ["nearest", "bilinear"])
    padding = r.choice(["zeros", "border", "reflection"])
    corners = r.random() < 0.5
    n, c = r.randint(1, 2), r.randint(1, 3)
    x = floats(n, c, *[r.randint(1, 6) for _ in range(n_dims)])
    grid = floats(n, *[r.randint(1, 4) for _ in range(n_dims)], n_dims, scale=r.choice([0.5, 1, 2]))
    with_gradients(
        w, "grid_sample", {"mode": mode, "padding": padding, "align_corners": corners},
        [("x", x), ("grid", grid)],
        lambda x, grid: torch.nn.functional.grid_sample(x, grid, mode, padding, corners),
        [0] if mode == "nearest" else [0, 1])


def resize_antialiased(w, r):
    mode = r.choice(["linear", "cubic"])
    if r.random() < 0.5:
        x = floats(r.randint(1, 2), r.randint(1, 2), r.randint(1, 20), r.randint(1, 20))
        size = [r.randint(1, 12), r.randint(2, 12)]  # to a width of 1 PyTorch 2.15 repeats row 0
        with_gradients(
            w, "resize_antialiased",
            {"mode": mode, "size": size, "a": -0.5, "repeats_ends": False}, [("x", x)],
            lambda x: torch.nn.functional.interpolate(
                x, size, mode="bi" + mode, antialias=True, align_corners=False), [0])
        return
    # Whole scales: ONNX takes places by the scale, not by the sizes.
    repeats = r.random() < 0.5
    scale = r.choice([1, 2, 3, 4])
    x = floats(1, 1, scale * r.randint(2, 5), scale * r.randint(2, 5)).astype(np.float64)
    size = [x.shape[2] // scale, x.shape[3] // scale]
    if min(x.shape[2:]) < 4 * scale + 4 and not repeats:
        return
    y, = onnx_run("Resize", [x, None, None, np.array([1, 1] + size, np.int64)], 1,
                  {"mode": mode, "antialias": 1, "cubic_coeff_a": -0.75,
                   "exclude_outside": int(not repeats)})
    w.add("resize_antialiased", {"mode": mode, "size": size, "a": -0.75, "repeats_ends": repeats},
          [("x", x.astype(np.float32))], [y])


def roi_align(w, r):
    n, c, h, wide = r.randint(1, 2), r.randint(1, 2), r.randint(2, 9), r.randint(2, 9)
    x, rois = floats(n, c, h, wide), r.randint(1, 3)
    corner = np.random.uniform(-2, 14, (rois, 2))
    size = np.random.uniform(0, 9, (rois, 2))
    boxes = np.concatenate([corner, corner + size], 1).astype(np.float32)
    batch = np.random.randint(0, n, rois).astype(np.int64)
    attrs = {"size": [r.randint(1, 4), r.randint(1, 4)], "sampling_ratio": r.choice([0, 1, 2, 3]),
             "scale": r.choice([1.0, 0.5, 0.7]), "mode": r.choice(["avg", "avg", "max"]),
             "aligned": r.random() < 0.5}
    y, = onnx_run("RoiAlign", [x.astype(np.float64), boxes.astype(np.float64), batch], 1,
                  {"output_height": attrs["size"][0], "output_width": attrs["size"][1],
                   "sampling_ratio": attrs["sampling_ratio"], "spatial_scale": attrs["scale"],
                   "mode": attrs["mode"],
                   "coordinate_transformation_mode":
                       "half_pixel" if attrs["aligned"] else "output_half_pixel"})
    w.add("roi_align", attrs, [("x", x), ("boxes", boxes), ("batch", batch)], [y])


def non_max_suppression(w, r):
    n, c, k = r.randint(1, 2), r.randint(1, 3), r.randint(1, 12)
    corner = np.random.uniform(0, 4, (n, k, 2))
    boxes = np.concatenate([corner, corner + np.random.uniform(0.1, 3, (n, k, 2))], 2)
    centred = r.random() < 0.5
    if centred:
        boxes[:, :, 2:] -= boxes[:, :, :2]
    boxes = boxes.astype(np.float32)
    scores = np.random.random((n, c, k)).astype(np.float32)
    attrs = {"most": r.randint(1, 6), "most_overlap": r.choice([0.0, 0.25, 0.5]),
             "is_centred": centred}
    inputs = [boxes, scores, np.array([attrs["most"]], np.int64),
              np.array([attrs["most_overlap"]], np.float32)]
    if r.random() < 0.5:
        attrs["least_score"] = 0.25
        inputs.append(np.array([0.25], np.float32))
    y, = onnx_run("NonMaxSuppression", inputs, 1, {"center_point_box": int(centred)}, 11)
    w.add("non_max_suppression", attrs, [("boxes", boxes), ("scores", scores)],
          [y.reshape(-1, 3).astype(np.uint32)])


def dft(w, r):
    n = r.choice([1, 2, 3, 8, 31, 64, 100, 129, 131, 210, 256, 262, 400])
    shape = [r.randint(1, 3), n, r.randint(1, 2)]
    order = r.choice([[0, 1, 2], [1, 0, 2], [0, 2, 1]])
    complex_parts = r.choice([1, 2])
    x = floats(*[shape[i] for i in order], complex_parts)
    dim = order.index(1)
    length = r.choice([0, 0, 0, max(1, n - 1), n + 3])
    inverse = r.random() < 0.4
    onesided = not inverse and complex_parts == 1 and r.random() < 0.5
    attrs = {"dim": dim, "length": length, "inverse": inverse, "onesided": onesided}

    def run(x):
        re = x[..., 0]
        z = torch.complex(re, x[..., 1] if complex_parts == 2 else torch.zeros_like(re))
        size = length or n
        y = torch.fft.ifft(z, size, dim) if inverse else torch.fft.fft(z, size, dim)
        return torch.view_as_real(y.narrow(dim, 0, size // 2 + 1) if onesided else y)
    with_gradients(w, "dft", attrs, [("x", x)], run, [0])


def reordered(x, order, h):
    """Gates along the first dim in another order."""
    return np.concatenate([x[i * h:(i + 1) * h] for i in order])


def recurrent(w, r, op, order, back, extra):
    b, t, i, h = r.randint(1, 3), r.randint(1, 4), r.randint(1, 4), r.randint(1, 4)
    g = len(order)
    x, w_ih, w_hh = floats(b, t, i), floats(g * h, i), floats(g * h, h)
    b_ih, b_hh, h0 = floats(g * h), floats(g * h), floats(b, h)
    given = [x.transpose(1, 0, 2), reordered(w_ih, order, h)[None], reordered(w_hh, order, h)[None],
             np.concatenate([reordered(b_ih, order, h), reordered(b_hh, order, h)])[None], None,
             h0[None]]
    inputs = [("x", x), ("w_ih", w_ih), ("w_hh", w_hh), ("b_ih", b_ih), ("b_hh", b_hh), ("h0", h0)]
    attrs = {"hidden_size": h}
    if op == "LSTM":
        c0, p = floats(b, h), floats(3 * h)
        given += [c0[None], np.concatenate([p[:h], p[2 * h:], p[h:2 * h]])[None]]
        inputs += [("c0", c0), ("peepholes", p)]
    else:
        attrs["linear_before_reset"] = 0
    y = onnx_run(op, [x if x is None else x.astype(np.float64) for x in given], 2, attrs, 14)
    return inputs, [y[0][:, 0].transpose(1, 0, 2), y[1][0]], back, extra


def lstm(w, r):
    """With peepholes: ONNX's gates are i o f c, its peepholes i o f; these are i f g o, i f o. The
    reference does not give the last cell state, so it is computed here."""
    inputs, y, _, _ = recurrent(w, r, "LSTM", [0, 3, 1, 2], None, None)
    by = {name: x.astype(np.float64) for name, x in inputs}
    h, c, p = by["h0"], by["c0"], np.split(by["peepholes"], 3)

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))
    for t in range(by["x"].shape[1]):
        gates = by["x"][:, t] @ by["w_ih"].T + h @ by["w_hh"].T + by["b_ih"] + by["b_hh"]
        i, f, g, o = np.split(gates, 4, 1)
        c = sigmoid(f + p[1] * c) * c + sigmoid(i + p[0] * c) * np.tanh(g)
        h = sigmoid(o + p[2] * c) * np.tanh(c)
    assert np.allclose(h, y[1]), "the reference computes something else"
    w.add("lstm", {}, inputs, [y[0], y[1], c])


def gru(w, r):
    """ONNX's gates are z r h, these r z n."""
    inputs, y, _, _ = recurrent(w, r, "GRU", [1, 0, 2], None, None)
    w.add("gru", {"resets_before": True}, inputs, y)


OPERATIONS = [grid_sample, resize_antialiased, roi_align, non_max_suppression, dft, lstm, gru]


def main():
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 12
    r = random.Random(seed)
    np.random.seed(seed)
    w = Writer()
    for operation in OPERATIONS:
        for _ in range(count):
            operation(w, r)
    w.write(sys.argv[1])
    print(f"{len(w.cases)} cases")


if __name__ == "__main__":
    main()
