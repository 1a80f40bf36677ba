/** A request of the Responses API as one of Chat Completions, which every engine has. Pure. */
import { z } from 'zod';
import type { TranslatableBody, TranslationEnd } from '../../translation.ts';

const Part = z.looseObject({
  type: z.enum(['input_text', 'output_text', 'text', 'refusal', 'input_image', 'input_audio']),
  text: z.string().optional(),
  refusal: z.string().optional(),
  image_url: z.string().optional(),
});
const Content = z.union([z.string(), z.array(Part)]);
const Item = z.union([
  z.object({ type: z.literal('function_call'), call_id: z.string(), name: z.string(), arguments: z.string() }),
  z.object({ type: z.literal('function_call_output'), call_id: z.string(), output: Content }),
  z.object({ type: z.literal('reasoning') }),
  z.object({ type: z.literal('message').optional(), role: z.enum(['user', 'assistant', 'system', 'developer']), content: Content }),
]);
const Tool = z.looseObject({ type: z.literal('function'), name: z.string() });
const Choice = z.union([z.enum(['auto', 'none', 'required']), z.object({ type: z.literal('function'), name: z.string() })]);
const Format = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text') }),
  z.object({ type: z.literal('json_object') }),
  z.object({ type: z.literal('json_schema'), name: z.string(), schema: z.unknown(), strict: z.boolean().nullish() }),
]);
const nothing = z.literal(false).nullish();
/** The order is that of the answer. */
const Request = z.looseObject({
  input: z.preprocess((input) => (typeof input === 'string' ? [{ role: 'user', content: input }] : input), z.array(Item)),
  instructions: z.string().nullish(),
  tools: z.array(Tool).nullish(),
  tool_choice: Choice.nullish(),
  text: z.looseObject({ format: Format.optional() }).nullish(),
  reasoning: z.looseObject({ effort: z.string().nullish() }).nullish(),
  max_output_tokens: z.int().nullish(),
  stream: z.boolean().nullish(),
  previous_response_id: nothing,
  conversation: nothing,
  background: nothing,
});
export type AskedResponse = z.output<typeof Request>;

/** Said of what would need a memory of earlier responses, or tools of OpenAI. */
const ADVICE: Readonly<Record<string, string>> = {
  input: 'is no message, function call or output of one: send whole items, with "store" set to false, and images as "data:" URLs',
  previous_response_id: 'names a response, and the service stores none: send the whole conversation as "input"',
  conversation: 'names a conversation, and the service stores none: send the whole conversation as "input"',
  background: 'asks for a response that is fetched later, and the service stores none: leave it out',
  tools: 'is no tool of the type "function": the service has no others',
};
/** About storage and billing, or sent under another name. */
const NOT_SENT: ReadonlySet<string> = new Set(
  'input instructions tools tool_choice text reasoning max_output_tokens stream previous_response_id conversation background store include metadata truncation service_tier safety_identifier max_tool_calls top_logprobs'.split(
    ' ',
  ),
);

export type AskedChat =
  | { readonly ok: true; readonly text: string; readonly asked: AskedResponse }
  | { readonly ok: false; readonly refusal: TranslationEnd };

export function chatRequestOf(body: TranslatableBody): AskedChat {
  const parsed = Request.safeParse(body.kind === 'json' ? body.value : undefined);
  if (!parsed.success) {
    const [first = 'input', ...more] = parsed.error.issues[0]?.path.map(String) ?? [];
    const param = [first, ...more.filter((key) => /^\d+$/.test(key)).map((index) => `[${index}]`)].join('');
    const message = `Field "${param}" ${ADVICE[first] ?? 'has another type in the Responses API: correct it'}`;
    return { ok: false, refusal: { kind: 'refuse', code: 'request.invalid', message, param } };
  }
  const asked = parsed.data;
  const { tool_choice: choice, reasoning, text, max_output_tokens: most, stream } = asked;
  const named = typeof choice === 'object' ? choice?.name : undefined;
  const tools = asked.tools?.filter(({ name }) => named === undefined || name === named) ?? [];
  const chat = {
    ...Object.fromEntries(Object.entries(asked).filter(([key, value]) => !NOT_SENT.has(key) && value !== null)),
    messages: messagesOf(asked),
    ...(tools.length === 0 ? {} : { tools: tools.map(({ type, ...rest }) => ({ type, function: rest })) }),
    // llama-server takes no name of a tool.
    ...(typeof choice === 'string' ? { tool_choice: choice } : named === undefined ? {} : { tool_choice: 'required' }),
    ...(typeof reasoning?.effort === 'string' ? { reasoning_effort: reasoning.effort } : {}),
    ...(text?.format === undefined || text.format.type === 'text' ? {} : { response_format: formatOf(text.format) }),
    ...(typeof most === 'number' ? { max_tokens: most } : {}),
    ...(stream === true ? { stream, stream_options: { include_usage: true } } : {}),
  };
  return { ok: true, text: JSON.stringify(chat), asked };
}

function formatOf({ type, ...schema }: z.output<typeof Format>): object {
  return type === 'json_schema' ? { type, json_schema: schema } : { type };
}

interface Message {
  readonly role: string;
  readonly content?: string | readonly object[];
  readonly tool_call_id?: string;
  readonly tool_calls?: object[];
}

/** Calls belong to the message of the model before them. */
function messagesOf({ input, instructions }: AskedResponse): readonly Message[] {
  const messages: Message[] = typeof instructions === 'string' ? [{ role: 'system', content: instructions }] : [];
  for (const item of input) {
    if (item.type === 'reasoning') continue;
    if (item.type === 'function_call_output') messages.push({ role: 'tool', tool_call_id: item.call_id, content: contentOf(item.output) });
    else if (item.type === 'function_call') {
      const call = { id: item.call_id, type: 'function', function: { name: item.name, arguments: item.arguments } };
      const last = messages.at(-1);
      if (last?.role !== 'assistant') messages.push({ role: 'assistant', content: '', tool_calls: [call] });
      else messages[messages.length - 1] = { ...last, tool_calls: [...(last.tool_calls ?? []), call] };
    } else messages.push({ role: item.role === 'developer' ? 'system' : item.role, content: contentOf(item.content) });
  }
  return messages;
}

/** Templates of models take the text of the system, of tools and of the model itself as one string. */
function contentOf(content: z.output<typeof Content>): string | readonly object[] {
  if (typeof content === 'string') return content;
  const parts = content.map(({ type, text, refusal, image_url: url, ...rest }) => {
    if (type === 'input_image') return { type: 'image_url', image_url: { url } };
    return type === 'input_audio' ? { type, ...rest } : { type: 'text', text: text ?? refusal ?? '' };
  });
  const texts = parts.flatMap((part) => ('text' in part ? [String(part.text)] : []));
  return texts.length === parts.length ? texts.join('') : parts;
}
