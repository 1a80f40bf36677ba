/** A conversation as the page keeps it, and how the events of an answer extend it. Pure. */

export interface ChatMessage {
  readonly role: 'user' | 'assistant';
  readonly content: string;
  /** What a model thought before it answered. */
  readonly reasoning: string;
  readonly tools: readonly ToolCall[];
  /** Why the answer has ended: "stop", "length", "stopped" by the user, or an error. */
  readonly ended?: string;
}

export interface ToolCall {
  readonly name: string;
  readonly args: string;
}

export const EMPTY_ANSWER: ChatMessage = { role: 'assistant', content: '', reasoning: '', tools: [] };

/** `data` of one event of `/v1/chat/completions`; what is not understood changes nothing. */
export function extendAnswer(answer: ChatMessage, data: string): ChatMessage {
  if (data.trim() === '[DONE]') return answer;
  const event = parse(data);
  const failure = text(at(at(event, 'error'), 'message'));
  if (failure !== '') return { ...answer, ended: failure };
  const choice = at(at(event, 'choices'), 0);
  const delta = at(choice, 'delta');
  const reason = text(at(choice, 'finish_reason'));
  return {
    ...answer,
    content: answer.content + text(at(delta, 'content')),
    reasoning: answer.reasoning + text(at(delta, 'reasoning_content')),
    tools: addTools(answer.tools, at(delta, 'tool_calls')),
    ...(reason === '' ? {} : { ended: reason }),
  };
}

function addTools(tools: readonly ToolCall[], pieces: unknown): readonly ToolCall[] {
  if (!Array.isArray(pieces)) return tools;
  const next = [...tools];
  for (const piece of pieces) {
    const given = at(piece, 'index');
    const index = typeof given === 'number' ? given : next.length;
    const before = next[index] ?? { name: '', args: '' };
    const called = at(piece, 'function');
    next[index] = { name: before.name + text(at(called, 'name')), args: before.args + text(at(called, 'arguments')) };
  }
  return next;
}

export function requestBody(model: string, messages: readonly ChatMessage[]): object {
  return { model, stream: true, messages: messages.map(({ role, content }) => ({ role, content })) };
}

function parse(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}

function at(value: unknown, key: string | number): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
