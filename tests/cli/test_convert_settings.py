"""wick convert: what config.json says beside sizes is computed, changes nothing, or is refused."""

import json
import math
import sys
import tempfile
from pathlib import Path

from command import fails, main, succeeds
from hf_configs import CONFIGS
from hf_folder import FIXTURES, SHARED, Gguf, change, fixture_path, take_apart

YARN = {"type": "yarn", "factor": 2.0, "original_max_position_embeddings": 8}
LONGROPE = {"type": "longrope", "original_max_position_embeddings": 32, "long_factor": [2.0] * 8,
            "short_factor": [1.0] * 8}


def taken_apart(name, top):
    """A folder of the fixture; the last of those of this name."""
    folder = Path(top) / "tiny"
    take_apart([fixture for fixture in FIXTURES if fixture[0] == name][-1], folder)
    return folder


def test_released_configs():
    """Each converts, with the sizes of a fixture."""
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    for fixture, name, config in CONFIGS:
        with tempfile.TemporaryDirectory() as top:
            folder = taken_apart(fixture, top)
            change(folder / "config.json",
                   lambda own: own.update({k: v for k, v in config.items() if k not in own}))
            print(f"# {name}")
            succeeds("convert", folder, f"{top}/out.gguf")
    return None


def test_refused_settings():
    """By name and value: what Wick does not compute, and what it does not know."""
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    cases = [
        ("llama", {"frog": 1}, "'frog' is 1:"),
        ("llama", {"frog": 0.5}, "'frog' is 0.5:"),
        ("llama", {"frog": "green"}, "'frog' is green:"),
        ("llama", {"frog": []}, "'frog' is []:"),
        ("llama", {"frog": [[[1]]]}, "'frog' is [...]:"),
        ("llama", {"clip_qkv": 8.0}, "'clip_qkv' is 8:"),
        ("llama", {"logit_scale": 0.5}, "'logit_scale' is 0.5:"),
        ("llama", {"norm_topk_prob": False}, "'norm_topk_prob' is false:"),
        ("llama", {"query_pre_attn_scalar": 16}, "'query_pre_attn_scalar' is 16:"),
        ("llama", {"layer_types": ["full_attention", "sliding_attention"]},
         "'layer_types' is [...]"),
        ("llama", {"quantization_config": {"bits": 4}}, "'quantization_config' is {...}"),
        ("llama", {"text_config": {"hidden_size": 8}}, "'text_config' is {...}"),
        ("llama", {"is_encoder_decoder": True}, "'is_encoder_decoder' is true"),
        ("llama", {"rope_interleaved": True}, "'rope_interleaved' is true"),
        ("llama", {"num_attention_heads": 4, "n_head": 2}, "'n_head' is 2:"),
        ("llama", {"rope_scaling": {"factor": 2.0}}, "'rope_scaling.factor' is 2:"),
        ("llama", {"rope_scaling": "linear"}, "'rope_scaling' is linear:"),
        ("llama", {"rope_scaling": {"type": "linear", "factor": 2.0, "frog": True}},
         "'rope_scaling.frog' is true:"),
        ("llama", {"rope_scaling": {"type": "linear", "rope_type": "yarn", "factor": 2.0,
                                    "original_max_position_embeddings": 8}},
         "'rope_scaling.type' is linear:"),
        ("llama", {"rope_scaling": {**YARN, "truncate": False}},
         "'rope_scaling.truncate' is false:"),
        ("llama", {"rope_scaling": {**YARN, "mscale": 1.0}}, "mscale"),
        ("llama", {"rope_parameters": {"full_attention": {"rope_theta": 1e4},
                                       "sliding_attention": {"rope_theta": 2e4}}},
         "'rope_parameters.sliding_attention' is {...}"),
        ("gemma3", {"rope_parameters": {"full_attention": {"rope_theta": 1e6},
                                        "sliding_attention": {"rope_theta": 2e4}}},
         "'rope_local_base_freq' is 10000:"),
        ("gemma3", {"rope_scaling": None, "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}}},
         "'rope_parameters.sliding_attention.rope_type' is linear:"),
        ("gemma3", {"attn_logit_softcapping": 50.0}, "'attn_logit_softcapping' is 50:"),
        ("gemma3", {"use_bidirectional_attention": True}, "'use_bidirectional_attention' is true:"),
        ("gemma2", {"rope_local_base_freq": 1e4}, "'rope_local_base_freq'"),
        ("gemma3", {"query_pre_attn_scalar": 0}, "query_pre_attn_scalar"),
        ("qwen3moe", {"decoder_sparse_step": 2}, "'decoder_sparse_step' is 2:"),
        ("qwen3moe", {"mlp_only_layers": [0]}, "'mlp_only_layers' is [0 ...]"),
        ("qwen3moe", {"num_local_experts": 3}, "'num_local_experts' is 3:"),
        ("qwen3moe", {"norm_topk_prob": "yes"}, "norm_topk_prob"),
        ("qwen2", {"use_sliding_window": True}, "'use_sliding_window' is true:"),
        ("afmoe", {"mup_enabled": False}, "'mup_enabled' is not true"),
        ("afmoe", {"route_norm": False}, "'route_norm' is not true"),
        ("exaone-moe", {"mlp_layer_types": ["dense", "sparse", "dense", "sparse"]},
         "mlp_layer_types"),
        ("exaone-moe", {"scoring_func": "softmax"}, "'scoring_func' is softmax:"),
        ("mistral3", {"rope_parameters": {"rope_type": "yarn", "rope_theta": 3e2, "factor": 4.0,
                                          "original_max_position_embeddings": 20, "mscale": 2.0}},
         "'mscale' of 2"),
        ("nemotron-h", {"hybrid_override_pattern": "M-*M"}, "for each layer"),
        ("nemotron_h_moe", {"hybrid_override_pattern": "ME*-ME"}, "layers with experts and layers"),
        ("nemotron-h", {"hybrid_override_pattern": "M-*Mx"}, "for each layer"),
        ("nemotron-h", {"hybrid_override_pattern": None, "layers_block_type": ["frog"] * 5},
         "the type 'frog'"),
        ("nemotron-h", {"mlp_hidden_act": "silu"}, "'mlp_hidden_act' is silu:"),
        ("nemotron-h", {"time_step_limit": [0.001, 0.1]}, "'time_step_limit' is not"),
        ("jamba", {"attn_layer_period": 0}, "'attn_layer_period' is 0"),
        ("olmoe", {"clip_qkv": 8.0}, "'clip_qkv' is 8:"),
        ("cohere2", {"use_parallel_block": False}, "'use_parallel_block' is false:"),
        ("arcee", {"hidden_act": "silu"}, "activation 'silu'"),
        ("apertus", {"hidden_act": "silu"}, "activation 'silu'"),
        ("apertus", {"post_norm": True}, "'post_norm' is true:"),
        ("minicpm3", {"scale_emb": 10}, "'scale_emb' is 10:"),
        ("minicpm3", {"scale_depth": 1.5}, "'scale_depth' is 1.5:"),
        ("minicpm3", {"dim_model_base": 128}, "'dim_model_base' is 128:"),
        ("cohere2moe", {"shared_expert_combination_strategy": "sum"}, "is sum:"),
        ("cohere2moe", {"expert_selection_fn": "frog"}, "expert_selection_fn"),
        ("cohere2moe", {"prefix_dense_sliding_window_pattern": 4}, "is 4:"),
        ("jais2", {"hidden_act": "silu"}, "activation 'silu'"),
        ("smollm3", {"no_rope_layers": [1, 1, 0, 1]}, "no_rope_layers"),
        ("smollm3", {"no_rope_layer_interval": 3}, "no_rope_layer_interval"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx"),
        ("gpt2", {"activation_function": "gelu"}, "activation 'gelu'"),
        ("gpt2", {"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_scaling"),
        ("gptneox", {"hidden_act": "gelu_fast"}, "activation 'gelu_fast'"),
        ("falcon-7b", {"parallel_attn": False}, "'parallel_attn' is false:"),
        ("falcon-7b", {"alibi": True}, "'alibi' is true:"),
        ("bert", {"position_embedding_type": "relative_key"},
         "'position_embedding_type' is relative_key:"),
        ("llama", {"partial_rotary_factor": 0.5}, "rotate whole heads"),
        ("llama", {"rope_scaling": {"type": 5, "factor": 2.0}}, "'rope_scaling.type' is 5:"),
        ("qwen2", {"rope_scaling": {**LONGROPE, "long_factor": [0] * 8}}, "divisors must be"),
        ("qwen2", {"rope_scaling": {**LONGROPE, "long_factor": [1e99] * 8}}, "divisors must be"),
        ("phi3-longrope", {"rope_scaling": {"type": "longrope", "factor": 77.0,
                                            "long_factor": [1.0] * 8, "short_factor": [1.0] * 8}},
         "'factor' of 77"),
    ]
    for fixture, settings, words in cases:
        with tempfile.TemporaryDirectory() as top:
            folder = taken_apart(fixture, top)
            change(folder / "config.json", lambda own: own.update(settings))
            print(f"# {settings}")
            fails(1, words, arguments=["convert", folder, f"{top}/out.gguf"])
    return None


def written(fixture, edit, expected):
    """What the file says of the architecture once config.json was edited. None: nothing."""
    with tempfile.TemporaryDirectory() as top:
        folder = taken_apart(fixture, top)
        change(folder / "config.json", edit)
        print(f"# {fixture}: {expected}")
        succeeds("convert", folder, f"{top}/out.gguf")
        values = Gguf(f"{top}/out.gguf").values
        prefix = values["general.architecture"] + "."
        got = {key: values.get(prefix + key) for key in expected}
        assert got == expected, f"{fixture}: {got}"


def test_written_settings():
    """What a key becomes."""
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    cases = [
        ("qwen3moe", {"norm_topk_prob": False}, {"expert_weights_norm": False}),
        ("qwen2moe", {"norm_topk_prob": True}, {"expert_weights_norm": True}),
        ("gemma3", {"query_pre_attn_scalar": 64}, {"attention.scale": 0.125}),
        ("gemma2", {"query_pre_attn_scalar": 16}, {"attention.scale": 0.25}),
        ("gemma2", {"attn_logit_softcapping": None, "final_logit_softcapping": None},
         {"attn_logit_softcapping": 0, "final_logit_softcapping": 0}),
        ("gemma2", {"sliding_window": 8, "sliding_window_size": 8},
         {"attention.sliding_window": 8}),
        ("gemma3", {"sliding_window_pattern": 2}, {"attention.sliding_window_pattern": 2}),
        ("cohere2moe", {"expert_selection_fn": "softmax"}, {"expert_gating_func": 3}),
        ("cohere2moe", {"expert_selection_fn": "sigmoid"}, {"expert_gating_func": 2}),
        ("minicpm3", {"v_head_dim": 8}, {"attention.value_length": 8, "attention.key_length": 12}),
        ("nemotron-h", {"hybrid_override_pattern": None, "layers_block_type": [
            "linear_attention", "mlp", "full_attention", "mamba", "mlp"]},
         {"attention.head_count_kv": [0, 0, 2, 0, 0]}),
        ("afmoe", {"global_attn_every_n_layers": 2}, {"attention.sliding_window_pattern": 2}),
        ("exaone-moe", {"mlp_layer_types": ["dense", *["sparse"] * 3], "first_k_dense_replace": 9},
         {"leading_dense_block_count": 1}),
        ("exaone-moe", {"n_group": 2, "topk_group": 1}, {"expert_group_count": 2}),
        ("gemma3", {"_sliding_window_pattern": 3}, {"attention.sliding_window_pattern": 3}),
        ("mistral", {"sliding_window": 8}, {"attention.sliding_window": 8}),
        ("mistral", {"sliding_window": None}, {"attention.sliding_window": None}),
        ("mixtral", {"sliding_window": 8}, {"attention.sliding_window": 8}),
        ("starcoder2", {"sliding_window": 8}, {"attention.sliding_window": 8}),
        ("qwen2", {"sliding_window": 8}, {"attention.sliding_window": None}),
        ("qwen2", {"partial_rotary_factor": 0.5}, {"rope.dimension_count": 8}),
        ("llama", {"rope_scaling": {**YARN, "truncate": True}}, {"rope.scaling.type": "yarn"}),
        ("llama", {"rope_scaling": {**YARN, "attn_factor": 0.5,
                                    "attention_factor": 1 + 0.1 * math.log(2)}},
         {"rope.scaling.type": "yarn", "rope.scaling.attn_factor": None}),
        ("llama", {"rope_scaling": {**YARN, "factor": 1.0, "attention_factor": 0.5}},
         {"rope.scaling.attn_factor": 0.5}),
        ("gptneox", {"rope_theta": None, "rotary_emb_base": 2e4}, {"rope.freq_base": 2e4}),
        ("phi3-longrope", {"hidden_act": "silu"}, {"rope.scaling.factor": None}),
        ("qwen2", {"rope_scaling": LONGROPE}, {"rope.scaling.original_context_length": 32}),
        ("qwen2", {"rope_scaling": {**LONGROPE, "factor": 77.0, "attention_factor": 1.5}},
         {"rope.scaling.attn_factor": 1.5}),
        ("olmo3", {"rope_theta": None, "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": 2e4},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}},
         {"rope.freq_base": 2e4, "rope.freq_base_swa": 1e4}),
    ]
    for fixture, settings, expected in cases:
        written(fixture, lambda own, new=settings: own.update(new), expected)
    return None


def test_absent_settings():
    """They are what Hugging Face's class has for them, which is not always what GGUF has."""
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    scaling = "rope.scaling.original_context_length"
    cases = [
        ("qwen3moe", "norm_topk_prob", {"expert_weights_norm": False}),
        ("qwen2moe", "norm_topk_prob", {"expert_weights_norm": False}),
        ("phi2", "partial_rotary_factor", {"rope.dimension_count": 8}),
        ("glm4", "partial_rotary_factor", {"rope.dimension_count": 8}),
        ("stablelm", "partial_rotary_factor", {"rope.dimension_count": 4}),
        ("gptneox", "rotary_pct", {"rope.dimension_count": 4}),
        ("gptneox", "use_parallel_residual", {"use_parallel_residual": True}),
        ("nemotron", "partial_rotary_factor", {"rope.dimension_count": 4}),
        ("olmoe", "norm_topk_prob", {"expert_weights_norm": False}),
        ("exaone4", "sliding_window", {"attention.sliding_window": 4096}),
        ("nemotron-h", "num_hidden_layers", {"block_count": 5}),
        ("jamba", "num_experts_per_tok", {"expert_used_count": 2}),
        ("apertus", "rope_theta", {"rope.freq_base": 1.2e7}),
        ("cohere2moe", "expert_selection_fn", {"expert_gating_func": 3}),
        ("cohere2moe", "logit_scale", {"logit_scale": 0.0625}),
        ("afmoe", "num_dense_layers", {"leading_dense_block_count": 1}),
        ("afmoe", "route_scale", {"expert_weights_scale": 1.0}),
        ("afmoe", "route_norm", {"expert_weights_norm": True}),
        ("afmoe", "sliding_window", {"attention.sliding_window": 1024}),
        ("exaone-moe", "sliding_window", {"attention.sliding_window": 4096}),
        ("exaone-moe", "routed_scaling_factor", {"expert_weights_scale": 2.5}),
        ("exaone-moe", "first_k_dense_replace", {"leading_dense_block_count": 1}),
        ("glm4", "num_key_value_heads", {"attention.head_count_kv": 2}),
        ("starcoder2", "num_key_value_heads", {"attention.head_count_kv": 2}),
        ("falcon-7b", "multi_query", {"attention.head_count_kv": 1}),
        ("mixtral", "rope_theta", {"rope.freq_base": 1e6}),
        ("smollm3", "rope_theta", {"rope.freq_base": 2e6}),
        ("gemma3", "rope_theta", {"rope.freq_base": 1e6}),
        ("gemma3", "rope_local_base_freq", {"rope.freq_base_swa": None}),
        ("mistral", "sliding_window", {"attention.sliding_window": 4096}),
        ("gemma2", "sliding_window", {"attention.sliding_window": 4096}),
        ("olmo3", "sliding_window", {"attention.sliding_window": 4096}),
        ("gemma2", "query_pre_attn_scalar", {"attention.scale": 0.0625}),
        ("gemma3", "query_pre_attn_scalar", {"attention.scale": 0.0625}),
        ("gemma2", "attn_logit_softcapping", {"attn_logit_softcapping": 50.0}),
        ("gemma2", "final_logit_softcapping", {"final_logit_softcapping": 30.0}),
        ("olmo", "layer_norm_eps", {"attention.layer_norm_epsilon": 9.999999747378752e-06}),
        ("granite", "residual_multiplier", {"residual_scale": 1.0}),
        ("command-r", "logit_scale", {"logit_scale": 0.0625}),
        ("phi3-longrope", "original_max_position_embeddings", {scaling: 4096}),
    ]
    for fixture, key, expected in cases:
        written(fixture, lambda own, gone=key: own.pop(gone, None), expected)
    refused = [("command-r", "rope_theta", "'rope_theta' is missing"),
               ("olmo3", "rope_theta", "'rope_theta' is missing"),
               ("qwen3", "head_dim", "must have [128]"),
               ("gemma", "head_dim", "blk.0.attn_"),
               ("cohere2moe", "layer_types", "'layer_types' is missing"),
               ("afmoe", "mup_enabled", "'mup_enabled' is not true"),
               ("gpt2", "n_positions", "128 rows for a context of 1024")]
    for fixture, key, words in refused:
        with tempfile.TemporaryDirectory() as top:
            folder = taken_apart(fixture, top)
            change(folder / "config.json", lambda own, gone=key: own.pop(gone))
            print(f"# {fixture} without {key}")
            fails(1, words, arguments=["convert", folder, f"{top}/out.gguf"])
    return None


def test_computed_settings():
    """Logits are others with the setting than without it."""
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    cases = [("qwen3moe", {"norm_topk_prob": False}), ("gemma3", {"query_pre_attn_scalar": 1}),
             ("gemma2", {"query_pre_attn_scalar": 1}), ("gemma2", {"attn_logit_softcapping": None}),
             ("gemma3", {"sliding_window_pattern": 2}), ("mistral", {"sliding_window": 2}),
             ("starcoder2", {"sliding_window": 2}), ("qwen2", {"partial_rotary_factor": 0.5})]
    for fixture, settings in cases:
        tokens = fixture_path(fixture, "tokens").read_text().strip()
        with tempfile.TemporaryDirectory() as top:
            folder = taken_apart(fixture, top)
            rows = []
            for more in ({}, settings):
                change(folder / "config.json", lambda own: own.update(more))
                succeeds("convert", folder, f"{top}/out.gguf", "--force")
                succeeds("logits", f"{top}/out.gguf", "--backend", "cpu", "--tokens", tokens,
                         "--out", f"{top}/rows.npy")
                rows.append(Path(f"{top}/rows.npy").read_bytes())
            assert rows[0] != rows[1], f"{fixture}: {settings}"
    return None


def test_pooling():
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    with tempfile.TemporaryDirectory() as top:
        folder = taken_apart("bert", top)
        arguments = ["convert", folder, f"{top}/out.gguf"]
        for modes, words in ((["mean_tokens", "cls_token"], "beside another mode"),
                             (["max_tokens"], "'pooling_mode_max_tokens' cannot"), ([], None)):
            (folder / "1_Pooling/config.json").write_text(
                json.dumps({f"pooling_mode_{mode}": True for mode in modes}))
            if words:
                fails(1, words, arguments=arguments)
            else:
                succeeds(*arguments)
                assert "bert.pooling_type" not in Gguf(f"{top}/out.gguf").values
        modules = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in
                   (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))]
        dense = {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}
        for listed, words in ((modules, None),
                              ([*modules[:2], dense], "models.Dense' in '2_Dense'"),
                              ([{**modules[1], "path": "3_Pooling"}], "in '3_Pooling'"),
                              ([{"path": "x"}], "module '' in 'x'")):
            (folder / "modules.json").write_text(json.dumps(listed))
            if words:
                fails(1, words, arguments=arguments)
            else:
                succeeds(*arguments, "--force")
    return None


def test_names_of_the_number_of_experts():
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    for fixture, old, new in (("qwen3moe", "num_experts", "num_local_experts"),
                              ("mixtral", "num_local_experts", "num_experts")):
        with tempfile.TemporaryDirectory() as top:
            folder = taken_apart(fixture, top)
            change(folder / "config.json", lambda own: own.update({new: own.pop(old)}))
            succeeds("convert", folder, f"{top}/out.gguf")
    return None


if __name__ == "__main__":
    sys.exit(main(globals()))
