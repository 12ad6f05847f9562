"""wick convert: what it makes of a checkpoint is what other converters made of it: the fixtures of
families are taken apart into folders as Hugging Face has them, and converted back."""

import json
import os
import struct
import sys
import tempfile
from pathlib import Path

from command import MODEL, equal, fails, main, succeeds
from hf_folder import (ENCODERS, FIXTURES, SHARED, UNWRITTEN, Gguf, change, checkpoint_of,
                       fixture_path, take_apart, write_safetensors)


def is_near(a, b):
    pairs = zip(struct.iter_unpack("<f", a), struct.iter_unpack("<f", b))
    return len(a) == len(b) and all(abs(x - y) <= 1e-6 * abs(y) for (x,), (y,) in pairs)


def check_tensors(fixture, got, expected):
    """Byte for byte, except for what is computed: the divisors, and powers of e."""
    equal(set(got.tensors), set(expected.tensors))
    for name, tensor in expected.tensors.items():
        if name.startswith("rope_") or name.endswith(".ssm_a"):
            assert is_near(got.tensors[name][2], tensor[2]), fixture
        else:
            assert got.tensors[name] == tensor, (fixture, name)


def check_logits(described, folder):
    """The weights of the fixture and of the file made of it: the same bits, without powers of e."""
    fixture = described[0]
    tokens = fixture_path(fixture, "tokens").read_text().strip()
    rows = []
    for model in (fixture_path(fixture), f"{folder}/out.gguf"):
        out = Path(folder) / f"logits-{len(rows)}.npy"
        succeeds("logits", model, "--backend", "cpu", "--math", "exact", "--tokens", tokens,
                 "--out", out)
        rows.append(out.read_bytes())
    is_computed = "A_log" in described[3].get("ssm_a", "")
    assert is_computed or rows[0] == rows[1], fixture


def test_fixtures_come_back():
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    for n_files, fixture in [(n, fixture) for n in (1, 3) for fixture in FIXTURES]:
        with tempfile.TemporaryDirectory() as top:
            expected = take_apart(fixture, Path(top) / "tiny", n_files)
            succeeds("convert", f"{top}/tiny/", f"{top}/out.gguf")
            got = Gguf(f"{top}/out.gguf")
            equal(got.values["general.name"], "tiny")
            check_tensors(fixture[0], got, expected)
            for key, value in expected.values.items():
                if key in UNWRITTEN:
                    continue
                if key.startswith((expected.values["general.architecture"], "xielu.")) or \
                        key == "tokenizer.ggml.token_type_count":
                    equal((fixture[0], key, got.values.get(key)), (fixture[0], key, value))
            if n_files == 1 and fixture[1] not in ENCODERS:
                check_logits(fixture, top)
    return None


def test_multipliers():
    """Falcon-H1's are part of the weights: all of them 2 or 4 here, rows of Mamba's by part."""
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    names = ("embedding", "lm_head", "attention_in", "attention_out", "key", "ssm_in", "ssm_out")
    factors = {"token_embd": 2, "output": 2, "attn_q": 2, "attn_k": 4, "attn_v": 2,
               "attn_output": 2, "ffn_gate": 4, "ffn_down": 8, "ssm_out": 2}
    with tempfile.TemporaryDirectory() as top:
        fixture = next(fixture for fixture in FIXTURES if fixture[0] == "falcon-h1")
        expected = take_apart(fixture, Path(top) / "tiny")
        change(Path(top) / "tiny/config.json", lambda c: c.update(
            {f"{name}_multiplier": 2.0 for name in names}, mlp_multipliers=[4.0, 8.0],
            ssm_multipliers=[1.0, 2.0, 4.0, 8.0, 16.0]))
        succeeds("convert", f"{top}/tiny", f"{top}/out.gguf")
        got = Gguf(f"{top}/out.gguf").tensors
        for name, (shape, _, data) in expected.tensors.items():
            stem = name.split(".")[2 if name.startswith("blk.") else 0]
            rows = [factors.get(stem, 1)] * shape[0]
            if stem == "ssm_in":  # gate and x of 64 channels, B and C of 32, 4 steps
                rows = [2] * 64 + [4] * 64 + [8] * 32 + [16] * 32 + [32] * 4
            if stem == "ssm_a":
                continue
            values = [x for (x,) in struct.iter_unpack("<f", data)]
            width = len(values) // shape[0]
            scaled = [x * rows[i // width] for i, x in enumerate(values)]
            equal((name, got[name][2]), (name, struct.pack(f"<{len(scaled)}f", *scaled)))
        for edit, words in (({"tie_word_embeddings": True}, "'tie_word_embeddings' is true"),
                            ({"mamba_norm_before_gate": True}, "'mamba_norm_before_gate' is true"),
                            ({"ssm_multipliers": [1, 2, 3, 4]}, "'ssm_multipliers' must be"),
                            ({"key_multiplier": "x"}, "'key_multiplier' must be"),
                            ({"time_step_limit": [0.0, 0.1]}, "'time_step_limit' is not")):
            kept = (Path(top) / "tiny/config.json").read_text()
            change(Path(top) / "tiny/config.json", lambda c, edit=edit: c.update(edit))
            fails(1, words, arguments=["convert", f"{top}/tiny", f"{top}/out.gguf", "--force"])
            (Path(top) / "tiny/config.json").write_text(kept)
    return None


def test_text_of_wholes():
    """Of a model that sees pictures the text part."""
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    pictures = {name: ([2], bytes(8)) for name in
                ("vision_tower.x.weight", "multi_modal_projector.linear_1.weight")}
    beside = {"vision_config": {"hidden_size": 8, "frog": 1}, "image_token_index": 5,
              "mm_tokens_per_image": 4, "spatial_merge_size": 2, "torch_dtype": "bfloat16",
              "vision_feature_layer": -1, "multimodal_projector_bias": False}
    for name, whole, prefix in (("gemma3", "gemma3", "language_model."),
                                ("mistral3", "mistral3", "model.language_model."),
                                ("mistral", "mistral3", "language_model.")):
        with tempfile.TemporaryDirectory() as top:
            tiny, fixture = Path(top) / "tiny", next(f for f in FIXTURES if f[0] == name)
            expected = take_apart(fixture, tiny)
            tensors = checkpoint_of(expected, *fixture[1:4])
            renamed = {(prefix + key if prefix[0] == "l" else key.replace("model.", prefix)): tensor
                       for key, tensor in tensors.items()}
            write_safetensors(tiny / "model.safetensors", {**renamed, **pictures})
            config = json.loads((tiny / "config.json").read_text())
            tied = config.pop("tie_word_embeddings")
            config["tie_word_embeddings"] = not tied  # that of the whole counts
            whole_config = {**beside, "model_type": whole, "text_config": config,
                            "tie_word_embeddings": tied}
            (tiny / "config.json").write_text(json.dumps(whole_config))
            succeeds("convert", tiny, f"{top}/out.gguf")
            check_tensors(name, Gguf(f"{top}/out.gguf"), expected)
            for edit, words in (({"frog": 1}, "'frog' is 1:"),
                                ({"quantization_config": {"bits": 4}}, "quantization_config"),
                                ({"text_config": {**config, "frog": 2}}, "'frog' is 2:"),
                                ({"text_config": 5}, "cannot be converted")):
                (tiny / "config.json").write_text(json.dumps({**whole_config, **edit}))
                fails(1, words, arguments=["convert", tiny, f"{top}/out.gguf", "--force"])
    return None


def test_types():
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    with tempfile.TemporaryDirectory() as top:
        take_apart(FIXTURES[0], Path(top) / "tiny")
        for kind, number, file_type in (("F16", 1, 1), ("bf16", 30, 32), ("F32", 0, 0)):
            succeeds("convert", f"{top}/tiny", f"{top}/out.gguf", "--type", kind, "--force")
            got = Gguf(f"{top}/out.gguf")
            equal(got.tensors["blk.0.attn_q.weight"][1], number)
            equal(got.tensors["blk.0.attn_norm.weight"][1], 0)
            equal(got.values["general.file_type"], file_type)
        fails(2, "cannot convert to the type",
              arguments=["convert", f"{top}/tiny", f"{top}/x.gguf", "--type", "Q4_0"])
        fails(1, "--force replaces it", arguments=["convert", f"{top}/tiny", f"{top}/out.gguf"])
    return None


def test_no_folder():
    fails(1, "is a file, not a folder", "'wick quantize'", arguments=["convert", MODEL, "out.gguf"])
    fails(1, "there is no folder '/no/folder'", arguments=["convert", "/no/folder", "out.gguf"])


def test_refusals():
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    cases = [
        ("config.json", lambda c: c.update(model_type="frog"),
         ["'frog' cannot be converted", "llama", "gemma3_text"]),
        ("config.json", lambda c: c.pop("model_type"), "no model_type"),
        ("config.json", lambda c: c.pop("hidden_size"), "'hidden_size' is missing"),
        ("config.json", lambda c: c.pop("rms_norm_eps"), "'rms_norm_eps' is missing"),
        ("config.json", lambda c: c.update(num_attention_heads=0), "do not fit the heads"),
        ("config.json", lambda c: c.update(num_attention_heads=7), "do not fit the heads"),
        ("config.json", lambda c: c.update(num_hidden_layers=3),
         ["no whole model", "'blk.2.attn_norm.weight'"]),
        ("config.json", lambda c: c.update(num_hidden_layers=1),
         ["no whole model", "'blk.1.attn_norm.weight'"]),
        ("config.json", lambda c: c.update(num_hidden_layers=2**32 - 1),
         "there are 4294967295 layers"),
        ("config.json", lambda c: c.update(intermediate_size=95), ["no whole model", "ffn_down"]),
        ("config.json", lambda c: c.update(hidden_act="gelu"), "activation 'gelu'"),
        ("config.json", lambda c: c.update(partial_rotary_factor=2), "partial_rotary_factor"),
        ("config.json", lambda c: c.update(rope_scaling={"rope_type": "frog", "factor": 2}),
         "rotary scaling of the type 'frog'"),
        ("config.json", lambda c: c.update(rope_scaling={"type": "linear"}), "'factor' is missing"),
        ("config.json", lambda c: c.update(rope_scaling={"type": "linear", "factor": 0}),
         "must be positive"),
        ("config.json", lambda c: c.update(rope_scaling={"type": "yarn", "factor": 2}),
         "'original_max_position_embeddings' is missing"),
        ("config.json", lambda c: c.update(rope_scaling={
            "type": "yarn", "factor": 2, "mscale_all_dim": 3,
            "original_max_position_embeddings": 8}), "'mscale_all_dim'"),
        ("config.json", lambda c: c.update(rope_scaling={"type": "longrope", "long_factor": 1},
                                           original_max_position_embeddings=8), "no list"),
        ("config.json", lambda c: c.update(use_sliding_window=True), "use_sliding_window"),
        ("tokenizer.json", lambda c: c["model"].update(type="WordLevel"), "'WordLevel'"),
        ("tokenizer.json", lambda c: c["model"].update(type="Unigram"), "no model.vocab"),
        ("tokenizer.json", lambda c: c.update(
            model={"type": "Unigram", "vocab": [["a", 0]]}, normalizer={"type": "Lowercase"}),
         "the normalizer 'Lowercase'"),
        ("tokenizer.json", lambda c: c.update(
            model={"type": "Unigram", "vocab": [["a", 0]]},
            normalizer={"type": "Precompiled", "precompiled_charsmap": "?"}), "not base64"),
        ("tokenizer.json", lambda c: c.update(model={"type": "Unigram", "vocab": [["a"]]}),
         "a piece must be [text, score]"),
        ("tokenizer.json", lambda c: c.update(pre_tokenizer={"type": "Metaspace"}),
         "SentencePiece"),
        ("tokenizer.json", lambda c: c.update(pre_tokenizer={"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": "frog+"}}, {"type": "ByteLevel"}]}),
         "'frog+' is not known yet"),
        ("tokenizer.json", lambda c: c["model"]["merges"].append([1]), "merge 2"),
        ("tokenizer.json", lambda c: c["model"]["merges"].append(["a b", "ab"]), "merge 2"),
        ("tokenizer.json", lambda c: c["model"]["merges"].append("a zzz"),
         ["the folder has a tokenizer that does not open", "merge 2, 'a zzz', names a token that"]),
        ("tokenizer.json", lambda c: c["model"].update(merges=[]), "has no merges"),
        ("tokenizer.json", lambda c: c["added_tokens"][0].update(id=5000),
         ["has 5001 tokens", "rows"]),
        ("tokenizer.json", lambda c: c["model"]["vocab"].update(x=-1), "'x' has no id"),
        ("tokenizer.json", lambda c: c["added_tokens"][0].update(content=7), "has no text"),
        ("tokenizer.json", lambda c: c["added_tokens"][0].pop("content"), "has no text"),
        ("tokenizer_config.json", lambda c: c.update(chat_template=[{"name": "a.b"}]),
         "has no name"),
        ("tokenizer_config.json", lambda c: c.pop("bos_token"), "names no bos_token"),
        ("tokenizer_config.json", lambda c: c.update(add_eos_token=True, eos_token=None),
         "names no eos_token"),
        ("tokenizer_config.json", lambda c: c.update(eos_token={"content": "frog"}),
         "the eos_token 'frog', which the vocabulary does not have"),
    ]
    for file, edit, words in cases:
        with tempfile.TemporaryDirectory() as top:
            take_apart(FIXTURES[0], Path(top) / "tiny")
            change(Path(top) / "tiny" / file, edit)
            words = [words] if isinstance(words, str) else words
            fails(1, *words, arguments=["convert", f"{top}/tiny", f"{top}/out.gguf"])
            equal(sorted(os.listdir(top)), ["tiny"])
    return None


def test_folders_that_lie():
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    index = "model.safetensors.index.json"
    with tempfile.TemporaryDirectory() as top:
        tiny = Path(top) / "tiny"
        arguments = ["convert", tiny, f"{top}/out.gguf"]
        take_apart(FIXTURES[0], tiny, 2)
        first = "model-00001-of-00002.safetensors"
        for edit, words in (
                (lambda c: c.update(x="../../etc/passwd"), "in another folder"),
                (lambda c: c.update(x=first), f"'{first}' has no tensor 'x'"),
                (lambda c: c.update(x="none.safetensors"), "none.safetensors"),
                (lambda c: c.update(x=1), "'x' in the weight_map is not a file name"),
                (lambda c: c.clear(), "no weight_map")):
            kept = (tiny / index).read_text()
            change(tiny / index, lambda c: edit(c["weight_map"]))
            fails(1, words, arguments=arguments)
            (tiny / index).write_text(kept)
        second = (tiny / "model-00002-of-00002.safetensors").read_bytes()
        (tiny / "model-00002-of-00002.safetensors").write_bytes(second[:-8])
        fails(1, "model-00002-of-00002.safetensors", arguments=arguments)
        (tiny / index).write_text("{")
        fails(1, "index.json", arguments=arguments)
        (tiny / index).unlink()
        fails(1, "model.safetensors", "check the path", arguments=arguments)
        fails(1, "check the path", arguments=["convert", f"{top}/none", f"{top}/out.gguf"])
        equal(sorted(os.listdir(top)), ["tiny"])
    return None


def test_tensors_that_do_not_fit():
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    named = lambda name: next(fixture for fixture in FIXTURES if fixture[0] == name)
    expert = "model.layers.1.mlp.experts.2.up_proj.weight"
    xielu = "model.layers.1.mlp.act_fn.beta"
    cases = [
        ("apertus", lambda t: t.pop(xielu), "act_fn.beta' is missing"),
        ("apertus", lambda t: t.update({xielu: ([2], bytes(8))}), "or not one number"),
        ("llama", lambda t: t.pop("model.norm.weight"), "no tensor 'output_norm.weight'"),
        ("llama", lambda t: t.update(frog=([1], bytes(4))), "the tensor 'frog' is not known"),
        *(("llama", lambda t, name=name: t.update({name: ([1], bytes(4))}),
           f"the tensor '{name}' is not known")
          for name in ("model.layers..mlp.up_proj.weight",
                       "model.layers.0000000.mlp.up_proj.weight")),
        ("llama", lambda t: t.update({"model.layers.0.mlp.gate.weight": ([4, 64], bytes(1024))}),
         "blk.0.ffn_gate_inp.weight"),
        ("qwen3moe", lambda t: t.pop(expert), "part 2 of 'blk.1.ffn_up_exps.weight' is missing"),
        ("qwen3moe", lambda t: t.update({expert: ([64, 32], t[expert][1])}),
         "another type or shape"),
        ("qwen3moe", lambda t: t.update({expert.replace("2", "999999"): t[expert]}), "4096 parts"),
        ("qwen3moe", lambda t: t.update({expert.replace("2", "6"): t[expert]}), "[7, 32, 64]"),
        ("gpt2", lambda t: t.update({"h.0.attn.c_attn.weight": ([192], bytes(768))}),
         "is not a matrix"),
        ("gpt2", lambda t: t.update({"transformer.h.0.ln_1.weight": ([64], bytes(256))}),
         "are the same tensor"),
    ]
    for fixture, edit, words in cases:
        with tempfile.TemporaryDirectory() as top:
            tiny, (_, kind, layers, names, _, _) = Path(top) / "tiny", named(fixture)
            tensors = checkpoint_of(take_apart(named(fixture), tiny), kind, layers, names)
            edit(tensors)
            write_safetensors(tiny / "model.safetensors", tensors)
            fails(1, words, arguments=["convert", tiny, f"{top}/out.gguf"])
            equal(sorted(os.listdir(top)), ["tiny"])
    return None


def test_tied_outputs():
    """A tied output is not stored twice; one that is not tied must be there."""
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    named = lambda name: next(fixture for fixture in FIXTURES if fixture[0] == name)
    llama, tied, absent = named("llama"), named("llama-bias-tied"), "absent"
    for fixture, is_tied, has_output in (
            (llama, True, False), (llama, False, True), (llama, absent, True), (llama, None, True),
            (tied, True, False), (tied, False, None), (tied, absent, None), (tied, None, False),
            (named("gemma"), absent, False), (named("starcoder2"), absent, False)):
        with tempfile.TemporaryDirectory() as top:
            take_apart(fixture, Path(top) / "tiny")
            change(Path(top) / "tiny/config.json", lambda c: c.pop("tie_word_embeddings")
                   if is_tied == absent else c.update(tie_word_embeddings=is_tied))
            arguments = ["convert", f"{top}/tiny", f"{top}/out.gguf"]
            if has_output is None:
                fails(1, "tie_word_embeddings is false", arguments=arguments)
                continue
            succeeds(*arguments)
            equal("output.weight" in Gguf(f"{top}/out.gguf").tensors, has_output)
    return None


if __name__ == "__main__":
    sys.exit(main(globals()))
