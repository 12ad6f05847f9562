/**
 * What libwick/openai takes and gives: the part of OpenAI's API that Wick answers, under the names
 * of the official client, whose own values fit without casts in both directions.
 */

// --- Chat completions ---

/** What all requests for text may say; `docs/server.md` lists more. */
export interface GenerationParams {
  /** Any name: the one model that is loaded answers. */
  model?: string | null;
  temperature?: number | null;
  top_p?: number | null;
  top_k?: number | null;
  min_p?: number | null;
  n?: number | null;
  seed?: number | null;
  stop?: string | readonly string[] | null;
  stream?: boolean | null;
  stream_options?: object | null;
  max_tokens?: number | null;
  presence_penalty?: number | null;
  frequency_penalty?: number | null;
  repeat_penalty?: number | null;
  logit_bias?: object | null;
  /** In GBNF: the text is one of this grammar. */
  grammar?: string | null;
  user?: string | null;
}

export interface ChatCompletionCreateParams extends GenerationParams {
  messages: readonly object[];
  max_completion_tokens?: number | null;
  logprobs?: boolean | null;
  top_logprobs?: number | null;
  /** `text`, `json_object` or `json_schema`, which the answer then always is. */
  response_format?: object | null;
  tools?: readonly object[] | null;
  tool_choice?: string | object | null;
  parallel_tool_calls?: boolean | null;
  /** Variables of the chat template, as `{ enable_thinking: false }`. */
  chat_template_kwargs?: object | null;
}

export interface CompletionUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details?: { cached_tokens?: number };
}

export interface TopLogprob {
  token: string;
  logprob: number;
  bytes: number[] | null;
}

export interface ChatCompletionTokenLogprob extends TopLogprob {
  top_logprobs: TopLogprob[];
}

export interface ChatLogprobs {
  content: ChatCompletionTokenLogprob[] | null;
  refusal: ChatCompletionTokenLogprob[] | null;
}

export interface ChatCompletionMessageToolCall {
  id: string;
  type: "function";
  /** arguments: JSON. */
  function: { name: string; arguments: string };
}

export interface ChatCompletionMessage {
  role: "assistant";
  content: string | null;
  refusal: string | null;
  /** The model's thinking, where it has any. */
  reasoning_content?: string;
  tool_calls?: ChatCompletionMessageToolCall[];
}

export type FinishReason = "stop" | "length" | "tool_calls";

export interface ChatCompletion {
  id: string;
  object: "chat.completion";
  created: number;
  model: string;
  system_fingerprint?: string;
  choices: {
    index: number;
    message: ChatCompletionMessage;
    logprobs: ChatLogprobs | null;
    finish_reason: FinishReason;
  }[];
  usage?: CompletionUsage;
}

export interface ChatCompletionDelta {
  role?: "assistant";
  content?: string | null;
  reasoning_content?: string;
  tool_calls?: {
    index: number;
    id?: string;
    type?: "function";
    function?: { name?: string; arguments?: string };
  }[];
}

export interface ChatCompletionChunk {
  id: string;
  object: "chat.completion.chunk";
  created: number;
  model: string;
  system_fingerprint?: string;
  choices: {
    index: number;
    delta: ChatCompletionDelta;
    logprobs?: ChatLogprobs | null;
    finish_reason: FinishReason | null;
  }[];
  usage?: CompletionUsage | null;
}

// --- Completions ---

export interface CompletionCreateParams extends GenerationParams {
  prompt: string | readonly string[] | readonly number[] | readonly (readonly number[])[] | null;
  echo?: boolean | null;
  logprobs?: number | null;
  suffix?: string | null;
}

export interface Completion {
  id: string;
  object: "text_completion";
  created: number;
  model: string;
  system_fingerprint?: string;
  choices: {
    index: number;
    text: string;
    logprobs: {
      text_offset?: number[];
      token_logprobs?: number[];
      tokens?: string[];
      top_logprobs?: { [token: string]: number }[];
    } | null;
    finish_reason: "stop" | "length";
  }[];
  usage?: CompletionUsage;
}

// --- Embeddings ---

export interface EmbeddingCreateParams {
  input: string | readonly string[] | readonly number[] | readonly (readonly number[])[];
  model?: string;
  dimensions?: number;
  encoding_format?: "float" | "base64";
  user?: string;
}

/** An embedding is a text where the request's `encoding_format` is "base64". */
export interface CreateEmbeddingResponse<T = number[]> {
  object: "list";
  data: { object: "embedding"; index: number; embedding: T }[];
  model: string;
  usage: { prompt_tokens: number; total_tokens: number };
}

// --- Responses ---

export interface ResponseCreateParams {
  input?: string | readonly object[];
  model?: string;
  instructions?: string | null;
  max_output_tokens?: number | null;
  temperature?: number | null;
  top_p?: number | null;
  stream?: boolean | null;
  /** `format`: as `response_format` of chat completions. */
  text?: object;
  tools?: readonly object[];
  tool_choice?: string | object;
  parallel_tool_calls?: boolean | null;
  metadata?: object | null;
  store?: boolean | null;
  user?: string;
}

export interface ResponseOutputMessage {
  id: string;
  type: "message";
  role: "assistant";
  status: "in_progress" | "completed" | "incomplete";
  content: { type: "output_text"; text: string; annotations: never[] }[];
}

export interface ResponseFunctionToolCall {
  id?: string;
  type: "function_call";
  call_id: string;
  name: string;
  arguments: string;
  status?: "in_progress" | "completed" | "incomplete";
}

export interface ResponseReasoningItem {
  id: string;
  type: "reasoning";
  summary: { type: "summary_text"; text: string }[];
  content?: { type: "reasoning_text"; text: string }[];
}

export type ResponseOutputItem =
  ResponseOutputMessage | ResponseFunctionToolCall | ResponseReasoningItem;

/** `Answer` and not `Response`, which is what fetch gives. */
export interface AnswerResponse {
  id: string;
  object: "response";
  created_at: number;
  status?: "completed" | "failed" | "in_progress" | "incomplete";
  model: string;
  output: ResponseOutputItem[];
  /** All of its texts. */
  output_text: string;
  access_programs: null;
  error: null;
  incomplete_details: { reason?: "max_output_tokens" } | null;
  instructions: string | null;
  metadata: { [key: string]: string } | null;
  parallel_tool_calls: boolean;
  temperature: number | null;
  top_p: number | null;
  tool_choice: "none" | "auto" | "required";
  tools: never[];
  usage?: {
    input_tokens: number;
    input_tokens_details: { cache_write_tokens: number; cached_tokens: number };
    output_tokens: number;
    output_tokens_details: { reasoning_tokens: number };
    total_tokens: number;
  };
}

/** An event of a stream of /v1/responses, as `response.output_text.delta`. */
export interface ResponseStreamEvent {
  type: string;
  sequence_number: number;
  /** Of text, of arguments of a call, of reasoning. */
  delta?: string;
  item?: ResponseOutputItem;
  output_index?: number;
  response?: AnswerResponse;
}

// --- Models ---

export interface ListedModel {
  id: string;
  object: "model";
  created: number;
  owned_by: string;
}
