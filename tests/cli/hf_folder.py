"""Fixtures of families taken apart into folders as Hugging Face has them; GGUF files read back."""

import json
import math
import os
import re
import struct
from pathlib import Path

from command import DATA

SHARED = os.environ.get("WICK_SHARED_DATA")

DECODER = {
    "token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head",
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_qkv": "self_attn.qkv_proj", "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    "ffn_gate_inp": "mlp.gate", "ffn_gate_exps": "mlp.experts.#.gate_proj",
    "ffn_up_exps": "mlp.experts.#.up_proj", "ffn_down_exps": "mlp.experts.#.down_proj",
    "ffn_gate_shexp": "mlp.shared_expert.gate_proj", "ffn_up_shexp": "mlp.shared_expert.up_proj",
    "ffn_down_shexp": "mlp.shared_expert.down_proj", "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
}
MIXTRAL = {**DECODER, "ffn_gate_inp": "block_sparse_moe.gate",
           "ffn_gate_exps": "block_sparse_moe.experts.#.w1",
           "ffn_up_exps": "block_sparse_moe.experts.#.w3",
           "ffn_down_exps": "block_sparse_moe.experts.#.w2"}
NORMED = {**DECODER, "post_attention_norm": "post_attention_layernorm",
          "ffn_norm": "pre_feedforward_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}
GLM4 = {**DECODER, "ffn_up": "mlp.gate_up_proj", "post_attention_norm": "post_self_attn_layernorm",
        "post_ffw_norm": "post_mlp_layernorm"}
SHARED_EXPERTS = {f"ffn_{part}_shexp": f"mlp.shared_experts.{part}_proj"
                  for part in ("gate", "up", "down")}
EXAONE_MOE = {**DECODER, **SHARED_EXPERTS, "exp_probs_b": "mlp.e_score_correction_bias$"}
AFMOE = {**NORMED, **SHARED_EXPERTS, "ffn_norm": "pre_mlp_layernorm",
         "post_ffw_norm": "post_mlp_layernorm", "attn_gate": "self_attn.gate_proj",
         "ffn_gate_inp": "mlp.router.gate", "exp_probs_b": "mlp.expert_bias$"}
APERTUS = {**DECODER, "attn_norm": "attention_layernorm", "ffn_norm": "feedforward_layernorm"}
EUROBERT = {**DECODER, "output_norm": "norm", "token_embd": "embed_tokens"}
MINICPM3 = {**DECODER, "attn_q_a": "self_attn.q_a_proj", "attn_q_a_norm": "self_attn.q_a_layernorm",
            "attn_q_b": "self_attn.q_b_proj", "attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa",
            "attn_kv_a_norm": "self_attn.kv_a_layernorm", "attn_kv_b": "self_attn.kv_b_proj"}
MAMBA = {**{f"ffn_{part}": f"feed_forward.{part}_proj" for part in ("gate", "up", "down")},
         "output_norm": "model.final_layernorm", "ssm_in": "mamba.in_proj",
         "ssm_conv1d": "mamba.conv1d", "ssm_a": "mamba.A_log$", "ssm_d": "mamba.D$",
         "ssm_out": "mamba.out_proj"}
FALCON_H1 = {**DECODER, **MAMBA, "ffn_norm": "pre_ff_layernorm.weight$", "ssm_dt": "mamba.dt_bias$",
             "ssm_norm": "mamba.norm"}
JAMBA = {**DECODER, **MAMBA, "ffn_norm": "pre_ff_layernorm", "ffn_gate_inp": "feed_forward.router",
         **{f"ffn_{part}_exps": f"feed_forward.experts.#.{part}_proj"
            for part in ("gate", "up", "down")},
         "ssm_x": "mamba.x_proj", "ssm_dt": "mamba.dt_proj", "ssm_dt_norm": "mamba.dt_layernorm",
         "ssm_b_norm": "mamba.b_layernorm", "ssm_c_norm": "mamba.c_layernorm"}
SSM = {"ssm.inner_size": "mamba_d_ssm", "ssm.state_size": "mamba_d_state",
       "ssm.group_count": "mamba_n_groups", "ssm.time_step_rank": "mamba_n_heads",
       "ssm.conv_kernel": "mamba_d_conv"}
NEMOTRON_H = {"token_embd": "backbone.embeddings", "output_norm": "backbone.norm_f",
              "output": "lm_head", "attn_norm": "norm", "ssm_in": "mixer.in_proj",
              "ssm_conv1d": "mixer.conv1d", "ssm_a": "mixer.A_log$", "ssm_d": "mixer.D$",
              "ssm_dt": "mixer.dt_bias$", "ssm_norm": "mixer.norm", "ssm_out": "mixer.out_proj",
              "attn_q": "mixer.q_proj", "attn_k": "mixer.k_proj", "attn_v": "mixer.v_proj",
              "attn_output": "mixer.o_proj", "ffn_up": "mixer.up_proj",
              "ffn_down": "mixer.down_proj", "ffn_gate_inp": "mixer.gate",
              "exp_probs_b": "mixer.gate.e_score_correction_bias$",
              "ffn_up_exps": "mixer.experts.#.up_proj",
              "ffn_down_exps": "mixer.experts.#.down_proj",
              "ffn_up_shexp": "mixer.shared_experts.up_proj",
              "ffn_down_shexp": "mixer.shared_experts.down_proj"}
PHI = {**DECODER, "attn_output": "self_attn.dense", "ffn_up": "mlp.fc1", "ffn_down": "mlp.fc2",
       "output_norm": "model.final_layernorm"}
STABLELM = {**DECODER, "attn_q_norm": "self_attn.q_layernorm.norms.#",
            "attn_k_norm": "self_attn.k_layernorm.norms.#"}
GPT2 = {"token_embd": "transformer.wte", "position_embd": "transformer.wpe",
        "output_norm": "transformer.ln_f", "attn_norm": "ln_1", "attn_qkv": "attn.c_attn",
        "attn_output": "attn.c_proj", "ffn_norm": "ln_2", "ffn_up": "mlp.c_fc",
        "ffn_down": "mlp.c_proj"}
NEOX = {"token_embd": "gpt_neox.embed_in", "output_norm": "gpt_neox.final_layer_norm",
        "output": "embed_out", "attn_norm": "input_layernorm",
        "ffn_norm": "post_attention_layernorm", "attn_qkv": "attention.query_key_value",
        "attn_output": "attention.dense", "ffn_up": "mlp.dense_h_to_4h",
        "ffn_down": "mlp.dense_4h_to_h"}
FALCON = {"token_embd": "transformer.word_embeddings", "output_norm": "transformer.ln_f",
          "attn_norm": "input_layernorm", "attn_qkv": "self_attention.query_key_value",
          "attn_output": "self_attention.dense", "ffn_up": "mlp.dense_h_to_4h",
          "ffn_down": "mlp.dense_4h_to_h"}
BERT = {
    "token_embd": "embeddings.word_embeddings", "position_embd": "embeddings.position_embeddings",
    "token_types": "embeddings.token_type_embeddings", "token_embd_norm": "embeddings.LayerNorm",
    "attn_q": "attention.self.query", "attn_k": "attention.self.key",
    "attn_v": "attention.self.value", "attn_output": "attention.output.dense",
    "attn_output_norm": "attention.output.LayerNorm", "ffn_up": "intermediate.dense",
    "ffn_down": "output.dense", "layer_output_norm": "output.LayerNorm",
}
MOE = {"expert_count": "num_experts", "expert_used_count": "num_experts_per_tok",
       "expert_feed_forward_length": "moe_intermediate_size",
       "expert_shared_feed_forward_length": "shared_expert_intermediate_size"}
EXPERTS = {**MOE, "expert_shared_feed_forward_length": None,
           "expert_shared_count": "num_shared_experts",
           "expert_weights_scale": "routed_scaling_factor", "expert_weights_norm": "norm_topk_prob"}


def scaling_of_gemma3(config):
    """As transformers 5 writes it: for each kind of layer."""
    config["rope_parameters"] = {
        "full_attention": {**config.pop("rope_scaling"), "rope_theta": config.pop("rope_theta")},
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}


def windows_of_olmo3(config):
    config["layer_types"] = ["sliding_attention" if is_windowed else "full_attention"
                             for is_windowed in config.pop("pattern")]


def warmth_of_ministral3(config):
    config["rope_parameters"] = {
        **config.pop("rope_scaling"), "rope_theta": config.pop("rope_theta"), "mscale": 1.0,
        "mscale_all_dim": config.pop("multiplier"), "llama_4_scaling_beta": config.pop("warmth"),
        "original_max_position_embeddings": config.pop("original")}


def latent_of_minicpm3(config):
    config.update(qk_nope_head_dim=config.pop("head_dim") - config["qk_rope_head_dim"],
                  scale_emb=12, scale_depth=1.4, dim_model_base=256)
    config["rope_scaling"]["original_max_position_embeddings"] = config["max_position_embeddings"]


def experts_of_cohere2(config):
    """Layers with experts have those of intermediate_size."""
    config.update(prefix_dense_intermediate_size=config["intermediate_size"],
                  intermediate_size=config.pop("moe_intermediate_size"),
                  expert_selection_fn="sigmoid", layer_norm_eps=config["rms_norm_eps"])
    windows_of_olmo3(config)


def layers_of_jamba(config):
    config.update(mamba_expand=config.pop("mamba_d_ssm") // config["hidden_size"],
                  mamba_dt_rank=config.pop("mamba_n_heads"),
                  num_key_value_heads=max(config["num_key_value_heads"]), attn_layer_period=4,
                  attn_layer_offset=1)


def blocks_of_nemotron(config):
    sizes = [max(config[key]) for key in ("num_key_value_heads", "intermediate_size")]
    kinds = zip(config["num_key_value_heads"], config["intermediate_size"])
    mlp = "E" if "n_routed_experts" in config else "-"
    config.update(hybrid_override_pattern="".join("*" if kv else mlp if ff else "M"
                                                  for kv, ff in kinds),
                  num_key_value_heads=sizes[0], intermediate_size=sizes[1],
                  mamba_head_dim=config.pop("mamba_d_ssm") // config["mamba_num_heads"])


def parts_of_rope(factor):
    return lambda config: config.update(partial_rotary_factor=factor)


# A fixture's name, its model_type, the names of its tensors in the checkpoint, keys of its own in
# config.json, what else is done to config.json.
FIXTURES = [
    ("llama", "llama", "model.layers.", DECODER, {}, None),
    ("llama-bias-tied", "llama", "model.layers.", DECODER, {}, None),
    ("llama-rope-linear", "llama", "model.layers.", DECODER, {}, None),
    ("llama-rope-llama3", "llama", "model.layers.", DECODER, {}, None),
    ("llama-rope-yarn", "llama", "model.layers.", DECODER, {}, None),
    ("mistral", "mistral", "model.layers.", DECODER, {}, lambda c: c.update(sliding_window=None)),
    ("qwen2", "qwen2", "model.layers.", DECODER, {}, None),
    ("qwen3", "qwen3", "model.layers.", DECODER, {}, None),
    ("bert", "bert", "encoder.layer.", BERT,
     {"block_count": "num_hidden_layers"}, lambda c: c.update(hidden_act="gelu")),
    ("mixtral", "mixtral", "model.layers.", MIXTRAL,
     {**MOE, "expert_count": "num_local_experts"}, None),
    ("qwen2moe", "qwen2_moe", "model.layers.", DECODER, MOE, None),
    ("qwen3moe", "qwen3_moe", "model.layers.", DECODER, MOE,
     lambda c: c.update(norm_topk_prob=True)),
    ("smollm3", "smollm3", "model.layers.", DECODER, {}, None),
    ("granite", "granite", "model.layers.", DECODER,
     {"attention.scale": "attention_multiplier", "embedding_scale": "embedding_multiplier",
      "residual_scale": "residual_multiplier", "logit_scale": "logits_scaling"}, None),
    ("gemma", "gemma", "model.layers.", DECODER, {},
     lambda c: c.update(hidden_act="gelu", hidden_activation=None)),
    ("gemma2", "gemma2", "model.layers.", NORMED,
     {"attn_logit_softcapping": "attn_logit_softcapping",
      "final_logit_softcapping": "final_logit_softcapping",
      "attention.sliding_window": "sliding_window"},
     lambda c: c.update(hidden_activation="gelu_pytorch_tanh")),
    ("gemma3", "gemma3_text", "model.layers.", NORMED,
     {"attention.sliding_window": "sliding_window"}, scaling_of_gemma3),
    ("gemma3", "gemma3_text", "model.layers.", NORMED,
     {"attention.sliding_window": "sliding_window", "rope.freq_base_swa": "rope_local_base_freq"},
     None),
    ("phi2", "phi", "model.layers.", PHI, {}, parts_of_rope(0.5)),
    ("phi3", "phi3", "model.layers.", {**DECODER, "ffn_up": "mlp.gate_up_proj"},
     {"attention.sliding_window": "sliding_window",
      "rope.scaling.original_context_length": "original_max_position_embeddings"}, None),
    ("phi3-longrope", "phi3", "model.layers.", {**DECODER, "ffn_up": "mlp.gate_up_proj"},
     {"attention.sliding_window": "sliding_window",
      "rope.scaling.original_context_length": "original_max_position_embeddings"}, None),
    ("olmo", "olmo", "model.layers.", DECODER, {"attention.clamp_kqv": "clip_qkv"}, None),
    ("olmo2", "olmo2", "model.layers.", NORMED, {}, None),
    ("olmo3", "olmo3", "model.layers.", NORMED,
     {"attention.sliding_window": "sliding_window", "attention.sliding_window_pattern": "pattern"},
     windows_of_olmo3),
    ("mistral3", "ministral3", "model.layers.", DECODER,
     {"rope.scaling.yarn_log_multiplier": "multiplier", "attention.temperature_scale": "warmth",
      "rope.dimension_count": "head_dim", "rope.scaling.original_context_length": "original"},
     warmth_of_ministral3),
    ("exaone-moe", "exaone_moe", "model.layers.", EXAONE_MOE,
     {**EXPERTS, "attention.sliding_window": "sliding_window",
      "leading_dense_block_count": "first_k_dense_replace"}, None),
    ("afmoe", "afmoe", "model.layers.", AFMOE,
     {**EXPERTS, "attention.sliding_window": "sliding_window",
      "expert_weights_scale": "route_scale", "expert_weights_norm": "route_norm",
      "leading_dense_block_count": "num_dense_layers",
      "rope.dimension_count": "head_dim"}, lambda c: c.update(mup_enabled=True)),
    ("command-r", "cohere", "model.layers.", DECODER, {"logit_scale": "logit_scale"}, None),
    ("cohere2moe", "cohere2_moe", "model.layers.", {**DECODER, **SHARED_EXPERTS},
     {**EXPERTS, "attention.sliding_window": "sliding_window", "logit_scale": "logit_scale",
      "attention.sliding_window_pattern": "pattern", "rope.dimension_count": "head_dim",
      "leading_dense_block_count": "first_k_dense_replace"}, experts_of_cohere2),
    ("apertus", "apertus", "model.layers.", APERTUS, {},
     lambda c: c.update(rope_scaling={"rope_type": "default"}, hidden_act="xielu")),
    ("minicpm3", "minicpm3", "model.layers.", MINICPM3,
     {"attention.q_lora_rank": "q_lora_rank", "attention.kv_lora_rank": "kv_lora_rank",
      "rope.dimension_count": "qk_rope_head_dim"}, latent_of_minicpm3),
    ("jais2", "jais2", "model.layers.", DECODER, {}, lambda c: c.update(hidden_act="relu2")),
    ("eurobert", "eurobert", "layers.", EUROBERT, {}, None),
    *((name, "falcon_h1", "model.layers.", FALCON_H1, {**SSM, "rope.dimension_count": "head_dim"},
       lambda c: c.update(mamba_norm_before_gate=False))
      for name in ("falcon-h1", "falcon-h1-plain")),
    ("jamba", "jamba", "model.layers.", JAMBA, {**MOE, **SSM}, layers_of_jamba),
    *((name, "nemotron_h", "backbone.layers.", NEMOTRON_H,
       {**EXPERTS, "ssm.inner_size": "mamba_d_ssm", "ssm.state_size": "ssm_state_size",
        "ssm.group_count": "n_groups", "ssm.time_step_rank": "mamba_num_heads",
        "ssm.conv_kernel": "conv_kernel", "expert_count": "n_routed_experts",
        "expert_shared_feed_forward_length": "moe_shared_expert_intermediate_size",
        "expert_shared_count": "n_shared_experts", "attention.layer_norm_rms_epsilon": None,
        "attention.layer_norm_epsilon": "layer_norm_epsilon"}, blocks_of_nemotron)
      for name in ("nemotron-h", "nemotron_h_moe")),
    ("exaone4", "exaone4", "model.layers.", NORMED,
     {"attention.sliding_window": "sliding_window", "attention.sliding_window_pattern": "pattern"},
     windows_of_olmo3),
    ("cohere2", "cohere2", "model.layers.", DECODER,
     {"attention.sliding_window": "sliding_window", "attention.sliding_window_pattern": "pattern",
      "logit_scale": "logit_scale"}, windows_of_olmo3),
    ("arcee", "arcee", "model.layers.", DECODER, {}, lambda c: c.update(hidden_act="relu2")),
    ("seed_oss", "seed_oss", "model.layers.",
     {**DECODER, "post_attention_norm": "post_attention_layernorm"}, {}, None),
    ("olmoe", "olmoe", "model.layers.", DECODER,
     {"expert_count": "num_experts", "expert_used_count": "num_experts_per_tok",
      "expert_weights_norm": "norm_topk_prob"}, None),
    ("nemotron", "nemotron", "model.layers.", DECODER,
     {"attention.layer_norm_epsilon": "norm_eps"},
     lambda c: c.update(hidden_act="relu2", partial_rotary_factor=0.5)),
    ("glm4", "glm4", "model.layers.", GLM4, {}, parts_of_rope(0.5)),
    ("stablelm", "stablelm", "model.layers.", DECODER,
     {"use_parallel_residual": "use_parallel_residual"}, parts_of_rope(0.25)),
    ("stablelm-12b", "stablelm", "model.layers.", STABLELM,
     {"use_parallel_residual": "use_parallel_residual"}, parts_of_rope(0.5)),
    ("starcoder2", "starcoder2", "model.layers.",
     {**DECODER, "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"},
     {"attention.layer_norm_epsilon": "norm_epsilon"}, None),
    ("gpt2", "gpt2", "h.", GPT2,
     {"block_count": "n_layer", "context_length": "n_positions", "embedding_length": "n_embd",
      "feed_forward_length": None, "attention.head_count": "n_head",
      "attention.layer_norm_epsilon": "layer_norm_epsilon"},
     lambda c: c.update(n_inner=None, activation_function="gelu_new")),
    ("gptneox", "gpt_neox", "gpt_neox.layers.", NEOX,
     {"use_parallel_residual": "use_parallel_residual"}, lambda c: c.update(rotary_pct=0.25)),
    ("falcon-7b", "falcon", "transformer.h.", FALCON,
     {"context_length": None, "feed_forward_length": None, "attention.head_count_kv": None,
      "attention.layer_norm_epsilon": "layer_norm_epsilon"},
     lambda c: c.update(multi_query=True, alibi=False, num_kv_heads=4)),
    ("falcon-40b", "falcon", "transformer.h.",
     {**FALCON, "attn_norm": "ln_mlp", "attn_norm_2": "ln_attn"},
     {"context_length": None, "feed_forward_length": None,
      "attention.head_count_kv": "num_kv_heads",
      "attention.layer_norm_epsilon": "layer_norm_epsilon"},
     lambda c: c.update(new_decoder_architecture=True, multi_query=True)),
]
ENCODERS = ("bert", "eurobert")
BPE_FIXTURE, BERT_FIXTURE = FIXTURES[6], FIXTURES[8]
CONFIG = {
    "block_count": "num_hidden_layers", "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size", "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads", "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.layer_norm_epsilon": "layer_norm_eps", "rope.freq_base": "rope_theta",
    "vocab_size": "vocab_size",
}
# What other converters write, and what means the same without it.
UNWRITTEN = {"command-r.rope.scaling.type", "falcon.tensor_data_layout",
             "nemotron_h.rope.dimension_count", "nemotron_h.rope.scaling.finetuned"}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}
SIZES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


class Gguf:
    """Values by key, and of each tensor its extents (rows first), type number and bytes."""

    def __init__(self, path):
        self.data, self.at = Path(path).read_bytes(), 8
        n_tensors, n_values = self.take("Q"), self.take("Q")
        self.values = {}
        for _ in range(n_values):
            key = self.text()
            self.values[key] = self.value(self.take("I"))
        described = []
        for _ in range(n_tensors):
            name = self.text()
            shape = [self.take("Q") for _ in range(self.take("I"))][::-1]
            described.append((name, shape, self.take("I"), self.take("Q")))
        base = (self.at + 31) // 32 * 32
        self.tensors = {}
        for name, shape, kind, offset in described:
            size = {0: 4, 1: 2, 30: 2}[kind]
            for extent in shape:
                size *= extent
            self.tensors[name] = (shape, kind, self.data[base + offset:base + offset + size])

    def take(self, kind):
        value = struct.unpack_from("<" + kind, self.data, self.at)[0]
        self.at += struct.calcsize("<" + kind)
        return value

    def text(self):
        size = self.take("Q")
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind != 9:
            return self.take(SIZES[kind])
        kind, count = self.take("I"), self.take("Q")
        return [self.value(kind) for _ in range(count)]


def fixture_path(name, kind="gguf"):
    """Of the shared fixtures, or of those in tests/data."""
    own = DATA / f"families/{name}.{kind}"
    return own if own.exists() else Path(f"{SHARED}/families/{name}.{kind}")


def checkpoint_name(name, layers, names):
    match = re.fullmatch(r"(?:blk\.(\d+)\.)?(\w+)(?:\.(weight|bias))?", name)
    layer, stem, end = match.groups()
    theirs = names[stem]
    theirs = theirs[:-1] if theirs.endswith("$") else f"{theirs}.{end}"
    return (f"{layers}{layer}." if layer else "") + theirs


def halves_apart(data, n_rows, n_heads):
    """Rows 0 1 2 3 ... of each head to 0 2 4 ... 1 3 5 ...: undoes what the converter did."""
    size, dim = len(data) // n_rows, n_rows // n_heads
    order = [h * dim + i for h in range(n_heads) for p in (0, 1) for i in range(p, dim, 2)]
    return b"".join(data[row * size:(row + 1) * size] for row in order)


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, (shape, data) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for _, data in tensors.values():
            out.write(data)


def tokenizer(kind, n):
    """Byte-level BPE or WordPiece with n tokens; two of them are added ones."""
    words = ["a", "b", "ab"] + [f"w{i}" for i in range(n - 6)] + ["w1w2"]
    added = [{"id": n - 2, "content": "<s>", "special": True},
             {"id": n - 1, "content": "<think>", "special": False}]
    if kind == "WordPiece":
        words[2:4] = ["##b", "[UNK]"]
        model = {"type": kind, "continuing_subword_prefix": "##"}
        return {"model": {**model, "vocab": {w: i for i, w in enumerate(words)}},
                "added_tokens": added, "pre_tokenizer": {"type": "BertPreTokenizer"},
                "normalizer": {"type": "BertNormalizer", "clean_text": True, "lowercase": True,
                               "handle_chinese_chars": True, "strip_accents": None}}
    model = {"type": "BPE", "vocab": {w: i for i, w in enumerate(words)},
             "merges": ["a b", ["w1", "w2"]]}
    return {"model": model, "added_tokens": added, "pre_tokenizer": {"type": "ByteLevel"}}


def groups_of_heads(data, n_rows, n_q, n_kv):
    """Heads of q, then of k, then of v to groups of each head of keys: undoes the regrouping."""
    n_heads, q_per_group = n_q + 2 * n_kv, n_q // n_kv
    size = len(data) // n_rows * (n_rows // n_heads)
    order = []
    for group in range(n_kv):
        order += range(group * q_per_group, (group + 1) * q_per_group)
        order += [n_q + group, n_q + n_kv + group]
    return b"".join(data[head * size:(head + 1) * size] for head in order)


def transposed(data, n_rows):
    width = len(data) // n_rows
    return b"".join(data[row * width + at:row * width + at + 4]
                    for at in range(0, width, 4) for row in range(n_rows))


def without_one(data):
    return b"".join(struct.pack("<f", x - 1) for (x,) in struct.iter_unpack("<f", data))


def in_checkpoint(gguf, kind, name, data, shape):
    """The bytes that the checkpoint has of a tensor, and their extents."""
    value = lambda key: gguf.values[f"{gguf.values['general.architecture']}.attention.{key}"]
    stem = name.split(".")[2 if name.startswith("blk.") else 0]
    if stem == "ssm_a":
        data = b"".join(struct.pack("<f", math.log(-x)) for (x,) in struct.iter_unpack("<f", data))
    if stem == "ssm_conv1d" and len(shape) == 2:
        return data, [shape[0], 1, shape[1]]
    if stem == "ssm_norm" or stem in ("ssm_a", "ssm_d") and shape[1:] == [1]:
        return data, [math.prod(shape)]
    heads = {"attn_q": "head_count", "attn_k": "head_count_kv"}.get(stem)
    if heads and kind in ("llama", "mistral", "mixtral", "smollm3", "granite",
                          "olmo", "ministral3", "arcee"):
        return halves_apart(data, shape[0], value(heads)), shape
    if stem == "attn_qkv" and kind in ("gpt_neox", "falcon"):
        n_q = value("head_count")
        n_kv = value("head_count_kv") if kind == "falcon" else n_q
        return groups_of_heads(data, shape[0], n_q, n_kv), shape
    if kind == "gpt2" and name.startswith("blk.") and len(shape) == 2:
        return transposed(data, shape[0]), shape[::-1]
    if stem.endswith("norm") and (kind.startswith("gemma") or
                                  (kind == "nemotron" and name.endswith(".weight"))):
        return without_one(data), shape
    return data, shape


def checkpoint_of(gguf, kind, layers, names):
    tensors = {f"{layers}{layer}.mlp.act_fn.{name[6:]}": ([1], struct.pack("<f", value))
               for name, values in gguf.values.items() if name.startswith("xielu.")
               for layer, value in enumerate(values)}
    for name, (shape, _, data) in gguf.tensors.items():
        if name.startswith("rope_"):
            continue
        theirs = checkpoint_name(name, layers, names)
        data, shape = in_checkpoint(gguf, kind, name, data, shape)
        if "#" not in theirs:
            tensors[theirs] = (shape, data)
            continue
        size = len(data) // shape[0]
        for i in reversed(range(shape[0])):  # in another order than they will have
            tensors[theirs.replace("#", str(i))] = (shape[1:], data[i * size:(i + 1) * size])
    return tensors


def config_of(gguf, kind, keys, edit):
    prefix = gguf.values["general.architecture"] + "."
    config = {"model_type": kind}
    for key, theirs in {**CONFIG, **keys}.items():
        if theirs and prefix + key in gguf.values:
            config[theirs] = gguf.values[prefix + key]
    config["tie_word_embeddings"] = "output.weight" not in gguf.tensors
    if kind in ("gemma2", "gemma3_text"):
        config["query_pre_attn_scalar"] = config["head_dim"]
    config["type_vocab_size"] = gguf.values.get("tokenizer.ggml.token_type_count")
    config["vocab_size"] = gguf.tensors["token_embd.weight"][0][0]
    scaling = prefix + "rope.scaling."
    if scaling + "factor" in gguf.values:
        config["rope_scaling"] = {"type": gguf.values[scaling + "type"],
                                  "factor": gguf.values[scaling + "factor"]}
    if scaling + "yarn_beta_fast" in gguf.values:
        config["rope_scaling"].update(
            original_max_position_embeddings=gguf.values[scaling + "original_context_length"],
            beta_fast=gguf.values[scaling + "yarn_beta_fast"],
            beta_slow=gguf.values[scaling + "yarn_beta_slow"], attention_factor=None)
    if "rope_freqs.weight" in gguf.tensors:
        config["rope_parameters"] = {**LLAMA3, "rope_theta": config.pop("rope_theta")}
    if "rope_factors_long.weight" in gguf.tensors:
        factors = {end: [x for (x,) in struct.iter_unpack(
            "<f", gguf.tensors[f"rope_factors_{end}.weight"][2])] for end in ("long", "short")}
        config["rope_scaling"] = {"type": "longrope", "long_factor": factors["long"],
                                  "short_factor": factors["short"]}
    if edit:
        edit(config)
    return config


def take_apart(fixture, folder, n_files=1):
    file, kind, layers, names, keys, edit = fixture
    gguf = Gguf(fixture_path(file))
    config = config_of(gguf, kind, keys, edit)
    tensors = checkpoint_of(gguf, kind, layers, names)
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    if kind in ENCODERS:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling/config.json").write_text('{"pooling_mode_mean_tokens": true}')
    kind = "WordPiece" if kind == "bert" else "BPE"
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer(kind, config["vocab_size"])))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"bos_token": {"content": "<s>"}, "eos_token": "a", "add_bos_token": True,
         "chat_template": "{{ x }}"}))
    if n_files == 1:
        write_safetensors(folder / "model.safetensors", tensors)
        return gguf
    places = {name: f"model-{i % n_files + 1:05}-of-{n_files:05}.safetensors"
              for i, name in enumerate(tensors)}
    for file in set(places.values()):
        write_safetensors(folder / file, {n: t for n, t in tensors.items() if places[n] == file})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    return gguf


def change(path, edit):
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))
