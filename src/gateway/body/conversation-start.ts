/**
 * Finds what identifies a conversation while its body arrives: the same text in each of its turns, so that the replica
 * whose cache has the conversation gets all of them. A key that the client sends comes first, then its user, then the
 * prefix: system prompt and messages up to the first one of the user. Only their beginnings and lengths are read, and
 * equal texts count alike in every dialect.
 */
import type { Capability } from '../../schema/slot/provider-kinds.ts';
import { jsonFields, type JsonFilter, type JsonScanner } from '../../schema/words/json-scanner.ts';

const TAGS = ['cache-key', 'user', 'system', 'message', 'role', 'text', 'prompt'] as const;
export type ConversationTag = (typeof TAGS)[number];

const SYSTEM: JsonFilter<ConversationTag> = { tag: 'system', items: { fields: jsonFields({ text: { tag: 'system' } }) } };
/** Fields besides the messages: of Chat Completions, Completions, the Responses and the Messages API. */
export const CONVERSATION_FIELDS = {
  prompt_cache_key: { tag: 'cache-key' },
  user: { tag: 'user' },
  metadata: { fields: jsonFields({ user_id: { tag: 'user' } }) },
  system: SYSTEM,
  instructions: SYSTEM,
  prompt: { tag: 'prompt' },
} as const satisfies Readonly<Record<string, JsonFilter<ConversationTag>>>;

/** Bytes of each text that are compared, with its length. Most conversations differ in the user's first sentence. */
const COMPARED_BYTES = 512;
/** Characters kept of a prefix: some ten texts. A hostile one may have any number. */
const PREFIX_LIMIT = 8 * COMPARED_BYTES;

export class ConversationStart {
  #cacheKey: string | undefined;
  #user: string | undefined;
  #system = '';
  #prefix = '';
  #isOfUser = false;
  #isComplete = false;

  /** As far as the body was read; undefined if nothing identifies a conversation. */
  get key(): string | undefined {
    const prefix = this.#system + this.#prefix;
    return this.#cacheKey ?? this.#user ?? (prefix === '' ? undefined : prefix);
  }

  /** A further message begins. What follows the first one of the user differs between turns. */
  nextMessage(): void {
    this.#isComplete ||= this.#isOfUser;
  }

  /** Takes a string with a tag. `bytes`: its length. */
  note(tag: ConversationTag, scanner: Pick<JsonScanner<ConversationTag>, 'raw'>, bytes: number): void {
    if (this.#isComplete && (tag === 'text' || tag === 'role')) return;
    // A string that arrived in several chunks may be longer than asked for.
    const text = scanner.raw(COMPARED_BYTES).slice(0, COMPARED_BYTES);
    if (tag === 'role') this.#isOfUser = text === 'user';
    else if (tag === 'cache-key') this.#cacheKey = text;
    else if (tag === 'user') this.#user = text;
    else if (tag === 'system') this.#system = joined(this.#system, `${bytes}:${text}`);
    else if (tag === 'text') this.#prefix = joined(this.#prefix, `${bytes}:${text}`);
    // It grows from turn to turn.
    else if (tag === 'prompt') this.#prefix = text;
  }
}

const joined = (before: string, text: string): string => (before.length < PREFIX_LIMIT ? before + text : before);

export const isConversationTag = (tag: string): tag is ConversationTag => TAGS.some((each) => each === tag);

const CONTINUED: ReadonlySet<Capability> = new Set(['chat', 'completion']);

/** Only texts that are continued gain from the cache of one replica. A client that names a session knows better. */
export function conversationOf(
  { head, path }: { readonly head: { readonly sessionId?: string | undefined }; readonly path: { readonly capability: Capability } },
  scan: { readonly conversation?: string | undefined },
): string | undefined {
  return head.sessionId ?? (CONTINUED.has(path.capability) ? scan.conversation : undefined);
}
