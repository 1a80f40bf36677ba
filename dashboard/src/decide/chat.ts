/** A conversation, and how the events of a streamed response extend it. Pure. */
import { NO_SETTINGS, samplingOf, type ChatSettings } from './chat-settings.ts';
import { at, listOf, parseJson, textOf } from './untrusted.ts';
import { isTable, type Table } from './patch.ts';

export interface ChatMessage {
  readonly role: 'user' | 'assistant' | 'tool';
  /** The call that a tool's result answers. */
  readonly callId?: string;
  readonly content: string;
  /** Reasoning before the answer. */
  readonly reasoning: string;
  readonly tools: readonly ToolCall[];
  /** Attached by the user, as `data:` URLs. */
  readonly images: readonly string[];
  /** The finish reason, the text for "stopped by the user", or an error message. */
  readonly ended?: string;
  readonly speed?: Speed;
  readonly versions?: Versions;
}

/** Versions of a message, each with what follows it. */
export interface Versions {
  /** Position of the visible one among all. */
  readonly shown: number;
  readonly others: readonly (readonly ChatMessage[])[];
}

/** As the server counts; undefined where it does not say. */
export interface Speed {
  readonly promptTokens: number | undefined;
  /** Those of the prompt that were not computed again. */
  readonly cachedTokens: number | undefined;
  readonly outputTokens: number | undefined;
  readonly tokensPerSecond: number | undefined;
  /** As the page measured it. */
  readonly firstTokenSeconds?: number;
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly args: string;
}

export const EMPTY_ANSWER: ChatMessage = { role: 'assistant', content: '', reasoning: '', tools: [], images: [] };

/** `data` is that field of one event of `/v1/chat/completions`. Unknown events change nothing. */
export function extendAnswer(answer: ChatMessage, data: string): ChatMessage {
  if (data.trim() === '[DONE]') return answer;
  const event = parseJson(data);
  const failure = textOf(at(at(event, 'error'), 'message'));
  if (failure !== '') return { ...answer, ended: failure };
  const choice = at(at(event, 'choices'), 0);
  const delta = at(choice, 'delta');
  const reason = textOf(at(choice, 'finish_reason'));
  return {
    ...answer,
    content: answer.content + textOf(at(delta, 'content')),
    reasoning: answer.reasoning + textOf(at(delta, 'reasoning_content')),
    tools: addTools(answer.tools, at(delta, 'tool_calls')),
    ...(reason === '' ? {} : { ended: reason }),
    ...speedOf(answer.speed, event),
  };
}

/** `usage` is OpenAI's, `timings` llama.cpp's; either may come in an event without text. */
function speedOf(before: Speed | undefined, event: unknown): Pick<ChatMessage, 'speed'> {
  const [usage, timings] = [at(event, 'usage'), at(event, 'timings')];
  if (!isTable(usage) && !isTable(timings)) return {};
  const computed = countOf(at(timings, 'prompt_n'));
  const reused = countOf(at(timings, 'cache_n'));
  const prompt = computed === undefined ? undefined : computed + (reused ?? 0);
  return {
    speed: {
      promptTokens: countOf(at(usage, 'prompt_tokens')) ?? prompt ?? before?.promptTokens,
      cachedTokens: countOf(at(at(usage, 'prompt_tokens_details'), 'cached_tokens')) ?? reused ?? before?.cachedTokens,
      outputTokens: countOf(at(usage, 'completion_tokens')) ?? countOf(at(timings, 'predicted_n')) ?? before?.outputTokens,
      tokensPerSecond: countOf(at(timings, 'predicted_per_second')) ?? before?.tokensPerSecond,
    },
  };
}

const countOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined;

function addTools(tools: readonly ToolCall[], pieces: unknown): readonly ToolCall[] {
  const next = [...tools];
  for (const piece of listOf(pieces)) {
    const given = at(piece, 'index');
    const index = typeof given === 'number' ? given : next.length;
    const before = next[index] ?? { id: '', name: '', args: '' };
    const called = at(piece, 'function');
    next[index] = {
      id: before.id || textOf(at(piece, 'id')),
      name: before.name + textOf(at(called, 'name')),
      args: before.args + textOf(at(called, 'arguments')),
    };
  }
  return next;
}

/** The messages of a text that an earlier version of the page may have written; others are left out. */
export const readMessages = (text: string): readonly ChatMessage[] => listOf(parseJson(text)).filter(isMessage);

function isMessage(message: unknown): message is ChatMessage {
  const { shown, others }: Table = Object(at(message, 'versions') ?? { shown: 0, others: [] });
  const lists = [at(message, 'tools'), at(message, 'images'), others, ...listOf(others)];
  const texts = [at(message, 'role'), at(message, 'content'), at(message, 'reasoning')];
  const isWhole = isTable(message) && lists.every(Array.isArray) && texts.every((each) => typeof each === 'string');
  return isWhole && countOf(shown) !== undefined && listOf(others).every((messages) => listOf(messages).every(isMessage));
}

/** The calls of the last message, which must be answered before the next question. */
export function openCalls(messages: readonly ChatMessage[]): readonly ToolCall[] {
  const last = messages.at(-1);
  return last?.role === 'assistant' ? last.tools : [];
}

/** `results` in the order of the calls. */
export const toolResults = (calls: readonly ToolCall[], results: readonly string[]): readonly ChatMessage[] =>
  calls.map(({ id }, index) => ({ ...EMPTY_ANSWER, role: 'tool', callId: id, content: results[index] ?? '' }));

/** `tools` as in the API. Default: none, and what the model does by itself. */
export function chatBody(
  model: string,
  messages: readonly ChatMessage[],
  tools: readonly unknown[] = [],
  settings: ChatSettings = NO_SETTINGS,
): Table {
  const { system } = settings;
  const first = system.trim() === '' ? [] : [{ role: 'system', content: system }];
  return { model, messages: [...first, ...messages.map(messageBody)], ...samplingOf(settings), ...(tools.length === 0 ? {} : { tools }) };
}

function messageBody({ role, content, images, tools, callId }: ChatMessage): Table {
  if (callId !== undefined) return { role, tool_call_id: callId, content };
  if (tools.length > 0) {
    const calls = tools.map(({ id, name, args }) => ({ id, type: 'function', function: { name, arguments: args } }));
    return { role, content, tool_calls: calls };
  }
  if (images.length === 0) return { role, content };
  const pictures = images.map((url) => ({ type: 'image_url', image_url: { url } }));
  return { role, content: [{ type: 'text', text: content }, ...pictures] };
}
