#!/usr/bin/env python3
"""Writes the archives of tests/data/archives: .npz by NumPy, .pt as torch.save lays them out.

usage: make_archives.py FOLDER        needs numpy

The .pt files come from Python's pickle and zipfile: protocol 2, the classes under
the names that PyTorch gives them, storages as persistent ids, NAME/data.pkl, NAME/byteorder,
NAME/data/KEY, NAME/version. Every array counts 0, 1, 2 ... in its own order (bool: 0, 1, 0 ...)."""

import argparse
import collections
import io
import pickle
import sys
import types
import zipfile
from pathlib import Path

import numpy

TYPES = {"FloatStorage": "<f4", "HalfStorage": "<f2", "DoubleStorage": "<f8", "LongStorage": "<i8",
         "IntStorage": "<i4", "ShortStorage": "<i2", "CharStorage": "<i1", "ByteStorage": "<u1",
         "BoolStorage": "?", "BFloat16Storage": "<u2"}


def counted(dtype, *shape):
    n = int(numpy.prod(shape))
    values = numpy.arange(n) % 2 if dtype == "?" else numpy.arange(n)
    return values.astype(dtype).reshape(shape)


def arrays():
    return {"f4": counted("<f4", 2, 3), "f2": counted("<f2", 5), "big": counted(">f8", 2, 2),
            "fortran": numpy.asfortranarray(counted("<i2", 3, 4)), "bool": counted("?", 7),
            "scalar": counted("<i8"), "empty": counted("<u4", 0, 4),
            "layer.0/weight": counted("<f4", 40, 50), "u1": counted("<u1", 300)}


# ---- PyTorch's layout ----

torch = types.ModuleType("torch")
torch._utils = types.ModuleType("torch._utils")
for one in TYPES:
    setattr(torch, one, type(one, (), {"__module__": "torch"}))


def _rebuild_tensor_v2(*arguments):
    return arguments


_rebuild_tensor_v2.__module__ = "torch._utils"
_rebuild_tensor_v2.__qualname__ = "_rebuild_tensor_v2"
torch._utils._rebuild_tensor_v2 = _rebuild_tensor_v2


class Storage:
    def __init__(self, kind, values):
        self.kind = kind
        self.values = values


class Tensor:
    """A view of a storage."""

    def __init__(self, storage, offset, size, stride):
        self.parts = (storage, offset, tuple(size), tuple(stride), False,
                      collections.OrderedDict())

    def __reduce_ex__(self, protocol):
        return torch._utils._rebuild_tensor_v2, self.parts


def dense(kind, values, *size):
    stride = [int(numpy.prod(size[i + 1:])) for i in range(len(size))]
    return Tensor(Storage(kind, values), 0, size, stride)


def save(path, value, byteorder="little", protocol=2, compression=zipfile.ZIP_STORED):
    storages, name = [], path.stem

    class Pickler(pickle.Pickler):
        def persistent_id(self, thing):
            if not isinstance(thing, Storage):
                return None
            if thing not in storages:
                storages.append(thing)
            return ("storage", getattr(torch, thing.kind), str(storages.index(thing)), "cpu",
                    thing.values.size)

    sys.modules.update({"torch": torch, "torch._utils": torch._utils})
    data = io.BytesIO()
    Pickler(data, protocol=protocol).dump(value)
    with zipfile.ZipFile(path, "w", compression) as archive:
        def add(member, content):
            archive.writestr(zipfile.ZipInfo(f"{name}/{member}"), content, compression)
        add("data.pkl", data.getvalue())
        add("byteorder", byteorder)
        for i, storage in enumerate(storages):
            values = storage.values
            add(f"data/{i}", (values if byteorder == "little" else values.byteswap()).tobytes())
        add("version", "3\n")


def state_dict():
    shared = Storage("FloatStorage", counted("<f4", 24))
    state = collections.OrderedDict()
    state["fc.weight"] = Tensor(shared, 0, (2, 3), (3, 1))
    state["fc.transposed"] = Tensor(shared, 6, (3, 2), (1, 3))
    state["fc.row"] = Tensor(shared, 12, (2, 3), (0, 1))
    state["tied"] = state["fc.weight"]
    for kind, dtype in TYPES.items():
        values = counted(dtype, 6)
        if kind == "BFloat16Storage":
            values = (counted("<f4", 6).view("<u4") >> 16).astype("<u2")
        state[kind] = dense(kind, values, 2, 3)
    state["scalar"] = dense("LongStorage", counted("<i8", 1))
    state["empty"] = dense("FloatStorage", counted("<f4", 0), 0, 4)
    state._metadata = collections.OrderedDict({"": {"version": 1}})
    return state


def checkpoint():
    moment = dense("FloatStorage", counted("<f4", 4), 4)
    return {"epoch": 70000, "loss": 0.25, "name": "n\u00e4me", "big": -(1 << 40), "none": None,
            "state": {0: {"step": dense("FloatStorage", counted("<f4", 1)), "exp_avg": moment}},
            "groups": [{"lr": 1e-3, "betas": (0.9, 0.999), "params": [0, 1, 300], "fused": False}],
            "list": [moment, dense("ShortStorage", counted("<i2", 2), 2)]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    numpy.savez(folder / "stored.npz", **arrays())
    numpy.savez_compressed(folder / "deflated.npz", **arrays())
    save(folder / "state.pt", state_dict())
    save(folder / "big_endian.pt", state_dict(), byteorder="big")
    save(folder / "checkpoint.pt", checkpoint())
    save(folder / "protocol5.pt", checkpoint(), protocol=5)
    save(folder / "deflated.pt", state_dict(), compression=zipfile.ZIP_DEFLATED)
    save(folder / "single.pt", dense("FloatStorage", counted("<f4", 6), 2, 3))


if __name__ == "__main__":
    main()
