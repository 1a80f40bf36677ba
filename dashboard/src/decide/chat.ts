/** A conversation, and how the events of a streamed response extend it. Pure. */
import { at, listOf, parseJson, textOf } from './untrusted.ts';
import type { Table } from './patch.ts';

export interface ChatMessage {
  readonly role: 'user' | 'assistant';
  readonly content: string;
  /** Reasoning before the answer. */
  readonly reasoning: string;
  readonly tools: readonly ToolCall[];
  /** Attached by the user, as `data:` URLs. */
  readonly images: readonly string[];
  /** The finish reason, the text for "stopped by the user", or an error message. */
  readonly ended?: string;
}

export interface ToolCall {
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
  };
}

function addTools(tools: readonly ToolCall[], pieces: unknown): readonly ToolCall[] {
  const next = [...tools];
  for (const piece of listOf(pieces)) {
    const given = at(piece, 'index');
    const index = typeof given === 'number' ? given : next.length;
    const before = next[index] ?? { name: '', args: '' };
    const called = at(piece, 'function');
    next[index] = { name: before.name + textOf(at(called, 'name')), args: before.args + textOf(at(called, 'arguments')) };
  }
  return next;
}

/** `tools` as in the API. Default: none. */
export function chatBody(model: string, messages: readonly ChatMessage[], tools?: readonly unknown[]): Table {
  return { model, stream: true, messages: messages.map(messageBody), ...(tools === undefined || tools.length === 0 ? {} : { tools }) };
}

function messageBody({ role, content, images }: ChatMessage): Table {
  if (images.length === 0) return { role, content };
  const pictures = images.map((url) => ({ type: 'image_url', image_url: { url } }));
  return { role, content: [{ type: 'text', text: content }, ...pictures] };
}
