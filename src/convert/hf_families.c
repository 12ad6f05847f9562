/* convert/hf_families.c: all families that can be converted: names of tensors, numbers, and keys
 * that GGUF does not need. */
#include "convert/hf_families.h"

#include "core/compiler.h"

/* ---- Names of tensors ---- */

/* Gemma 2 and 3, OLMo 2 and 3. */
static const wk_hf_rule normed_rules[] = {
    {"layers.%.post_attention_layernorm", "blk.%.post_attention_norm"},
    {"layers.%.pre_feedforward_layernorm", "blk.%.ffn_norm"},
    {"layers.%.post_feedforward_layernorm", "blk.%.post_ffw_norm"},
    {NULL, NULL},
};
static const wk_hf_rule glm4_rules[] = {
    {"layers.%.post_self_attn_layernorm", "blk.%.post_attention_norm"},
    {"layers.%.post_mlp_layernorm", "blk.%.post_ffw_norm"},
    {NULL, NULL},
};
static const wk_hf_rule apertus_rules[] = {
    {"layers.%.attention_layernorm", "blk.%.attn_norm"},
    {"layers.%.feedforward_layernorm", "blk.%.ffn_norm"},
    {NULL, NULL},
};
static const wk_hf_rule seed_rules[] = {
    {"layers.%.post_attention_layernorm", "blk.%.post_attention_norm"},
    {NULL, NULL},
};
static const wk_hf_rule minicpm3_rules[] = {
    {"layers.%.self_attn.q_a_proj", "blk.%.attn_q_a"},
    {"layers.%.self_attn.q_a_layernorm", "blk.%.attn_q_a_norm"},
    {"layers.%.self_attn.q_b_proj", "blk.%.attn_q_b"},
    {"layers.%.self_attn.kv_a_proj_with_mqa", "blk.%.attn_kv_a_mqa"},
    {"layers.%.self_attn.kv_a_layernorm", "blk.%.attn_kv_a_norm"},
    {"layers.%.self_attn.kv_b_proj", "blk.%.attn_kv_b"},
    {NULL, NULL},
};
static const wk_hf_rule exaone_moe_rules[] = {
    {"layers.%.mlp.e_score_correction_bias$", "blk.%.exp_probs_b.bias"},
    {"layers.%.mlp.gate.e_score_correction_bias$", "blk.%.exp_probs_b.bias"},
    {NULL, NULL},
};
static const wk_hf_rule afmoe_rules[] = {
    {"layers.%.post_attention_layernorm", "blk.%.post_attention_norm"},
    {"layers.%.pre_mlp_layernorm", "blk.%.ffn_norm"},
    {"layers.%.post_mlp_layernorm", "blk.%.post_ffw_norm"},
    {"layers.%.self_attn.gate_proj", "blk.%.attn_gate"},
    {"layers.%.mlp.router.gate", "blk.%.ffn_gate_inp"},
    {"layers.%.mlp.expert_bias$", "blk.%.exp_probs_b.bias"},
    {NULL, NULL},
};
static const wk_hf_rule falcon_h1_rules[] = {
    {"layers.%.pre_ff_layernorm.weight$", "blk.%.ffn_norm"}, /* as llama.cpp named it */
    {"layers.%.mamba.dt_bias$", "blk.%.ssm_dt.bias"},
    {"layers.%.mamba.norm", "blk.%.ssm_norm"},
    {NULL, NULL},
};
static const wk_hf_rule jamba_rules[] = {
    {"layers.%.pre_ff_layernorm", "blk.%.ffn_norm"},
    {"layers.%.feed_forward.router", "blk.%.ffn_gate_inp"},
    {"layers.%.feed_forward.experts.#.gate_proj", "blk.%.ffn_gate_exps"},
    {"layers.%.feed_forward.experts.#.up_proj", "blk.%.ffn_up_exps"},
    {"layers.%.feed_forward.experts.#.down_proj", "blk.%.ffn_down_exps"},
    {"layers.%.mamba.x_proj", "blk.%.ssm_x"},
    {"layers.%.mamba.dt_proj", "blk.%.ssm_dt"},
    {"layers.%.mamba.dt_layernorm", "blk.%.ssm_dt_norm"},
    {"layers.%.mamba.b_layernorm", "blk.%.ssm_b_norm"},
    {"layers.%.mamba.c_layernorm", "blk.%.ssm_c_norm"},
    {NULL, NULL},
};
static const wk_hf_rule nemotron_h_rules[] = {
    {"embeddings", "token_embd"},
    {"norm_f", "output_norm"},
    {"layers.%.norm", "blk.%.attn_norm"},
    {"layers.%.mixer.in_proj", "blk.%.ssm_in"},
    {"layers.%.mixer.conv1d", "blk.%.ssm_conv1d"},
    {"layers.%.mixer.A_log$", "blk.%.ssm_a"},
    {"layers.%.mixer.D$", "blk.%.ssm_d"},
    {"layers.%.mixer.dt_bias$", "blk.%.ssm_dt.bias"},
    {"layers.%.mixer.norm", "blk.%.ssm_norm"},
    {"layers.%.mixer.out_proj", "blk.%.ssm_out"},
    {"layers.%.mixer.q_proj", "blk.%.attn_q"},
    {"layers.%.mixer.k_proj", "blk.%.attn_k"},
    {"layers.%.mixer.v_proj", "blk.%.attn_v"},
    {"layers.%.mixer.o_proj", "blk.%.attn_output"},
    {"layers.%.mixer.up_proj", "blk.%.ffn_up"},
    {"layers.%.mixer.down_proj", "blk.%.ffn_down"},
    {"layers.%.mixer.gate", "blk.%.ffn_gate_inp"},
    {"layers.%.mixer.gate.e_score_correction_bias$", "blk.%.exp_probs_b.bias"},
    {"layers.%.mixer.experts.#.up_proj", "blk.%.ffn_up_exps"},
    {"layers.%.mixer.experts.#.down_proj", "blk.%.ffn_down_exps"},
    {"layers.%.mixer.shared_experts.up_proj", "blk.%.ffn_up_shexp"},
    {"layers.%.mixer.shared_experts.down_proj", "blk.%.ffn_down_shexp"},
    {NULL, NULL},
};
static const wk_hf_rule gpt2_rules[] = {
    {"wte", "token_embd"},
    {"wpe", "position_embd"},
    {"ln_f", "output_norm"},
    {"h.%.ln_1", "blk.%.attn_norm"},
    {"h.%.attn.c_attn", "blk.%.attn_qkv"},
    {"h.%.attn.c_proj", "blk.%.attn_output"},
    {"h.%.ln_2", "blk.%.ffn_norm"},
    {"h.%.mlp.c_fc", "blk.%.ffn_up"},
    {"h.%.mlp.c_proj", "blk.%.ffn_down"},
    {NULL, NULL},
};
static const wk_hf_rule gptneox_rules[] = {
    {"embed_in", "token_embd"},
    {"final_layer_norm", "output_norm"},
    {"embed_out", "output"},
    {"layers.%.attention.query_key_value", "blk.%.attn_qkv"},
    {"layers.%.attention.dense", "blk.%.attn_output"},
    {"layers.%.mlp.dense_h_to_4h", "blk.%.ffn_up"},
    {"layers.%.mlp.dense_4h_to_h", "blk.%.ffn_down"},
    {NULL, NULL},
};
static const wk_hf_rule falcon_rules[] = {
    {"word_embeddings", "token_embd"},
    {"ln_f", "output_norm"},
    {"h.%.input_layernorm", "blk.%.attn_norm"},
    {"h.%.ln_mlp", "blk.%.attn_norm"},
    {"h.%.ln_attn", "blk.%.attn_norm_2"},
    {"h.%.self_attention.query_key_value", "blk.%.attn_qkv"},
    {"h.%.self_attention.dense", "blk.%.attn_output"},
    {"h.%.mlp.dense_h_to_4h", "blk.%.ffn_up"},
    {"h.%.mlp.dense_4h_to_h", "blk.%.ffn_down"},
    {NULL, NULL},
};
static const wk_hf_rule bert_rules[] = {
    {"embeddings.word_embeddings", "token_embd"},
    {"embeddings.position_embeddings", "position_embd"},
    {"embeddings.token_type_embeddings", "token_types"},
    {"embeddings.LayerNorm", "token_embd_norm"},
    {"encoder.layer.%.attention.self.query", "blk.%.attn_q"},
    {"encoder.layer.%.attention.self.key", "blk.%.attn_k"},
    {"encoder.layer.%.attention.self.value", "blk.%.attn_v"},
    {"encoder.layer.%.attention.output.dense", "blk.%.attn_output"},
    {"encoder.layer.%.attention.output.LayerNorm", "blk.%.attn_output_norm"},
    {"encoder.layer.%.intermediate.dense", "blk.%.ffn_up"},
    {"encoder.layer.%.output.dense", "blk.%.ffn_down"},
    {"encoder.layer.%.output.LayerNorm", "blk.%.layer_output_norm"},
    {NULL, NULL},
};

/* ---- Numbers that not all families have ---- */

static const wk_hf_number bert_numbers[] = {
    {"type_vocab_size", "tokenizer.ggml.token_type_count", WK_HF_U32, false},
    {.config = NULL},
};
static const wk_hf_number windowed_numbers[] = {
    {"sliding_window", ".attention.sliding_window", WK_HF_U32, true},
    {.config = NULL},
};
static const wk_hf_number mixtral_numbers[] = {
    {"num_local_experts|num_experts", ".expert_count", WK_HF_U32, false},
    {"num_experts_per_tok", ".expert_used_count", WK_HF_U32, false},
    {"sliding_window", ".attention.sliding_window", WK_HF_U32, true},
    {.config = NULL},
};
static const wk_hf_number qwen_moe_numbers[] = {
    {"num_experts|num_local_experts", ".expert_count", WK_HF_U32, false},
    {"num_experts_per_tok", ".expert_used_count", WK_HF_U32, false},
    {"moe_intermediate_size", ".expert_feed_forward_length", WK_HF_U32, false},
    {"shared_expert_intermediate_size", ".expert_shared_feed_forward_length", WK_HF_U32, true},
    {"norm_topk_prob", ".expert_weights_norm", WK_HF_BOOL, true},
    {.config = NULL},
};
static const wk_hf_number exaone_moe_numbers[] = {
    {"num_experts", ".expert_count", WK_HF_U32, false},
    {"num_experts_per_tok", ".expert_used_count", WK_HF_U32, false},
    {"num_shared_experts", ".expert_shared_count", WK_HF_U32, false},
    {"moe_intermediate_size", ".expert_feed_forward_length", WK_HF_U32, false},
    {"moe_intermediate_size*num_shared_experts", ".expert_shared_feed_forward_length", WK_HF_OF_TWO,
     false},
    {"2", ".expert_gating_func", WK_HF_CONSTANT, false},
    {"routed_scaling_factor", ".expert_weights_scale", WK_HF_F32, false},
    {"norm_topk_prob", ".expert_weights_norm", WK_HF_BOOL, false},
    {"n_group", ".expert_group_count", WK_HF_U32, true},
    {"topk_group", ".expert_group_used_count", WK_HF_U32, true},
    {"mlp_layer_types|first_k_dense_replace|first_last_k_dense_replace",
     ".leading_dense_block_count", WK_HF_LEADING, false},
    {"sliding_window", ".attention.sliding_window", WK_HF_U32, true},
    {.config = NULL},
};
static const wk_hf_number afmoe_numbers[] = {
    {"num_experts", ".expert_count", WK_HF_U32, false},
    {"num_experts_per_tok", ".expert_used_count", WK_HF_U32, false},
    {"num_shared_experts", ".expert_shared_count", WK_HF_U32, false},
    {"moe_intermediate_size", ".expert_feed_forward_length", WK_HF_U32, false},
    {"2", ".expert_gating_func", WK_HF_CONSTANT, false},
    {"route_scale", ".expert_weights_scale", WK_HF_F32, false},
    {"route_norm", ".expert_weights_norm", WK_HF_TRUE, false},
    {"mup_enabled", NULL, WK_HF_TRUE, false}, /* the embedding is multiplied */
    {"num_dense_layers", ".leading_dense_block_count", WK_HF_U32, false},
    {"sliding_window", ".attention.sliding_window", WK_HF_U32, false},
    {.config = NULL},
};
static const wk_hf_number gemma2_numbers[] = {
    {"attn_logit_softcapping", ".attn_logit_softcapping", WK_HF_CAP, true},
    {"final_logit_softcapping", ".final_logit_softcapping", WK_HF_CAP, true},
    {"query_pre_attn_scalar", ".attention.scale", WK_HF_INVERSE_ROOT, true},
    {"sliding_window|sliding_window_size", ".attention.sliding_window", WK_HF_U32, false},
    {.config = NULL},
};
static const wk_hf_number gemma3_numbers[] = {
    {"final_logit_softcapping", ".final_logit_softcapping", WK_HF_CAP, true},
    {"query_pre_attn_scalar", ".attention.scale", WK_HF_INVERSE_ROOT, true},
    {"sliding_window", ".attention.sliding_window", WK_HF_U32, false},
    {.config = NULL},
};
static const wk_hf_number granite_numbers[] = {
    {"attention_multiplier", ".attention.scale", WK_HF_F32, false},
    {"embedding_multiplier", ".embedding_scale", WK_HF_F32, false},
    {"residual_multiplier", ".residual_scale", WK_HF_F32, false},
    {"logits_scaling", ".logit_scale", WK_HF_F32, false},
    {.config = NULL},
};
static const wk_hf_number cohere_numbers[] = {
    {"logit_scale", ".logit_scale", WK_HF_F32, false},
    {.config = NULL},
};
static const wk_hf_number olmo_numbers[] = {
    {"clip_qkv", ".attention.clamp_kqv", WK_HF_F32, true},
    {.config = NULL},
};
static const wk_hf_number cohere2_numbers[] = {
    {"logit_scale", ".logit_scale", WK_HF_F32, false},
    {"sliding_window", ".attention.sliding_window", WK_HF_U32, false},
    {.config = NULL},
};
static const wk_hf_number cohere2_moe_numbers[] = {
    {"logit_scale", ".logit_scale", WK_HF_F32, false},
    {"rms_norm_eps", ".attention.layer_norm_rms_epsilon", WK_HF_F32, true},
    {"sliding_window", ".attention.sliding_window", WK_HF_U32, false},
    {"num_experts", ".expert_count", WK_HF_U32, false},
    {"num_experts_per_tok", ".expert_used_count", WK_HF_U32, false},
    {"intermediate_size", ".expert_feed_forward_length", WK_HF_U32, false},
    {"num_shared_experts", ".expert_shared_count", WK_HF_U32, false},
    {"intermediate_size*num_shared_experts", ".expert_shared_feed_forward_length", WK_HF_OF_TWO,
     false},
    {"expert_selection_fn", ".expert_gating_func", WK_HF_GATING, false},
    {"norm_topk_prob", ".expert_weights_norm", WK_HF_BOOL, false},
    {"mlp_layer_types|first_k_dense_replace", ".leading_dense_block_count", WK_HF_LEADING, false},
    {.config = NULL},
};
static const wk_hf_number olmoe_numbers[] = {
    {"num_experts", ".expert_count", WK_HF_U32, false},
    {"num_experts_per_tok", ".expert_used_count", WK_HF_U32, false},
    {"norm_topk_prob", ".expert_weights_norm", WK_HF_BOOL, false},
    {.config = NULL},
};
static const wk_hf_number minicpm3_numbers[] = {
    {"q_lora_rank", ".attention.q_lora_rank", WK_HF_U32, false},
    {"kv_lora_rank", ".attention.kv_lora_rank", WK_HF_U32, false},
    {"qk_nope_head_dim+qk_rope_head_dim", ".attention.key_length", WK_HF_OF_TWO, false},
    {"v_head_dim", ".attention.value_length", WK_HF_U32, true},
    {"qk_rope_head_dim", ".rope.dimension_count", WK_HF_U32, false},
    {.config = NULL},
};
static const wk_hf_number falcon_h1_numbers[] = {
    {"mamba_d_ssm", ".ssm.inner_size", WK_HF_U32, false},
    {"mamba_d_state", ".ssm.state_size", WK_HF_U32, false},
    {"mamba_n_groups", ".ssm.group_count", WK_HF_U32, false},
    {"mamba_n_heads", ".ssm.time_step_rank", WK_HF_U32, false},
    {"mamba_d_conv", ".ssm.conv_kernel", WK_HF_U32, false},
    {"time_step_limit", NULL, WK_HF_UNLIMITED, true},
    {.config = NULL},
};
static const wk_hf_number jamba_numbers[] = {
    {"mamba_expand*hidden_size", ".ssm.inner_size", WK_HF_OF_TWO, false},
    {"mamba_d_state", ".ssm.state_size", WK_HF_U32, false},
    {"mamba_dt_rank", ".ssm.time_step_rank", WK_HF_STEP_RANK, false},
    {"mamba_d_conv", ".ssm.conv_kernel", WK_HF_U32, false},
    {"num_experts", ".expert_count", WK_HF_U32, false},
    {"num_experts_per_tok", ".expert_used_count", WK_HF_U32, false},
    {.config = NULL},
};
enum { NEMOTRON_EXPERTS = 9 }; /* rows of a model without experts come after them */
static const wk_hf_number nemotron_h_numbers[] = {
    {"n_routed_experts", ".expert_count", WK_HF_U32, false},
    {"num_experts_per_tok", ".expert_used_count", WK_HF_U32, false},
    {"n_shared_experts", ".expert_shared_count", WK_HF_U32, false},
    {"moe_intermediate_size", ".expert_feed_forward_length", WK_HF_U32, false},
    {"moe_shared_expert_intermediate_size", ".expert_shared_feed_forward_length", WK_HF_U32, false},
    {"routed_scaling_factor", ".expert_weights_scale", WK_HF_F32, false},
    {"norm_topk_prob", ".expert_weights_norm", WK_HF_BOOL, false},
    {"n_group", ".expert_group_count", WK_HF_U32, true},
    {"topk_group", ".expert_group_used_count", WK_HF_U32, true},
    [NEMOTRON_EXPERTS] = {"mamba_num_heads*mamba_head_dim", ".ssm.inner_size", WK_HF_OF_TWO, false},
    {"ssm_state_size", ".ssm.state_size", WK_HF_U32, false},
    {"n_groups|mamba_n_groups", ".ssm.group_count", WK_HF_U32, false},
    {"mamba_num_heads", ".ssm.time_step_rank", WK_HF_U32, false},
    {"conv_kernel|mamba_d_conv", ".ssm.conv_kernel", WK_HF_U32, false},
    {"head_dim|attention_head_dim", ".attention.key_length", WK_HF_U32, false},
    {"head_dim|attention_head_dim", ".attention.value_length", WK_HF_U32, false},
    {"layer_norm_epsilon|rms_norm_eps", ".attention.layer_norm_rms_epsilon", WK_HF_F32, false},
    {"vocab_size", ".vocab_size", WK_HF_U32, false},
    {"time_step_limit|mamba_dt_limit", NULL, WK_HF_UNLIMITED, true},
    {.config = NULL},
};
static const wk_hf_number parallel_numbers[] = {
    {"use_parallel_residual", ".use_parallel_residual", WK_HF_BOOL, true},
    {.config = NULL},
};

/* ---- Keys that GGUF does not need ---- */

/* Without use_sliding_window, which is refused. */
static const wk_hf_fixed qwen_fixed[] = {
    {"sliding_window|max_window_layers", NULL},
    {"decoder_sparse_step", "1"}, /* every layer has experts */
    {"mlp_only_layers", "[]"},
    {.keys = NULL},
};
/* Layers that guess further tokens are left out. */
static const wk_hf_fixed exaone_moe_fixed[] = {
    {"num_nextn_predict_layers|mtp_*|is_moe_layer", NULL},
    {"scoring_func", "sigmoid"},
    {"topk_method", "noaux_tc"},
    {.keys = NULL},
};
static const wk_hf_fixed afmoe_fixed[] = {
    {"score_func", "sigmoid"},
    {"n_group|topk_group|num_expert_groups|num_limited_groups", "1"},
    {"load_balance_coeff|use_grouped_mm", NULL},
    {.keys = NULL},
};
static const wk_hf_fixed apertus_fixed[] = {
    {"post_norm", "false"},
    {"qk_norm", "true"},
    {.keys = NULL},
};
static const wk_hf_fixed cohere2_fixed[] = {
    {"rotary_pct", "1"},
    {"use_gated_activation|use_parallel_block|use_embedding_sharing", "true"},
    {"use_parallel_embedding", "false"},
    {"position_embedding_type", "rope_gptj"},
    {"order_of_interleaved_layers", "local_attn_first"},
    {.keys = NULL},
};
static const wk_hf_fixed cohere2_moe_fixed[] = {
    {"shared_expert_combination_strategy", "average"},
    {"prefix_dense_sliding_window_pattern", "1"}, /* the first layers have positions */
    {"num_nextn_predict_layers", NULL},
    {.keys = NULL},
};
/* Wick has the scales as constants. */
static const wk_hf_fixed minicpm3_fixed[] = {
    {"head_dim|qk_head_dim", NULL}, {"scale_emb", "12"}, {"scale_depth", "1.4"},
    {"dim_model_base", "256"},      {.keys = NULL},
};
static const wk_hf_fixed eurobert_fixed[] = {
    {"clf_pooling|classifier_pooling|*_token|tie_word_embeddings", NULL},
    {.keys = NULL},
};
/* How long steps are in the beginning of training, and what the tensors say. */
static const wk_hf_fixed falcon_h1_fixed[] = {
    {"mamba_d_head|mamba_expand|mamba_*bias|mamba_rms_norm|mamba_norm_before_gate", NULL},
    {"mamba_chunk_size|num_logits_to_keep|projectors_bias", NULL},
    {"time_step_min|time_step_max|time_step_floor|time_step_rank", NULL},
    {"mamba_use_mlp", "true"},
    {.keys = NULL},
};
/* Which layers have experts the tensors say. */
static const wk_hf_fixed jamba_fixed[] = {
    {"expert_layer_period|expert_layer_offset|mamba_*bias|num_logits_to_keep", NULL},
    {"use_mamba_kernels|use_mambapy|use_associative_scan", NULL},
    {"mamba_inner_layernorms", "true"},
    {.keys = NULL},
};
/* Sizes of experts where there are none, those of training, and of layers that are left out. */
static const wk_hf_fixed nemotron_h_fixed[] = {
    {"mlp_hidden_act", "relu2"},
    {"mamba_hidden_act", "silu"},
    {"expand|mamba_expand|chunk_size|mamba_chunk_size|use_conv_bias|mamba_*bias", NULL},
    {"time_step_min|time_step_max|time_step_floor|time_step_rank|mamba_dt_*", NULL},
    {"use_mamba_kernels|mamba_ssm_cache_dtype|num_logits_to_keep|residual_in_fp32", NULL},
    {"rescale_prenorm_residual|moe_shared_expert_overlap", NULL},
    {"num_nextn_predict_layers|mtp_*|intermediate_size|moe_intermediate_size", NULL},
    {"moe_shared_expert_intermediate_size|n_routed_experts|n_shared_experts", NULL},
    {"num_experts_per_tok|routed_scaling_factor|norm_topk_prob|n_group|topk_group", NULL},
    {.keys = NULL},
};
static const wk_hf_fixed ministral3_fixed[] = {
    {"rope_parameters.max_position_embeddings", NULL},
    {.keys = NULL},
};
static const wk_hf_fixed gpt2_fixed[] = {
    {"n_ctx", NULL},                            /* is n_positions */
    {"n_special|predict_special_tokens", NULL}, /* of OpenAI's first GPT */
    {"scale_attn_weights", "true"},
    {"scale_attn_by_inverse_layer_idx", "false"},
    {.keys = NULL},
};
static const wk_hf_fixed falcon_fixed[] = {
    {"parallel_attn", "true"},
    {"apply_residual_connection_post_layernorm", "false"},
    {"num_ln_in_parallel_attn", NULL}, /* the tensors say it */
    {.keys = NULL},
};
static const wk_hf_fixed starcoder2_fixed[] = {
    {"norm_type", "layer_norm"},
    {"mlp_type", "default"},
    {"scale_attn_weights", "true"},
    {.keys = NULL},
};
static const wk_hf_fixed phi3_fixed[] = {
    {"full_attn_mod|interpolate_factor", "1"},
    {.keys = NULL},
};
/* Pooler: a head for another task. */
static const wk_hf_fixed bert_fixed[] = {
    {"position_embedding_type", "absolute"},
    {"directionality", "bidi"},
    {"pooler_*|tie_word_embeddings", NULL},
    {.keys = NULL},
};

/* ---- Families ---- */

enum {
    LAYER_GELU = WK_HF_LAYER_NORM | WK_HF_GELU,
    LAYER_GELU_ERF = WK_HF_LAYER_NORM | WK_HF_GELU_ERF,
    GEMMA = WK_HF_GELU | WK_HF_NORMS_FROM_ZERO,
    TWO_ROPES = WK_HF_WINDOWS | WK_HF_WINDOW_ROPE,
    EXAONE = WK_HF_WINDOWS | WK_HF_ROPE_DIMENSION,
    MINISTRAL3 = WK_HF_PERMUTED_HEADS | WK_HF_WARM_QUERIES,
    EUROBERT = WK_HF_ENCODER | WK_HF_ROPE_DIMENSION,
    COHERE2 = WK_HF_LAYER_NORM | WK_HF_WINDOWS | WK_HF_ROPE_DIMENSION,
    JAIS2 = WK_HF_LAYER_NORM | WK_HF_RELU_SQUARED | WK_HF_ROPE_DIMENSION,
    FALCON_H1 = WK_HF_HEAD_STEPS | WK_HF_SCALED | WK_HF_ROPE_DIMENSION,
    JAMBA = WK_HF_SOME_ATTENTION | WK_HF_LEARNED_POSITIONS,
    NEMOTRON_H = WK_HF_HEAD_STEPS | WK_HF_SOME_ATTENTION | WK_HF_BLOCKS | WK_HF_LATENT |
                 WK_HF_LEARNED_POSITIONS | WK_HF_LAYER_NORM,
    SMOLLM3 = WK_HF_PERMUTED_HEADS | WK_HF_FOURTH_UNROTATED,
    GPT2 = LAYER_GELU | WK_HF_TRANSPOSED | WK_HF_LEARNED_POSITIONS,
    BERT = LAYER_GELU_ERF | WK_HF_ENCODER | WK_HF_LEARNED_POSITIONS,
    NEOX = LAYER_GELU_ERF | WK_HF_GROUPED_QKV | WK_HF_ROPE_DIMENSION,
};

const wk_hf_family wk_hf_families[] = {
    {"llama", "llama", WK_HF_PERMUTED_HEADS, NULL, NULL, NULL},
    {"mistral", "llama", WK_HF_PERMUTED_HEADS, NULL, windowed_numbers, NULL},
    {"mixtral", "llama", WK_HF_PERMUTED_HEADS, NULL, mixtral_numbers, NULL},
    {"ministral3", "mistral3", MINISTRAL3, NULL, windowed_numbers, ministral3_fixed},
    {"smollm3", "smollm3", SMOLLM3, NULL, NULL, qwen_fixed},
    {"granite", "granite", WK_HF_PERMUTED_HEADS, NULL, granite_numbers, NULL},
    {"qwen2", "qwen2", 0, NULL, NULL, qwen_fixed},
    {"qwen2_moe", "qwen2moe", 0, NULL, qwen_moe_numbers, qwen_fixed},
    {"qwen3", "qwen3", 0, NULL, NULL, qwen_fixed},
    {"qwen3_moe", "qwen3moe", 0, NULL, qwen_moe_numbers, qwen_fixed},
    {"apertus", "apertus", WK_HF_XIELU | WK_HF_ROPE_DIMENSION, apertus_rules, NULL, apertus_fixed},
    {"seed_oss", "seed_oss", 0, seed_rules, NULL, NULL},
    {"arcee", "arcee", WK_HF_PERMUTED_HEADS | WK_HF_RELU_SQUARED, NULL, NULL, NULL},
    {"minicpm3", "minicpm3", WK_HF_LATENT, minicpm3_rules, minicpm3_numbers, minicpm3_fixed},
    {"falcon_h1", "falcon-h1", FALCON_H1, falcon_h1_rules, falcon_h1_numbers, falcon_h1_fixed},
    {"jamba", "jamba", JAMBA, jamba_rules, jamba_numbers, jamba_fixed},
    {"nemotron_h", "nemotron_h_moe", NEMOTRON_H | WK_HF_EXPERT_BLOCKS, nemotron_h_rules,
     nemotron_h_numbers, nemotron_h_fixed},
    {"nemotron_h", "nemotron_h", NEMOTRON_H, nemotron_h_rules,
     nemotron_h_numbers + NEMOTRON_EXPERTS, nemotron_h_fixed},
    {"gemma", "gemma", GEMMA, NULL, NULL, NULL},
    {"gemma2", "gemma2", GEMMA | WK_HF_WINDOWS, normed_rules, gemma2_numbers, NULL},
    {"gemma3_text", "gemma3", GEMMA | TWO_ROPES, normed_rules, gemma3_numbers, NULL},
    {"phi", "phi2", LAYER_GELU | WK_HF_ROPE_DIMENSION, NULL, NULL, NULL},
    {"phi3", "phi3", WK_HF_ROPE_DIMENSION, NULL, windowed_numbers, phi3_fixed},
    {"olmo", "olmo", WK_HF_LAYER_NORM | WK_HF_PERMUTED_HEADS, NULL, olmo_numbers, NULL},
    {"olmo2", "olmo2", 0, normed_rules, NULL, NULL},
    {"olmo3", "olmo2", TWO_ROPES, normed_rules, windowed_numbers, NULL},
    {"exaone4", "exaone4", EXAONE, normed_rules, windowed_numbers, NULL},
    {"exaone_moe", "exaone-moe", EXAONE, exaone_moe_rules, exaone_moe_numbers, exaone_moe_fixed},
    {"afmoe", "afmoe", EXAONE, afmoe_rules, afmoe_numbers, afmoe_fixed},
    {"cohere", "command-r", WK_HF_LAYER_NORM, NULL, cohere_numbers, NULL},
    {"cohere2", "cohere2", COHERE2, NULL, cohere2_numbers, cohere2_fixed},
    {"cohere2_moe", "cohere2moe", COHERE2, NULL, cohere2_moe_numbers, cohere2_moe_fixed},
    {"olmoe", "olmoe", 0, NULL, olmoe_numbers, NULL},
    {"jais2", "jais2", JAIS2, NULL, NULL, NULL},
    {"nemotron", "nemotron", JAIS2 | WK_HF_NORMS_FROM_ZERO, NULL, NULL, NULL},
    {"glm4", "glm4", WK_HF_ROPE_DIMENSION, glm4_rules, NULL, NULL},
    {"stablelm", "stablelm", WK_HF_LAYER_NORM | WK_HF_ROPE_DIMENSION, NULL, parallel_numbers, NULL},
    {"starcoder2", "starcoder2", LAYER_GELU, NULL, windowed_numbers, starcoder2_fixed},
    {"gpt2", "gpt2", GPT2, gpt2_rules, NULL, gpt2_fixed},
    {"gpt_neox", "gptneox", NEOX, gptneox_rules, parallel_numbers, NULL},
    {"falcon", "falcon", LAYER_GELU_ERF | WK_HF_GROUPED_QKV, falcon_rules, NULL, falcon_fixed},
    {"eurobert", "eurobert", EUROBERT, NULL, NULL, eurobert_fixed},
    {"bert", "bert", BERT, bert_rules, bert_numbers, bert_fixed},
};

const size_t wk_hf_n_families = WK_COUNT(wk_hf_families);
